package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/journal"
)

// site is a source with its journal, a slurmdbd and a daemon. Its time is that of a
// synctest bubble.
type site struct {
	t          *testing.T
	dir        string
	db         *database
	source     *Source
	checkpoint []byte
	keys       []sdk.Node

	mu      sync.Mutex
	jobs    map[string]sdk.Job
	sent    []string
	refused map[string]sdk.Refused
	skipped int64
	fail    error // of the daemon
	events  int
}

func text(name, value string) sdk.Node { return sdk.Node{Name: name, Value: sdk.String(value)} }

func list(name string, values ...string) sdk.Node {
	return sdk.Node{Name: name, Value: sdk.Strings(values...)}
}

// run runs a test in a bubble.
func run(t *testing.T, f func(*site), keys ...sdk.Node) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &site{t: t, dir: dir, keys: keys, jobs: map[string]sdk.Job{}, refused: map[string]sdk.Refused{},
			db: &database{names: []string{"JobIDRaw", "JobID", "State", "Submit", "Eligible", "Start", "End", "Cluster", "User", "UID", "Group", "GID",
				"Account", "Partition", "AllocNodes", "AllocTRES", "AllocCPUS", "TotalCPU", "ReqMem", "ExitCode"}}}
		s.restart()
		defer func() { s.source.journal.Close() }()
		f(s)
	})
}

// restart is another process of the plugin, without its ways in.
func (s *site) restart() {
	s.t.Helper()
	if s.source != nil {
		if err := s.source.journal.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
	s.source = New(slog.New(slog.DiscardHandler))
	keys := append([]sdk.Node{text("state_dir", s.dir), text("socket", filepath.Join(s.dir, "none"))}, s.keys...)
	cfg := sdk.NewConfig("test", sdk.Node{IsBlock: true, Children: keys})
	if err := s.source.Configure(context.Background(), cfg); err != nil {
		s.t.Fatal(err)
	}
	s.source.sacct = s.db
	var err error
	s.source.journal, err = journal.Open(s.t.Context(), journal.Options{Dir: s.dir, Log: s.source.log, Keep: s.source.config.Keep, Committed: s.source.noteCommitted})
	if err != nil {
		s.t.Fatal(err)
	}
}

// at is a time in seconds from now.
func at(seconds int) string {
	return strconv.FormatInt(time.Now().Add(time.Duration(seconds)*time.Second).Unix(), 10)
}

// job puts a row into slurmdbd, in place of one of the same run.
func (s *site) job(id, state, submit, start, end string, more ...string) {
	r := fakesacct.Row{"JobIDRaw": id, "JobID": id, "State": state, "Submit": submit, "Eligible": submit, "Start": start, "End": end,
		"Cluster": "c1", "User": "alice", "UID": "1001", "Group": "phys", "GID": "1001", "Account": "physics", "Partition": "cpu",
		"AllocNodes": "1", "AllocTRES": "cpu=1,mem=1G", "AllocCPUS": "1", "TotalCPU": "00:01.000", "ReqMem": "1G", "ExitCode": "0:0"}
	for i := 0; i < len(more); i += 2 {
		r[more[i]] = more[i+1]
	}
	s.db.change(func(d *database) {
		d.rows = slices.DeleteFunc(d.rows, func(o fakesacct.Row) bool { return o["JobIDRaw"] == id && o["Submit"] == submit })
		d.rows = append(d.rows, r)
	})
}

// tell is an epilog that runs now.
func (s *site) tell(job int64, change ...func(*event.Event)) {
	s.t.Helper()
	s.events++
	e := event.Event{ID: fmt.Sprintf("%032x", s.events), At: time.Now().UnixMicro(), Job: job, Cluster: "c1", Context: event.OfController, Host: "n1"}
	for _, f := range change {
		f(&e)
	}
	if err := s.source.journal.Append(e); err != nil {
		s.t.Fatal(err)
	}
}

// collect lets the source collect for some time, and returns its error.
func (s *site) collect(long time.Duration, from sdk.Start) error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), long)
	defer cancel()
	if from.Window == nil {
		from.Checkpoint = s.checkpoint
	}
	plan, err := job.NewPlan(s.source.wants, s.db.names)
	if err != nil {
		return err
	}
	done, err := decodeCheckpoint(from.Checkpoint)
	if err != nil {
		return err
	}
	p := &pass{Source: s.source, plan: plan, out: sdk.NewStream(job.Attributes(), s.take)}
	if from.Window != nil {
		return p.recheckWindow(ctx, from.Window)
	}
	if err := p.resumePending(ctx, from, done); err != nil {
		return err
	}
	return p.followEvents(ctx)
}

// wait collects for some time.
func (s *site) wait(d time.Duration) {
	s.t.Helper()
	if err := s.collect(d, sdk.Start{}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		s.t.Fatal(err)
	}
}

func (s *site) take(_ context.Context, b sdk.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for _, r := range b.Refused {
		s.refused[r.Run] = r
	}
	for _, j := range b.Jobs {
		s.jobs[j.Run] = j
		s.sent = append(s.sent, j.Run)
		delete(s.refused, j.Run)
		for _, f := range j.Formerly {
			delete(s.jobs, f.Run)
			delete(s.refused, f.Run)
		}
	}
	s.skipped += b.Skipped
	if b.Checkpoint != nil {
		s.checkpoint = b.Checkpoint
	}
	return nil
}

// want compares the runs that were sent, each time that they were, and forgets them.
func (s *site) want(runs ...string) {
	s.t.Helper()
	if diff := cmp.Diff(runs, s.sent); diff != "" {
		s.t.Errorf("sent (-want +got)\n%s", diff)
	}
	s.sent = nil
}

func (s *site) value(run, attribute string) sdk.Value {
	s.t.Helper()
	j, ok := s.jobs[run]
	if !ok {
		s.t.Fatalf("there is no run %s", run)
	}
	return j.Values[slices.IndexFunc(job.Attributes(), func(a sdk.Attribute) bool { return a.Name == attribute })]
}

func TestARunIsSentOnceHoweverManyNodesTellOfIt(t *testing.T) {
	run(t, func(s *site) {
		s.job("7", "COMPLETED", at(-100), at(-50), at(0))
		for range 100 {
			s.tell(7)
		}
		s.wait(time.Hour)
		s.want("7")
		if n := len(s.db.questions()); n != 1 {
			t.Errorf("sacct was asked %d times", n)
		}
		s.tell(7) // a node that was slow
		s.wait(time.Hour)
		s.want()
		s.restart()
		s.wait(time.Hour)
		s.want()
	})
}

func TestManyJobsAreOneQuestion(t *testing.T) {
	run(t, func(s *site) {
		for i := range 300 {
			s.job(strconv.Itoa(i+1), "COMPLETED", at(-100), at(-50), at(0))
			s.tell(int64(i + 1))
		}
		s.wait(time.Minute)
		if n := len(s.db.questions()); n != 1 || len(s.jobs) != 300 {
			t.Errorf("%d questions, %d runs", n, len(s.jobs))
		}
	})
}

func TestARunThatSlurmdbdGetsLateIsAskedForAgain(t *testing.T) {
	run(t, func(s *site) {
		began := at(-50)
		s.tell(7)
		s.tell(8)
		s.job("8", "COMPLETED", at(-100), began, at(0))
		s.wait(time.Minute)
		s.want("8")
		s.job("7", "RUNNING", began, began, "Unknown")
		s.wait(10 * time.Minute)
		s.want()
		s.restart() // what is not settled is not forgotten
		s.job("7", "COMPLETED", began, began, at(0))
		s.wait(10 * time.Minute)
		s.want("7", "8") // 8 came after 7, which the checkpoint has not passed
	})
}

func TestEachRunOfARequeuedJobHasItsOwnId(t *testing.T) {
	run(t, func(s *site) {
		first, second := at(-100), at(1)
		s.job("7", "REQUEUED", first, first, at(0))
		s.tell(7)
		s.wait(30 * time.Second)
		s.want("7")
		s.job("7", "COMPLETED", second, at(0), at(20))
		s.tell(7)
		s.wait(time.Minute)
		s.want("7-" + second)
		// Both are told of at once, by an agent that was away.
		s.restart()
		s.checkpoint = nil
		s.wait(time.Minute)
		s.want("7", "7-"+second)
	})
}

// A first run ends, and a short second one before slurmdbd has the end of either.
func TestAShortRunBehindARequeueIsNotForgotten(t *testing.T) {
	run(t, func(s *site) {
		first, second := at(-100), at(0)
		node := func(e *event.Event) { e.Context = "epilog_slurmd" }
		s.job("7", "REQUEUED", first, first, at(0))
		s.job("7", "RUNNING", second, at(5), "Unknown")
		s.tell(7, node)
		time.Sleep(6 * time.Second)
		s.tell(7, node)
		s.wait(30 * time.Second)
		s.want("7")
		s.job("7", "COMPLETED", second, at(-31), at(-30))
		s.wait(5 * time.Minute)
		s.want("7-" + second)
	})
}

func TestTasksOfAnArrayAndPartsOfAHeterogeneousJobAreTheirOwnRuns(t *testing.T) {
	run(t, func(s *site) {
		for raw, id := range map[string]string{"11": "5_1", "12": "5_2", "5": "5_3", "19": "19+0", "20": "19+1"} {
			s.job(raw, "COMPLETED", at(-100), at(-50), at(0), "JobID", id)
		}
		s.tell(11)
		s.tell(5, func(e *event.Event) { five, three := int64(5), int64(3); e.ArrayJob, e.ArrayTask = &five, &three })
		s.tell(20)
		s.wait(time.Minute)
		slices.Sort(s.sent)
		s.want("19+1", "5_1", "5_3")
		if q := s.db.questions(); len(q) != 1 || !slices.Equal(q[0], []string{"11", "20", "5_3"}) {
			t.Errorf("asked for %q", q)
		}
	})
}

func TestWhatSlurmdbdHasHalfIsWaitedFor(t *testing.T) {
	run(t, func(s *site) {
		submit := at(-2)
		s.job("11", "COMPLETED", submit, at(-1), at(0), "Partition", "", "JobName", "allocation")
		s.tell(11)
		s.wait(time.Minute)
		s.want()
		s.job("11", "COMPLETED", submit, at(-62), at(-60), "JobID", "5_1")
		s.wait(time.Minute)
		s.want("5_1")
	})
}

func TestASacctThatFailsIsAnErrorAndNothingIsLostOrMadeUp(t *testing.T) {
	run(t, func(s *site) {
		s.tell(7, func(e *event.Event) { e.Start = time.Now().Unix() - 50 })
		s.db.err = errors.New("slurmdbd is away")
		for range 100 {
			if err := s.collect(10*time.Minute, sdk.Start{}); err == nil || !strings.Contains(err.Error(), "slurmdbd is away") {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
		}
		s.want()
		s.db.err = nil
		s.job("7", "COMPLETED", at(-100), at(-50), at(0))
		s.wait(time.Minute)
		s.want("7")
	})
}

func TestADaemonThatFailsGetsTheRunAgain(t *testing.T) {
	run(t, func(s *site) {
		s.job("7", "COMPLETED", at(-100), at(-50), at(0))
		s.tell(7)
		s.fail = errors.New("the stream is closed")
		if err := s.collect(time.Minute, sdk.Start{}); !errors.Is(err, s.fail) {
			t.Fatal(err)
		}
		s.fail = nil
		s.wait(time.Minute)
		s.want("7")
	})
}

func TestARunThatSlurmdbdNeverGetsIsSentAsTheEpilogKnewIt(t *testing.T) {
	run(t, func(s *site) {
		start, end := time.Now().Unix()-50, time.Now().Unix()
		number := func(n int64) *int64 { return &n }
		s.tell(7, func(e *event.Event) {
			e.Start, e.Exit, e.User, e.Account, e.CPUs, e.Restarts = start, "3:0", "bob", "chem", number(8), number(0)
		})
		s.wait(50 * time.Minute)
		s.want()
		s.wait(20 * time.Minute)
		s.want("7")
		if s.value("7", "Start").Time().Unix() != start || s.value("7", "End").Time().Unix() != end || s.value("7", "exit_code").Int() != 3 ||
			s.value("7", "AllocCPUS").Int() != 8 || s.value("7", "user").Str() != "bob" || s.value("7", "state").Str() != "UNKNOWN" ||
			!s.value("7", "Submit").IsNull() || !s.value("7", "wait_seconds").IsNull() {
			t.Errorf("%+v", s.jobs["7"])
		}
	}, list("states", "COMPLETED"))
}

func TestBelieve_NumbersThatCannotBeRead_AreUnknownAndNamed(t *testing.T) {
	for field, attributes := range map[string][]string{
		"uid": {"UID"}, "gid": {"GID"}, "node_count": {"AllocNodes"}, "cpus": {"AllocCPUS"}, "exit": {"exit_code", "exit_signal"},
	} {
		run(t, func(s *site) {
			s.tell(7, func(e *event.Event) { e.Start, e.Unread = time.Now().Unix()-50, map[string]string{field: "16?"} })
			s.wait(2 * time.Hour)
			s.want("7")
			for _, name := range attributes {
				if !s.value("7", name).IsNull() || !slices.ContainsFunc(s.jobs["7"].Unread, func(u sdk.Unread) bool { return u.Attribute == name && strings.Contains(u.Problem, "16?") }) {
					t.Errorf("%s, %s: %v, unread %+v", field, name, s.value("7", name), s.jobs["7"].Unread)
				}
			}
		})
	}
	run(t, func(s *site) {
		s.tell(7, func(e *event.Event) { e.Unread = map[string]string{"start": "soon"} })
		s.wait(2 * time.Hour)
		s.want()
		if r := s.refused["7"]; !strings.Contains(r.Message, `the start "soon" cannot be read`) {
			t.Errorf("%+v", s.refused)
		}
	})
}

func TestWhatIsNotEnoughForARecordGoesToQuarantine(t *testing.T) {
	run(t, func(s *site) {
		s.tell(7)
		s.wait(2 * time.Hour)
		s.want()
		if r := s.refused["7"]; !strings.Contains(r.Message, "does not tell enough") || !strings.Contains(string(r.Raw), `"job":7`) {
			t.Errorf("%+v", s.refused)
		}
	})
}

func TestTheWordOfSlurmctldsEpilogClosesARunOfWhichSlurmdbdHasOnlyTheStart(t *testing.T) {
	run(t, func(s *site) {
		start, end := at(-50), time.Now().Unix()
		s.job("7", "RUNNING", at(-100), start, "Unknown")
		s.job("8", "RUNNING", at(-1000), at(-500), "Unknown")
		s.tell(7, func(e *event.Event) { e.Exit = "0:9" })
		s.tell(8, func(e *event.Event) { e.Context = "epilog_slurmd" }) // a node that the job gave back
		s.wait(2 * time.Hour)
		s.want("7")
		if s.value("7", "End").Time().Unix() != end || s.value("7", "exit_signal").Int() != 9 {
			t.Errorf("%+v", s.jobs["7"])
		}
		if r := s.refused["8"]; !strings.Contains(r.Message, "still runs") {
			t.Errorf("%+v", s.refused)
		}
	})
}

func TestAClockThatIsWrongMakesNothingUp(t *testing.T) {
	run(t, func(s *site) {
		s.job("7", "COMPLETED", at(-100), at(-50), at(0))
		s.tell(7, func(e *event.Event) { e.At -= int64(10 * time.Minute / time.Microsecond); e.Start = e.At/1e6 - 10 })
		s.wait(2 * time.Hour)
		s.want("7")
		if len(s.refused) > 0 {
			t.Errorf("%+v", s.refused)
		}
	})
}

func TestOddRowsAreRefusedOnceAndHoldNobodyUp(t *testing.T) {
	run(t, func(s *site) {
		s.job("7", "COMPLETED", at(-100), "soon", at(0))
		s.job("8", "COMPLETED", at(-100), at(-50), at(0))
		for range 3 {
			s.tell(7)
			s.tell(8)
			s.wait(time.Minute)
		}
		s.want("8")
		if len(s.refused) != 1 || s.refused["7"].Message == "" {
			t.Errorf("%+v", s.refused)
		}
	})
}

func TestFiltersAreAppliedAsByTheSourceSlurm(t *testing.T) {
	run(t, func(s *site) {
		s.job("7", "FAILED", at(-100), at(-50), at(0))
		s.job("8", "COMPLETED", at(-100), at(-50), at(0), "Account", "chem")
		s.job("9", "COMPLETED", at(-100), at(-50), at(0))
		s.job("10", "CANCELLED", at(-100), at(0), at(0), "AllocNodes", "0", "AllocTRES", "")
		for n := range 4 {
			s.tell(int64(7 + n))
		}
		s.wait(time.Minute)
		for name, out := range map[string]bool{"7": true, "8": true, "9": false} {
			if s.jobs[name].Excluded != out {
				t.Errorf("%s is left out: %t", name, s.jobs[name].Excluded)
			}
		}
		if len(s.jobs) != 3 || s.skipped != 1 {
			t.Errorf("%d runs, %d skipped", len(s.jobs), s.skipped)
		}
	}, list("states", "COMPLETED"), list("accounts", "physics"))
}

func TestARewindAndAWindowSendAgain(t *testing.T) {
	run(t, func(s *site) {
		s.job("7", "COMPLETED", at(-100), at(-50), at(0))
		s.tell(7)
		s.wait(time.Hour)
		s.job("8", "COMPLETED", at(-100), at(-50), at(0))
		s.tell(8)
		s.wait(time.Minute)
		s.want("7", "8")
		before := string(s.checkpoint)
		if err := s.collect(time.Minute, sdk.Start{Window: &sdk.Window{From: time.Now().Add(-10 * time.Minute), To: time.Now()}}); err != nil {
			t.Fatal(err)
		}
		s.want("8")
		if string(s.checkpoint) != before {
			t.Errorf("a window moved the checkpoint to %s", s.checkpoint)
		}
		_ = s.collect(time.Minute, sdk.Start{Rewind: 30 * time.Minute})
		s.want("8")
		_ = s.collect(time.Minute, sdk.Start{Rewind: 48 * time.Hour})
		s.want("7", "8")
		s.checkpoint = nil
		_ = s.collect(time.Minute, sdk.Start{Rewind: time.Hour})
		s.want("7", "8")
	})
}

func TestAJournalThatIsLostSkipsNothingNew(t *testing.T) {
	run(t, func(s *site) {
		// The checkpoint is of a clock that was a year ahead.
		s.checkpoint = encodeCheckpoint(time.Now().Add(365 * 24 * time.Hour).UnixMicro())
		s.wait(time.Second)
		s.job("7", "COMPLETED", at(-100), at(-50), at(0))
		s.tell(7)
		s.wait(time.Minute)
		s.want("7")
	})
}

func TestACheckpointIsWrittenAsEverAndOthersAreErrors(t *testing.T) {
	if got := string(encodeCheckpoint(1795248797000000)); got != `{"v":1,"done":1795248797000000}` {
		t.Error(got)
	}
	if done, err := decodeCheckpoint([]byte(`{"v":1,"done":1795248797000000}`)); done != 1795248797000000 || err != nil {
		t.Error(done, err)
	}
	for _, text := range []string{`{"v":2,"done":1}`, `{"v":1,"done":-1}`, `7`, strings.Repeat(" ", 5000)} {
		if done, err := decodeCheckpoint([]byte(text)); err == nil {
			t.Errorf("%q is %d", text, done)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(encodeCheckpoint(5))
	f.Fuzz(func(t *testing.T, text []byte) {
		done, err := decodeCheckpoint(text)
		if err != nil || len(text) == 0 {
			return
		}
		if again, err := decodeCheckpoint(encodeCheckpoint(done)); again != done || err != nil {
			t.Errorf("%q is %d, then %d, %v", text, done, again, err)
		}
	})
}

func TestTheReadmeHasEveryKey(t *testing.T) {
	plugintest.Settings(t, new(settings))
}

func TestMistakesInTheConfigurationAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []sdk.Node
		want  string
	}{
		"no way in":       {[]sdk.Node{text("socket", "")}, "no epilog could reach"},
		"relative socket": {[]sdk.Node{text("socket", "sock")}, "is not an absolute path"},
		"listen alone":    {[]sdk.Node{text("listen", "0.0.0.0:7071")}, "a block tls"},
		"tls alone":       {[]sdk.Node{{Name: "tls", IsBlock: true}}, "no address to listen on"},
		"not an address": {[]sdk.Node{text("listen", "7071"), {Name: "tls", IsBlock: true,
			Children: []sdk.Node{text("ca", "/a"), text("cert", "/b"), text("key", "/c")}}}, "is not an address"},
		"unknown user": {[]sdk.Node{list("socket_users", "nobody of that name")}, "is not a user"},
		"short wait":   {[]sdk.Node{text("wait", "1ms")}, "must be between 1s and 30d"},
	} {
		err := New(slog.New(slog.DiscardHandler)).Configure(t.Context(), sdk.NewConfig("x", sdk.Node{IsBlock: true, Children: c.nodes}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
