package clusterconfig

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAMarkIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	m := mark{Files: "f", Base: noBase}
	if err := writeMark(dir, m); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, markName))
	if want := `{"format":2,"files":"f","base":"none"}` + "\n"; err != nil || string(text) != want {
		t.Fatalf("%s %v", text, err)
	}
	if got, err := readMark(dir); err != nil || got.Files != "f" || got.Base != noBase {
		t.Error(got, err)
	}
}

func TestADamagedMarkIsReportedAndCommitsNothing(t *testing.T) {
	for _, text := range []string{"", "x", `{"format":3}`, `{"format":1,"more":1}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, markName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := readMark(dir); err == nil || m.Base != "" || !strings.Contains(err.Error(), markName) {
			t.Error(text, m, err)
		}
	}
}

func TestAMarkThatCannotBeWrittenIsSaid(t *testing.T) {
	log := &strings.Builder{}
	k := &Keeper{opt: Options{Dir: filepath.Join(t.TempDir(), "none"), Log: slog.New(slog.NewTextHandler(log, nil))}}
	k.takeFiles(&Document{})
	if !strings.Contains(log.String(), "cannot be noted") {
		t.Error(log)
	}
}

// TestAMarkOfBeforeKnowsAnEditAcrossTheUpgrade: the digests of format 1 are those of
// documents that have others now.
func TestAMarkOfBeforeKnowsAnEditAcrossTheUpgrade(t *testing.T) {
	raw, err := os.ReadFile("testdata/committed-1.json")
	if err != nil {
		t.Fatal(err)
	}
	now, err := DecodeCommitted(raw)
	if err != nil {
		t.Fatal(err)
	}
	was, is, other := now.former.String(), now.Digest.String(), strings.Repeat("ab", 32)
	for what, c := range map[string]struct {
		old  mark
		now  *Committed
		want mark
	}{
		"the files are what is committed":           {mark{Format: 1, Files: was}, now, mark{Files: is}},
		"the files differ and are not to be":        {mark{Format: 1, Files: other}, now, mark{}},
		"an edit waits":                             {mark{Format: 1, Files: other, Base: was}, now, mark{Files: other, Base: is}},
		"an edit was overtaken":                     {mark{Format: 1, Files: other, Base: other}, now, mark{}},
		"an edit waits and nothing is committed":    {mark{Format: 1, Files: other, Base: noBase}, nil, mark{Files: other, Base: noBase}},
		"an edit waits and something is there":      {mark{Format: 1, Files: other, Base: noBase}, now, mark{}},
		"a mark of now stays":                       {mark{Format: 2, Files: was, Base: other}, now, mark{Format: 2, Files: was, Base: other}},
		"a node without a mark has none":            {mark{}, now, mark{}},
		"the files are known, nothing is committed": {mark{Format: 1, Files: other}, nil, mark{}},
	} {
		if got := c.old.renewedFrom(c.now); got != c.want {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}

func FuzzMark(f *testing.F) {
	f.Add([]byte(`{"format":1,"files":"f","base":"none"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, err := decodeMark(raw); err == nil && m.Format != markFormat && m.Format != oldMarkFormat {
			t.Error(m)
		}
	})
}
