package report

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// need is what the jobs of a finding would have needed, the largest of them.
type need struct {
	cores, gpus     int64
	memory, perCore *big.Rat // in MiB, with a reserve
}

// adviceHelp is what the help of a report says of its advice.
const adviceHelp = `
Advice is given for jobs that began in the period, ran for 10 minutes or longer and whose
records say what they used: GPUs not used (below 1 %), GPUs used below 15 %, one core used
of several, cores used below 50 %, memory used below 20 % with more than 4 GB left; and for
jobs that ended by their limit of time or memory. Job Defense Shield has the same kinds.
What to request instead is in the words of the scheduler, enough for each of these jobs.`

// findingKey says which jobs are one finding.
type findingKey struct {
	rule            int
	user, scheduler string
	requested       string
}

// finding is what jobs of a user that requested the same have in common that wasted
// something.
type finding struct {
	findingKey
	jobs   int64
	lost   *big.Rat // in the unit of the rule
	worst  *big.Rat // of lost, that of the record
	record string
	need   need
}

// advised is a job with what it booked and used; what is not known is nil.
type advised struct {
	*job
	hours, cores, memory, gpus      *big.Rat // memory in MiB
	coreHours, peak, gpuHours       *big.Rat // used; the peak in MiB
	bookedCoreHours, bookedGPUHours *big.Rat
}

// adviceRule recognises one kind of waste. The kinds and most thresholds are those of Job
// Defense Shield (github.com/PrincetonUniversity/job_defense_shield).
type adviceRule struct {
	title, unit string
	ended       bool // it judges how a job ended, and so also one that ran for a short time
	// lost returns what the job wasted, nil where the rule does not apply.
	lost func(j *advised) *big.Rat
	need func(j *advised) need
	// requested returns what the job asked for, of what the rule is about.
	requested func(j *advised) string
	// ask returns what to request next time, in the words of a scheduler.
	ask func(scheduler string, n need) string
}

// advisedHours is how long a job must have run for a judgement of what it used.
func advisedHours() *big.Rat { return big.NewRat(1, 6) }

// adviceRules are all rules, in the order of the table.
func adviceRules() []adviceRule {
	return []adviceRule{
		{
			title: "GPUs not used", unit: "GPU-hours",
			lost:      func(j *advised) *big.Rat { return j.lostGPUs(nil, big.NewRat(1, 100)) },
			need:      func(*advised) need { return need{} },
			requested: (*advised).requestedGPUs,
			ask:       askGPUs,
		},
		{
			title: "GPUs used below 15 %", unit: "GPU-hours",
			lost:      func(j *advised) *big.Rat { return j.lostGPUs(big.NewRat(1, 100), big.NewRat(15, 100)) },
			need:      func(j *advised) need { return need{gpus: roundUp(dividedBy(j.gpuHours, j.hours))} },
			requested: (*advised).requestedGPUs,
			ask:       askGPUs,
		},
		{
			title: "One core used of several", unit: "core-hours",
			lost:      func(j *advised) *big.Rat { return j.lostCores(true) },
			need:      func(*advised) need { return need{cores: 1} },
			requested: (*advised).requestedCores,
			ask:       askCores,
		},
		{
			title: "Cores used below 50 %", unit: "core-hours",
			lost:      func(j *advised) *big.Rat { return j.lostCores(false) },
			need:      func(j *advised) need { return need{cores: roundUp(dividedBy(j.coreHours, j.hours))} },
			requested: (*advised).requestedCores,
			ask:       askCores,
		},
		{
			title: "Memory used below 20 %", unit: "GiB-hours",
			lost:      (*advised).lostMemory,
			need:      func(j *advised) need { return j.needMemory(j.peak, big.NewRat(6, 5)) },
			requested: (*advised).requestedMemory,
			ask:       askMemory,
		},
		{
			title: "Ended by the time limit", unit: "core-hours", ended: true,
			lost:      func(j *advised) *big.Rat { return j.lostBy("TIMEOUT", "timeout") },
			need:      func(*advised) need { return need{} },
			requested: func(*advised) string { return "" },
			ask:       func(string, need) string { return "more time, or write checkpoints" },
		},
		{
			title: "Ended by the memory limit", unit: "core-hours", ended: true,
			lost:      func(j *advised) *big.Rat { return j.lostBy("OUT_OF_MEMORY", "oom") },
			need:      func(j *advised) need { return j.needMemory(j.memory, big.NewRat(3, 2)) },
			requested: (*advised).requestedMemory,
			ask:       askMemory,
		},
	}
}

// adviseOn returns what a job booked and used.
func adviseOn(j *job, memoryPerGB float64) advised {
	amount := func(name, kind string) *big.Rat {
		if n, is := j.componentAmount(name); is == kind {
			return n
		}
		return nil
	}
	inMiB := func(n *big.Rat) *big.Rat {
		return dividedBy(n, dividedBy(exactDecimal(memoryPerGB), big.NewRat(1024, 1)))
	}
	hour := big.NewRat(3600, 1)
	a := advised{
		job: j, hours: j.runtimeHours(), cores: amount("Cores", "rate"), memory: inMiB(amount("Memory", "rate")), gpus: amount("GPUs", "rate"),
		coreHours: dividedBy(amount("TotalCPU", "total"), hour), peak: inMiB(amount(usedMemory, "rate")), gpuHours: dividedBy(amount(usedGPUs, "total"), hour),
	}
	times := func(n *big.Rat) *big.Rat {
		if n == nil {
			return nil
		}
		return new(big.Rat).Mul(n, a.hours)
	}
	a.bookedCoreHours, a.bookedGPUHours = times(a.cores), times(a.gpus)
	return a
}

// lostGPUs returns the unused GPU-hours of a job that used at least from, if given, and less
// than below of its GPUs.
func (j *advised) lostGPUs(from, below *big.Rat) *big.Rat {
	if j.gpuHours == nil || j.bookedGPUHours == nil || j.bookedGPUHours.Sign() <= 0 {
		return nil
	}
	share := dividedBy(j.gpuHours, j.bookedGPUHours)
	if from != nil && share.Cmp(from) < 0 || share.Cmp(below) >= 0 {
		return nil
	}
	return new(big.Rat).Sub(j.bookedGPUHours, j.gpuHours)
}

// lostCores returns the unused core-hours of a job of several cores that used at most 1.1
// of them (serial), or more than that and less than half.
func (j *advised) lostCores(serial bool) *big.Rat {
	if j.coreHours == nil || j.cores == nil || j.cores.Cmp(big.NewRat(2, 1)) < 0 || j.hours.Sign() == 0 {
		return nil
	}
	atMostOne := dividedBy(j.coreHours, j.hours).Cmp(big.NewRat(11, 10)) <= 0
	half := dividedBy(j.bookedCoreHours, big.NewRat(2, 1))
	if atMostOne != serial || !serial && j.coreHours.Cmp(half) >= 0 {
		return nil
	}
	if serial && j.gpus != nil && j.gpus.Sign() > 0 { // its cores feed a GPU
		return nil
	}
	return subtractUsed(j.bookedCoreHours, j.coreHours)
}

// lostMemory returns the unused GiB-hours of a job that used less than a fifth of its memory
// and left more than 4 GB unused.
func (j *advised) lostMemory() *big.Rat {
	if j.memory == nil || j.peak == nil || j.peak.Sign() == 0 {
		return nil
	}
	spare := subtractUsed(j.memory, j.peak)
	if spare.Cmp(big.NewRat(4096, 1)) <= 0 || j.peak.Cmp(dividedBy(j.memory, big.NewRat(5, 1))) >= 0 {
		return nil
	}
	return dividedBy(new(big.Rat).Mul(spare, j.hours), big.NewRat(1024, 1))
}

// lostBy returns the core-hours of a job that ended in one of the states.
func (j *advised) lostBy(states ...string) *big.Rat {
	if !slices.Contains(states, string(j.State)) {
		return nil
	}
	return j.bookedCoreHours
}

// needMemory is an amount of memory with a reserve.
func (j *advised) needMemory(amount, reserve *big.Rat) need {
	if amount == nil {
		return need{}
	}
	n := need{memory: new(big.Rat).Mul(amount, reserve)}
	if j.cores != nil && j.cores.Sign() > 0 {
		n.perCore = dividedBy(n.memory, j.cores)
	}
	return n
}

// widenTo widens the need to that of another job.
func (n *need) widenTo(o need) {
	n.cores, n.gpus = max(n.cores, o.cores), max(n.gpus, o.gpus)
	n.memory, n.perCore = greaterOf(n.memory, o.memory), greaterOf(n.perCore, o.perCore)
}

func greaterOf(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && b.Cmp(a) > 0 {
		return b
	}
	return a
}

// roundUp is the least whole number from 1 that is not below r.
func roundUp(r *big.Rat) int64 {
	n := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	return max(n.Quo(n, r.Denom()).Int64(), 1)
}

func (j *advised) requestedGPUs() string { return countText(j.gpus, "GPU") }

func (j *advised) requestedCores() string { return countText(j.cores, "core") }

func (j *advised) requestedMemory() string {
	if j.memory == nil {
		return ""
	}
	return memoryText(j.memory, " GiB", " MiB")
}

// countText writes a number of things; "" for an unknown one.
func countText(n *big.Rat, thing string) string {
	if n == nil {
		return ""
	}
	return view.Plural(roundUp(n), thing)
}

// memoryText is an amount of memory in MiB, rounded up: to GiB where it has 8 or more, else
// to hundreds of MiB.
func memoryText(mib *big.Rat, gib, hundreds string) string {
	if in := dividedBy(mib, big.NewRat(1024, 1)); in.Cmp(big.NewRat(8, 1)) >= 0 {
		return fmt.Sprint(roundUp(in)) + gib
	}
	return fmt.Sprint(100*roundUp(dividedBy(mib, big.NewRat(100, 1)))) + hundreds
}

// schedulerOf is the type of source that a record comes from, as in agent/slurm/main.
func schedulerOf(origin string) string {
	if parts := strings.Split(origin, "/"); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

func askGPUs(scheduler string, n need) string {
	if n.gpus == 0 {
		switch scheduler {
		case "slurm", "slurm-epilog":
			return "no GPU: without --gpus, --gres=gpu"
		case "htcondor":
			return "no GPU: without request_gpus"
		}
		return "no GPU"
	}
	switch scheduler {
	case "slurm", "slurm-epilog":
		return fmt.Sprintf("--gpus=%d, or a slice of one", n.gpus)
	case "htcondor":
		return fmt.Sprintf("request_gpus = %d, or a slice of one", n.gpus)
	}
	return fmt.Sprintf("%d GPU, or a slice of one", n.gpus)
}

func askCores(scheduler string, n need) string {
	switch scheduler {
	case "slurm", "slurm-epilog":
		return fmt.Sprintf("--ntasks=1 --cpus-per-task=%d", n.cores)
	case "htcondor":
		return fmt.Sprintf("request_cpus = %d", n.cores)
	case "gridengine":
		if n.cores == 1 {
			return "1 slot: without -pe"
		}
		return fmt.Sprintf("%d slots", n.cores)
	case "kubernetes":
		return fmt.Sprintf("requests: cpu: %d", n.cores)
	case "nomad":
		return fmt.Sprintf("resources { cores = %d }", n.cores)
	}
	if n.cores == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%d cores", n.cores)
}

// askMemory is for each core in Slurm and Grid Engine, which holds on any number of nodes.
func askMemory(scheduler string, n need) string {
	switch {
	case n.memory == nil:
		return "more memory"
	case n.perCore == nil:
	case scheduler == "slurm", scheduler == "slurm-epilog":
		return "--mem-per-cpu=" + memoryText(n.perCore, "G", "M")
	case scheduler == "gridengine":
		return "-l h_vmem=" + memoryText(n.perCore, "G", "M")
	}
	switch scheduler {
	case "htcondor":
		return "request_memory = " + memoryText(n.memory, "G", "M")
	case "kubernetes":
		return "requests: memory: " + memoryText(n.memory, "Gi", "Mi")
	case "nomad":
		return fmt.Sprintf("resources { memory = %d }", 100*roundUp(dividedBy(n.memory, big.NewRat(100, 1))))
	}
	return memoryText(n.memory, " GiB", " MiB") + " of memory"
}

// buildAdvice makes the table of what jobs that began in the period wasted and what to request
// instead; nil where nothing was found.
func (b *board) buildAdvice(ctx context.Context) (*Table, error) {
	rules, found := adviceRules(), map[findingKey]*finding{}
	whole, err := b.scanJobs(ctx, func(j *job) { findWaste(rules, found, j, b.o.Keys.User, b.o.MemoryPerGB) })
	if err == nil && !whole {
		b.addNote("Advice is from a part of the jobs that began in the period, those that %s.", b.scanOrder().words)
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	list := slices.SortedFunc(maps.Values(found), func(x, y *finding) int {
		return cmp.Or(cmp.Compare(x.rule, y.rule), y.lost.Cmp(x.lost), strings.Compare(x.record, y.record), strings.Compare(x.requested, y.requested))
	})
	t, left := adviceTable(rules, list, b.o.Keys.User, max(b.o.Top/3, 1))
	if left > 0 {
		b.addNote("Of each kind of advice, what wasted most is shown; %s left out.", view.Plural(int64(left), "line"))
	}
	b.addNote("What to request instead is the most that one of the jobs needed, memory with a reserve of 20 %%; of a job that its memory limit ended, half as much again.")
	return t, nil
}

// findWaste adds what a job wasted to found. userKey is the meta key that names its user.
func findWaste(rules []adviceRule, found map[findingKey]*finding, j *job, userKey string, memoryPerGB float64) {
	if j.StopTime.IsZero() {
		return
	}
	a := adviseOn(j, memoryPerGB)
	for i := range rules {
		if !rules[i].ended && a.hours.Cmp(advisedHours()) < 0 {
			continue
		}
		lost := rules[i].lost(&a)
		if lost == nil {
			continue
		}
		k := findingKey{i, j.Meta.First(userKey), schedulerOf(j.Origin), rules[i].requested(&a)}
		if found[k] == nil {
			found[k] = &finding{findingKey: k, lost: new(big.Rat)}
		}
		found[k].addJob(&a, lost, rules[i].need(&a))
	}
}

func (f *finding) addJob(j *advised, lost *big.Rat, n need) {
	f.jobs++
	f.lost.Add(f.lost, lost)
	f.need.widenTo(n)
	if f.worst == nil || lost.Cmp(f.worst) > 0 || lost.Cmp(f.worst) == 0 && j.RecordID < f.record {
		f.worst, f.record = lost, j.RecordID
	}
}

// adviceTable makes the table of findings, most of each rule; left is how many are not in it.
func adviceTable(rules []adviceRule, list []*finding, userKey string, most int) (t *Table, left int) {
	t = &Table{
		Name: "advice", Title: "Advice",
		Columns: []Column{
			{Name: "finding", Title: "Finding", Kind: Text}, {Name: userKey, Title: "User", Kind: Text}, {Name: "jobs", Title: "Jobs", Kind: Number},
			{Name: "lost", Title: "Unused or lost", Kind: Number}, {Name: "unit", Title: "In", Kind: Text}, {Name: "requested", Title: "Requested", Kind: Text},
			{Name: "instead", Title: "Request instead", Kind: Text}, {Name: "record_id", Title: "Such as", Kind: Text},
		},
	}
	shown := map[int]int{}
	for _, f := range list {
		if shown[f.rule]++; shown[f.rule] > most {
			left++
			continue
		}
		rule := &rules[f.rule]
		t.Rows = append(t.Rows, []Cell{
			v1.Words(rule.title), textCell(v1.Text(f.user)), v1.Rat(new(big.Rat).SetInt64(f.jobs)), v1.Rat(f.lost), v1.Words(rule.unit), textCell(v1.Text(f.requested)),
			v1.Words(rule.ask(f.scheduler, f.need)), v1.Words(f.record),
		})
	}
	return t, left
}
