// Package source_test lets every pair of sources that can see one run tell of one world,
// in every order, and counts what a cluster shows of it then. DESIGN.md of proto/record
// has the table of the pairs.
package source_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/proto/record"
)

// label is that of all sources, and the prefix of AUDITOR's collectors.
const label = "rig"

// party is what tells of the runs of a scheduler.
type party struct {
	name, scheduler string
	// client: it pushes by AUDITOR's protocol what no source of bursar's made.
	client bool
	// tell is what the party says of a world, in its order.
	tell func(l *lab, w *world) []record.Write
	// sights: of a run whose end it did not see it tells the last sighting.
	sights bool
	// lastOnly: of a job that ran again it tells the last run, by the id of the first. Beside
	// an import, which ranks below a client, its word is shown, and the conflict is listed.
	lastOnly bool
	// imported: it ranks below clients.
	imported bool
	// foreign reports that the party gives a run an id by which no other party knows it.
	foreign func(r *run) bool
}

// parties are all that can tell of runs. Those of one scheduler meet each other. A new
// source is a line here.
func parties() []party {
	return []party{
		{name: "slurm", scheduler: "slurm", tell: (*lab).slurm},
		{name: "slurm-epilog", scheduler: "slurm", tell: (*lab).epilog},
		{name: "AUDITOR's Slurm collector", scheduler: "slurm", client: true, tell: (*lab).auditorSlurm},
		{name: "AUDITOR's Slurm epilog collector", scheduler: "slurm", client: true, tell: (*lab).auditorEpilog,
			foreign: func(r *run) bool { return r.job != r.raw && !r.again }}, // the first runs of tasks of arrays and of parts of heterogeneous jobs
		{name: "gridengine", scheduler: "gridengine", tell: (*lab).gridengine},
		{name: "gridengine, imported", scheduler: "gridengine", tell: func(l *lab, w *world) []record.Write { return l.gridengineImport(w, "import") }},
		{name: "gridengine, imported under another name", scheduler: "gridengine", tell: func(l *lab, w *world) []record.Write { return l.gridengineImport(w, "import2") }},
		{name: "a client with the ids of gridengine", scheduler: "gridengine", client: true, tell: (*lab).gridengineClient},
		{name: "auditor, to which that client pushed", scheduler: "gridengine", imported: true, tell: (*lab).gridengineAuditor},
		{name: "nomad", scheduler: "nomad", tell: recorded("nomad/internal/source/testdata/ai4-records.ndjson", "nomad", record.RankScheduler)},
		{name: "ai4, imported", scheduler: "nomad", sights: true, tell: recorded("ai4/testdata/records.ndjson", "ai4", record.RankImport)},
		{name: "a client with the ids of nomad", scheduler: "nomad", client: true, tell: (*lab).nomadClient},
		{name: "htcondor", scheduler: "htcondor", tell: (*lab).condor},
		{name: "htcondor, imported", scheduler: "htcondor", imported: true, tell: (*lab).condorImport},
		{name: "a client with the ids of htcondor", scheduler: "htcondor", client: true, tell: (*lab).condorClient},
		{name: "AUDITOR's HTCondor collector", scheduler: "htcondor", client: true, lastOnly: true, tell: (*lab).auditorCondor},
		{name: "kubernetes", scheduler: "kubernetes", tell: (*lab).kubernetes},
		{name: "AUDITOR's Kubernetes collector", scheduler: "kubernetes", client: true, tell: (*lab).auditorKubernetes},
	}
}

func TestMain(m *testing.M) {
	fakesacct.Main()
	code := m.Run()
	if dir, _ := programs(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// Every source that reads runs by itself is a party.
func TestPairs_EverySourceIsAParty(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		_, err := os.Stat(filepath.Join(e.Name(), "main.go"))
		if err != nil || slices.Contains([]string{"example", "receiver", "replay"}, e.Name()) {
			continue // no plugin, or it tells what a file or a client does
		}
		if !slices.ContainsFunc(parties(), func(p party) bool { return strings.HasPrefix(p.name, e.Name()) }) {
			t.Errorf("the source %s is no party; add what it says of a world", e.Name())
		}
	}
}

// One world by two parties, in both orders, interleaved and repeated: each run is one
// record with its own amounts, or the disagreement is found.
func TestPairs_OneWorldByTwoPartiesIsCountedOnce(t *testing.T) {
	for seed := range uint64(3) {
		chance := rand.New(rand.NewPCG(seed, 13))
		all := parties()
		worlds, told := map[string]*world{}, map[string][]record.Write{}
		l := &lab{t: t}
		for _, p := range all {
			w := worlds[p.scheduler]
			if w == nil {
				w = newWorld(t, p.scheduler, chance, []int{1, 9, 40}[seed])
				worlds[p.scheduler] = w
			}
			told[p.name] = p.tell(l, w)
			if len(told[p.name]) == 0 && p.scheduler != "slurm" {
				t.Errorf("seed %d: %s says nothing", seed, p.name)
			}
		}
		for i, a := range all {
			for _, b := range all[i:] {
				if a.scheduler == b.scheduler && !(a.client && b.client) {
					t.Run(fmt.Sprintf("%d %s and %s", seed, a.name, b.name), func(t *testing.T) {
						meet(t, worlds[a.scheduler], []party{a, b}, told, chance)
					})
				}
			}
		}
	}
}

// meet lets the parties tell in several orders and judges what is shown.
func meet(t *testing.T, w *world, pair []party, told map[string][]record.Write, chance *rand.Rand) {
	one, two := told[pair[0].name], told[pair[1].name]
	orders := map[string][]record.Write{
		"first, second":        slices.Concat(one, two),
		"second, first":        slices.Concat(two, one),
		"first, second, first": slices.Concat(one, two, one),
		"second, first, both":  slices.Concat(two, one, one, two),
	}
	for n := range 3 {
		orders[fmt.Sprint("interleaved ", n)] = interleave(chance, one, two)
	}
	var before string
	for _, name := range slices.Sorted(maps.Keys(orders)) {
		c := cluster{}
		for at, write := range orders[name] {
			write.Version.Observed = int64(at + 1)
			c.take(write)
		}
		judge(t, name, w, pair, c)
		if shown := c.describe(); before == "" {
			before = shown
		} else if shown != before {
			t.Errorf("%s: another outcome\n%s\nthan before\n%s", name, shown, before)
		}
	}
}

// interleave keeps the order of each of two parties.
func interleave(chance *rand.Rand, one, two []record.Write) (out []record.Write) {
	for len(one)+len(two) > 0 {
		if chance.IntN(len(one)+len(two)) < len(one) {
			out, one = append(out, one[0]), one[1:]
		} else {
			out, two = append(out, two[0]), two[1:]
		}
	}
	return out
}

// judge compares what is shown with the truth. A run is known by its number of cores.
func judge(t *testing.T, name string, w *world, pair []party, c cluster) {
	t.Helper()
	shown, seen := map[string][]string{}, map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(c)) {
		e := c[id]
		r := e.Shown()
		if r == nil {
			continue
		}
		key := keyOf(r)
		shown[key] = append(shown[key], id)
		for i := range e.Holdings {
			h := e.Holdings[i].Shown()
			if h == nil {
				continue
			}
			seen[keyOf(h)] = true
			if d := h.Start - r.Start; keyOf(h) != key && max(d, -d) > record.ConflictGap && !e.Conflict() {
				t.Errorf("%s: %s stands for two runs, and is no conflict", name, id)
			}
		}
		truth, ok := w.runs[key]
		ends := truth.stop != record.None && !(pair[0].sights && pair[1].sights)
		if !ok {
			t.Errorf("%s: %s is no run: %s", name, id, key)
		} else if r.Start != truth.start || ends && r.Stop != truth.stop {
			t.Errorf("%s: %s runs from %s to %s, not %s to %s", name, id, r.Start, r.Stop, truth.start, truth.stop)
		}
	}
	lower := slices.ContainsFunc(pair, func(p party) bool { return p.imported }) &&
		slices.ContainsFunc(pair, func(p party) bool { return p.lastOnly })
	for key, r := range w.runs {
		if lower && (r.again || !r.last) {
			continue // a conflict, as checked above
		}
		want := 1
		if slices.ContainsFunc(pair, func(p party) bool { return p.foreign != nil && p.foreign(&r) }) {
			want = 2
		}
		if ids := shown[key]; len(ids) != want && seen[key] {
			t.Errorf("%s: the run %s, %s, is shown as %v", name, r.job, key, ids)
		}
	}
}

// keyOf tells runs of a world apart whatever their ids.
func keyOf(r *record.Record) string {
	cores := int64(0)
	if c := r.Component("Cores"); c != nil {
		cores = c.Amount
	}
	return fmt.Sprintf("%s by %s with %d cores", r.Start, strings.Join(r.Meta.Get("user_id"), ","), cores)
}

// cluster is what is held, by the rule by which aggregators merge.
type cluster map[string]*record.Entry

func (c cluster) take(w record.Write) {
	e := c[w.ID]
	if e == nil {
		e = &record.Entry{ID: w.ID}
		c[w.ID] = e
	}
	e.Merge(w)
}

// describe are the records that are shown.
func (c cluster) describe() string {
	var out strings.Builder
	for _, id := range slices.SortedFunc(maps.Keys(c), cmp.Compare) {
		if r := c[id].Shown(); r != nil {
			fmt.Fprintln(&out, id, r.Stop, keyOf(r), c[id].Conflict())
		}
	}
	return out.String()
}
