package convert_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/convert"
	"github.com/bursar-accounting/bursar/hcl"
)

var update = flag.Bool("update", false, "write what files become to testdata")

var now = time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC)

// examples are the files of testdata, which are converted together where they are in one
// folder.
func examples(t *testing.T) map[string][]convert.Input {
	t.Helper()
	out := map[string][]convert.Input{}
	paths, _ := filepath.Glob("testdata/*.yml")
	more, _ := filepath.Glob("testdata/*/*")
	for _, path := range append(paths, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(path, ".yml")
		if filepath.Dir(path) != "testdata" {
			name = filepath.Dir(path)
		}
		out[name] = append(out[name], convert.Input{Name: path, Text: text})
	}
	if len(out) < 10 {
		t.Fatal("only", len(out))
	}
	return out
}

// written is a result as a file of testdata.
func written(r *convert.Result) string {
	text := r.Agent + r.Aggregator
	for _, c := range r.Changes {
		text += fmt.Sprintf("# %s | %s | %s | %s\n", c.File, c.Setting, c.Before, c.Now)
	}
	return text
}

func TestFiles_Examples_BecomeValidHCL(t *testing.T) {
	for name, inputs := range examples(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got, err := convert.Files(now, inputs...)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(name+".hcl", []byte(written(got)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".hcl")
			if diff := cmp.Diff(string(want), written(got)); diff != "" || err != nil {
				t.Error(err, diff)
			}
			if strings.Contains(written(got), "hunter2") {
				t.Error("a password is shown")
			}
			if got.Aggregator == "" {
				return
			}
			path := filepath.Join(t.TempDir(), "aggregator.hcl")
			if err := os.WriteFile(path, []byte(got.Aggregator), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, diags := config.LoadOffline(path); diags.HasErrors() {
				t.Error(diags)
			}
		})
	}
}

func TestFiles_Bad_AreNamed(t *testing.T) {
	for want, in := range map[string]convert.Input{
		"all of its lines are comments": {Name: "a.yml", Text: []byte("# addr: x\n")},
		"unknown configuration":         {Name: "b.yml", Text: []byte("colour: blue\n")},
		"c.yml: yaml":                   {Name: "c.yml", Text: []byte("a: [\n")},
		"has no value":                  {Name: "slurm.yml", Text: []byte("components:\n  - name: Cores\n    key: NCPUS\n    scores: [{name: x}]\n")},
		"no INSERT statement":           {Name: "tables.sql", Text: []byte("create table x (a int);")},
		"line 1":                        {Name: "tables.sql", Text: []byte("insert into project values (1,2,3,4);")},
		"no line names a group":         {Name: "access.conf", Text: []byte("- : ALL : ALL\n")},
		"invalid character":             {Name: "user-db.json", Text: []byte("x")},
	} {
		if _, err := convert.Files(now, in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", in.Name, err, want)
		}
	}
}

func FuzzFiles(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.yml")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Base(path), text)
	}
	f.Add("tables.sql", []byte("insert into processor_type values (1,'2010-01-01','^kat-(a|[b-d]).*','old',8,4,1.0,'katana',FALSE);"))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		got, err := convert.Files(now, convert.Input{Name: name, Text: text})
		if err != nil {
			return
		}
		for _, text := range []string{got.Agent, got.Aggregator} {
			if _, diags := hcl.FormatFile("x.hcl", []byte(text)); diags.HasErrors() {
				t.Error(diags)
			}
		}
	})
}
