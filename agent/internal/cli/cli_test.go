package cli

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/local"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

var update = flag.Bool("update", false, "write the golden files")

// binary is the example plugin, built once.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "bursar-cli-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "bursar-source-example")
	if err := programtest.Build(dir, map[string]string{
		"bursar-source-example": "plugins/source/example", "bursar-source-receiver": "plugins/source/receiver", "bursar-source-slurm-epilog": "plugins/source/slurm-epilog",
	}); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
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

// bursar runs the command line and returns the exit code and all that it said,
// with the folder's name taken out.
func bursar(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := Env{Out: &out, Err: &errs, Getenv: func(string) string { return "" }, Executable: filepath.Join(dir, "bursar-agent"), Version: "1.2.3"}
	code := Main(t.Context(), env, args)
	text := out.String()
	if errs.Len() > 0 {
		text += "-- stderr\n" + errs.String()
	}
	return code, strings.ReplaceAll(text, dir+"/", "")
}

const sound = `agent {
  name     = "a1"
  data_dir = "data"
}
source "example" "ex" {
  config { path = "DIR/jobs" }
  record {
    when  = job.user != "nobody"
    id    = "${source.label}-${job.id}"
    start = job.start
    stop  = job.stop
    state = "DONE"
    component "Cores" {
      amount = job.id == "4" ? -1 : 8
      score "HEPScore23" { value = 10.5 }
    }
    component "Work" {
      amount = 5
      kind   = "total"
    }
  }
}
`

// folder is a site with the example plugin, four jobs and a configuration.
func folder(t *testing.T, configuration string) string {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(binary)
	must(err)
	must(os.Mkdir(filepath.Join(dir, "plugins"), 0o700))
	must(programtest.WriteProgram(filepath.Join(dir, "plugins/bursar-source-example"), text))
	must(os.WriteFile(filepath.Join(dir, "jobs"), []byte("1 eve 100 200\n2 alice 1767225600 1767229200\n3 nobody 1767225600 1767229200\n4 bob 1767225600 1767229200\n"), 0o600))
	must(os.WriteFile(filepath.Join(dir, "agent.hcl"), []byte(strings.ReplaceAll(configuration, "DIR", dir)), 0o600))
	return dir
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	a := &app{}
	commands := []string{""}
	for _, c := range a.rootCommand().Commands() {
		commands = append(commands, c.Name())
		if c.Example == "" {
			t.Errorf("%s has no example", c.Name())
		}
	}
	var all strings.Builder
	for _, name := range commands {
		args := append(strings.Fields(name), "-h")
		code, text := bursar(t, t.TempDir(), args...)
		if code != 0 {
			t.Errorf("%s -h: exit code %d", name, code)
		}
		fmt.Fprintf(&all, "$ bursar-agent %s\n%s\n", strings.Join(args, " "), text)
	}
	golden(t, "help.txt", all.String())
}

func TestLongFlagsTakeOneDashOrTwo(t *testing.T) {
	for in, want := range map[string]string{
		"-config x": "--config x", "--config x": "--config x", "-config=x": "--config=x", "-n 3": "-n 3", "-n3": "-n3", "-h": "-h", "-- -config": "-- -config", "-1": "-1",
	} {
		if got := strings.Join(commandline.TwoDashes(Commands(), strings.Fields(in)), " "); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestACheckPrintsAllProblemsWithTheirLines(t *testing.T) {
	dir := folder(t, "agent {\n  name = \"a1\"\n  nam  = 1\n}\nsource \"example\" \"ex\" {\n  config { pth = \"x\" }\n  record {\n    state = job.usr\n  }\n}\nsource \"exmple\" \"x\" {}\n")
	code, text := bursar(t, dir, "-dev", "-config", dir+"/agent.hcl", "-check")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	golden(t, "check-bad.txt", text)
	dir = folder(t, sound)
	code, text = bursar(t, dir, "-dev", "-config", dir+"/agent.hcl", "-check")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	golden(t, "check-good.txt", text)
}

func TestCheck_TakenPortAndUnusableFolder_AreErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const source = "source \"example\" \"ex\" {\n  config { path = \"DIR/jobs\" }\n}\n"
	for block, want := range map[string]string{
		"data_dir = \"jobs/data\"": "not a folder", "data_dir = \"jobs\"": "not a folder",
		"data_dir = \"data\"\n  metrics { listen = \"" + l.Addr().String() + "\" }": "another process listens on " + l.Addr().String(),
		"data_dir = \"data/deep/er\"": "",
	} {
		dir := folder(t, "agent {\n  name = \"a1\"\n  "+block+"\n}\n"+source)
		code, text := bursar(t, dir, "-dev", "-config", dir+"/agent.hcl", "-check")
		if (code == 1) != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d\n%s", block, code, text)
		}
		if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
			t.Error("the check made the folder:", err)
		}
	}
}

// A running agent's own sources have their ports, so that only an idle one is refused.
func TestCheck_PortOrSocketOfASourceTaken_IsAnErrorUnlessTheAgentRuns(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ca := identitytest.New(t)
	files := ca.Files(identity.Agent, "a1")
	tls := fmt.Sprintf("tls {\n ca = %q\n cert = %q\n key = %q\n }\n", files.CA, files.Cert, files.Key)
	for source, want := range map[string]string{
		"receiver\" \"x\" {\n config {\n listen = \"ADDR\"\n allow_local_users = true\n":                        "another process listens on " + l.Addr().String(),
		"receiver\" \"x\" {\n config {\n listen = \"ADDR\"\n" + tls:                                             "another process listens on " + l.Addr().String(),
		"receiver\" \"x\" {\n config {\n socket = \"DIR/taken.sock\"\n":                                         "another process listens on taken.sock",
		"receiver\" \"x\" {\n config {\n socket = \"DIR/jobs/x.sock\"\n":                                        "not a folder",
		"receiver\" \"x\" {\n config {\n socket = \"DIR/free.sock\"\n":                                          "",
		"slurm-epilog\" \"x\" {\n config {\n sacct = \"/bin/true\"\n socket = \"DIR/taken.sock\"\n":             "another process listens on taken.sock",
		"slurm-epilog\" \"x\" {\n config {\n sacct = \"/bin/true\"\n socket = \"\"\n listen = \"ADDR\"\n" + tls: "another process listens on " + l.Addr().String(),
	} {
		dir := folder(t, "agent {\n name = \"a1\"\n data_dir = \"data\"\n plugin_dirs = [\""+filepath.Dir(binary)+"\"]\n}\nsource \""+strings.ReplaceAll(source, "ADDR", l.Addr().String())+" }\n}\n")
		taken, err := local.Listen(filepath.Join(dir, "taken.sock"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		code, text := bursar(t, dir, "-dev", "-config", dir+"/agent.hcl", "-check")
		if (code == codeError) != (want != "") || !strings.Contains(text, want) || want != "" && !strings.Contains(text, "agent.hcl line ") {
			t.Errorf("%s: exit code %d\n%s", source, code, text)
		}
		if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		agent, err := local.Listen(filepath.Join(dir, "data", "agent.sock"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer agent.Close()
		if code, text := bursar(t, dir, "-dev", "-config", dir+"/agent.hcl", "-check"); code != 0 {
			t.Errorf("%s, while the agent runs: exit code %d\n%s", source, code, text)
		}
	}
}

func TestACommandFindsTheAgentWhoseConfigurationDoesNotParse(t *testing.T) {
	dir := folder(t, "agent {\n  name     = \"a1\"\n  data_dir = \"elsewhere\"\n}\nsource \"example\" \"ex\" {\n  config { path = }\n}\n")
	if code, text := bursar(t, dir, "reload", "-config", dir+"/agent.hcl"); code != codeError || !strings.Contains(text, "elsewhere/agent.sock") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

func TestACheckSaysWhatToDoAboutEachMistake(t *testing.T) {
	const agent = "agent {\n  name = \"a1\"\n}\n"
	var all strings.Builder
	for _, c := range []struct{ name, text string }{
		{"a quote that is not closed", "agent {\n  name = \"a1\n  tls {\n    ca = \"ca.pem\"\n  }\n}\nsource \"example\" \"ex\" {}\n"},
		{"no value", "agent {\n  name = \"a1\"\n  tls {\n    ca =\n  }\n}\nsource \"example\" \"ex\" {}\n"},
		{"certificates that are not named", "agent {\n  name = \"a1\"\n  tls {\n    ca   = null\n    cert = \"absent.pem\"\n  }\n}\nsource \"example\" \"ex\" {\n  config { path = \"x\" }\n}\n"},
		{"a setting of the plugin beside config", agent + "source \"example\" \"ex\" {\n  path = \"x\"\n  intervall = \"1m\"\n  server {}\n  config { path = \"x\" }\n}\n"},
		{"a label that is missing", agent + "source \"example\" {\n  config {}\n}\nsource {}\nsource \"\" \"x\" {}\nallow_action \"exec\" {\n  commands = [[\"/bin/true\"]]\n}\n"},
		{"a source that is mistyped", agent + "sorce \"example\" \"ex\" {}\n"},
		{"no source", "agent {\n  name     = \"a1\"\n  data_dir = \"data\"\n}\n"},
		{"what belongs into the block agent", agent + "log { level = \"info\" }\nlisten = \":7070\"\n"},
		{"an empty file", "\n"},
		{"wrong types", agent + "source \"example\" \"ex\" {\n  interval = 5\n  enabled  = \"yes\"\n  config { path = [\"x\"] }\n}\n"},
		{"settings that the plugin does not have", agent + "source \"example\" \"ex\" {\n  config {\n    pth   = \"x\"\n    zzzz  = 1\n    group {}\n  }\n}\n"},
		{"values out of the allowed ones", "agent {\n  name = \"a 1\"\n  log { level = \"warning\" }\n  buffer { max_size = \"8G\" }\n}\nsource \"Example\" \"e/x\" {}\n"},
		{"files that are missing", agent + "plugin \"source\" \"example\" { path = \"/nowhere/plugin\" }\nsource \"example\" \"ex\" {\n  config { path = file(\"/nowhere/path\") }\n}\nsource \"example\" \"ey\" {\n  config { path = \"x\" }\n}\n"},
		{"an unknown function and an unknown plugin", agent + "source \"example\" \"ex\" {\n  config { path = fil(\"x\") }\n}\nsource \"exampel\" \"ey\" {}\n"},
		{"a block of components as an attribute", agent + "source \"example\" \"ex\" {\n  config { path = \"x\" }\n  record { components = 1 }\n}\n"},
	} {
		dir := folder(t, c.text)
		code, text := bursar(t, dir, "-dev", "-config", dir+"/agent.hcl", "-check")
		fmt.Fprintf(&all, "# %s => %d\n%s\n", c.name, code, text)
	}
	golden(t, "check-mistakes.txt", all.String())
}

func TestAPreviewShowsEachJobAndWhatBecomesOfIt(t *testing.T) {
	dir := folder(t, sound)
	for _, format := range []string{"table", "json"} {
		code, text := bursar(t, dir, "preview", "-dev", "-config", dir+"/agent.hcl", "-since", "2025-12-31", "-until", "2026-01-02", "-n", "3", "-format", format)
		if code != 2 { // a job fails
			t.Errorf("exit code %d", code)
		}
		golden(t, "preview-"+format+".txt", text)
	}
}

func TestPreview_MappingNamesVersions_ShowsThem(t *testing.T) {
	dir := folder(t, strings.Replace(sound, `    state = "DONE"`, `    state = "${agent.version} ${source.version}"`, 1))
	code, text := bursar(t, dir, "preview", "-dev", "-config", dir+"/agent.hcl", "-since", "2025-12-31", "-until", "2026-01-02", "-n", "3")
	if code != 2 || !strings.Contains(text, "  1.2.3 1.0.0\n") { // a job fails
		t.Error(code, text)
	}
}

func TestAPreviewWithoutABeginWidensItsWindowUntilThereAreEnoughJobs(t *testing.T) {
	dir := folder(t, sound)
	line := func(id string, back time.Duration) string {
		stop := time.Now().Add(-back)
		return fmt.Sprintf("%s ann %d %d\n", id, stop.Add(-time.Hour).Unix(), stop.Unix())
	}
	const day = 24 * time.Hour
	jobs := line("years", 1000*day) + line("weeks", 20*day) + line("days", 5*day) + line("hour", time.Hour)
	if err := os.WriteFile(filepath.Join(dir, "jobs"), []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{1: "hour", 2: "days hour", 3: "weeks days hour", 4: "years weeks days hour", 5: "years weeks days hour"} {
		if n == 0 {
			continue
		}
		code, text := bursar(t, dir, "preview", "-dev", "-config", dir+"/agent.hcl", "-n", fmt.Sprint(n))
		var got []string
		for l := range strings.SplitSeq(text, "\n") {
			if rest, ok := strings.CutPrefix(l, "example/ex  "); ok {
				got = append(got, strings.Fields(rest)[0])
			}
		}
		if strings.Join(got, " ") != want || code != 0 {
			t.Errorf("-n %d: %q, want %q, exit code %d:\n%s", n, got, want, code, text)
		}
		if all := strings.Contains(text, "all of the past"); all != (n > 3) {
			t.Errorf("-n %d: said that it looks through all of the past: %v", n, all)
		}
	}
}

func TestCollectOnceFillsTheBufferAndSaysWhatItDid(t *testing.T) {
	dir := folder(t, sound)
	var all strings.Builder
	for _, args := range []string{"collect -once", "collect -once -source example/ex", "collect", "collect -once -source nope"} {
		code, text := bursar(t, dir, append(strings.Fields(args), "-dev", "-config", dir+"/agent.hcl")...)
		fmt.Fprintf(&all, "$ bursar-agent %s => %d\n%s\n", args, code, text)
	}
	golden(t, "collect.txt", all.String())
}

func TestMistakesOnTheCommandLineAreAnswered(t *testing.T) {
	dir := folder(t, sound)
	var all strings.Builder
	for _, args := range []string{
		"stauts", "-chek", "preview -n 0", "preview -since never", "status -format xml", "status", "reload", "recollect", "recollect -source ex -from 2026-13-01",
		"preview -since 1h -until 2h", "-config nowhere.hcl -check", "version -format table",
	} {
		code, text := bursar(t, dir, append(strings.Fields(args), "-config", dir+"/agent.hcl")...)
		if strings.HasPrefix(args, "version") {
			text, _, _ = strings.Cut(text, " (")
			text = strings.Join(strings.Fields(text)[:2], " ") + "\n"
		}
		fmt.Fprintf(&all, "$ bursar-agent %s => %d\n%s\n", args, code, text)
	}
	golden(t, "mistakes.txt", all.String())
}

func TestTheStatusIsATable(t *testing.T) {
	at := func(minutes int) *time.Time {
		x := time.Date(2026, 3, 1, 12, minutes, 0, 0, time.UTC)
		return &x
	}
	var b strings.Builder
	err := printStatus(&b, control.Status{
		Name: "nemo-head1", Version: "1.2.3", Started: *at(0), Listen: "0.0.0.0:7070",
		Buffer: control.Buffer{First: 11, Last: 4010, Bytes: 3 << 20, MaxBytes: 8 << 30, Clusters: []control.Cluster{{ID: "9f86d081", Behind: 12, At: *at(29)}}},
		Sources: []control.Source{
			{Type: "slurm", Label: "nemo", State: "waiting", Plugin: "1.0.0", LastSuccess: at(29), CompleteTo: at(28), Counts: control.Counts{Records: 3980, Unchanged: 17, Filtered: 2, Withdrawn: 1, Quarantined: 3}},
			{Type: "nomad", Label: "cloud", State: "collecting", Progress: &control.Progress{Done: 40, Total: 365, Unit: "days", At: "2025-04-09"}},
			{Type: "htcondor", Label: "grid", State: "failed", Error: "plugin not found"},
		},
	}, *at(30))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "status.txt", b.String())
}

func TestTheProgressLineTellsTheTimeLeft(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBar(nil, false, func() time.Time { return now })
	b.progressLine("s", &control.Progress{Done: 10, Total: 110, Unit: "days"}, control.Counts{})
	now = now.Add(10 * time.Second)
	got := b.progressLine("s", &control.Progress{Done: 60, Total: 110, Unit: "days", At: "2025-04-09"}, control.Counts{Records: 7})
	if want := "s  [#############...........]  55%  60/110 days at 2025-04-09, 10s left  7 sent"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestTheDoctorExitsWith2WhenItFoundSomething(t *testing.T) {
	dir := folder(t, sound)
	code, text := bursar(t, dir, "doctor", "-dev", "-config", dir+"/agent.hcl")
	if code != codeFinding || !strings.Contains(text, "ok       source         example/ex: plugin version 1.0.0") || !strings.Contains(text, "agent is not running") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if code, text := bursar(t, dir, "doctor", "-config", dir+"/agent.hcl"); code != codeFinding || !strings.Contains(text, "unsafe program") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if code, text := bursar(t, dir, "doctor", "-dev", "-config", dir+"/agent.hcl", "-format", "json"); code != codeFinding || !strings.HasPrefix(text, "[") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

func FuzzMoment(f *testing.F) {
	for _, s := range []string{"2026-01-31", "2026-01-31T12:00:00+01:00", "48h", "7d", "-1h", "never", "", "99999999999999d"} {
		f.Add(s)
	}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if at, err := parseMoment(s, now); err == nil && at.Location() != time.UTC {
			t.Errorf("%q gives %s, which is not in UTC", s, at)
		}
	})
}
