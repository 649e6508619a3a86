package source

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
	"github.com/bursar-accounting/bursar/proto/boltfile"
)

func sample(id string) *run.Entry {
	e := run.New()
	e.Alloc = nomad.Allocation{ID: id, Namespace: "phys", JobID: "j", TaskGroup: "g", ClientStatus: nomad.Running, CreateIndex: 4, ModifyIndex: 7, CreateTime: 1, ModifyTime: 2}
	e.Job = &nomad.Job{ID: "j", Meta: map[string]string{"owner": "alice"}, SubmitTime: 1}
	e.Node = run.Node{Datacenter: "dc1", Pool: "default"}
	e.Tasks["main"] = &run.Task{State: "running", LastEvent: 3, Runs: []run.Run{{Start: time.Unix(1, 5).UTC(), First: true}}}
	return e
}

func openJournal(t *testing.T, dir, id string) *journal.Journal[*run.Entry] {
	t.Helper()
	j, err := journalForm().Open(t.Context(), dir, id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestWhatWasPutIsThereAfterAReopen(t *testing.T) {
	for _, dir := range []string{t.TempDir(), ""} {
		j := openJournal(t, dir, "first")
		if err := j.Put(sample("a"), sample("b")); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Delete("b"), j.Set("people", []byte("x"))); err != nil {
			t.Fatal(err)
		}
		if dir != "" {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = openJournal(t, dir, "second")
		}
		got, _, err := j.Get("a")
		if err != nil || !cmp.Equal(got, sample("a")) {
			t.Errorf("%v\n%s", err, cmp.Diff(got, sample("a")))
		}
		_, gone, err := j.Get("b")
		n := 0
		each := j.Each(func(*run.Entry) error { n++; return nil })
		if gone || err != nil || each != nil || n != 1 || j.ID() != "first" || string(j.Setting("people")) != "x" {
			t.Errorf("%v %v %v, %d entries, id %q", gone, err, each, n, j.ID())
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoProcessesDoNotShareAJournal(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, dir, "a")
	defer j.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := journalForm().Open(ctx, dir, "b"); !errors.Is(err, boltfile.ErrInUse) {
		t.Error(err)
	}
}

func TestADamagedJournalIsAnErrorThatSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "allocations.db"), []byte(strings.Repeat("no journal", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := journalForm().Open(t.Context(), dir, "a"); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Error(err)
	}
}

// golden is an entry as version 1 wrote it.
const golden = `{"alloc":{"ID":"a","Namespace":"phys","Name":"","NodeID":"","NodeName":"","JobID":"j","TaskGroup":"g","AllocatedResources":null,"DesiredStatus":"","DesiredDescription":"","ClientStatus":"running","ClientDescription":"","CreateIndex":4,"ModifyIndex":7,"CreateTime":1,"ModifyTime":2},"job":{"ID":"j","ParentID":"","Name":"","Namespace":"","Type":"","NodePool":"","Priority":0,"Version":0,"CreateIndex":0,"JobModifyIndex":0,"SubmitTime":1,"Meta":{"owner":"alice"},"TaskGroups":null},"node":{"dc":"dc1","pool":"default"},"tasks":{"main":{"runs":[{"start":"1970-01-01T00:00:01.000000005Z","first":true}],"state":"running","last":3}}}`

func TestEntriesOfVersionOneAreRead(t *testing.T) {
	text := append([]byte{1}, golden...)
	got, err := journalForm().Decode(text)
	if err != nil || !cmp.Equal(got, sample("a")) {
		t.Errorf("%v\n%s", err, cmp.Diff(got, sample("a")))
	}
	now, err := journalForm().Encode(sample("a"))
	if err != nil || string(now) != string(text) {
		t.Errorf("%v: the written form has changed:\n%s", err, now)
	}
	if _, err := journalForm().Decode(append([]byte{2}, golden...)); err == nil {
		t.Error("version 2 was taken")
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(append([]byte{1}, golden...))
	f.Add([]byte("\x01{\"tasks\":{\"a\":null}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := journalForm().Decode(text)
		if err != nil {
			return
		}
		for _, v := range e.Views(run.Ends{AtDisconnect: true}) {
			v.Values(run.Owner{ID: "owner"}, func(string) bool { return true })
		}
		if _, err := journalForm().Encode(e); err != nil && !strings.Contains(err.Error(), "year") {
			t.Errorf("%s: %v", hex.EncodeToString(text), err)
		}
	})
}
