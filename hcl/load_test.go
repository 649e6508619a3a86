package hcl_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
)

func TestDirectoryIsMergedInLexicalOrder(t *testing.T) {
	file, diags := hcl.Load("testdata/dup")
	var cfg struct {
		A       int          `hcl:"a"`
		B       int          `hcl:"b"`
		Sources []source     `hcl:"source,block"`
		Other   hcl.Duration `hcl:"other,optional"`
	}
	diags.Extend(hcl.Decode(file, &cfg, file.Context()))
	want := `testdata/dup/20-c.hcl:1:1: duplicate attribute; a is already set at testdata/dup/05-a.hcl:1:1
testdata/dup/20-c.hcl:2:1: duplicate block; source "x" "y" is already defined at testdata/dup/10-b.hcl:2:1`
	if d := cmp.Diff(want, diags.Error()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"testdata/dup/05-a.hcl", "testdata/dup/10-b.hcl", "testdata/dup/20-c.hcl"}, file.Paths); d != "" {
		t.Error(d)
	}
	if cfg.A != 1 || cfg.B != 2 || file.Dir != "testdata/dup" {
		t.Errorf("a = %d, b = %d, dir = %s", cfg.A, cfg.B, file.Dir)
	}
}

func TestSeveralPathsAreOneConfiguration(t *testing.T) {
	file, diags := hcl.Load("testdata/dup/05-a.hcl", "testdata/dup/10-b.hcl", "testdata/dup/../dup/05-a.hcl")
	if diags.HasErrors() || len(file.Paths) != 2 || len(file.Sources) != 2 {
		t.Errorf("%v %v", file.Paths, diags)
	}
}

func TestUnreadableConfigurationIsAnErrorNotAPanic(t *testing.T) {
	empty := t.TempDir()
	big := filepath.Join(empty, "big")
	if err := os.WriteFile(big, make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		err   string
	}{
		{nil, "no file or directory was named"},
		{[]string{"testdata/none.hcl"}, "file testdata/none.hcl does not exist"},
		{[]string{empty}, "no *.hcl files"},
		{[]string{big}, "larger than"},
		{[]string{"/dev/null"}, "not a regular file"},
		{[]string{"testdata/none.hcl", "testdata/agent.good.hcl"}, "file testdata/none.hcl does not exist"},
	} {
		file, _, diags := load(t, c.paths...)
		if file == nil || diags.Err() == nil || !strings.Contains(diags.Error(), c.err) {
			t.Errorf("%v: %v", c.paths, diags)
		}
	}
}

func TestDecodedValuesKeepDefaultsAndRanges(t *testing.T) {
	_, cfg, diags := load(t, "testdata/agent.good.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	a := cfg.Agent
	if a.Name != "nemo-head1" || a.DataDir.Path != "/var/lib/bursar-agent" || a.Listen.String() != "0.0.0.0:7070" || a.Since != nil {
		t.Errorf("%+v", a)
	}
	if a.Buffer.MaxSize.Bytes != 8<<30 || a.Buffer.Retain.Duration != 720*time.Hour || a.Buffer.Retain.Range.Start.Line != 7 {
		t.Errorf("%+v", a.Buffer)
	}
	if a.NameAt.Start.Line != 2 || a.Range.Start.Line != 1 || cfg.Sources[1].Range.Start.Line != 35 {
		t.Errorf("%v %v %v", a.NameAt, a.Range, cfg.Sources[1].Range)
	}
	s := cfg.Sources[0]
	if s.Type != "slurm" || s.Label.Value != "nemo" || s.Config == nil || cfg.Sources[1].Config != nil {
		t.Errorf("%+v", s)
	}
	if n := len(s.Record.Components); n != 3 || s.Record.Components[0].When != nil || s.Record.Components[1].When == nil {
		t.Errorf("%d components", n)
	}
	if got := cfg.Plugins[0].Path.Path; got != "testdata/bin/bursar-action-priority" {
		t.Errorf("a relative path became %s", got)
	}
	if cfg.Log.SlogLevel().String() != "DEBUG" {
		t.Error(cfg.Log.SlogLevel())
	}
}

func TestOptionalBlockKeepsDefaultsWhenAbsent(t *testing.T) {
	file, diags := hcl.Parse("x.hcl", []byte("agent {\n name = \"a\"\n data_dir = \"d\"\n listen = null\n}\n"))
	cfg := config{Agent: agent{Listen: hcl.Address{Port: 1}, Buffer: buffer{MaxSize: hcl.Size{Bytes: 42}}}}
	diags.Extend(hcl.Decode(file, &cfg, nil))
	if diags.HasErrors() || cfg.Agent.Buffer.MaxSize.Bytes != 42 || cfg.Agent.Listen.Port != 1 {
		t.Errorf("%+v %v", cfg.Agent, diags)
	}
}

func TestRemainingBodyIsDecodedLater(t *testing.T) {
	_, cfg, _ := load(t, "testdata/agent.good.hcl")
	var rest struct {
		Meta hcl.Expression `hcl:"meta"`
	}
	if diags := hcl.DecodeBody(cfg.Sources[0].Record.Rest, &rest, nil); diags.HasErrors() || rest.Meta == nil {
		t.Error(diags)
	}
	var none struct{}
	diags := hcl.DecodeBody(cfg.Sources[0].Record.Rest, &none, nil)
	if !strings.Contains(diags.Error(), `testdata/agent.good.hcl:19:5: unknown attribute "meta"`) {
		t.Error(diags)
	}
}

func TestDiagnosticsAsJSON(t *testing.T) {
	d := hcl.Diagnostics{
		hcl.Errorf(hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: 2, Column: 3, Byte: 9}, End: hcl.Pos{Line: 2, Column: 5, Byte: 11}}, "bad", "very %s", "bad"),
		hcl.Warnf(hcl.Range{}, "odd", ""),
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"severity":"error","summary":"bad","detail":"very bad","file":"a.hcl","line":2,"column":3,"end_line":2,"end_column":5},{"severity":"warning","summary":"odd"}]`
	if string(b) != want {
		t.Error(string(b))
	}
	if b, _ := json.Marshal(hcl.Diagnostics(nil)); string(b) != "[]" {
		t.Error(string(b))
	}
	if got := d.Error(); got != "a.hcl:2:3: bad; very bad\nwarning: odd" {
		t.Error(got)
	}
	if err := d.Err(); err == nil || err.Error() != "a.hcl:2:3: bad; very bad" {
		t.Error(err)
	}
	if err := d.Warnings().Err(); err != nil {
		t.Error(err)
	}
}

func TestPrettyDiagnosticsColourOnlyWhenToldAndNeverPassControlCharacters(t *testing.T) {
	file, diags := hcl.Parse("x.hcl", []byte("\tname\t= \"\x1b[2J\u009b2J\" # é \r\n\tother = 1\n"))
	diags.Extend(hcl.Decode(file, &struct{}{}, nil))
	var plain, colour bytes.Buffer
	if err := diags.Write(&plain, file.Sources, false); err != nil {
		t.Fatal(err)
	}
	if err := diags.Write(&colour, file.Sources, true); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "\x1b") || !strings.Contains(colour.String(), "\x1b[31mError") || strings.ContainsAny(colour.String(), "\u009b\r") || strings.Contains(colour.String(), "\x1b[2J") || !strings.Contains(colour.String(), "\x1b[1;4mother\x1b[0m = 1") {
		t.Errorf("%q\n%q", plain.String(), colour.String())
	}
}

func TestFormatAlignsAndRefusesWhatDoesNotParse(t *testing.T) {
	got, diags := hcl.FormatFile("x.hcl", []byte("agent {\nname=\"a\"\n  data_dir =   \"d\"\n}\n"))
	if want := "agent {\n  name     = \"a\"\n  data_dir = \"d\"\n}\n"; diags.HasErrors() || string(got) != want {
		t.Errorf("%s %v", got, diags)
	}
	bad := []byte("agent {\n")
	if got, diags := hcl.FormatFile("x.hcl", bad); !diags.HasErrors() || !bytes.Equal(got, bad) {
		t.Errorf("%s %v", got, diags)
	}
}

func TestLongFilesAreParsed(t *testing.T) {
	src := "config {\n" + strings.Repeat("  group \"a\" {\n    x = [1, 2, { a = b.c + 1 }]\n  }\n", 5000) + "}\n"
	if _, diags := hcl.Parse("x.hcl", []byte(src)); diags.HasErrors() {
		t.Error(diags)
	}
}

func TestSuggestionsAreCloseOrNone(t *testing.T) {
	names := []string{"interval", "listen", "tls_listen", "data_dir", "ca"}
	for _, c := range []struct{ in, want string }{
		{"intervall", "interval"}, {"Interval", "interval"}, {"data-dir", "data_dir"}, {"datadir", "data_dir"},
		{"lisetn", "listen"}, {"cc", "ca"}, {"password", ""}, {"x", ""}, {"", ""}, {strings.Repeat("i", 5000), ""},
	} {
		if got := hcl.Suggest(c.in, names); got != c.want {
			t.Errorf("%.20q: %q, want %q", c.in, got, c.want)
		}
	}
}
