package cli_test

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/cli"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

var update = flag.Bool("update", false, "rewrite golden files")

// shell is where a test calls bursar.
type shell struct {
	env     map[string]string
	sockets []string // where an aggregator of this machine is looked for
	stdin   string
	width   int
	color   bool
	now     func() time.Time // nil: noon of 2026-03-01
}

// nowhere stands for the address of an aggregator of this machine, which may have one.
const nowhere = "http://127.0.0.1:1"

// bursar calls the program and returns what it did.
func (s shell) bursar(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	if s.now == nil {
		s.now = func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	}
	p := cli.Program{
		Sockets: append([]string{}, s.sockets...), Address: nowhere,
		Stdin: strings.NewReader(s.stdin), Stdout: &out, Stderr: &errs,
		Getenv:  func(name string) string { return s.env[name] },
		Now:     s.now,
		Version: "1.2.3", Executable: "/usr/bin/bursar", Width: s.width, Color: s.color,
	}
	code = p.Run(ctx, args)
	return code, out.String(), errs.String()
}

// golden compares with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, d)
	}
}

// at is a shell that asks a server.
func at(address string) shell { return shell{env: map[string]string{"BURSAR_ADDR": address}} }

// filled is a shell that asks a small cluster.
func filled(t *testing.T) (shell, *apitest.World) {
	t.Helper()
	w := apitest.Filled(t)
	return at(w.Serve()), w
}

// answered is a shell that asks a server which has one answer to everything.
func answered(t *testing.T, status int, value any) (shell, *apitest.Answers) {
	t.Helper()
	a := &apitest.Answers{Status: status, Value: value}
	return at(apitest.Listen(t, a)), a
}

func TestCommandsWriteTheirAnswerInEveryFormat(t *testing.T) {
	s, _ := filled(t)
	for _, command := range []string{"records", "agents", "gaps", "status", "conflicts", "quarantine list", "quarantine show head1/slurm/nemo/4711/a"} {
		for _, format := range []string{"table", "json", "csv"} {
			if strings.Contains(command, "show") && format == "csv" {
				continue
			}
			code, out, errs := s.bursar(t.Context(), append(strings.Fields(command), "-format", format)...)
			if code != 0 {
				t.Errorf("%s -format %s: %d %s", command, format, code, errs)
			}
			name := strings.Join(strings.Fields(command)[:min(2, len(strings.Fields(command)))], "-")
			golden(t, name+"."+format, out)
		}
	}
}

func TestATableFitsTheTerminal(t *testing.T) {
	s, _ := filled(t)
	for _, s.width = range []int{50, 60, 80, 132} {
		for _, command := range []string{"records", "agents", "gaps", "conflicts", "quarantine list", "status"} {
			_, out, _ := s.bursar(t.Context(), strings.Fields(command)...)
			for line := range strings.Lines(out) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > s.width {
					t.Errorf("%s at %d columns: %d in %q", command, s.width, n, line)
				}
			}
		}
	}
}

func TestWhatARecordSaysDoesNotReachTheTerminalRaw(t *testing.T) {
	s, _ := filled(t)
	for _, command := range []string{"records", "gaps", "quarantine show head1/slurm/nemo/4711/a"} {
		if _, out, _ := s.bursar(t.Context(), strings.Fields(command)...); strings.Contains(out, "\x1b") {
			t.Errorf("%s: %q", command, out)
		}
	}
}

func TestColoursAreForTerminalsOnly(t *testing.T) {
	s, _ := filled(t)
	if _, out, _ := s.bursar(t.Context(), "agents"); strings.Contains(out, "\x1b") {
		t.Error("colours without a terminal")
	}
	s.color = true
	if _, out, _ := s.bursar(t.Context(), "agents"); !strings.HasPrefix(out, "\x1b[1m") {
		t.Error("no colours on a terminal")
	}
}

func TestOptionsOfRecordsBecomeAQuery(t *testing.T) {
	s, w := filled(t)
	for line, want := range map[string]string{
		"":                        "limit=51&sort_by%5Bdesc%5D=stop_time",
		"-limit 7 -ascending":     "limit=7&sort_by%5Basc%5D=stop_time",
		"-limit -1":               "sort_by%5Bdesc%5D=stop_time",
		"--limit=7 -sort=runtime": "limit=7&sort_by%5Bdesc%5D=runtime",
		"-since 2026-01-01 -until 24h -format json":                         "sort_by%5Bdesc%5D=stop_time&stop_time%5Bgte%5D=2026-01-01T00%3A00%3A00Z&stop_time%5Blt%5D=2026-02-28T12%3A00%3A00Z",
		"-where user_id=alice -where user_id=b=c -where job=-x -format csv": "meta%5Bjob%5D%5Bc%5D%5B0%5D=-x&meta%5Buser_id%5D%5Bc%5D%5B0%5D=alice&meta%5Buser_id%5D%5Bc%5D%5B1%5D=b%3Dc&sort_by%5Bdesc%5D=stop_time",
		"-id nemo-1 -open -format json":                                     "open=true&record_id=nemo-1&sort_by%5Bdesc%5D=stop_time",
		"-ended -format json":                                               "open=false&sort_by%5Bdesc%5D=stop_time",
		"-id -x -format json":                                               "record_id=-x&sort_by%5Bdesc%5D=stop_time",
		"-id -xyz -format json":                                             "record_id=-xyz&sort_by%5Bdesc%5D=stop_time",
	} {
		code, _, errs := s.bursar(t.Context(), append([]string{"records"}, strings.Fields(line)...)...)
		if got := w.Asked(); code == 1 || got[len(got)-1] != "GET /v1/records?"+want {
			t.Errorf("%q: %d %s\n got %s\nwant %s", line, code, errs, got, want)
		}
	}
}

func TestWrongUseIsAnErrorThatSaysWhatIsRight(t *testing.T) {
	s, _ := filled(t)
	for line, want := range map[string]string{
		"recods":                                `did you mean "records"?`,
		"tls cert creat":                        `did you mean "create"?`,
		"records -lmit 3":                       "unknown flag: -lmit",
		"records -format xml":                   `invalid value "xml" for -format: use one of table, json, csv`,
		"records -since yesterday":              "how long ago, like 36h or 7d",
		"records -where alice":                  "alice=VALUE",
		"records -open -ended":                  "leave nothing",
		"records -limit -2":                     "-1 is all",
		"records extra":                         `unknown command "extra"`,
		"quarantine show 4711":                  "AGENT/TYPE/LABEL/ID",
		"quarantine drop":                       "either keys or -all",
		"quarantine drop -all x/y/z/1":          "either keys or -all",
		"quarantine show a/b/c/d":               "no quarantined job",
		"tls cert create -role king -name x":    "use one of aggregator, agent, client",
		"tls cert create":                       "-role and -name are needed",
		"tls ca create -lifetime x":             "-lifetime",
		"operator check -data-dir /nonexistent": "there is no store",
		"status -address ftp://x":               "want for example https://",
		"status -client-cert /nonexistent -client-key /nonexistent": "file /nonexistent does not exist",
		"config validate /nonexistent":                              "file /nonexistent does not exist",
	} {
		code, out, errs := s.bursar(t.Context(), strings.Fields(line)...)
		if code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d, stdout %q, stderr %q; want %q", line, code, out, errs, want)
		}
	}
}

func TestARefusedConnectionSaysHowToNameAnother(t *testing.T) {
	code, _, errs := shell{}.bursar(t.Context(), "status", "-address", "http://127.0.0.1:1")
	if code != 1 || !strings.Contains(errs, "BURSAR_ADDR") {
		t.Error(code, errs)
	}
}

func TestQuarantinedJobsAreSettledOneByOne(t *testing.T) {
	for line, want := range map[string]int{
		"retry head1/slurm/nemo/4711/a":                    0,
		"retry -all":                                       0,
		"drop head1/slurm/nemo/4711/a":                     0,
		"drop head1/slurm/nemo/4711/a head1/slurm/nemo/no": 2,
		"drop head1/slurm/nemo/no":                         1,
	} {
		s, _ := filled(t)
		if code, _, errs := s.bursar(t.Context(), append([]string{"quarantine"}, strings.Fields(line)...)...); code != want {
			t.Errorf("%s: %d, want %d: %s", line, code, want, errs)
		}
	}
}

// Input that no agent can map again is named with what to do; the others are retried.
func TestQuarantineRetryAll_Input_IsLeftWithWhatToDo(t *testing.T) {
	s, _ := answered(t, http.StatusAccepted, v1.Quarantine{Quarantine: []v1.Quarantined{
		{Agent: "head1", SourceType: "slurm", SourceLabel: "nemo", ID: "7", Reason: "mapping", Message: "no attribute"},
		{Agent: "head1", SourceType: "slurm", SourceLabel: "nemo", ID: "8", Reason: "input", Message: "column Start: \"16?\" is not a time", Instead: "on head1: bursar-agent recollect -source slurm/nemo -from DAY"},
		{Agent: "head1", SourceType: "slurm", SourceLabel: "nemo", ID: "9", Reason: "validation", Message: "too long", Truncated: true, Instead: "import the file again"},
	}})
	code, out, errs := s.bursar(t.Context(), "quarantine", "retry", "-all")
	for _, want := range []string{"head1/slurm/nemo/8: column Start", "bursar-agent recollect -source slurm/nemo -from DAY", "head1/slurm/nemo/9: too long; import the file again", "1 of 1 done", "2 in quarantine cannot be mapped again"} {
		if !strings.Contains(out+errs, want) {
			t.Errorf("%q is not in\n%s%s", want, out, errs)
		}
	}
	if code != 2 {
		t.Errorf("exit code %d", code)
	}
}

func TestEveryCommandHelpsWithAnExample(t *testing.T) {
	seen := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		code, out, errs := shell{}.bursar(t.Context(), append(strings.Fields(path)[1:], "-h")...)
		if code != 0 || errs != "" || !strings.Contains(out, "\nExamples:\n") || !strings.Contains(out, path) {
			t.Errorf("%s -h: %d\n%s%s", path, code, out, errs)
		}
		seen++
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				if !strings.Contains(out, "\n  "+sub.Name()+" ") {
					t.Errorf("%s -h does not list %s", path, sub.Name())
				}
				walk(sub)
			}
		}
	}
	walk((&cli.Program{Getenv: func(string) string { return "" }}).Commands())
	if seen < 20 {
		t.Errorf("only %d commands were seen", seen)
	}
}

func TestCompletionKnowsCommandsAndValues(t *testing.T) {
	for _, name := range []string{"bash", "zsh", "fish"} {
		if code, out, _ := (shell{}).bursar(t.Context(), "completion", name); code != 0 || !strings.Contains(out, "bursar") {
			t.Errorf("completion %s: %d", name, code)
		}
	}
	if _, out, _ := (shell{}).bursar(t.Context(), "__complete", "records", "-format", ""); !strings.Contains(out, "csv") {
		t.Error(out)
	}
}

func TestCompletion_AsksTheCluster(t *testing.T) {
	s, w := filled(t)
	w.Options.Actions = troubled()
	for line, want := range map[string]string{
		"usage -by |": "user_id\n", "usage -by user_id,gr|": "user_id,group_id\n", "usage -where us|": "user_id=\n", "usage -where user_id=al|": "user_id=alice\n",
		"records -where user_id=|": "user_id=bob\n", "actions plan |": "priority/nemo\n", "actions history prio|": "priority/nemo\n",
		"actions history priority/nemo |": ":4\n",
		"report statement -of us|":        "user_id=\n", "report statement -of user_id=al|": "user_id=alice\n", "report statement -of pi|": "pi=\n", "report statement -of project=|": "project=higgs\n",
		"report usage -where group_id=a|": "group_id=atlas\n", "report efficiency -where si|": "site_id=\n", "report usage -measure Co|": "Cores\n",
		"token create -where us|": "user_id=\n", "token create -where user_id=al|": "user_id=alice\n", "token create -role read -where group_id=at|": "group_id=atlas\n",
	} {
		args := strings.Split("__complete "+strings.TrimSuffix(line, "|"), " ")
		if code, out, errs := s.bursar(t.Context(), args...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d\n%s%s", line, code, out, errs)
		}
	}
	if code, out, _ := at("http://127.0.0.1:1").bursar(t.Context(), "__complete", "usage", "-by", ""); code != 0 || out != ":4\n" {
		t.Errorf("without a cluster: %d %q", code, out)
	}
}

func TestVersionIsSaid(t *testing.T) {
	if _, out, _ := (shell{}).bursar(t.Context(), "version"); !strings.HasPrefix(out, "bursar 1.2.3 (go1.") {
		t.Error(out)
	}
	if _, out, _ := (shell{}).bursar(t.Context(), "version", "-format", "json"); !strings.Contains(out, `"version": "1.2.3"`) {
		t.Error(out)
	}
}
