package source_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// run is one run as it was.
type run struct {
	job, raw            string // as the scheduler shows it and as it counts it
	submit, start, stop record.Time
	cores               int64 // of which no two runs have as many
	user                string
	again               bool // the job ran before
	last                bool // it does not run again
}

// world is what happened at a scheduler.
type world struct {
	runs    map[string]run // by what keyOf makes of their records
	order   []run          // by their ends, as they are told
	records []record.Record
}

// newWorld draws the runs of a scheduler.
func newWorld(t *testing.T, scheduler string, chance *rand.Rand, size int) *world {
	w := &world{runs: map[string]run{}}
	if scheduler == "nomad" {
		w.records = readRecords(t, "nomad/internal/source/testdata/ai4-records.ndjson")
		for i := range w.records {
			r := &w.records[i]
			w.runs[keyOf(r)] = run{job: r.ID, start: r.Start, stop: r.Stop}
		}
		return w
	}
	now := record.FromStd(time.Now().Add(-20 * time.Hour).Truncate(time.Second))
	raw := 1 + chance.IntN(5000)
	add := func(job string, raw int) {
		runs := 1 + max(0, chance.IntN(8)-5)
		if scheduler == "kubernetes" { // a pod does not run again
			runs = 1
		}
		for n := range runs {
			r := run{job: job, raw: strconv.Itoa(raw), user: []string{"alice", "bob"}[chance.IntN(2)], again: n > 0, last: n == runs-1}
			r.submit = now + record.Time(chance.IntN(300))*record.Second
			r.start = r.submit + record.Time(chance.IntN(300))*record.Second
			r.stop = r.start + record.Time(1+chance.IntN(3000))*record.Second
			r.cores = int64(len(w.order) + 1)
			w.order = append(w.order, r)
			now += record.Time(chance.IntN(120)) * record.Second
			if runs > 1 {
				now = max(now, r.stop+record.Second)
			}
		}
	}
	for len(w.order) < size {
		switch raw++; {
		case scheduler == "slurm" && chance.IntN(4) == 0: // an array, whose last task has its number
			array := raw
			for task := range chance.IntN(4) {
				raw++
				add(fmt.Sprintf("%d_%d", array, task), raw)
			}
			add(fmt.Sprintf("%d_%d", array, 7), array)
		case scheduler == "slurm" && chance.IntN(6) == 0:
			het := raw
			for part := range 1 + chance.IntN(3) {
				add(fmt.Sprintf("%d+%d", het, part), raw)
				raw++
			}
		case scheduler == "gridengine" && chance.IntN(4) == 0:
			for task := range 1 + chance.IntN(4) {
				add(fmt.Sprintf("%d.%d", raw, task+1), raw)
			}
		case scheduler == "htcondor":
			add(fmt.Sprintf("vm#%d.0#%d", raw, now/record.Second), raw)
		case scheduler == "kubernetes":
			add(fmt.Sprintf("default-pod%d-%08x", raw%7, chance.Uint32()), raw)
		default:
			add(strconv.Itoa(raw), raw)
		}
	}
	for _, r := range w.order {
		w.runs[keyOf(r.record(""))] = r
	}
	return w
}

// record is the run by an id, as a client would push it.
func (r *run) record(id string) *record.Record {
	return &record.Record{ID: id, Start: r.start, Stop: r.stop, Submit: record.None, Meta: record.Meta{{Key: "user_id", Values: []string{r.user}}},
		Components: []record.Component{{Name: "Cores", Amount: r.cores}}}
}

// seconds are those since 1970.
func seconds(t record.Time) string { return strconv.FormatInt(int64(t/record.Second), 10) }

// readRecords reads the records that a test of a source keeps as what it makes of a
// recorded world.
func readRecords(t *testing.T, path string) (out []record.Record) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		r, err := wire.DecodeRecordJSON(bytes.Clone(line))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}
