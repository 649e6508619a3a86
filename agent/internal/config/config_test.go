package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestAllProblemsAreReportedAtOnceWithTheirPlaces(t *testing.T) {
	_, diags := config.Load("testdata/bad.hcl")
	golden(t, "bad.txt", diags.Error()+"\n")
}

func TestTheShippedExampleIsRight(t *testing.T) {
	cfg, diags := config.Load("../../../hcl/examples/agent.hcl")
	if len(diags) > 0 {
		t.Fatal(diags.Error())
	}
	if cfg.ListenAddress() != "0.0.0.0:7070" || len(cfg.Running()) != 1 || cfg.Agent.Buffer.Retain.Duration != 30*24*time.Hour {
		t.Errorf("%+v", cfg)
	}
}

func TestTheShippedExamplesOfSourcesAreRight(t *testing.T) {
	files, err := filepath.Glob("../../../hcl/examples/agent-*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "../../../hcl/examples/slurm.hcl", "../../../hcl/examples/replay.hcl") {
		if cfg, diags := config.Load(file); diags.HasErrors() || len(cfg.Sources) == 0 {
			t.Errorf("%s: %v", file, diags)
		}
	}
}

func TestPluginsGetTheirConfigWithPlacesAndSecretsMarked(t *testing.T) {
	t.Setenv("BURSAR_TEST_PASSWORD", "hush")
	cfg, diags := config.Load("testdata/agent.hcl")
	if diags.HasErrors() {
		t.Fatal(diags.Error())
	}
	text, err := prototext.MarshalOptions{Multiline: true}.Marshal(short(cfg.Sources[0].Tree))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tree.txt", strings.ReplaceAll(string(text), ":  ", ": "))
}

// short leaves only the places' lines, for a golden file that can be read.
func short(n *bursarv1.Node) *bursarv1.Node {
	n, _ = proto.Clone(n).(*bursarv1.Node)
	line := func(r *bursarv1.Range) *bursarv1.Range {
		return &bursarv1.Range{StartLine: r.GetStartLine(), StartColumn: r.GetStartColumn()}
	}
	n.Range = line(n.GetRange())
	for i, e := range n.GetElements() {
		n.Elements[i] = line(e)
	}
	for i, c := range n.GetChildren() {
		n.Children[i] = short(c)
	}
	return n
}

func TestDefaultsAndPluginsOfAShortConfiguration(t *testing.T) {
	t.Setenv("BURSAR_TEST_PASSWORD", "hush")
	cfg, diags := config.Load("testdata/agent.hcl")
	if diags.HasErrors() {
		t.Fatal(diags.Error())
	}
	abs, err := filepath.Abs("testdata/plugins/bursar-source-slurm")
	if err != nil {
		t.Fatal(err)
	}
	got := []any{
		cfg.ListenAddress(), cfg.BufferPath(), cfg.SocketPath(), cfg.Folder(&cfg.Sources[0]), cfg.BufferOptions().MaxSize,
		cfg.PluginDirs("/opt/bursar/bursar-agent"), cfg.Sources[0].Plugin.Path, cfg.Sources[0].Plugin.Env, len(cfg.Running()),
		cfg.Source("cloud").Name(), cfg.Source("slurm/nemo").Name(), cfg.Source("x") == nil,
	}
	want := []any{
		"", "testdata/data/buffer.db", "testdata/data/agent.sock", "testdata/data/sources/slurm/nemo", int64(8 << 30),
		[]string{"/usr/libexec/bursar/plugins", "/opt/bursar/plugins"}, abs, map[string]string{"A": "b"}, 1,
		"nomad/cloud", "slurm/nemo", true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlyWhatAPluginIsGivenMakesASourceAnother(t *testing.T) {
	const base = "source \"a\" \"l\" {\n interval = \"1m\"\n config { x = 1 }\n record { id = job.id }\n}\n"
	cases := []struct {
		name, text string
		same       bool
	}{
		{"nothing", base, true},
		{"places", "\n\n" + strings.ReplaceAll(base, "x = 1", "x   =   1"), true},
		{"interval", strings.ReplaceAll(base, "1m", "2m"), true},
		{"config", strings.ReplaceAll(base, "x = 1", "x = 2"), false},
		{"record", strings.ReplaceAll(base, "job.id", "job.user"), false},
		{"plugin's path", base + "plugin \"source\" \"a\" { path = \"/p\" }", false},
		{"plugin's environment", base + "plugin \"source\" \"a\" { env = { A = \"b\" } }", false},
	}
	const head = "agent { name = \"a\" }\n"
	old, _ := config.Parse("agent.hcl", []byte(head+base))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			next, diags := config.Parse("agent.hcl", []byte(head+c.text))
			if diags.HasErrors() {
				t.Fatal(diags.Error())
			}
			if got := old.Sources[0].Same(&next.Sources[0]); got != c.same {
				t.Errorf("same is %v", got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/agent.hcl", "testdata/bad.hcl"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg, diags := config.Parse("agent.hcl", text)
		if cfg == nil {
			t.Fatal("no configuration")
		}
		if !diags.HasErrors() && cfg.Agent.Name.Value == "" {
			t.Error("an agent without a name passed")
		}
	})
}
