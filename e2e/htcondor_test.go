//go:build e2e

package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/programtest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// condorFiles reads the pool's files, condorCommands asks its schedds.
func condorFiles(p *rig.Pool) string {
	return fmt.Sprintf(`source "htcondor" "files" {
  interval = "1s"
  config {
    commands        = %q
    census_interval = "1s"
    schedd %q {
      history = %q
      epochs  = %q
    }
    schedd %q { history = %q }
  }
}
`, p.Commands(), rig.FirstSchedd, p.History(rig.FirstSchedd), p.Epochs(), rig.SecondSchedd, p.History(rig.SecondSchedd))
}

func condorCommands(p *rig.Pool) string {
	return fmt.Sprintf(`source "htcondor" "asked" {
  interval = "1s"
  config {
    commands = %q
    open     = true
    schedd %q {}
    schedd %q {}
  }
}
`, p.Commands(), rig.FirstSchedd, rig.SecondSchedd)
}

// condorRun is what a test compares of a record with the ads of its run.
type condorRun struct {
	Start, Stop, Submit int64
	Code, Signal        int64
	Cores, Memory, GPUs int64
	User, Group, Schedd string
	Host, GPU           string
}

// condorAds are the ads of the files of a rotation, read with code of its own.
func condorAds(t testing.TB, path string) (ads []map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		ad := map[string]string{}
		for line := range strings.Lines(plain(t, path)) {
			if strings.HasPrefix(line, "*** ") && strings.HasSuffix(line, "\n") {
				ads, ad = append(ads, ad), map[string]string{}
				continue
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
			ad[name] = strings.Trim(value, `"`)
		}
	}
	return ads
}

// condorRuns are the records that the files of the pool must become, by what is behind
// the label of their ids: those of the epochs, and what the history says of them. Jobs of
// the universes scheduler and local are left out.
func condorRuns(t testing.TB, p *rig.Pool) map[string]condorRun {
	t.Helper()
	all := map[string]condorRun{}
	for _, ad := range condorAds(t, p.Epochs()) {
		id, r := condorAd(t, ad)
		all[id] = r
	}
	for _, schedd := range []string{rig.FirstSchedd, rig.SecondSchedd} {
		for _, ad := range condorAds(t, p.History(schedd)) {
			if ad["JobUniverse"] == "7" || ad["JobUniverse"] == "12" || ad["JobCurrentStartDate"] == "" {
				continue
			}
			id, r := condorAd(t, ad)
			all[id] = r
		}
	}
	return all
}

func condorAd(t testing.TB, ad map[string]string) (string, condorRun) {
	t.Helper()
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(ad[name], 10, 64) // what is an expression or absent is 0
		return n
	}
	first := func(names ...string) int64 {
		for _, name := range names {
			if n := number(name); n != 0 {
				return n
			}
		}
		return 0
	}
	// A schedd that is killed as a run begins has not written what the slot provides.
	r := condorRun{Start: number("JobCurrentStartDate"), Submit: number("QDate"),
		Cores:  first("CpusProvisioned", "MachineAttrCpus0", "RequestCpus"),
		Memory: first("MemoryProvisioned", "RequestMemory"),
		GPUs:   first("GPUsProvisioned", "RequestGPUs"), User: ad["Owner"], Group: ad["AcctGroup"], Host: "rig"}
	if r.Group == "" { // that of the proxy
		r.Group = ad["x509UserProxyVOName"]
	}
	if ad["JobUniverse"] == "11" {
		r.Cores, r.Memory = number("MachineAttrCpus0")*number("MaxHosts"), r.Memory*number("MaxHosts")
	}
	if r.GPUs > 0 {
		r.GPU = "Rig 9000"
	}
	done := ad["JobStatus"] == "4" || ad["JobStatus"] == "3" && number("CompletionDate") >= r.Start // it was removed then
	switch {
	case done:
		r.Stop = number("CompletionDate")
	case number("LastVacateTime") >= r.Start:
		r.Stop = number("LastVacateTime")
	case ad["JobStatus"] == "3":
		r.Stop = number("EnteredCurrentStatus")
	default:
		r.Stop = number("EpochWriteDate")
	}
	if done || ad["JobStatus"] == "2" && number("LastVacateTime") < r.Start {
		if r.Code = number("ExitCode"); ad["ExitBySignal"] == "true" {
			r.Code, r.Signal = 0, number("ExitSignal")
		}
	}
	id := ad["GlobalJobId"]
	r.Schedd, _, _ = strings.Cut(id, "#")
	if r.Start != number("JobStartDate") {
		id += fmt.Sprintf("-%d", r.Start)
	}
	return id, r
}

// condorRecords are the ended records of a source.
func condorRecords(t testing.TB, agg *site.Aggregator, label string) map[string]condorRun {
	all := map[string]condorRun{}
	for id, r := range agg.Whole() {
		name, ok := strings.CutPrefix(id, label+"-")
		if !ok || r.Open() {
			continue
		}
		meta := func(key string) string { return strings.Join(r.Meta.Get(key), "§") }
		all[name] = condorRun{
			Start: seconds(t, id, r.Start), Stop: seconds(t, id, r.Stop), Submit: seconds(t, id, r.Submit), Code: int64(r.Exit.Code), Signal: int64(r.Exit.Signal),
			Cores: amount(&r, "Cores"), Memory: amount(&r, "Memory"), GPUs: amount(&r, "GPUs"), User: meta("user_id"), Group: meta("group_id"),
			Schedd: meta("schedd"), Host: meta("host"), GPU: meta("gpu_model"),
		}
	}
	return all
}

// awaitCondor waits until the records of each source are the runs of the files, of which
// there must be at least so many.
func awaitCondor(t testing.TB, s *site.Site, agg *site.Aggregator, p *rig.Pool, least int, labels ...string) map[string]condorRun {
	t.Helper()
	var want map[string]condorRun
	for _, label := range labels {
		s.Eventually("the records of "+label+" are the runs in the files", func() (bool, string) {
			want = condorRuns(t, p)
			d := cmp.Diff(want, condorRecords(t, agg, label))
			return d == "" && len(want) >= least, fmt.Sprintf("%d runs of %d (-files +records)\n%.3000s", len(want), least, d)
		})
	}
	return want
}

// awaitQueue waits until the queues have no jobs but those of the clusters named.
func awaitQueue(t *testing.T, s *site.Site, p *rig.Pool, but ...string) {
	t.Helper()
	s.Eventually("all jobs left the queues", func() (bool, string) {
		out, err := p.Run("condor_q", "-global", "-allusers", "-af", "ClusterId", "JobStatus", "Cmd")
		left := 0
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); line != "All queues are empty\n" && len(f) > 2 && !slices.Contains(but, f[0]) {
				left++
			}
		}
		return err == nil && left == 0, out
	})
}

func TestHTCondor_EveryKindOfRun_IsOneRecord(t *testing.T) {
	t.Parallel()
	p := rig.Condor(t, "ApelSpecs = [ HEPSPEC = 12.5; SI2K = 2793 ]", "STARTD_ATTRS = $(STARTD_ATTRS) ApelSpecs", "SYSTEM_JOB_MACHINE_ATTRS = $(SYSTEM_JOB_MACHINE_ATTRS) ApelSpecs",
		"SYSTEM_SECURE_JOB_ATTRS =") // a submit file may say what a proxy would
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "submit1", Sources: condorFiles(p) + condorCommands(p)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	ids := condorMenu(t, s, p)
	all := awaitCondor(t, s, agg, p, 24, "files", "asked")
	// An epoch may have told all but the state of a run.
	s.Eventually("the history has the last word", func() (bool, string) {
		d := diffCondorMenu(agg.Whole(), ids) + unlikeCondor(t, agent)
		return d == "", d
	})
	for id, r := range agg.Whole() {
		if vo := strings.Join(r.Meta.Get("vo"), ""); strings.Contains(id, "#"+ids["proxy"]+".") && vo != "atlas" {
			t.Errorf("%s: VO %q", id, vo)
		}
	}
	checkSound(t, agg, agent)
	awaitCondorFacts(t, s, agg)
	if rotated, _ := filepath.Glob(p.History(rig.FirstSchedd) + ".*"); len(rotated) < 1 {
		t.Errorf("the history has rotated %d times", len(rotated))
	}
	example := filepath.Join(site.Top(), "hcl/examples/agent-htcondor.hcl")
	if out, err := s.Run("bursar-agent", "-check", "-dev", "-config", example); err != nil {
		t.Error(out, err)
	}
	var files []string
	for _, path := range []string{p.History(rig.FirstSchedd), p.History(rig.SecondSchedd), p.Epochs()} {
		found, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for range 2 { // the second one changes nothing
		agg.Import("old", "htcondor", files...)
	}
	s.Eventually("the imported runs are those of the files", func() (bool, string) {
		d := cmp.Diff(all, condorRecords(t, agg, "old"))
		return d == "", d
	})
	t.Run("ConvertedConfigurations_OfAuditor_MakeItsRecords", func(t *testing.T) { condorConverted(t, p, all) })
}

// condorMenu submits a job of every kind, waits until all have left the queues, and
// returns the numbers of their clusters.
func condorMenu(t *testing.T, s *site.Site, p *rig.Pool) map[string]string {
	t.Helper()
	script := func(name, text string) string {
		path := filepath.Join(p.Home(rig.Alice), name)
		if err := programtest.WriteProgram(path, "#!/bin/sh\n"+text+"\n"); err != nil {
			t.Fatal(err)
		}
		return "executable = " + path
	}
	sleep := func(seconds string) string { return "executable = /bin/sleep\narguments = " + seconds }
	first := func(lines ...string) string { return p.Submit(rig.FirstSchedd, rig.Alice, lines...) }
	was := filepath.Join(p.Home(rig.Alice), "was-here")
	ids := map[string]string{
		"ok":       first(sleep("2"), "request_cpus = 2", "request_memory = 200", "accounting_group = group_physics.erc12", "accounting_group_user = alice", `+ProjectName = "ERC-12"`),
		"fails":    first(script("fail.sh", "exit 7")),
		"killed":   first(script("kill.sh", "kill -9 $$")),
		"idle":     first(sleep("600"), "requirements = false"),
		"held":     first("executable = /no/such"),
		"evicted":  first(sleep("12")),
		"removed":  first(sleep("600")),
		"stopped":  first(sleep("600")),
		"gpus":     first(sleep("1"), "request_gpus = 2"),
		"late":     first(sleep("1"), "max_materialize = 2", "queue 5"),
		"retried":  first(script("retry.sh", "sleep 1; test -e "+was+" || { touch "+was+"; exit 3; }"), "max_retries = 2"),
		"parallel": first("universe = parallel", sleep("2"), "machine_count = 2", "request_memory = 100"),
		"local":    first("universe = local", sleep("1")),
		"proxy":    first(sleep("1"), `+x509UserProxyVOName = "atlas"`, `+x509userproxysubject = "/DC=org/CN=Alice"`),
		"left":     first(script("left.sh", "exit 5"), "leave_in_queue = JobStatus == 4"),
		"odd":      first(sleep("1"), `+Odd = "a, b = \"c\" C:\temp * [ ; ]"`),
	}
	second := p.Submit(rig.SecondSchedd, rig.Bob, sleep("1"), "queue 3")
	ids["second"] = second
	ids["dag"] = submitDAG(t, p)
	await := func(name, status string) {
		s.Eventually("the job "+name+" has the status "+status, func() (bool, string) {
			out, err := p.Run("condor_q", "-allusers", ids[name], "-af", "JobStatus")
			return err == nil && strings.TrimSpace(out) == status, out
		})
	}
	for _, command := range [][]string{{"evicted", "condor_vacate_job", "2"}, {"removed", "condor_rm", "2"}, {"stopped", "condor_hold", "2"}, {"left", "condor_rm", "4"}} {
		await(command[0], command[2])
		time.Sleep(2 * time.Second)
		if out, err := p.Run(command[1], ids[command[0]]); err != nil {
			t.Fatal(out, err)
		}
	}
	awaitQueue(t, s, p, ids["idle"], ids["held"], ids["stopped"])
	s.Eventually("two jobs are held", func() (bool, string) {
		out, err := p.Run("condor_q", "-allusers", ids["held"], ids["stopped"], "-af", "JobStatus")
		return err == nil && strings.Count(out, "5") == 2, out
	})
	time.Sleep(2 * time.Second) // they are held for a while, which is not a part of their runs
	for _, name := range []string{"idle", "held", "stopped"} {
		if out, err := p.Run("condor_rm", ids[name]); err != nil {
			t.Fatal(out, err)
		}
	}
	awaitQueue(t, s, p)
	return ids
}

// submitDAG submits a DAG of two jobs and returns the cluster of its DAGMan.
func submitDAG(t *testing.T, p *rig.Pool) string {
	t.Helper()
	for name, text := range map[string]string{
		"node.sub": "executable = /bin/sleep\ntransfer_executable = false\narguments = 1\nqueue\n",
		"two.dag":  "JOB A node.sub\nJOB B node.sub\nPARENT A CHILD B\n",
	} {
		if err := os.WriteFile(filepath.Join(p.Home(rig.Alice), name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := p.As(rig.Alice, "condor_submit_dag", "-f", "two.dag")
	_, rest, ok := strings.Cut(out, "submitted to cluster ")
	cluster, _, _ := strings.Cut(rest, ".")
	if !ok {
		t.Fatal(out)
	}
	return cluster
}

// diffCondorMenu compares the states of the runs of the menu.
func diffCondorMenu(all map[string]record.Record, ids map[string]string) (diff string) {
	for _, label := range []string{"files", "asked"} {
		states := map[string][]string{}
		for _, id := range slices.Sorted(maps.Keys(all)) {
			rest, ok := strings.CutPrefix(id, label+"-"+rig.FirstSchedd+"#")
			cluster, _, _ := strings.Cut(rest, ".")
			for name, c := range ids {
				if ok && c == cluster && name != "second" {
					states[name] = append(states[name], all[id].State)
				}
			}
		}
		want := map[string][]string{
			"ok": {"COMPLETED"}, "fails": {"FAILED"}, "killed": {"KILLED"}, "held": {"HELD"}, "evicted": {"EVICTED", "COMPLETED"}, "removed": {"CANCELLED"},
			"stopped": {"HELD"}, "proxy": {"COMPLETED"}, "gpus": {"COMPLETED"}, "late": {"COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED"},
			"retried": {"FAILED", "COMPLETED"}, "left": {"FAILED"}, "parallel": {"COMPLETED"}, "odd": {"COMPLETED"},
		}
		if d := cmp.Diff(want, states); d != "" {
			diff += label + ": states (-want +got)\n" + d
		}
	}
	return diff
}

// unlikeCondor says where the job that never ran was not counted as such, or those of the
// schedd's own machine not as left out.
func unlikeCondor(t *testing.T, agent *site.Agent) (diff string) {
	t.Helper()
	status, err := agent.Status()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range status.Sources {
		if source.Counts.Skipped < 1 || source.Counts.Filtered < 2 {
			diff += fmt.Sprintf("%s: %+v; want the idle job skipped, the local job and DAGMan filtered\n", source.Label, source.Counts)
		}
	}
	return diff
}

// awaitCondorFacts waits until the aggregator shows what the pool has, and that nothing
// runs any more.
func awaitCondorFacts(t *testing.T, s *site.Site, agg *site.Aggregator) {
	t.Helper()
	s.Eventually("the aggregator shows what HTCondor has", func() (bool, string) {
		var there struct {
			Clusters []struct{ Components map[string]int64 }
			Census   struct{ Running, Pending int64 }
		}
		err := agg.Get("/v1/capacity", &there)
		if err != nil || len(there.Clusters) == 0 {
			return false, fmt.Sprintf("%+v, %v", there, err)
		}
		has := there.Clusters[0].Components
		return has["Cores"] == 8 && has["Memory"] == 8000 && has["GPUs"] == 2 && there.Census.Running+there.Census.Pending == 0, fmt.Sprintf("%+v", there)
	})
}

// AUDITOR's published HTCondor collector pushes to the receiver what the source reads: the
// same ids and the same totals. Under one label both are one record.
func TestHTCondor_AuditorsCollectorBesideTheSource_GivesTheSameTotals(t *testing.T) {
	t.Parallel()
	p := rig.Condor(t, "CLAIM_WORKLIFE = 0") // its start is that of the match
	s := site.New(t)
	block, url := receiver(s, "receiver", "")
	agent := s.Agent(site.AgentSpec{Name: "submit1", Sources: condorFiles(p) + block})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	for _, schedd := range []string{rig.FirstSchedd, rig.SecondSchedd} {
		p.Submit(schedd, rig.Alice, "executable = /bin/sleep", "arguments = 3", "request_cpus = 2", "accounting_group = group_physics.erc12", "queue 3")
		p.Submit(schedd, rig.Bob, "executable = /bin/sleep", "arguments = 5", "request_cpus = 1", "queue 4")
	}
	awaitQueue(t, s, p)
	all := awaitCondor(t, s, agg, p, 14, "files")
	for _, prefix := range []string{"files", "pushed"} {
		collectAsAuditor(t, s, p, prefix, url)
	}
	matched := map[string]int64{}
	for _, schedd := range []string{rig.FirstSchedd, rig.SecondSchedd} {
		for _, ad := range condorAds(t, p.History(schedd)) {
			matched[ad["GlobalJobId"]], _ = strconv.ParseInt(ad["LastMatchTime"], 10, 64)
		}
	}
	var ours, theirs, early int64
	s.Eventually("all that the collector pushes is there", func() (bool, string) {
		pushed := condorRecords(t, agg, "pushed")
		ours, theirs, early = 0, 0, 0
		for id, r := range all {
			q := pushed[id]
			ours += r.Cores * (r.Stop - r.Start)
			theirs += q.Cores * (q.Stop - q.Start)
			early += r.Cores * (r.Start - matched[id])
			if q.Stop != r.Stop || q.Cores != r.Cores || q.User != r.User || q.Start != matched[id] {
				return false, fmt.Sprintf("%s: %+v, pushed %+v", id, r, q)
			}
		}
		return len(pushed) == len(all), fmt.Sprintf("%d of %d records", len(pushed), len(all))
	})
	if theirs != ours+early {
		t.Errorf("%d core-seconds, pushed %d, of which %d are between match and start", ours, theirs, early)
	}
	t.Logf("%d core-seconds by the source, %d by AUDITOR's collector, %d of them between match and start", ours, theirs, early)
	if d := cmp.Diff(all, condorRecords(t, agg, "files")); d != "" {
		t.Errorf("beside the pushed records (-before +after)\n%s", d)
	}
}

// collectAsAuditor lets AUDITOR's collector push the jobs of both schedds once.
func collectAsAuditor(t *testing.T, s *site.Site, p *rig.Pool, prefix, url string) {
	t.Helper()
	host, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	config := s.Write(prefix+".yml", fmt.Sprintf(`addr: %s
port: %s
state_db: %s
record_prefix: %s
interval: 900
earliest_datetime: "2020-01-01"
schedd_names: [%q, %q]
meta:
  site: [{name: rig}]
  user_id: {key: Owner}
components:
  - {name: Cores, key: CpusProvisioned, scores: []}
tls_config: {use_tls: false}
`, host, port, filepath.Join(s.Dir, prefix+".db"), prefix, rig.FirstSchedd, rig.SecondSchedd))
	runAuditorsCollector(t, p, config, "Added 7 records")
}

// runAuditorsCollector has AUDITOR's published collector collect once, and wants it to say that it
// has done so. How it exits after that is logged: its client for Python may abort at the end.
func runAuditorsCollector(t *testing.T, p *rig.Pool, config, added string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(rig.Python(t)), "auditor-htcondor-collector"), "-c", config, "-1")
	cmd.Env = append(os.Environ(), "PATH="+p.Commands()+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if said := string(out); !strings.Contains(said, added) || !strings.Contains(said, "Collector run finished.") {
		t.Fatalf("AUDITOR's collector: %v\n%s", err, out)
	}
	if err != nil {
		t.Log("AUDITOR's collector has finished its run and ended with:", err)
	}
}

// A shadow that finds its job again counts a reconnect, and is the shadow of before.
func TestHTCondor_NetworkCutInSecondRun_BothRunsAreRecords(t *testing.T) {
	t.Parallel()
	p := rig.Condor(t)
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "submit1", Sources: condorFiles(p) + condorCommands(p)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	job := p.Submit(rig.FirstSchedd, rig.Alice, "executable = /bin/sleep", "arguments = 20", "queue")
	queued := func(want string) {
		s.Eventually("the job is "+want, func() (bool, string) {
			out, err := p.Run("condor_q", "-allusers", job, "-af", "JobStatus", "NumShadowStarts", "JobCurrentStartExecutingDate >= JobCurrentStartDate", "NumJobReconnects")
			return err == nil && strings.TrimSpace(out) == want, out
		})
	}
	queued("2 1 true undefined")
	if out, err := p.Run("condor_vacate_job", "-fast", job); err != nil {
		t.Fatal(out, err)
	}
	queued("2 2 true undefined")
	time.Sleep(5 * time.Second) // until the startd can say where the job's starter is
	p.CutNetwork()
	awaitQueue(t, s, p)
	all := awaitCondor(t, s, agg, p, 2, "files", "asked")
	reconnects := ""
	for _, ad := range condorAds(t, p.Epochs()) {
		reconnects += ad["NumShadowStarts"] + ":" + ad["NumJobReconnects"] + " "
	}
	if len(all) != 2 || reconnects != "1: 2:1 " {
		t.Errorf("%d runs, starts and reconnects %s", len(all), reconnects)
	}
}

func TestHTCondor_Kills_CountEachRunOnce(t *testing.T) {
	t.Parallel()
	// HTCondor overwrites a file that was rotated within the same second.
	p := rig.Condor(t, "MAX_HISTORY_LOG = 60000", "MAX_EPOCH_HISTORY_LOG = 200000")
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "submit1", Sources: condorFiles(p) + condorCommands(p)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	jobs := 0
	killing{
		victims: []func(){
			agent.Restart, agent.Restart, agent.KillChildren, agent.KillChildren, agent.KillChildren,
			func() { p.KillSchedd(rig.FirstSchedd) },
		},
		alive: []*site.Daemon{agent.Daemon, agg.Daemon},
		pause: 700 * time.Millisecond,
		before: func(chance *rand.Rand, n int) {
			if n%10 == 0 {
				p.Submit(rig.SecondSchedd, rig.Alice, "executable = /bin/sleep", "arguments = 1", "request_memory = 10", "queue 16")
				jobs += 16
			}
			if n == 0 {
				p.Submit(rig.FirstSchedd, rig.Bob, "executable = /bin/sleep", "arguments = 20", "request_memory = 10", "queue 4")
				jobs += 4
			}
		},
	}.run(t)
	awaitQueue(t, s, p)
	all := awaitCondor(t, s, agg, p, jobs, "files", "asked")
	t.Logf("%d runs of %d jobs are in the files, seed %d", len(all), jobs, *seed)
	checkConserved(t, agg)
}
