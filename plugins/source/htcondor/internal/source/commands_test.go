package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/racetest"
)

// asked is a source that asks a fake schedd vm, long after all of its jobs.
func asked(t *testing.T, keys ...sdk.Node) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), time: time.Unix(1795300000, 0), jobs: map[string]sdk.Job{}, fail: -1}
	s.restart(append([]sdk.Node{text("commands", s.fakePool()), blockOf("schedd", "vm")}, keys...)...)
	return s
}

func TestCommands_NewAds_ComeOnceAndTheHistoryHasTheLastWord(t *testing.T) {
	s := asked(t)
	s.recorded("history-vm", "condor_history", 4, 0)
	s.recorded("epochs-vm", "condor_history-epochs", 4, 0)
	s.poll()
	if len(s.jobs) != 7 || s.jobs["vm#8.0#1795241265-1795241382"].Run == "" {
		t.Errorf("%d runs: %v", len(s.jobs), s.sent)
	}
	s.poll()
	s.wantSent()
	s.restart(text("commands", s.path("bin")), blockOf("schedd", "vm"))
	s.recorded("history-vm", "condor_history", 0, 0)
	s.recorded("epochs-vm", "condor_history-epochs", 0, 0)
	s.poll()
	if len(s.jobs) != 11 || len(s.sent) != 8 {
		t.Errorf("%d runs: %v", len(s.jobs), s.sent)
	}
	for run, want := range map[string]string{"vm#6.0#1795241265-1795241382": "CANCELLED", "vm#5.0#1795241265-1795241382": "HELD", "vm#2.0#1795241265-1795241384": "FAILED", "vm#9.0#1795241480": "EVICTED"} {
		if got := s.state(run); got != want {
			t.Errorf("%s is %s", run, got)
		}
	}
	w := sdk.Window{From: time.Unix(1795200000, 0), To: time.Unix(1795300000, 0)}
	n, err := s.source.Count(t.Context(), w)
	if int(n) != len(s.jobs) || err != nil {
		t.Errorf("counted %d of %d: %v", n, len(s.jobs), err)
	}
	before := len(s.jobs)
	s.jobs = map[string]sdk.Job{}
	s.must(s.collect(sdk.Start{Window: &w}))
	if len(s.jobs) != before || s.state("vm#6.0#1795241265-1795241382") != "CANCELLED" {
		t.Errorf("%d runs of a window", len(s.jobs))
	}
	s.must(s.collect(sdk.Start{Rewind: 1000 * time.Hour}))
	if len(s.jobs) != before || len(s.gaps) > 0 {
		t.Errorf("%d runs, gaps %v", len(s.jobs), s.gaps)
	}
}

func TestCommands_InterruptedAnswer_IsAskedForAgain(t *testing.T) {
	s := asked(t)
	s.source.batch = 2
	for fail := range 9 {
		s.fail = fail
		_ = s.collect(sdk.Start{})
	}
	s.fail = -1
	s.poll()
	if len(s.jobs) != 11 {
		t.Errorf("%d runs", len(s.jobs))
	}
}

// A schedd writes ads in another order than that in which jobs ended, also while it is asked.
func TestCommands_AdsInAnyOrder_EachRunComes(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	text, err := os.ReadFile("../../testdata/condor_history-23.9.6.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for range racetest.Few(5) {
		s := asked(t)
		s.must(os.Remove(s.path("epochs-vm")))
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for hidden := len(list); hidden >= 0; hidden -= 1 + r.IntN(3) {
			s.time = time.Unix(int64(list[r.IntN(len(list))]["EnteredCurrentStatus"].(float64)), 0)
			s.history(list, hidden)
			s.must(s.collect(sdk.Start{}))
		}
		s.time = time.Unix(1795300000, 0)
		s.history(list, 0)
		s.poll()
		if len(s.jobs) != 10 || len(s.gaps) > 0 {
			t.Fatalf("seed %d: %d runs, gaps %v", seed, len(s.jobs), s.gaps)
		}
	}
}

// Schedds of one pool may write their epochs into one file, and each answers with all of it.
func TestCommands_SharedEpochsAndAnyFailure_HistoryHasTheLastWord(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	want := asked(t)
	want.poll()
	for range racetest.Few(6) {
		blocks := []sdk.Node{blockOf("schedd", "vm"), blockOf("schedd", "other")}
		r.Shuffle(2, func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		s := &site{t: t, dir: t.TempDir(), time: time.Unix(1795300000, 0), jobs: map[string]sdk.Job{}, fail: -1}
		s.restart(append([]sdk.Node{text("commands", s.fakePool())}, blocks...)...)
		for try := range 4 {
			for _, name := range []string{"vm", "other"} {
				s.recorded("epochs-"+name, "condor_history-epochs", 0, 0)
				s.must(os.WriteFile(s.path("history-"+name), []byte(`{"Ads": []}`), 0o600))
			}
			s.recorded("history-vm", "condor_history", 0, 0)
			for _, file := range []string{"epochs-vm", "epochs-other", "history-vm", "history-other"} {
				if try < 3 && r.IntN(2) == 0 {
					s.must(os.WriteFile(s.path(file), []byte("cut off"), 0o600))
				}
			}
			_ = s.collect(sdk.Start{})
		}
		for run := range want.jobs {
			if got := s.state(run); got != want.state(run) {
				t.Fatalf("seed %d: %s is %q, want %s", seed, run, got, want.state(run))
			}
		}
	}
}

// history makes the answer of the schedd vm, of which the newest are not there yet.
func (s *site) history(list []map[string]any, hidden int) {
	s.t.Helper()
	raw, err := json.Marshal(ads{Ads: list, Hidden: hidden})
	s.must(err)
	s.must(os.WriteFile(s.path("history-vm"), raw, 0o600))
}

func TestCommands_RunAtTheEdgeOfAWindow_IsOfOneWindow(t *testing.T) {
	s := asked(t)
	run := func(changes map[string]any) map[string]any {
		ad := map[string]any{"ClusterId": 1, "ProcId": 0, "GlobalJobId": "vm#1.0#1", "JobStatus": 4, "JobUniverse": 5, "JobCurrentStartDate": second(-10), "JobStartDate": second(-10)}
		maps.Copy(ad, changes)
		return ad
	}
	for name, ad := range map[string]map[string]any{
		"history-vm": run(map[string]any{"CompletionDate": second(-1), "EnteredCurrentStatus": second(-1)}),
		"epochs-vm":  run(map[string]any{"LastVacateTime": second(1), "EpochWriteDate": second(1)}), // two minutes later
	} {
		raw, err := json.Marshal(ads{Ads: []map[string]any{ad}})
		s.must(err)
		s.must(os.WriteFile(s.path(name), raw, 0o600))
	}
	s.time = noon().Add(time.Hour)
	for from, want := range map[time.Duration][]string{-time.Hour: {"vm#1.0#1"}, 0: nil} {
		w := sdk.Window{From: noon().Add(from), To: noon().Add(from + time.Hour)}
		s.must(s.collect(sdk.Start{Window: &w}))
		s.wantSent(want...)
		if got, err := s.source.Count(t.Context(), w); int(got) != len(want) || err != nil {
			t.Errorf("counted %d, %v", got, err)
		}
	}
}

func TestCommands_LostHistory_IsAGap(t *testing.T) {
	s := asked(t)
	s.recorded("history-vm", "condor_history", 4, 0)
	s.poll()
	s.recorded("history-vm", "condor_history", 0, 7)
	s.poll()
	if len(s.gaps) != 1 || !s.gaps[0].To.After(s.gaps[0].From) {
		t.Errorf("gaps %+v", s.gaps)
	}
}

func TestCommands_ScheddThatFails_IsNamedAndTheOthersCome(t *testing.T) {
	s := asked(t, blockOf("schedd", "down"), text("pool", "cm.example.org"))
	s.write("fail-down", "Unable to locate remote schedd (name=down, pool=cm.example.org).")
	err := s.collect(sdk.Start{})
	if err == nil || !strings.Contains(err.Error(), "schedd down") || !strings.Contains(err.Error(), "Unable to locate remote schedd") {
		t.Error(err)
	}
	if len(s.jobs) != 11 || !s.watermark.IsZero() {
		t.Errorf("%d runs, complete to %s", len(s.jobs), s.watermark)
	}
	s.must(os.Remove(s.path("fail-down")))
	s.recorded("history-down", "condor_history", 0, 0)
	s.time = s.time.Add(time.Hour)
	s.poll()
	if s.watermark.IsZero() {
		t.Error("it is not complete")
	}
}

func TestCommands_ScheddThatHangs_IsGivenUp(t *testing.T) {
	s := asked(t, text("timeout", "1s"))
	s.write("hang")
	begun := time.Now()
	if err := s.collect(sdk.Start{}); err == nil || !strings.Contains(err.Error(), "no output for 1s") {
		t.Error(err)
	}
	if passed := time.Since(begun); passed > 30*time.Second {
		t.Error(passed)
	}
}

func TestCommands_PoolWithoutEpochs_GivesTheLastRuns(t *testing.T) {
	s := asked(t)
	s.must(os.Remove(s.path("epochs-vm")))
	s.poll()
	if len(s.jobs) != 10 || s.watermark.IsZero() {
		t.Errorf("%d runs, complete to %s", len(s.jobs), s.watermark)
	}
	if n, err := s.source.Count(t.Context(), sdk.Window{From: time.Unix(0, 0), To: s.time}); n != 10 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

func TestCommands_Pool_IsGivenToAllThatAskIt(t *testing.T) {
	for name, c := range map[string]struct {
		keys  func(s *site) []sdk.Node
		calls []string // commands, without and with -epochs
	}{
		"one schedd":     {func(*site) []sdk.Node { return []sdk.Node{text("through", "commands"), text("pool", "cm.example.org")} }, nil},
		"of all schedds": {func(*site) []sdk.Node { return []sdk.Node{blockOf("schedd", "vm"), text("pool", "cm.example.org")} }, nil},
		"of its own":     {func(*site) []sdk.Node { return []sdk.Node{blockOf("schedd", "vm", text("pool", "cm.example.org"))} }, nil},
		"its own of two": {func(*site) []sdk.Node {
			return []sdk.Node{blockOf("schedd", "vm", text("pool", "cm.example.org")), text("pool", "other.example.org")}
		}, nil},
		"files of one": {func(s *site) []sdk.Node {
			return []sdk.Node{text("history", s.path("history")), text("pool", "cm.example.org")}
		}, []string{"condor_q", "condor_status"}},
		"files of a block": {func(s *site) []sdk.Node {
			return []sdk.Node{blockOf("schedd", "vm", text("history", s.path("history")), text("pool", "cm.example.org"))}
		}, []string{"condor_q", "condor_status"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{t: t, dir: t.TempDir(), time: time.Unix(1795300000, 0), jobs: map[string]sdk.Job{}, fail: -1}
			keys := append(c.keys(s), text("commands", s.fakePool()), sdk.Node{Name: "open", Value: sdk.Bool(true)})
			s.recorded("history-", "condor_history", 0, 0)
			s.recorded("epochs-", "condor_history-epochs", 0, 0)
			s.write("history")
			s.restart(keys...)
			w := sdk.Window{From: time.Unix(1795200000, 0), To: time.Unix(1795300000, 0)}
			s.poll()
			s.poll() // with -since
			s.must(s.collect(sdk.Start{Window: &w}))
			s.must(s.collect(sdk.Start{Rewind: time.Hour}))
			_, err := s.source.Count(t.Context(), w)
			s.must(err)
			raw, err := os.ReadFile(s.path("calls"))
			s.must(err)
			var seen []string
			for call := range strings.Lines(string(raw)) {
				command, args, _ := strings.Cut(strings.TrimSpace(call), " ")
				if command == "condor_config_val" { // of this machine
					continue
				}
				if strings.Count(" "+args+" ", " -pool ") != 1 || !strings.Contains(args+" ", "-pool cm.example.org ") {
					t.Errorf("%s", call)
				}
				if strings.Contains(args, "-epochs") {
					command += " -epochs"
				}
				seen = append(seen, command)
			}
			slices.Sort(seen)
			want := c.calls
			if want == nil {
				want = []string{"condor_history", "condor_history -epochs", "condor_q", "condor_status"}
			}
			if d := cmp.Diff(want, slices.Compact(seen)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFacts_OfARecordedPool_AreTold(t *testing.T) {
	s := asked(t)
	s.poll()
	s.poll()
	if len(s.capacity) != 1 || len(s.census) != 1 {
		t.Fatalf("%+v %+v", s.capacity, s.census)
	}
	if c := s.capacity[0].Components; !slices.Equal(c, []sdk.Amount{{Name: "Cores", Amount: 8}, {Name: "GPUs", Amount: 2}, {Name: "Memory", Amount: 8000}}) {
		t.Error(c)
	}
	want := []sdk.CensusRow{{User: "alice", Queue: "vm", Running: 3, Pending: 2}, {User: "bob", Queue: "vm", Pending: 1}}
	if got := s.census[0].Rows; !slices.Equal(got, want) {
		t.Error(got)
	}
}

// The census has the jobs whose runs are wanted, as records have them: no DAGMan by default.
func TestCensus_JobsWhoseRunsAreNotWanted_AreLeftOut(t *testing.T) {
	const queue = `[
{"JobStatus": 2, "Owner": "alice", "JobUniverse": 5, "AcctGroup": "physics", "ProjectName": "higgs"},
{"JobStatus": 2, "Owner": "alice", "JobUniverse": 7, "AcctGroup": "physics", "ProjectName": "higgs"},
{"JobStatus": 1, "Owner": "alice", "JobUniverse": 12},
{"JobStatus": 1, "Owner": "bob", "JobUniverse": 11, "AccountingGroup": "chemistry.bob"},
{"JobStatus": 1, "Owner": "carol", "JobUniverse": 5, "x509UserProxyVOName": "atlas", "ProjectName": "none"}
]`
	row := func(user string, running, pending int64) sdk.CensusRow {
		return sdk.CensusRow{User: user, Queue: "vm", Running: running, Pending: pending}
	}
	for name, c := range map[string]struct {
		keys []sdk.Node
		want []sdk.CensusRow
	}{
		"by default":   {nil, []sdk.CensusRow{row("alice", 1, 0), row("bob", 0, 1), row("carol", 0, 1)}},
		"by universe":  {[]sdk.Node{list("universes", "scheduler", "local")}, []sdk.CensusRow{row("alice", 1, 1)}},
		"by user":      {[]sdk.Node{list("users", "bob")}, []sdk.CensusRow{row("bob", 0, 1)}},
		"by group":     {[]sdk.Node{list("groups", "physics", "chemistry")}, []sdk.CensusRow{row("alice", 1, 0), row("bob", 0, 1)}},
		"by VO":        {[]sdk.Node{list("groups", "atlas")}, []sdk.CensusRow{row("carol", 0, 1)}},
		"by project":   {[]sdk.Node{list("projects", "higgs")}, []sdk.CensusRow{row("alice", 1, 0)}},
		"by its state": {[]sdk.Node{list("states", "FAILED")}, []sdk.CensusRow{row("alice", 1, 0), row("bob", 0, 1), row("carol", 0, 1)}}, // which none has yet
	} {
		t.Run(name, func(t *testing.T) {
			s := asked(t, c.keys...)
			s.must(os.Remove(s.path("census.json")))
			s.write("census.json", queue)
			s.poll()
			if len(s.census) != 1 || !slices.Equal(s.census[0].Rows, c.want) {
				t.Errorf("%+v, want %+v", s.census, c.want)
			}
		})
	}
}

func TestCapacity_GPUsOfSlots_AreSummedByDevice(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	names := []string{"GPUs_DeviceName", "gpus_devicename", "GPUs_GlobalDeviceName", "CUDADeviceName"}
	for range 20 {
		s := asked(t)
		want := map[string]int64{}
		var slots []map[string]any
		for i := range 1 + r.IntN(8) {
			gpus := int64(r.IntN(4))
			slot := map[string]any{"Name": fmt.Sprint("slot1@n", i), "TotalSlotCpus": 8, "TotalSlotMemory": 100, "TotalSlotGPUs": gpus}
			want["Cores"], want["Memory"], want["GPUs"] = want["Cores"]+8, want["Memory"]+100, want["GPUs"]+gpus
			switch device := []string{"NVIDIA A100", "Tesla T4", "", "odd", "long"}[r.IntN(5)]; device {
			case "": // the slot has GPUs of several kinds, or does not tell
			case "odd":
				slot["GPUs_DeviceName"] = "/Expr(foo)/"
			case "long":
				slot["GPUs_DeviceName"] = strings.Repeat("x", 300)
			default:
				slot[names[r.IntN(len(names))]] = device
				want["GPUs:"+device] += gpus
			}
			slots = append(slots, slot)
		}
		pool, err := json.Marshal(slots)
		s.must(err)
		s.must(os.WriteFile(s.path("status.json"), pool, 0o600))
		s.poll()
		got := map[string]int64{}
		for _, a := range s.capacity[0].Components {
			got[a.Name] = a.Amount
		}
		maps.DeleteFunc(want, func(_ string, n int64) bool { return n == 0 })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s\n%s", seed, diff, pool)
		}
	}
}

func TestCapacity_SlicesOfCards_AreThousandthsOfCards(t *testing.T) {
	s := asked(t)
	var slots []map[string]any
	for _, device := range []string{"NVIDIA A100-SXM4-40GB MIG 3g.20gb", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100", "B900 MIG 9g.5gb"} {
		slots = append(slots, map[string]any{"Name": "slot1@" + device, "TotalSlotGPUs": 2, "GPUs_DeviceName": device})
	}
	pool, err := json.Marshal(slots)
	s.must(err)
	s.must(os.WriteFile(s.path("status.json"), pool, 0o600))
	s.poll()
	got := map[string]int64{}
	for _, a := range s.capacity[0].Components {
		got[a.Name] = a.Amount
	}
	if got["GPUs"] != 8 || got["MilliGPUs"] != 1143 { // eight sevenths
		t.Error(got)
	}
}

func TestOpen_RunningJobs_AreSentUntilTheyEnd(t *testing.T) {
	open := sdk.Node{Name: "open", Value: sdk.Bool(true)}
	s := asked(t, open)
	s.poll()
	for _, run := range []string{"rig#18.0#1795444043", "rig#19.0#1795444043", "rig#19.1#1795444043"} {
		j, ok := s.jobs[run]
		if !ok || j.Ended || s.state(run) != "RUNNING" || s.value(run, "cores").Int() == 0 || s.value(run, "host").Str() != "rig" {
			t.Errorf("%s: %+v", run, j)
		}
	}
	if got := s.value("rig#18.0#1795444043", "gpus").Int(); got != 1 {
		t.Errorf("%d GPUs", got)
	}
}
