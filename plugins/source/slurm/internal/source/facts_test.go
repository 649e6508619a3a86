package source

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

func recording(t testing.TB, name string) string {
	return fakesacct.Recording(t, filepath.Join("..", "cluster", "testdata", name+"-24.11.txt"))
}

const passwd = "alice:x:21001:21001:Alice Adams,,,:/home/alice:/bin/sh\nbob:x:21002:21002::/home/bob:/bin/sh\n"

// newCluster is a site with the commands beside sacct; its log goes to log.
func newCluster(t *testing.T, keys ...sdk.Node) (s *site, log *bytes.Buffer) {
	s = newSite(t)
	s.nodes(recording(t, "nodes"))
	s.tool("squeue", fakesacct.Tool{Output: recording(t, "queue")})
	s.tool("sacctmgr", fakesacct.Tool{Output: recording(t, "associations")})
	s.tool("getent", fakesacct.Tool{Output: passwd, Exit: 2}) // it does not know root
	s.restart(append(keys, text("getent", filepath.Join(s.dir, "getent")))...)
	log = new(bytes.Buffer)
	s.source.log = slog.New(slog.NewTextHandler(log, nil))
	return s, log
}

func (s *site) tool(name string, tool fakesacct.Tool) { fakesacct.InstallTool(s.t, s.dir, name, tool) }

func (s *site) nodes(text string) {
	s.tool("scontrol", fakesacct.Tool{Output: text, Last: map[string]string{"config": "ClusterName             = rig\n"}})
}

func fails() fakesacct.Tool {
	return fakesacct.Tool{Stderr: "slurm_load error: Unable to contact slurm controller (connect failure)\n", Exit: 1}
}

func off(name string) sdk.Node { return sdk.Node{Name: name, Value: sdk.Bool(false)} }

// amounts reads "Cores=4 Memory=8000".
func amounts(text string) (out []sdk.Amount) {
	for word := range strings.FieldsSeq(text) {
		var a sdk.Amount
		name, n, _ := strings.Cut(word, "=")
		a.Name = name
		a.Amount, _ = strconv.ParseInt(n, 10, 64)
		out = append(out, a)
	}
	return out
}

// rows reads "user queue running pending".
func rows(lines ...string) (out []sdk.CensusRow) {
	for _, line := range lines {
		var r sdk.CensusRow
		if _, err := fmt.Sscan(line, &r.User, &r.Queue, &r.Running, &r.Pending); err != nil {
			panic(err)
		}
		out = append(out, r)
	}
	return out
}

func TestTheFirstPassTellsWhatTheClusterHasWhoWaitsAndWhoMayChargeWhat(t *testing.T) {
	s, log := newCluster(t)
	s.poll(0)
	want := said{
		capacity: []sdk.Capacity{{From: noon(), Components: amounts("Cores=44 Memory=120000 GPUs=6 GPUs:a100=3 GPUs:tesla=2 GPUs:v100=1")}},
		census:   []sdk.Census{{At: noon(), Rows: rows("alice compute 4 3", "alice gpu 0 1", "bob compute 1 2", "bob compute,gpu 0 1")}},
		directory: [][]sdk.Person{{{User: "alice", Groups: []string{"chem", "physics"}, Name: "Alice Adams"},
			{User: "bob", Groups: []string{"chem"}}, {User: "root", Groups: []string{"root"}}}},
	}
	if diff := cmp.Diff(want, s.facts, cmp.AllowUnexported(said{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if log.Len() > 0 {
		t.Error(log)
	}
}

func TestTheNamesAndUnitsOfACapacityAreThoseOfTheDefaultMapping(t *testing.T) {
	nodes := []cluster.Node{{Cores: 1, MemoryMB: 1, GPUs: map[string]int64{"": 1}, Shares: map[string]map[string]int64{"shard": {"": 4}}}}
	got, err := new(filter).sumNodes(nodes)
	if err == nil {
		got, err = new(filter).addParts(got, nodes)
	}
	if err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	for _, a := range got {
		if !strings.Contains(job.Mapping, fmt.Sprintf("component %q {", a.Name)) {
			t.Errorf("the default mapping has no component %s", a.Name)
		}
	}
}

func TestCapacity_SplitCards_AreMilliGPUs(t *testing.T) {
	s, log := newCluster(t)
	for nodes, want := range map[string]string{
		"a gpu:a100:4 b gpu:v100:1":                    "GPUs=5 GPUs:a100=4 GPUs:v100=1",
		"a gpu:2,shard:8 b gpu:4,mps:400 c gpu:8":      "GPUs=14 MilliGPUs=6000",
		"a gpu:a100_3g.20gb:2,gpu:h100:1 b gpu:a100:4": "GPUs=7 GPUs:a100=4 GPUs:a100_3g.20gb=2 GPUs:h100=1 MilliGPUs=857",
		"a gpu:a100:2,gpu:v100:4,shard:a100:8":         "GPUs=6 GPUs:a100=2 GPUs:v100=4 MilliGPUs=2000",
		"a gpu:a100_9g.20gb:2 b gpu:a30_1g.6gb:1":      "GPUs=3 GPUs:a100_9g.20gb=2 GPUs:a30_1g.6gb=1 MilliGPUs=250",
	} {
		text, n := "", 0
		words := strings.Fields(nodes)
		for i := 0; i < len(words); i += 2 {
			n++
			text += fmt.Sprintf("NodeName=%s CPUTot=4 RealMemory=8000 Gres=%s\n", words[i], words[i+1])
		}
		s.nodes(text)
		before := log.Len()
		s.poll(time.Hour)
		want := amounts(fmt.Sprintf("Cores=%d Memory=%d ", 4*n, 8000*n) + want)
		if diff := cmp.Diff(want, s.facts.capacity[len(s.facts.capacity)-1].Components); diff != "" {
			t.Errorf("%s (-want +got):\n%s", nodes, diff)
		}
		if warned := strings.Contains(log.String()[before:], "MilliGPUs lack node a"); warned != strings.Contains(nodes, "9g") {
			t.Errorf("%s: %s", nodes, log)
		}
	}
}

func TestWhatHasNotChangedIsNotToldAgainByAnotherProcessEither(t *testing.T) {
	s, _ := newCluster(t)
	s.poll(0)
	s.poll(2 * time.Hour)
	s.restart(text("getent", filepath.Join(s.dir, "getent")))
	s.poll(2 * time.Hour)
	if len(s.facts.capacity) != 1 || len(s.facts.directory) != 1 || len(s.facts.census) != 3 {
		t.Errorf("%+v", s.facts)
	}
}

func TestAChangedClusterIsToldWithTheTimeAtWhichItWasSeen(t *testing.T) {
	s, _ := newCluster(t)
	s.poll(0)
	s.nodes("NodeName=n1 CPUTot=4 RealMemory=8000 State=DOWN* Partitions=compute\n")
	s.poll(5 * time.Minute) // too early to look
	if len(s.facts.capacity) != 1 {
		t.Fatalf("looked again after 5 minutes: %+v", s.facts.capacity)
	}
	s.poll(5 * time.Minute)
	want := sdk.Capacity{From: noon().Add(10 * time.Minute), Components: amounts("Cores=4 Memory=8000")}
	if diff := cmp.Diff(want, s.facts.capacity[len(s.facts.capacity)-1]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAQueueThatIsEmptyIsTold(t *testing.T) {
	s, _ := newCluster(t)
	s.tool("squeue", fakesacct.Tool{})
	s.poll(0)
	if len(s.facts.census) != 1 || len(s.facts.census[0].Rows) != 0 {
		t.Errorf("%+v", s.facts.census)
	}
}

func TestACommandThatFailsStopsNoRecordAndTellsNothing(t *testing.T) {
	s, log := newCluster(t)
	s.poll(0)
	for _, name := range []string{"scontrol", "squeue", "sacctmgr"} {
		s.tool(name, fails())
	}
	s.job("7", "COMPLETED", -0.5, -0.4, -0.3)
	before := s.facts
	s.poll(2 * time.Hour)
	s.poll(2 * time.Hour)
	s.wantRuns("7")
	if diff := cmp.Diff(before, s.facts, cmp.AllowUnexported(said{})); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 3 || !strings.Contains(log.String(), "Unable to contact slurm controller") {
		t.Errorf("%d warnings:\n%s", got, log)
	}
	if !s.watermark.Equal(s.time.Add(-2 * time.Minute)) {
		t.Errorf("watermark %s", s.watermark)
	}
	s.nodes("NodeName=n1 CPUTot=4 RealMemory=8000\n")
	s.poll(facts.Retry)
	if len(s.facts.capacity) != 2 || !strings.Contains(log.String(), "capacity is sent again") {
		t.Errorf("after it works again: %+v\n%s", s.facts.capacity, log)
	}
}

func TestACommandThatIsNotThereIsAWarningWithARemedy(t *testing.T) {
	s, log := newCluster(t, text("scontrol", "/nowhere/scontrol"), off("directory"))
	s.poll(0)
	for _, want := range []string{"/nowhere/scontrol", "set capacity = false"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
	if len(s.facts.capacity) != 0 || len(s.facts.census) != 1 {
		t.Errorf("%+v", s.facts)
	}
}

func TestWhatIsSwitchedOffIsNotAskedFor(t *testing.T) {
	s, _ := newCluster(t, off("capacity"), off("census"), off("directory"))
	s.poll(0)
	for _, call := range fakesacct.Calls(t, s.dir) {
		for _, name := range []string{"scontrol", "squeue", "sacctmgr", "getent"} {
			if strings.HasPrefix(call, name+" ") {
				t.Errorf("called: %s", call)
			}
		}
	}
	if diff := cmp.Diff(said{}, s.facts, cmp.AllowUnexported(said{})); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyWhatTheSourceIsAboutIsCounted(t *testing.T) {
	s, log := newCluster(t, list("partitions", "gpu"), list("accounts", "chem"))
	s.poll(0)
	want := said{
		capacity:  []sdk.Capacity{{From: noon(), Components: amounts("Cores=4 Memory=8000 GPUs=2 GPUs:tesla=2")}},
		census:    []sdk.Census{{At: noon(), Rows: rows("alice gpu 0 1", "bob compute,gpu 0 1")}},
		directory: [][]sdk.Person{{{User: "alice", Groups: []string{"chem"}, Name: "Alice Adams"}, {User: "bob", Groups: []string{"chem"}}}},
	}
	if diff := cmp.Diff(want, s.facts, cmp.AllowUnexported(said{})); diff != "" || log.Len() > 0 {
		t.Errorf("(-want +got):\n%s\n%s", diff, log)
	}
}

func TestPartitionsWithoutNodesAreAWarningAndNoEmptyCluster(t *testing.T) {
	s, log := newCluster(t, list("partitions", "gpus"))
	s.poll(0)
	if len(s.facts.capacity) != 0 || !strings.Contains(log.String(), "none of the 6 nodes is in the partitions gpus") {
		t.Errorf("%+v\n%s", s.facts.capacity, log)
	}
}

func TestARewindTellsAgainWhatWasLost(t *testing.T) {
	s, _ := newCluster(t)
	s.poll(0)
	s.time = s.time.Add(time.Minute)
	if err := s.collect(sdk.Start{Rewind: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if len(s.facts.capacity) != 2 || len(s.facts.directory) != 2 {
		t.Errorf("%+v", s.facts)
	}
}

func TestAWindowThatIsCollectedAgainTellsNothing(t *testing.T) {
	s, _ := newCluster(t)
	if err := s.collect(sdk.Start{Window: &sdk.Window{From: noon().Add(-time.Hour), To: noon()}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(said{}, s.facts, cmp.AllowUnexported(said{})); diff != "" {
		t.Error(diff)
	}
}

func TestWhatTheDaemonDidNotTakeIsToldInTheNextPass(t *testing.T) {
	s, _ := newCluster(t)
	s.poll(0)
	s.nodes("NodeName=n1 CPUTot=4 RealMemory=8000\n")
	s.time, s.fail = s.time.Add(10*time.Minute), 1 // the checkpoint is taken, the facts are not
	if err := s.collect(sdk.Start{}); err == nil {
		t.Fatal("the daemon failed and the pass did not")
	}
	s.fail = -1
	s.poll(time.Minute)
	if len(s.facts.capacity) != 2 {
		t.Errorf("%+v", s.facts.capacity)
	}
}

func TestAProgramThatIsNotThereForNamesLeavesTheDirectoryWithoutThem(t *testing.T) {
	s, log := newCluster(t)
	s.restart(text("getent", "/nowhere/getent"))
	s.source.log = slog.New(slog.NewTextHandler(log, nil))
	s.poll(0)
	if len(s.facts.directory) != 1 || s.facts.directory[0][0].Name != "" || !strings.Contains(log.String(), "names = false") {
		t.Errorf("%+v\n%s", s.facts.directory, log)
	}
}

func TestNamesThatAreNotWantedAreNotAskedFor(t *testing.T) {
	s, log := newCluster(t, off("names"))
	s.poll(0)
	if len(s.facts.directory) != 1 || s.facts.directory[0][0].Name != "" || log.Len() > 0 {
		t.Errorf("%+v\n%s", s.facts.directory, log)
	}
	if slices.ContainsFunc(fakesacct.Calls(t, s.dir), func(c string) bool { return strings.HasPrefix(c, "getent ") }) {
		t.Error("getent was called")
	}
}

func TestTheEnvironmentDoesNotShapeTheAnswers(t *testing.T) {
	t.Setenv("SQUEUE_FORMAT", "%i")
	t.Setenv("SCONTROL_FUTURE", "1")
	s, _ := newCluster(t)
	script := "#!/bin/sh\n[ -z \"$SQUEUE_FORMAT$SCONTROL_FUTURE\" ] || exit 1\n"
	if err := programtest.WriteProgram(filepath.Join(s.dir, "odd"), script); err != nil {
		t.Fatal(err)
	}
	s.restart(text("squeue", filepath.Join(s.dir, "odd")), off("capacity"), off("directory"))
	s.poll(0)
	if len(s.facts.census) != 1 {
		t.Errorf("%+v", s.facts)
	}
}
