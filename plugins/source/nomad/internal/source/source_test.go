package source

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// job registers a job of an owner.
func (s *site) job(ns, id, owner string) {
	s.server.Register(nomad.Job{ID: id, Name: id, Namespace: ns, Type: "batch", NodePool: "default", SubmitTime: s.now().UnixNano(),
		Meta:       map[string]string{"owner": owner, "owner_name": strings.ToUpper(owner), "owner_email": owner + "@example.org"},
		TaskGroups: []nomad.Group{{Name: "g", Tasks: []nomad.Task{{Name: "main", Driver: "docker", Config: nomad.TaskConfig{Image: "img:1"}}}}}})
}

// event is one of a task, at minutes from noon.
func event(minutes float64, typ string) nomad.TaskEvent {
	e := nomad.TaskEvent{Type: typ, Time: at(minutes).UnixNano()}
	if typ == "Terminated" {
		e.Details = map[string]string{"exit_code": "3", "signal": "0", "oom_killed": "false"}
	}
	return e
}

func at(minutes float64) time.Time { return noon().Add(time.Duration(minutes * float64(time.Minute))) }

// alloc puts an allocation of the job with one task.
func (s *site) alloc(ns, job, id, client string, restarts uint64, events ...nomad.TaskEvent) {
	state := nomad.TaskState{State: "running", Restarts: restarts, Events: events}
	for _, e := range events {
		if e.Type == "Started" {
			state.StartedAt = time.Unix(0, e.Time)
		}
	}
	if client == nomad.Complete || client == nomad.Failed {
		state.State, state.FinishedAt = "dead", time.Unix(0, events[len(events)-1].Time)
	}
	a := nomad.Allocation{ID: id, Name: job + ".g[0]", Namespace: ns, JobID: job, TaskGroup: "g", ClientStatus: client, DesiredStatus: "run",
		NodeID: "n1", NodeName: "node1", CreateTime: noon().UnixNano(), ModifyTime: s.now().UnixNano(), AllocatedResources: new(nomad.Resources)}
	a.AllocatedResources.Tasks = map[string]*nomad.TaskResources{"main": {Devices: []nomad.Device{{Vendor: "nvidia", Type: "gpu", Name: "Tesla V100", DeviceIDs: []string{"a", "b"}}}}}
	a.AllocatedResources.Tasks["main"].Memory.MemoryMB = 100
	a.TaskStates = map[string]*nomad.TaskState{"main": &state}
	s.server.Put(a)
}

func (s *site) stopsAt(run string, minutes float64, estimated bool) {
	s.t.Helper()
	if got := s.value(run, "stop").Time(); !got.Equal(at(minutes)) || s.value(run, "estimated").Bool() != estimated {
		s.t.Errorf("%s stops at %s, estimated %t; want %s, %t", run, got, s.value(run, "estimated").Bool(), at(minutes), estimated)
	}
}

func TestEachStartOfATaskIsARunOfItsOwn(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.start()
	s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.listed()
	s.wantRuns("a-main open")
	s.alloc("phys", "j", "a", nomad.Running, 1, event(1, "Received"), event(2, "Started"), event(3, "Terminated"), event(3, "Restarting"), event(4, "Started"))
	s.listed()
	second := "a-main@" + "1778414640000"
	s.wantRuns("a-main", second+" open")
	s.alloc("phys", "j", "a", nomad.Failed, 1, event(3, "Restarting"), event(4, "Started"), event(6, "Terminated"))
	s.listed()
	s.wantRuns("a-main", second)
	s.stopsAt("a-main", 3, false)
	s.stopsAt(second, 6, false)
	for attribute, want := range map[string]any{
		"owner": "alice", "owner_email": "alice@example.org", "namespace": "phys", "gpu_model": "Tesla V100", "image": "img:1", "state": "failed", "node": "node1",
	} {
		if got := s.value(second, attribute).Str(); got != want {
			t.Errorf("%s is %q, want %q", attribute, got, want)
		}
	}
	if s.value(second, "gpus").Int() != 2 || s.value(second, "exit_code").Int() != 3 || s.value(second, "memory_mb").Int() != 100 {
		t.Errorf("gpus %d, exit code %d", s.value(second, "gpus").Int(), s.value(second, "exit_code").Int())
	}
}

func TestRestartsThatNobodySawAreAGapAndNoGuess(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.start()
	s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.set(at(10))
	s.listed()
	s.await("a listing at ten past", func() bool { c, err := decodeCheckpoint(s.checkpoint); return err == nil && c.Look.Equal(at(10)) })
	s.kill()
	s.set(at(50))
	// Six starts since, of which Nomad still has the last two.
	s.alloc("phys", "j", "a", nomad.Running, 6, event(38, "Terminated"), event(38, "Restarting"), event(39, "Started"), event(41, "Terminated"), event(41, "Restarting"), event(42, "Started"))
	s.start()
	s.listed()
	s.await("the gap", func() bool { return len(s.gaps) > 0 })
	s.stopsAt("a-main", 10, true) // when it was last seen
	s.stopsAt("a-main@1778416740000", 41, false)
	s.wantRuns("a-main", "a-main@1778416740000", "a-main@1778416920000 open")
	if g := s.soFar().gaps[0]; !strings.Contains(g.Reason, "4 starts") || !g.From.Equal(at(2)) || !g.To.Equal(at(38)) {
		t.Errorf("gap %+v", g)
	}
}

// What was missed is in the journal as soon as it is noticed, so the gap must not wait for the
// next listing: it would be lost with the process.
func TestTask_RestartsThatWereMissed_AreAGapAlsoWhenTheSourceIsKilled(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.start()
	s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.listed()
	s.loseBatchOf("a-main@1778416920000")
	s.alloc("phys", "j", "a", nomad.Running, 6, event(38, "Terminated"), event(38, "Restarting"), event(39, "Started"), event(41, "Terminated"), event(41, "Restarting"), event(42, "Started"))
	s.await("a batch that is lost", func() bool { return s.deaf })
	s.kill()
	s.start()
	s.await("the gap", func() bool { return len(s.gaps) > 0 })
	if got := s.soFar().gaps; len(got) != 1 || !strings.Contains(got[0].Reason, "4 starts") || !strings.Contains(got[0].Reason, "phys/j") {
		t.Errorf("gaps %+v", got)
	}
	s.alloc("phys", "j", "a", nomad.Running, 9, event(58, "Terminated"), event(58, "Restarting"), event(59, "Started"))
	s.await("the gap of what was missed since", func() bool { return len(s.gaps) > 1 })
	if got := s.soFar().gaps; len(got) != 2 || !strings.Contains(got[1].Reason, "2 starts") {
		t.Errorf("gaps %+v", got)
	}
}

func TestAllocation_ForgottenWhileItRan_IsAGapAlsoWhenTheSourceIsKilled(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.start()
	s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.listed()
	s.mu.Lock()
	s.lose = func(b sdk.Batch) bool {
		return slices.ContainsFunc(b.Jobs, func(j sdk.Job) bool { return j.Ended })
	}
	s.mu.Unlock()
	s.server.Collect("a")
	s.await("a batch that is lost", func() bool { return s.deaf })
	s.kill()
	s.start()
	s.await("the gap", func() bool { return len(s.gaps) > 0 })
	if got := s.soFar().gaps; len(got) != 1 || !strings.Contains(got[0].Reason, "1 running allocations disappeared") {
		t.Errorf("gaps %+v", got)
	}
}

// The daemon has a batch, and the source is killed before it knows.
func TestKilled_BehindWhatIsToldOnce_DoesNotTellItAgain(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.start()
	s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.listed()
	for _, step := range []struct {
		last func(sdk.Batch) bool
		make func()
	}{
		{func(b sdk.Batch) bool { return len(b.Gaps) > 0 }, func() {
			s.alloc("phys", "j", "a", nomad.Running, 6, event(38, "Terminated"), event(38, "Restarting"), event(39, "Started"), event(41, "Terminated"), event(41, "Restarting"), event(42, "Started"))
		}},
		{func(b sdk.Batch) bool { return b.Skipped > 0 }, func() {
			s.alloc("phys", "j", "b", nomad.Failed, 0, event(1, "Received"), event(2, "Driver Failure"))
		}},
	} {
		s.mu.Lock()
		s.last = step.last
		s.mu.Unlock()
		step.make()
		s.await("the batch", func() bool { return s.deaf })
		for range 2 {
			s.kill()
			s.start()
			s.listed()
		}
	}
	if got := s.soFar(); len(got.gaps) != 1 || got.skipped != 1 {
		t.Errorf("gaps %+v, %d were skipped; want one of each", got.gaps, got.skipped)
	}
}

func TestTasks_ThatNeverStarted_AreCountedOnceAlsoWhenTheSourceIsKilled(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.lose = func(b sdk.Batch) bool { return b.Skipped > 0 }
	s.start()
	s.listed()
	s.alloc("phys", "j", "a", nomad.Failed, 0, event(1, "Received"), event(2, "Driver Failure"))
	s.await("a batch that is lost", func() bool { return s.deaf })
	for range 3 {
		s.kill()
		s.start()
		s.listed()
		s.stop()
	}
	if got := s.soFar().skipped; got != 1 {
		t.Errorf("%d were skipped, want 1", got)
	}
}

func TestAnAllocationThatIsPurgedWhileNobodyLooksEndsWhenItWasLastSeen(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.start()
	s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.set(at(10))
	s.await("a listing at ten past", func() bool {
		c, err := decodeCheckpoint(s.checkpoint)
		return err == nil && c.Look.Equal(at(10)) && len(s.jobs) == 1
	})
	s.kill()
	s.server.Purge("phys", "j", s.now())
	s.server.Restart() // which forgets the purge
	s.set(at(20))
	s.start()
	s.await("its end", func() bool { return s.jobs["a-main"].Ended })
	s.stopsAt("a-main", 10, true)
	if s.value("a-main", "owner").Str() != "alice" || s.value("a-main", "state").Str() != "forgotten" {
		t.Errorf("owner %q, state %q", s.value("a-main", "owner").Str(), s.value("a-main", "state").Str())
	}
	s.await("the gap", func() bool { return len(s.gaps) == 1 && strings.Contains(s.gaps[0].Reason, "disappeared") })
}

func TestWhatWasSeenIsSentAfterACrashThoughNomadHasForgottenIt(t *testing.T) {
	s := newSite(t)
	s.start()
	s.listed()
	s.mu.Lock()
	s.deaf = true // the daemon takes nothing any more
	s.mu.Unlock()
	s.job("phys", "j", "alice")
	s.alloc("phys", "j", "a", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
	failed := 0
	s.await("the source to see it", func() bool {
		failed = len(s.collected)
		return s.server.Asked("allocation") > 0
	})
	// It fails with every batch; the failure after it has asked is one with the job.
	s.await("the source to fail with it", func() bool { return len(s.collected) > failed })
	s.kill()
	s.server.Purge("phys", "j", s.now())
	s.server.Restart()
	s.start()
	s.await("the run", func() bool { return s.jobs["a-main"].Ended })
	s.stopsAt("a-main", 3, false)
	if s.value("a-main", "owner").Str() != "alice" {
		t.Errorf("its owner is %q", s.value("a-main", "owner").Str())
	}
}

func TestALostNodeCountsByTheRuleOfTheSite(t *testing.T) {
	for rule, want := range map[string]float64{"bill": 30, "disconnect": 20} {
		t.Run(rule, func(t *testing.T) {
			s := newSite(t)
			s.job("phys", "j", "alice")
			s.start(text("lost", rule))
			s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
			s.set(at(20))
			s.alloc("phys", "j", "a", nomad.Unknown, 0, event(1, "Received"), event(2, "Started"))
			s.listed()
			if ended := s.value("a-main", "stop").IsNull(); ended != (rule == "bill") {
				t.Errorf("while its node is away the run is open: %t", ended)
			}
			s.set(at(30))
			s.alloc("phys", "j", "a", nomad.Lost, 0, event(1, "Received"), event(2, "Started"))
			s.listed()
			if rule == "bill" {
				s.stopsAt("a-main", want, true)
			}
			// The node comes back and says how it was.
			s.set(at(40))
			s.alloc("phys", "j", "a", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(25, "Terminated"))
			s.listed()
			s.stopsAt("a-main", 25, false)
		})
	}
}

func TestAJobThatWasPurgedAndRegisteredAgainHasItsOwnOwner(t *testing.T) {
	s := newSite(t)
	s.start()
	s.job("phys", "j", "alice")
	s.alloc("phys", "j", "a", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
	s.listed()
	s.server.Purge("phys", "j", s.now())
	s.job("phys", "j", "bob")
	s.alloc("phys", "j", "b", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
	s.listed()
	s.wantRuns("a-main", "b-main")
	if a, b := s.value("a-main", "owner").Str(), s.value("b-main", "owner").Str(); a != "alice" || b != "bob" {
		t.Errorf("owners %q and %q", a, b)
	}
}

func TestAServerThatIsAwayForAMomentIsNoErrorAndLosesNothing(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.start()
	s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.listed()
	s.server.Stop()
	s.alloc("phys", "j", "a", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
	s.alloc("phys", "j", "b", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
	before := s.server.Asked("jobs")
	s.await("the source to try", func() bool { return s.server.Asked("jobs") > before })
	s.server.Continue()
	s.listed()
	s.wantRuns("a-main", "b-main")
	if len(s.soFar().collected) != 0 {
		t.Errorf("errors: %v", s.soFar().collected)
	}
}

func TestFiltersLeaveRunsOutAndTakeThemBack(t *testing.T) {
	s := newSite(t)
	for _, j := range [][2]string{{"phys", "module-a"}, {"phys", "traefik"}, {"tutorials", "module-b"}, {"chem", "tool-c"}} {
		s.job(j[0], j[1], "alice")
		s.alloc(j[0], j[1], j[1], nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
	}
	s.start(list("exclude_namespaces", "tutorials"), list("jobs", "module-*", "tool-*"))
	s.listed()
	s.wantRuns("module-a-main", "tool-c-main")
	s.stop()
	s.checkpoint, s.dir = nil, t.TempDir()
	s.start(list("namespaces", "ch*"), list("node_pools", "default"), text("earliest", "2026-05-10T12:03:00Z"))
	s.await("what is wanted now", func() bool { return cmp.Equal(s.runs(), []string{"tool-c-main"}) })
}

func TestTheSourceTellsWhatNomadKnowsBesideRuns(t *testing.T) {
	s := newSite(t)
	node := nomad.Node{ID: "n1", Name: "node1", Datacenter: "dc1", NodePool: "default", Status: "ready", NodeResources: new(nomad.NodeResources)}
	node.NodeResources.Cpu.TotalCpuCores, node.NodeResources.Cpu.CpuShares, node.NodeResources.Memory.MemoryMB = 8, 20000, 64000
	node.NodeResources.Devices = append(node.NodeResources.Devices, struct {
		Vendor, Type, Name string
		Instances          []struct{ ID string }
	}{"nvidia", "gpu", "Tesla V100", []struct{ ID string }{{"a"}, {"b"}}})
	s.server.PutNode(node)
	node.ID, node.Status = "n2", "down"
	s.server.PutNode(node)
	s.job("phys", "j", "alice")
	s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.server.Wait("phys", "j", 3)
	s.start(text("capacity_interval", "0s"), text("census_interval", "0s"), text("directory_interval", "0s"))
	s.await("the facts", func() bool { return len(s.capacity) > 0 && len(s.census) > 0 && len(s.directory) > 0 })
	s.mu.Lock()
	want := []sdk.Amount{{Name: "Cores", Amount: 8}, {Name: "Disk"}, {Name: "GPUs", Amount: 2}, {Name: "GPUs:Tesla V100", Amount: 2}, {Name: "MHz", Amount: 20000}, {Name: "Memory", Amount: 64000}}
	if diff := cmp.Diff(want, s.capacity[0].Components); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]sdk.CensusRow{{User: "alice", Queue: "phys", Running: 1, Pending: 3}}, s.census[0].Rows); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]sdk.Person{{User: "alice", Groups: []string{"phys"}, Name: "ALICE", Address: "alice@example.org"}}, s.directory[0]); diff != "" {
		t.Error(diff)
	}
	s.mu.Unlock()
	if s.value("a-main", "datacenter").Str() != "dc1" {
		t.Errorf("datacenter %q", s.value("a-main", "datacenter").Str())
	}
	// Who has owned a job stays; what has not changed is not told again.
	s.server.Purge("phys", "j", s.now())
	s.job("chem", "k", "bob")
	s.await("both people", func() bool { return len(s.directory) == 2 && len(s.directory[1]) == 2 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.capacity) != 1 {
		t.Errorf("the capacity was told %d times", len(s.capacity))
	}
}

func TestCapacity_SlicesOfCards_AreThousandthsOfCards(t *testing.T) {
	node := nomad.Node{NodePool: "default", Status: "ready", NodeResources: new(nomad.NodeResources)}
	for name, n := range map[string]int{"NVIDIA A100-SXM4-40GB": 2, "NVIDIA A100-SXM4-40GB MIG 3g.20gb": 2, "NVIDIA A100-SXM4-40GB MIG 9g.20gb": 1} {
		node.NodeResources.Devices = append(node.NodeResources.Devices, struct {
			Vendor, Type, Name string
			Instances          []struct{ ID string }
		}{"nvidia", "gpu", name, make([]struct{ ID string }, n)})
	}
	got := map[string]int64{}
	for _, a := range (&filter{}).sumCapacity([]nomad.Node{node, node}) {
		if strings.Contains(a.Name, "GPUs") {
			got[a.Name] = a.Amount
		}
	}
	want := map[string]int64{"GPUs": 10, "GPUs:NVIDIA A100-SXM4-40GB": 4, "GPUs:NVIDIA A100-SXM4-40GB MIG 3g.20gb": 4, "GPUs:NVIDIA A100-SXM4-40GB MIG 9g.20gb": 2, "MilliGPUs": 1714}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMapping_Slices_AreMilliGPUsOnlyOfTasksThatHaveThem(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	for id, model := range map[string]string{"a": "NVIDIA A30 MIG 2g.12gb", "b": "NVIDIA A30"} {
		e := sample(id)
		e.Alloc.AllocatedResources = &nomad.Resources{Tasks: map[string]*nomad.TaskResources{"main": {Devices: []nomad.Device{{Vendor: "nvidia", Type: "gpu", Name: model, DeviceIDs: []string{"x"}}}}}}
		v := e.Views(run.Ends{})[0]
		s.jobs[id], _ = s.configured().jobOf(&v)
	}
	if got := s.records(); strings.Count(got, `{"name":"MilliGPUs","amount":500`) != 1 || strings.Count(got, "MilliGPUs") != 1 || strings.Count(got, `{"name":"GPUs","amount":1`) != 2 {
		t.Error(got)
	}
}

func TestAWindowHasWhatNomadHasForgottenToo(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.start()
	s.alloc("phys", "j", "a", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
	s.alloc("phys", "j", "b", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(30, "Terminated"))
	s.alloc("phys", "j", "c", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.listed()
	s.server.Collect("a")
	s.listed()
	s.stop()
	source := s.configured()
	windowed := func(from, to float64) []string {
		s.jobs = map[string]sdk.Job{}
		err := source.Collect(context.Background(), sdk.Start{Window: &sdk.Window{From: at(from), To: at(to)}}, sdk.NewStream(run.Attributes(), s.take))
		if err != nil {
			t.Fatal(err)
		}
		return s.runs()
	}
	for _, c := range []struct {
		from, to float64
		want     []string
	}{{0, 20, []string{"a-main", "c-main open"}}, {3, 3.001, []string{"a-main", "c-main open"}}, {-60, -1, nil}, {20, 40, []string{"b-main", "c-main open"}}} {
		if got := windowed(c.from, c.to); !cmp.Equal(got, c.want) {
			t.Errorf("from %v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	n, err := source.Count(context.Background(), sdk.Window{From: at(0), To: at(40)})
	if err != nil || n != 1 {
		t.Errorf("Nomad's listing has %d runs that ended, %v; want 1", n, err)
	}
}

func TestARewindSendsAgainWhatTheJournalHas(t *testing.T) {
	s := newSite(t)
	s.job("phys", "j", "alice")
	s.start()
	s.alloc("phys", "j", "a", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
	s.alloc("phys", "j", "b", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(30, "Terminated"))
	s.set(at(60))
	s.listed()
	s.server.Collect("a")
	s.listed()
	s.stop()
	s.jobs = map[string]sdk.Job{}
	s.rewind(100 * time.Minute)
	s.await("both", func() bool { return cmp.Equal(s.runs(), []string{"a-main", "b-main"}) })
}

func TestAnEmptyFolderWithACheckpointIsAGap(t *testing.T) {
	s := newSite(t)
	s.start()
	s.listed()
	s.kill()
	s.dir = t.TempDir()
	s.set(at(5))
	s.start()
	s.await("the gap", func() bool { return len(s.gaps) == 1 && strings.Contains(s.gaps[0].Reason, "folder") })
}

func TestALongAbsenceIsAGap(t *testing.T) {
	s := newSite(t)
	s.start()
	s.listed()
	s.kill()
	s.set(at(300))
	s.start()
	s.await("the gap", func() bool { return len(s.gaps) == 1 && s.gaps[0].From.Equal(at(0)) && s.gaps[0].To.Equal(at(240)) })
}

func TestATokenIsReadAgainWhenItsFileChanges(t *testing.T) {
	s := newSite(t)
	s.server.Token = "first"
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong one")
	s.start(text("token_file", file))
	s.await("a refusal that says what to do", func() bool {
		return len(s.collected) > 0 && s.collected[0] != nil && strings.Contains(s.collected[0].Error(), "read-job")
	})
	write("first")
	s.listed()
}

func TestANomadThatWasRestoredFromAnOldSnapshotIsFollowedOn(t *testing.T) {
	s := newSite(t)
	s.start(text("list_interval", "200ms"))
	for range 20 {
		s.job("phys", "j", "alice")
	}
	s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
	s.listed()
	s.server.Restore()
	s.job("phys", "k", "bob")
	s.alloc("phys", "k", "b", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
	s.await("both", func() bool { return cmp.Equal(s.runs(), []string{"a-main", "b-main"}) })
}

func TestAJobThatIsPurgedWhileItRunsEndsWithThePurge(t *testing.T) {
	for _, away := range []bool{false, true} {
		s := newSite(t)
		s.job("phys", "j", "alice")
		s.start(text("list_interval", "1h"))
		s.alloc("phys", "j", "a", nomad.Running, 0, event(1, "Received"), event(2, "Started"))
		s.await("the run", func() bool { return len(s.jobs) == 1 })
		if away { // the server's memory has it when the source comes back
			s.kill()
		}
		s.set(at(20))
		s.server.Purge("phys", "j", at(15))
		if away {
			s.start(text("list_interval", "1h"))
		}
		s.await("its end", func() bool { return s.jobs["a-main"].Ended })
		s.stopsAt("a-main", 15, true)
		if s.value("a-main", "owner").Str() != "alice" || s.value("a-main", "state").Str() != "killed" || len(s.soFar().gaps) != 0 {
			t.Errorf("owner %q, state %q, gaps %v", s.value("a-main", "owner").Str(), s.value("a-main", "state").Str(), s.soFar().gaps)
		}
		s.stop()
	}
}

// Allocations may wait to be sent from before, when Nomad broke off.
func TestListing_EmptyPageWhileAllocationsWait_SendsThem(t *testing.T) {
	s := newSite(t)
	p, err := s.configured().beginPass(t.Context(), sdk.Start{}, sdk.NewStream(run.Attributes(), s.take))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	e := sample("a")
	p.Open["a"] = e
	p.Touch(e)
	if _, _, err := p.listAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantRuns("a-main open")
}

// The SDK goes on after a panic, so that the next Collect needs the journal.
func TestCollect_Panics_ClosesItsJournal(t *testing.T) {
	for name, from := range map[string]sdk.Start{"follow": {}, "window": {Window: &sdk.Window{From: at(0), To: at(60)}}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.job("phys", "j", "alice")
			s.start()
			s.alloc("phys", "j", "a", nomad.Complete, 0, event(1, "Received"), event(2, "Started"), event(3, "Terminated"))
			s.listed()
			s.stop()
			source := s.configured()
			func() {
				defer func() {
					if recover() == nil {
						t.Error("there was no panic")
					}
				}()
				_ = source.Collect(t.Context(), from, sdk.NewStream(run.Attributes(), func(context.Context, sdk.Batch) error { panic("odd") })) // it does not return
			}()
			waiting, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			j, err := journalForm().Open(waiting, s.dir, "other")
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
