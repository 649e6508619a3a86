package hcl_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
)

var update = flag.Bool("update", false, "rewrite golden files")

// config is a configuration as the daemons have one.
type config struct {
	Agent   agent        `hcl:"agent,block"`
	Sources []source     `hcl:"source,block"`
	Plugins []hcl.Plugin `hcl:"plugin,block"`
	TLS     *hcl.TLS     `hcl:"tls,block"`
	Log     *hcl.Log     `hcl:"log,block"`
	Metrics *hcl.Metrics `hcl:"metrics,block"`
}

type agent struct {
	Name     string              `hcl:"name"`
	DataDir  hcl.Path            `hcl:"data_dir"`
	Listen   hcl.Address         `hcl:"listen,optional"`
	Allow    []hcl.Address       `hcl:"allow,optional"`
	Limits   map[string]hcl.Size `hcl:"limits,optional"`
	Token    hcl.String          `hcl:"token,optional"`
	Password hcl.String          `hcl:"password,optional"`
	Workers  int                 `hcl:"workers,optional"`
	Strict   bool                `hcl:"strict,optional"`
	Since    *hcl.Time           `hcl:"since"`
	Tags     []string            `hcl:"tags,optional"`
	Mode     string              `hcl:"mode,optional" allowed:"fast safe"`
	Buffer   buffer              `hcl:"buffer,block,optional"`
	NameAt   hcl.Range           `hcl:"name,attr_range"`
	Range    hcl.Range           `hcl:",def_range"`
}

type buffer struct {
	MaxSize hcl.Size     `hcl:"max_size,optional"`
	Retain  hcl.Duration `hcl:"retain,optional"`
}

type source struct {
	Type     string       `hcl:"type,label"`
	Label    hcl.String   `hcl:"label,label"`
	Interval hcl.Duration `hcl:"interval"`
	Config   hcl.Body     `hcl:"config,block"`
	Record   *record      `hcl:"record,block"`
	Range    hcl.Range    `hcl:",def_range"`
}

type record struct {
	ID         hcl.Expression `hcl:"id"`
	When       hcl.Expression `hcl:"when,optional"`
	Components []component    `hcl:"component,block,repeat"`
	Rest       hcl.Body       `hcl:",remain"`
}

type component struct {
	Name   string         `hcl:"name,label"`
	Amount hcl.Expression `hcl:"amount"`
	When   hcl.Expression `hcl:"when,optional"`
	Scores []score        `hcl:"score,block"`
}

type score struct {
	Name  string         `hcl:"name,label"`
	Value hcl.Expression `hcl:"value"`
}

func load(t *testing.T, paths ...string) (*hcl.File, config, hcl.Diagnostics) {
	t.Helper()
	file, diags := hcl.Load(paths...)
	cfg := config{Agent: agent{Buffer: buffer{MaxSize: hcl.Size{Bytes: 42}}}}
	diags.Extend(hcl.Decode(file, &cfg, file.Context()))
	diags.Extend(cfg.TLS.Check())
	return file, cfg, diags
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, d)
	}
}

func TestBadFilesReportEveryProblemWithItsPlace(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.bad.hcl")
	if len(files) == 0 {
		t.Fatal("no files")
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			file, _, diags := load(t, name)
			if !diags.HasErrors() {
				t.Fatal("no error")
			}
			var pretty bytes.Buffer
			if err := diags.Write(&pretty, file.Sources, false); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(name, ".hcl")+".golden", []byte(diags.Error()+"\n\n"+pretty.String()))
		})
	}
}

func TestGoodFilesLoadWithoutAWord(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.good.hcl")
	if len(files) == 0 {
		t.Fatal("no files")
	}
	for _, name := range files {
		if _, _, diags := load(t, name); len(diags) > 0 {
			t.Errorf("%s: %v", name, diags.Error())
		}
	}
}
