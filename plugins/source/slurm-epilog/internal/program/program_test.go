package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/intake"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/journal"
)

// site is a plugin's journal with its socket, and a machine with a spool.
type site struct {
	t      testing.TB
	dir    string
	in     *intake.Intake
	j      *journal.Journal
	said   bytes.Buffer
	syslog []string
	exited int
}

func newSite(t testing.TB) *site {
	dir, err := os.MkdirTemp("", "epilog") // a short name: sockets need one
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, dir: dir}
	if os.Geteuid() != 0 { // as the package makes it
		if err := os.MkdirAll(filepath.Join(s.spool(), fmt.Sprint(os.Geteuid())), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *site) socket() string { return filepath.Join(s.dir, "s") }
func (s *site) spool() string  { return filepath.Join(s.dir, "spool") }

// up starts the plugin, and down stops it.
func (s *site) up() {
	s.t.Helper()
	log := slog.New(slog.DiscardHandler)
	j, err := journal.Open(s.t.Context(), journal.Options{Dir: filepath.Join(s.dir, "journal"), Log: log, Keep: time.Hour})
	if err != nil {
		s.t.Fatal(err)
	}
	s.j, s.in = j, intake.New(j.Append, log)
	l, err := intake.Listen(s.socket())
	if err != nil {
		s.t.Fatal(err)
	}
	s.in.Serve(l, intake.Local{UIDs: []int{os.Geteuid()}})
	s.t.Cleanup(func() { s.down() })
}

func (s *site) down() {
	s.in.Close()
	s.j.Close()
}

// jobs are those in the journal.
func (s *site) jobs() (jobs []int64) {
	s.t.Helper()
	if err := s.j.After(0, func(e journal.Entry) error { jobs = append(jobs, e.Job); return nil }); err != nil {
		s.t.Fatal(err)
	}
	return jobs
}

// run runs the program with an environment of name=value.
func (s *site) run(env string, args ...string) (status int, out string) {
	var stdout, stderr bytes.Buffer
	p := Program{
		Version: "1.2.3", UID: os.Geteuid(), Stdout: &stdout, Stderr: &stderr,
		Getenv: func(name string) string {
			for kv := range strings.FieldsSeq(env) {
				if n, v, _ := strings.Cut(kv, "="); n == name {
					return v
				}
			}
			return ""
		},
		Syslog: func(text string) { s.syslog = append(s.syslog, text) },
		Exit:   func(int) { s.exited++ },
	}
	status = p.Run(append([]string{"-config", filepath.Join(s.dir, "none"), "-socket", s.socket(), "-spool", s.spool(), "-timeout", "1m"}, args...))
	s.said = stderr
	return status, stdout.String() + stderr.String()
}

// settings makes the file that run names exist.
func (s *site) settings(text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "none"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func TestCalledAsAPrologItTellsOfNothingAndSaysSo(t *testing.T) {
	s := newSite(t)
	s.settings("")
	s.up()
	for _, c := range []string{"prolog_slurmd", "prolog_slurmctld", "prolog_task", "epilog_task"} {
		status, out := s.run("SLURM_JOB_ID=7 SLURM_SCRIPT_CONTEXT=" + c)
		if status != 0 || !strings.Contains(out, c) || !strings.Contains(out, "Epilog or EpilogSlurmctld") {
			t.Errorf("%s: %d %s", c, status, out)
		}
	}
	if jobs := s.jobs(); len(jobs) > 0 {
		t.Errorf("jobs %v", jobs)
	}
}

func TestAJobThatEndsIsInTheJournalWhenTheProgramReturns(t *testing.T) {
	s := newSite(t)
	s.settings("")
	s.up()
	if status, out := s.run("SLURM_JOB_ID=7"); status != 0 || out != "" {
		t.Errorf("%d, %s", status, out)
	}
	if got := s.jobs(); !slices.Equal(got, []int64{7}) {
		t.Error(got)
	}
}

func TestWithTheAgentAwayJobsWaitAndTheNextOneTakesThemAlong(t *testing.T) {
	s := newSite(t)
	s.settings("")
	for job := range 5 {
		if status, out := s.run(fmt.Sprintf("SLURM_JOB_ID=%d", job+1)); status != 0 || !strings.Contains(out, "waits in") {
			t.Errorf("%d, %s", status, out)
		}
	}
	if len(s.syslog) != 5 {
		t.Errorf("the syslog has %q", s.syslog)
	}
	if status, out := s.run("", "-drain"); status != 1 {
		t.Errorf("%d, %s", status, out)
	}
	s.up()
	s.run("SLURM_JOB_ID=6")
	s.run("", "-drain")
	if got := s.jobs(); !slices.Equal(got, []int64{6, 1, 2, 3, 4, 5}) {
		t.Error(got)
	}
	if status, out := s.run("", "-drain"); status != 0 || out != "" {
		t.Errorf("%d, %s", status, out)
	}
}

func TestTheTimerDrainsAllThatWaits(t *testing.T) {
	s := newSite(t)
	s.settings("")
	for job := range 30 {
		s.run(fmt.Sprintf("SLURM_JOB_ID=%d", job+1))
	}
	s.up()
	if status, out := s.run("", "-drain"); status != 0 || !strings.Contains(out, "handed over 30 of 30") {
		t.Errorf("%d, %s", status, out)
	}
	if got := s.jobs(); len(got) != 30 {
		t.Error(got)
	}
}

// An agent that takes the event and dies before it answers, or does not answer.
func TestAnAnswerThatIsLostNeitherLosesNorDoublesTheJob(t *testing.T) {
	s := newSite(t)
	s.settings("")
	l, err := net.Listen("unix", s.socket())
	if err != nil {
		t.Fatal(err)
	}
	var taken []byte
	var serving sync.WaitGroup
	serving.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		taken = make([]byte, event.MaxLine)
		n, _ := conn.Read(taken) // what there is counts
		taken = taken[:n]
		conn.Close()
	})
	if status, out := s.run("SLURM_JOB_ID=7"); status != 0 || !strings.Contains(out, "waits in") {
		t.Errorf("%d, %s", status, out)
	}
	l.Close()
	serving.Wait()
	e, err := event.Parse(taken)
	if err != nil {
		t.Fatal(err)
	}
	s.up()
	if err := s.j.Append(e); err != nil { // it had come to its disk
		t.Fatal(err)
	}
	s.run("", "-drain")
	if got := s.jobs(); !slices.Equal(got, []int64{7}) {
		t.Error(got)
	}
}

func TestNothingThatIsWrongFailsAJob(t *testing.T) {
	for name, c := range map[string]struct{ env, file, want string }{
		"no job":            {"", "", "SLURM_JOB_ID is not set"},
		"an odd job":        {"SLURM_JOB_ID=x", "", "not a job id"},
		"an odd file":       {"SLURM_JOB_ID=7", "socket\n", ":1: want name"},
		"an unknown name":   {"SLURM_JOB_ID=7", "\ncolour = \"red\"\n", ":2: \"colour\" is not a setting"},
		"no certificate":    {"SLURM_JOB_ID=7", "address = \"127.0.0.1:1\"\ncert = \"/none\"\n", "/none"},
		"a flag as setting": {"SLURM_JOB_ID=7", "drain = \"true\"\n", "is not a setting"},
	} {
		s := newSite(t)
		s.settings(c.file)
		if status, out := s.run(c.env); status != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d, %s", name, status, out)
		}
	}
	s := newSite(t)
	s.settings("")
	if status, out := s.run("SLURM_JOB_ID=7", "-huh"); status != 0 {
		t.Errorf("an unknown flag: %d, %s", status, out)
	}
	if status, _ := s.run("", "-huh"); status != 2 {
		t.Errorf("by hand an unknown flag gives %d", status)
	}
}

func TestAJobThatCanNeitherBeToldNorKeptIsSaidWithAllThatIsKnown(t *testing.T) {
	s := newSite(t)
	s.settings("")
	file := filepath.Join(s.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	status, out := s.run("SLURM_JOB_ID=7", "-spool", filepath.Join(file, "spool"))
	if status != 0 || !strings.Contains(out, "is lost to the epilog") || !strings.Contains(out, `"job":7`) {
		t.Errorf("%d, %s", status, out)
	}
}

func TestAnAgentThatHangsHoldsNoJobUp(t *testing.T) {
	s := newSite(t)
	s.settings("")
	l, err := net.Listen("unix", s.socket()) // it never accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	status, out := s.run("SLURM_JOB_ID=7", "-timeout", "500ms")
	if status != 0 || !strings.Contains(out, "waits in") && s.exited == 0 {
		t.Errorf("%d, %s", status, out)
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	s := newSite(t)
	s.settings("")
	if status, out := s.run("", "-check"); status != 1 || !strings.Contains(out, "agent at "+s.socket()) {
		t.Errorf("%d, %s", status, out)
	}
	s.up()
	if status, out := s.run("", "-check"); status != 0 || strings.Count(out, ": good\n") != 3 {
		t.Errorf("%d, %s", status, out)
	}
	if got := s.jobs(); len(got) != 0 {
		t.Errorf("a check left %v", got)
	}
}

func TestHelpHasAnExampleAndVersionTheVersion(t *testing.T) {
	s := newSite(t)
	s.settings("")
	if status, out := s.run("", "-h"); status != 0 || !strings.Contains(out, "Example") || !strings.Contains(out, "Epilog=/usr/bin/bursar-epilog") {
		t.Errorf("%d, %s", status, out)
	}
	if _, out := s.run("", "-version"); out != "bursar-epilog 1.2.3\n" {
		t.Error(out)
	}
}

func TestATimeoutThatCannotBeIsMended(t *testing.T) {
	for _, text := range []string{"timeout = \"soon\"\n", "timeout = \"0s\"\n", "timeout = \"1h\"\n"} {
		path := filepath.Join(t.TempDir(), "epilog.hcl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, usage, config := readSettings([]string{"-config", path}, io.Discard)
		if usage != nil || config == nil || s.timeout != defaultTimeout {
			t.Errorf("%s: %v, %v, %s", text, usage, config, s.timeout)
		}
	}
}

// TestTheFileIsHCL reads what this program takes with the real parser.
func TestTheFileIsHCL(t *testing.T) {
	shipped, err := os.ReadFile("../../../../../agent/packaging/epilog/epilog.hcl")
	if err != nil {
		t.Fatal(err)
	}
	uncommented := regexp.MustCompile(`(?m)^# (\w+ *=)`).ReplaceAllString(string(shipped), "$1")
	if uncommented == string(shipped) {
		t.Fatal("the shipped file offers no settings")
	}
	for _, text := range []string{string(shipped), uncommented, "socket = \"/a \\\"b\\\" é\\n\" # why\n\n// more\nspool=\"/x\" // there\n"} {
		values, problems := parseFile("epilog.hcl", []byte(text))
		if len(problems) > 0 {
			t.Errorf("%s: %v", text, problems)
		}
		file, diags := hcl.Parse("epilog.hcl", []byte(text))
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		attributes, diags2 := file.Body.JustAttributes()
		if diags2.HasErrors() || len(attributes) != len(values) {
			t.Errorf("%s: %d attributes, %d values", text, len(attributes), len(values))
		}
		for _, v := range values {
			if got, diags := attributes[v.name].Expr.Value(nil); diags.HasErrors() || !got.RawEquals(cty.StringVal(v.text)) {
				t.Errorf("%s is %q here and %#v in HCL", v.name, v.text, got)
			}
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte("socket = \"/run/x\" # why\n\naddress=\"a:1\"\n"))
	f.Add([]byte("a = \"\\"))
	f.Fuzz(func(t *testing.T, text []byte) {
		values, problems := parseFile("f", text)
		if n := bytes.Count(text, []byte("\n")) + 1; len(values)+len(problems) > n+1 {
			t.Errorf("%d values and %d problems in %d lines", len(values), len(problems), n)
		}
	})
}

// BenchmarkEpilog measures what a job's end waits for: a process of the real program,
// from its start to its end, with the event on disk.
func BenchmarkEpilog(b *testing.B) {
	program := filepath.Join(b.TempDir(), "bursar-epilog")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../../cmd/bursar-epilog")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	s := newSite(b)
	s.up()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		cmd := exec.CommandContext(context.Background(), program, "-socket", s.socket(), "-spool", s.spool())
		cmd.Env = []string{"SLURM_JOB_ID=7", "SLURM_JOB_USER=alice", "SLURM_CLUSTER_NAME=rig", "SLURM_SCRIPT_CONTEXT=epilog_slurmctld"}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			b.Fatal(errors.Join(err, errors.New(string(out))))
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
}
