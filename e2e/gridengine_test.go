//go:build e2e

package e2e_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/record"
)

func gridSource(g *rig.Grid) string {
	return fmt.Sprintf("source \"gridengine\" \"rig\" {\n  interval = \"1s\"\n  config {\n    path     = %q\n    commands = %q\n    census_interval = \"1s\"\n  }\n}\n", g.Accounting(), g.Commands())
}

// gridRecord is what a test compares of a record with a line of the accounting file.
type gridRecord struct {
	Start, Stop, Submit      int64
	Code, Signal             int32
	Cores, Memory, CPU       int64
	User, Group, Project, PE string
	Queue, Host, Account     string
}

// gridLines are the records that the files of a rotation must become, by id. The
// lines are read with code of their own; those without a start are no runs.
func gridLines(t testing.TB, path string) map[string]gridRecord {
	t.Helper()
	all := map[string]gridRecord{}
	paths, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		for line := range strings.Lines(plain(t, path)) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
			if strings.HasPrefix(line, "#") || !strings.HasSuffix(line, "\n") || len(f) != 45 || f[9] == "0" {
				continue
			}
			id, r := gridLine(t, f)
			all[id] = r
		}
	}
	return all
}

func plain(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func gridLine(t testing.TB, f []string) (string, gridRecord) {
	number := func(s string) int64 {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("%q in %q", s, f)
		}
		return int64(math.RoundToEven(n))
	}
	word := func(s string) string { return strings.TrimSuffix(s, "NONE") }
	r := gridRecord{
		Start: number(f[9]), Stop: number(f[10]), Submit: number(f[8]), Code: int32(number(f[12])), Cores: number(f[34]), CPU: number(f[36]),
		User: f[3], Group: f[2], Project: word(f[31]), PE: word(f[33]), Queue: f[0], Host: f[1], Account: f[6],
	}
	id := "rig-" + f[5]
	if f[35] != "0" {
		id += "." + f[35]
	}
	id += "-" + f[9]
	if f[41] != "NONE" {
		id += "-" + f[41]
		r.Cores = 0
	}
	if f[11] != "0" && r.Code > 128 {
		r.Signal = r.Code - 128
	}
	if strings.Contains(f[39], "h_vmem=2G") && r.Cores > 0 {
		r.Memory = 2048 * r.Cores
	}
	return id, r
}

func gridRecords(t testing.TB, agg *site.Aggregator) map[string]gridRecord {
	all := map[string]gridRecord{}
	for id, r := range agg.Whole() {
		meta := func(key string) string { return strings.Join(r.Meta.Get(key), "§") }
		all[id] = gridRecord{
			Start: seconds(t, id, r.Start), Stop: seconds(t, id, r.Stop), Submit: seconds(t, id, r.Submit), Code: r.Exit.Code, Signal: r.Exit.Signal,
			Cores: amount(&r, "Cores"), Memory: amount(&r, "Memory"), CPU: amount(&r, "TotalCPU"), User: meta("user_id"), Group: meta("group_id"),
			Project: meta("project"), PE: meta("pe"), Queue: meta("partition"), Host: meta("host"), Account: meta("account"),
		}
	}
	return all
}

// awaitGrid waits until the records are those of the files, in which there must be
// at least so many runs.
func awaitGrid(t testing.TB, s *site.Site, agg *site.Aggregator, path string, least int) map[string]gridRecord {
	t.Helper()
	var want map[string]gridRecord
	s.Eventually("the records are the lines of the accounting file", func() (bool, string) {
		want = gridLines(t, path)
		d := cmp.Diff(want, gridRecords(t, agg))
		return d == "" && len(want) >= least, fmt.Sprintf("%d runs of %d (-lines +records)\n%.3000s", len(want), least, d)
	})
	return want
}

func TestGridEngine_EveryKindOfJob_IsOneRecord(t *testing.T) {
	t.Parallel()
	g := rig.GridEngine(t)
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: gridSource(g)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	ids := gridMenu(t, g)
	awaitIdle(t, s, g, ids["sleeps"])
	if err := os.Rename(g.Accounting(), g.Accounting()+".1"); err != nil { // while a job runs
		t.Fatal(err)
	}
	g.As(rig.Bob, "qdel", ids["sleeps"])
	awaitIdle(t, s, g)
	all := awaitGrid(t, s, agg, g.Accounting(), 17)
	checkGridMenu(t, agg.Whole(), ids)
	checkSlaves(t, all, ids)
	checkSound(t, agg, agent)
	checkAgainstQacct(t, g, all)
	awaitGridFacts(t, s, agg)
	example := filepath.Join(site.Top(), "hcl/examples/agent-gridengine.hcl")
	if out, err := s.Run("bursar-agent", "-check", "-dev", "-config", example); err != nil {
		t.Error(out, err)
	}
	checkGridImport(t, s, agg)
}

// checkGridImport imports an old file twice: each run is there once.
func checkGridImport(t *testing.T, s *site.Site, agg *site.Aggregator) {
	t.Helper()
	file := filepath.Join(site.Top(), "plugins/source/gridengine/internal/accounting/testdata/accounting-6.1")
	for range 2 {
		agg.Import("old", "gridengine", file)
	}
	s.Eventually("the runs of the file are there", func() (bool, string) {
		runs, cpu := 0, int64(0)
		for id, r := range gridRecords(t, agg) {
			if strings.HasPrefix(id, "old-") {
				runs++
				cpu += r.CPU
			}
		}
		return runs == 21 && cpu == 497199, fmt.Sprintf("%d runs of %d CPU seconds", runs, cpu)
	})
}

// awaitGridFacts waits until the aggregator tells what Grid Engine has, and that
// nothing runs any more.
func awaitGridFacts(t *testing.T, s *site.Site, agg *site.Aggregator) {
	t.Helper()
	s.Eventually("the aggregator tells what Grid Engine has", func() (bool, string) {
		var there struct {
			Clusters []struct{ Components map[string]int64 }
			Census   struct{ Running, Pending int64 }
		}
		err := agg.Get("/v1/capacity", &there)
		if err != nil || len(there.Clusters) != 1 {
			return false, fmt.Sprintf("%+v, %v", there, err)
		}
		has := there.Clusters[0].Components
		return has["Cores"] == 4 && has["Slots:all.q"] == 4 && has["Memory"] > 0 && there.Census.Running+there.Census.Pending == 0, fmt.Sprintf("%+v", there)
	})
}

// gridMenu submits a job of every kind and returns their numbers.
func gridMenu(t *testing.T, g *rig.Grid) map[string]string {
	t.Helper()
	again := filepath.Join(g.Dir(), "home", rig.Bob, "was-here")
	slaves := "qrsh -inherit rig sleep 1; qrsh -inherit rig sleep 1"
	ids := map[string]string{
		"ok":      g.Submit(rig.Alice, "sleep 1", "-P", "astro"),
		"fails":   g.Submit(rig.Alice, "exit 7", "-A", "acct_x"),
		"array":   g.Submit(rig.Alice, "sleep 0.5", "-t", "1-4", "-P", "bio"),
		"sleeps":  g.Submit(rig.Bob, "sleep 600"),
		"smp":     g.Submit(rig.Alice, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", "-pe", "smp", "2", "-l", "h_rt=0:10:0,h_vmem=2G"),
		"rerun":   g.Submit(rig.Bob, "test -e "+again+" || { touch "+again+"; exit 99; }", "-r", "y"),
		"limit":   g.Submit(rig.Bob, "sleep 600", "-l", "h_rt=3"),
		"nocmd":   g.Submit(rig.Bob, "no-such-command"),
		"killed":  g.Submit(rig.Bob, "kill -9 $$"),
		"tight":   g.Submit(rig.Alice, slaves, "-pe", "make", "2", "-V"),
		"summary": g.Submit(rig.Alice, slaves, "-pe", "sum", "2", "-V"),
		"held":    g.Submit(rig.Bob, "true", "-h"),
	}
	g.As(rig.Bob, "qdel", ids["held"]) // it leaves no line
	return ids
}

// awaitIdle waits until no job but those named is in the queue. A task that qmaster was
// handing over when it was killed may stay there for ever, in state t, and keep its slot:
// that is Grid Engine's own doing. It is deleted by force, as an admin would.
func awaitIdle(t *testing.T, s *site.Site, g *rig.Grid, but ...string) {
	t.Helper()
	const handover = 15 * time.Second // takes a moment when all is well
	since := map[string]time.Time{}
	s.Eventually("all jobs ended", func() (bool, string) {
		out, err := g.Run("qstat", "-u", "*")
		left := 0
		for line := range strings.Lines(out) {
			f := strings.Fields(line)
			if len(f) < 6 || f[0] == "job-ID" || slices.Contains(but, f[0]) {
				continue
			}
			left++
			if f[4] != "t" {
				continue
			}
			task := f[0] + "." + f[len(f)-1]
			if since[task].IsZero() {
				since[task] = time.Now()
			}
			if time.Since(since[task]) > handover {
				t.Logf("Grid Engine has left the task %s in state t", task)
				said, err := g.Run("qdel", "-f", f[0], "-t", f[len(f)-1])
				t.Log(said, err)
				delete(since, task)
			}
		}
		return err == nil && left == 0, out
	})
}

func checkGridMenu(t *testing.T, all map[string]record.Record, ids map[string]string) {
	t.Helper()
	states := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		number, _, _ := strings.Cut(strings.TrimPrefix(id, "rig-"), "-")
		job, _, _ := strings.Cut(number, ".")
		for name, j := range ids {
			if j == job && !strings.Contains(strings.TrimPrefix(id, "rig-"+number+"-"), "-") {
				states[name] = append(states[name], all[id].State)
			}
		}
	}
	for name, want := range map[string][]string{
		"ok": {"COMPLETED"}, "fails": {"FAILED"}, "array": {"COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED"}, "sleeps": {"KILLED"}, "smp": {"COMPLETED"},
		"rerun": {"REQUEUED", "COMPLETED"}, "limit": {"TIMEOUT"}, "nocmd": {"FAILED"}, "held": nil,
		"killed": {"FAILED"}, // its shell ends with 137, which is its own word
		"tight":  {"COMPLETED"}, "summary": {"COMPLETED"},
	} {
		if d := cmp.Diff(want, states[name]); d != "" {
			t.Errorf("%s (job %s): %s", name, ids[name], d)
		}
	}
}

// checkSlaves checks that slave tasks are runs of their own where Grid Engine has
// lines of them, and that the job's slots are counted once.
func checkSlaves(t *testing.T, all map[string]gridRecord, ids map[string]string) {
	t.Helper()
	for name, want := range map[string]int{"tight": 3, "summary": 1} {
		n, cores := 0, int64(0)
		for id, r := range all {
			if strings.HasPrefix(id, "rig-"+ids[name]+"-") {
				n++
				cores += r.Cores
			}
		}
		if n != want || cores != 2 {
			t.Errorf("%s: %d runs with %d slots", name, n, cores)
		}
	}
}

// checkAgainstQacct compares sums by owner with those that Grid Engine's own command
// makes of the current file and the one before.
func checkAgainstQacct(t *testing.T, g *rig.Grid, all map[string]gridRecord) {
	t.Helper()
	want := map[string]int64{}
	for _, file := range []string{"accounting", "accounting.1"} {
		out, err := g.Run("qacct", "-o", "-f", "/var/lib/gridengine/default/common/"+file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 8 && f[0] != "OWNER" {
				n, err := strconv.ParseInt(f[1], 10, 64)
				if err != nil {
					t.Fatal(line)
				}
				want[f[0]] += n
			}
		}
	}
	got := map[string]int64{}
	for _, r := range all {
		got[r.User] += r.Stop - r.Start
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("wallclock by owner (-qacct +records)\n%s", d)
	}
}

func TestGridEngine_Kills_CountEachRunOnce(t *testing.T) {
	t.Parallel()
	g := rig.GridEngine(t)
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: gridSource(g)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	tasks := 0
	killing{
		victims: []func(){
			agent.Restart, agent.Restart, agent.KillChildren, agent.KillChildren, agent.KillChildren,
			func() { g.KillMaster(); g.StartMaster() },
		},
		alive: []*site.Daemon{agent.Daemon, agg.Daemon},
		pause: 700 * time.Millisecond,
		before: func(_ *rand.Rand, n int) {
			if n%10 == 0 {
				g.Submit(rig.Alice, "sleep 0.2", "-t", "1-25")
				tasks += 25
			}
			if n%5 == 2 {
				rotateGrid(t, g, n)
			}
		},
	}.run(t)
	awaitIdle(t, s, g)
	all := awaitGrid(t, s, agg, g.Accounting(), tasks/3)
	t.Logf("%d runs of %d tasks are in the files, seed %d", len(all), tasks, *seed)
	checkConserved(t, agg)
}

// rotateGrid puts the accounting file aside while qmaster runs, and compresses what
// it had put aside before, as logrotate does.
func rotateGrid(t *testing.T, g *rig.Grid, n int) {
	t.Helper()
	old, _ := filepath.Glob(g.Accounting() + "-*[0-9]") // a pattern that is right
	for _, path := range old {
		info, err := os.Stat(path)
		if err == nil {
			err = gzipFile(path, info.ModTime())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(g.Accounting(), fmt.Sprintf("%s-2026%04d", g.Accounting(), n)); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

func gzipFile(path string, modified time.Time) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := os.Create(path + ".gz")
	if err != nil {
		return err
	}
	z := gzip.NewWriter(f)
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Chtimes(path+".gz", modified, modified); err != nil {
		return err
	}
	return os.Remove(path)
}
