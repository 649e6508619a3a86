package programs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func at(cluster, incarnation, action string, fence uint64) *attempt {
	return &attempt{cluster, incarnation, action, fence}
}

func TestALesserFenceIsRefusedAlsoAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fences")
	for _, step := range []struct {
		attempt *attempt
		well    bool
	}{
		{at("c", "", "exec/a", 5), true},
		{at("c", "", "exec/a", 5), true}, // another program of the attempt
		{at("c", "", "exec/a", 4), false},
		{at("c", "", "exec/b", 1), true}, // of another action
		{at("d", "", "exec/a", 1), true}, // of another cluster
		{at("c", "", "exec/a", 9), true},
		{at("c", "", "exec/a", 5), false},
		{at("c", "one", "exec/a", 2), true}, // the cluster was restored
		{at("c", "one", "exec/a", 1), false},
		{at("c", "", "exec/a", 100), false}, // of the time before
		{at("c", "two", "exec/a", 1), true},
		{at("c", "one", "exec/a", 100), false},
		{at("d", "", "exec/a", 1), true},
	} {
		f := NewFences(path) // as after a restart
		if err := f.raiseFence(step.attempt); (err == nil) != step.well || err != nil && !errors.Is(err, ErrOutdated) {
			t.Errorf("%v: %v", step.attempt, err)
		}
	}
}

func TestAnAttemptIsTheNewestUntilALaterOneComes(t *testing.T) {
	f := NewFences(filepath.Join(t.TempDir(), "fences"))
	first := at("c", "", "exec/a", 1)
	if f.isNewest(first) {
		t.Error("it is not known yet")
	}
	if err := f.raiseFence(first); err != nil || !f.isNewest(first) {
		t.Error(err)
	}
	if err := f.raiseFence(at("c", "", "exec/a", 2)); err != nil || f.isNewest(first) {
		t.Error(err)
	}
}

func TestOddErrandsAreRefused(t *testing.T) {
	f := NewFences(filepath.Join(t.TempDir(), "fences"))
	for _, a := range []*attempt{at("", "", "exec/a", 1), at("c", "", "", 1), at("c", "", "exec/a", 0), at(strings.Repeat("c", 1000), "", "exec/a", 1)} {
		if err := f.raiseFence(a); err == nil {
			t.Error(a)
		}
	}
}

func TestADamagedFileOfFencesIsRefusedWithARemedy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fences")
	if err := NewFences(path).raiseFence(at("c", "", "exec/a", 5)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[i] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := NewFences(path).raiseFence(at("c", "", "exec/a", 1)); err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Fatalf("byte %d: %v", i, err)
		}
		if err := os.WriteFile(path, whole[:i], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := NewFences(path).raiseFence(at("c", "", "exec/a", 1)); err == nil {
			t.Fatalf("only %d bytes: no error", i)
		}
	}
}

func TestAFenceThatCannotBeKeptIsNotTaken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := NewFences(filepath.Join(dir, "fences")).raiseFence(at("c", "", "exec/a", 5)); err == nil {
		t.Error("a fence was kept in a folder that is not there")
	}
}

func TestTheFileOfFencesThatWasReleasedIsRead(t *testing.T) {
	raw, err := os.ReadFile("testdata/fences-1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeFences(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := &fences{Clusters: []fencesOf{{Cluster: "c1", Incarnation: "two", Before: []string{"", "one"}, Actions: map[string]uint64{"exec/a": 7, "priority/nemo": 12345678901234567890}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if string(want.encodeFences()) != string(raw) {
		t.Errorf("it is written as\n%s", want.encodeFences())
	}
}

func FuzzFencesAreDecodedAsTheyAreEncodedOrNotAtAll(f *testing.F) {
	f.Add((&fences{}).encodeFences())
	f.Add((&fences{Clusters: []fencesOf{{Cluster: "c", Actions: map[string]uint64{"a/b": 1}}}}).encodeFences())
	f.Add([]byte(header + "00000000\n{}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		// The checksum hides the parser from a fuzzer, so it is put right.
		if line, body, ok := strings.Cut(string(raw), "\n"); ok && strings.HasPrefix(line, header) {
			raw = sealBody([]byte(strings.TrimSuffix(body, "\n")))
		}
		s, err := decodeFences(raw)
		if err != nil {
			if !errors.Is(err, errFormat) {
				t.Error(err)
			}
			return
		}
		again, err := decodeFences(s.encodeFences())
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("%+v, %+v, %v", s, again, err)
		}
		_, _, _ = s.withAttempt(at("c", "", "a/b", 5))
	})
}
