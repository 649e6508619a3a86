package event_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

// environments are the variables of recorded epilogs, in blocks that begin with ###.
func environments(t testing.TB, path string) (all []map[string]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "###") {
			all = append(all, map[string]string{})
		} else if name, value, found := strings.Cut(line, "="); found {
			all[len(all)-1][name] = value
		}
	}
	return all
}

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is now\n%s", path, got)
	}
}

func TestWhatRealSlurmsSaidIsWrittenAsEver(t *testing.T) {
	for _, version := range []string{"22.05", "24.11"} {
		var got []byte
		for i, env := range environments(t, filepath.Join("testdata", "epilogs-"+version+".env")) {
			e, err := event.FromEnvironment(func(name string) string { return env[name] }, "head1", time.Unix(1795241600, 123456789))
			if err != nil {
				t.Fatal(err)
			}
			e.ID = fmt.Sprintf("%032x", i)
			line, err := e.Line()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, line...)
		}
		golden(t, "events-"+version+".golden", got)
	}
}

func TestOnlyTheEpilogsOfJobsAreEvents(t *testing.T) {
	for context, good := range map[string]bool{
		"": true, "epilog_slurmd": true, "epilog_slurmctld": true,
		"prolog_slurmd": false, "prolog_slurmctld": false, "prolog_task": false, "epilog_task": false, "prolog_srun": false, "epilog_srun": false,
	} {
		env := map[string]string{"SLURM_JOB_ID": "7", "SLURM_SCRIPT_CONTEXT": context, "SLURM_JOB_START_TIME": "1795241500"}
		_, err := event.FromEnvironment(func(name string) string { return env[name] }, "n1", time.Unix(1795241600, 0))
		if good != (err == nil) || err != nil && !errors.Is(err, event.ErrNoEnd) {
			t.Errorf("%q: %v", context, err)
		}
	}
}

func TestALineOfEachReleasedFormatIsRead(t *testing.T) {
	for _, version := range []string{"22.05", "24.11"} {
		text, err := os.ReadFile(filepath.Join("testdata", "events-"+version+".golden"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			e, err := event.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := e.Line(); err != nil || !bytes.Equal(again, line) {
				t.Errorf("%s became %s, %v", line, again, err)
			}
		}
	}
}

func TestAnAnswerIsWrittenAsEver(t *testing.T) {
	var got []byte
	for _, a := range []event.Answer{{}, {ID: "1f"}, {ID: "1f", Error: "the disk is <full>"}} {
		line, err := a.Line()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := event.ParseAnswer(line); err != nil || back != a {
			t.Errorf("%+v became %+v, %v", a, back, err)
		}
		got = append(got, line...)
	}
	golden(t, "answers.golden", got)
}

func env(values ...string) func(string) string {
	all := map[string]string{"SLURM_JOB_ID": "7"}
	for i := 0; i < len(values); i += 2 {
		all[values[i]] = values[i+1]
	}
	return func(name string) string { return all[name] }
}

func TestOddVariablesAreLeftOutAndTheEventGoesOn(t *testing.T) {
	long := strings.Repeat("é", 5000)
	e, err := event.FromEnvironment(env("SLURM_JOB_NAME", long, "SLURM_JOB_ACCOUNT", "a\xffb", "SLURM_JOB_UID", "-1", "SLURM_JOB_START_TIME", "soon",
		"SLURM_ARRAY_JOB_ID", "5", "SLURM_ARRAY_TASK_ID", "x", "SLURM_JOB_EXIT_CODE2", "huh", "SLURM_JOB_EXIT_CODE", "1792", "SLURM_JOB_NUM_NODES", "3",
		"SLURM_JOB_CPUS_PER_NODE", "72(x2),36"), "n1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	line, err := e.Line()
	if err != nil {
		t.Fatal(err)
	}
	back, err := event.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	if back.UID != nil || back.Start != 0 || back.ArrayJob != nil || back.Exit != "7:0" || back.Account != "a\uFFFDb" || *back.CPUs != 180 {
		t.Errorf("%+v", back)
	}
	if diff := cmp.Diff(map[string]string{"uid": "-1", "start": "soon"}, back.Unread); diff != "" {
		t.Error(diff)
	}
}

func TestFromEnvironment_NumbersThatCannotBeRead_AreNamed(t *testing.T) {
	names := map[string]string{
		"SLURM_JOB_RESTART_COUNT": "restarts", "SLURM_RESTART_COUNT": "restarts", "SLURM_JOB_UID": "uid", "SLURM_UID": "uid", "SLURM_JOB_GID": "gid",
		"SLURM_JOB_NUM_NODES": "node_count", "SLURM_JOB_CPUS_PER_NODE": "cpus", "SLURM_JOB_START_TIME": "start", "SLURM_JOB_EXIT_CODE": "exit", "SLURM_JOB_EXIT_CODE2": "exit",
	}
	for variable, field := range names {
		for _, value := range []string{"16?", "-1", "1e3", "99999999999999999999", " 7", "\xff", strings.Repeat("9", 5000), "4294967296(x2)", ""} {
			e, err := event.FromEnvironment(env(variable, value), "n1", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			line, err := e.Line()
			if err != nil {
				t.Fatal(err)
			}
			back, err := event.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			if value == "" && len(back.Unread) == 0 {
				continue
			}
			if said := back.Unread[field]; len(back.Unread) != 1 || said == "" || !strings.HasPrefix(strings.ToValidUTF8(value, "\uFFFD"), said) {
				t.Errorf("%s=%.20q: %v", variable, value, back.Unread)
			}
		}
	}
}

func TestWithoutAJobThereIsNoEvent(t *testing.T) {
	if _, err := event.FromEnvironment(func(string) string { return "" }, "", time.Now()); !errors.Is(err, event.ErrNoJob) {
		t.Error(err)
	}
	for _, id := range []string{"0", "-3", "x", "99999999999999999999"} {
		if e, err := event.FromEnvironment(env("SLURM_JOB_ID", id), "", time.Now()); err == nil {
			t.Errorf("%s became %+v", id, e)
		}
	}
}

func TestLinesThatAreNoEventAreErrors(t *testing.T) {
	const id = `"id":"0123456789abcdef0123456789abcdef"`
	for name, line := range map[string]string{
		"nothing":            ``,
		"no object":          `[]`,
		"no format":          `{` + id + `,"at":1,"job":7}`,
		"a later format":     `{"format":2,` + id + `,"at":1,"job":7}`,
		"no id":              `{"format":1,"at":1,"job":7}`,
		"an id with a path":  `{"format":1,"id":"../../../../../../../etc/passwd","at":1,"job":7}`,
		"no job":             `{"format":1,` + id + `,"at":1}`,
		"a job below zero":   `{"format":1,` + id + `,"at":1,"job":-7}`,
		"no time":            `{"format":1,` + id + `,"job":7}`,
		"a time too far":     `{"format":1,` + id + `,"at":9223372036854775807,"job":7}`,
		"half an array task": `{"format":1,` + id + `,"at":1,"job":7,"array_job":5}`,
		"a number too great": `{"format":1,` + id + `,"at":1,"job":7,"uid":99999999999}`,
		"a long text":        `{"format":1,` + id + `,"at":1,"job":7,"user":"` + strings.Repeat("x", 2000) + `"}`,
		"a long line":        `{"format":1,` + id + `,"at":1,"job":7,"more":"` + strings.Repeat("x", event.MaxLine) + `"}`,
		"an odd exit code":   `{"format":1,` + id + `,"at":1,"job":7,"exit":"0"}`,
	} {
		if e, err := event.Parse([]byte(line)); err == nil {
			t.Errorf("%s became %+v", name, e)
		}
	}
}

func TestWhatALaterReleaseAddsIsLeftOut(t *testing.T) {
	e, err := event.Parse([]byte(`{"format":1,"id":"0123456789abcdef0123456789abcdef","at":5,"job":7,"colour":"red"}`))
	if err != nil || e.Job != 7 || e.At != 5 {
		t.Errorf("%+v, %v", e, err)
	}
}

func FuzzEvent(f *testing.F) {
	for _, version := range []string{"22.05", "24.11"} {
		text, err := os.ReadFile(filepath.Join("testdata", "events-"+version+".golden"))
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = event.ParseAnswer(text) // it must not panic
		e, err := event.Parse(text)
		if err != nil {
			return
		}
		line, err := e.Line()
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", text, err)
		}
		back, err := event.Parse(line)
		if err != nil || back.JobID() != e.JobID() || back.ID != e.ID {
			t.Errorf("%q became %q, %v", text, line, err)
		}
	})
}

func FuzzEnvironment(f *testing.F) {
	f.Add("7", "5", "1", "72(x2),36", "0:9", "alice", "1795241525")
	f.Add("4294967295", "x", "-1", "9(x999999999),", "::", "a\xff\n", "")
	f.Fuzz(func(t *testing.T, job, array, task, cpus, exit, user, start string) {
		e, err := event.FromEnvironment(env("SLURM_JOB_ID", job, "SLURM_ARRAY_JOB_ID", array, "SLURM_ARRAY_TASK_ID", task,
			"SLURM_JOB_CPUS_PER_NODE", cpus, "SLURM_JOB_NUM_NODES", "2", "SLURM_JOB_EXIT_CODE2", exit, "SLURM_JOB_USER", user,
			"SLURM_CLUSTER_NAME", user, "SLURM_JOB_START_TIME", start), user, time.Unix(1795241600, 0))
		if err != nil {
			return
		}
		line, err := e.Line()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := event.Parse(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	})
}
