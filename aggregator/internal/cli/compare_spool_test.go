package cli

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
)

// compareMany is how many records of each side the test of memory compares.
var compareMany = flag.Int("compare-records", 5_000, "how many records are compared")

func newTestComparison(t *testing.T) *comparison {
	t.Helper()
	s, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", s.dir, err)
		}
	})
	return &comparison{
		opt: &compareOptions{component: "Cores", unit: "second"}, from: record.MinTime, to: record.MaxTime, zone: record.Time(0).Std().Location(), spool: s,
		results: map[string]int64{}, kinds: map[string]*sideSums{}, causes: map[causeKey]*causeGroup{}, fields: map[string]int64{}, days: map[string]*sideSums{},
	}
}

func runOf(id string, start record.Time) record.Record {
	return record.Record{
		ID: id, Start: start, Stop: start + record.Hour, Submit: record.None, Meta: record.Meta{{Key: "group_id", Values: []string{"atlas"}}, {Key: "user_id", Values: []string{"alice" + id}}},
		Components: []record.Component{{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HS", Value: 10}}}, {Name: "Memory", Amount: 16000}},
	}
}

func TestSpool_AnyEntries_ComeBackByJobInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := newTestComparison(t).spool
	want, got := map[string][]string{}, map[string][]string{}
	text := func(e *comparand) string { return fmt.Sprint(e.side, e.note, e.Record) }
	for i := range 3000 {
		id := "nemo-" + strconv.Itoa(rng.IntN(500)) + []string{"", "", "-1770000000", "@1770000000000", "-7"}[rng.IntN(5)]
		e := newPlaceholder(side(rng.IntN(4)), id, strings.Repeat("x", rng.IntN(300)))
		if i%2 == 0 {
			e.Record = runOf(id, record.Time(rng.Int64N(1e15)))
		}
		want[jobID(id)] = append(want[jobID(id)], text(e))
		if err := s.addEntry(e); err != nil {
			t.Fatal(err)
		}
	}
	for part, err := range s.eachPart() {
		if err != nil {
			t.Fatal(err)
		}
		before := len(got)
		seen := map[string]bool{}
		for _, e := range part {
			seen[jobID(e.ID)] = true
			got[jobID(e.ID)] = append(got[jobID(e.ID)], text(e))
		}
		if len(got) != before+len(seen) {
			t.Error("a job is in two parts")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSpool_FileCutShort_IsAnError(t *testing.T) {
	for cut := range int64(60) { // of the last entry, which is longer
		s := newTestComparison(t).spool
		for i := range 10 {
			if err := s.addEntry(&comparand{Record: runOf("nemo-1-1770000000", record.Time(i)), note: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		for i, f := range s.files {
			if f == nil {
				continue
			}
			err := s.out[i].Flush()
			if info, failed := f.Stat(); err == nil && failed == nil {
				err = f.Truncate(info.Size() - cut)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range s.eachPart() {
			if (err == nil) != (cut == 0) {
				t.Errorf("%d bytes less: %v", cut, err)
			}
		}
	}
}

func TestComparison_ManyMissingAndGroups_AreBounded(t *testing.T) {
	remote, err := client.New(client.Options{Address: apitest.New(t).Serve()})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	c := newTestComparison(t)
	c.client, c.lookups = remote, 5
	for i := range 12 {
		if err := c.spool.addEntry(&comparand{Record: runOf(strconv.Itoa(i), record.Time(i)), side: sideThere}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.compareJobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	looked, not := c.causes[causeKey{kindMissingHere, ""}], c.causes[causeKey{kindMissingHere, causeNotLooked}]
	if looked == nil || not == nil || looked.count != 5 || not.count != 7 || c.differenceCount() != 12 {
		t.Errorf("%+v, %+v", looked, not)
	}
	sums := map[string]*sideSums{}
	for i := range compareGroups + 50 {
		sumOf(sums, strconv.Itoa(i)).addUsage(sideHere, nil)
	}
	if len(sums) != compareGroups+1 || sums["others"].here != 50 {
		t.Errorf("%d groups, others %+v", len(sums), sums["others"])
	}
}

// With -compare-records=1000000 it shows the memory of a million records on each side.
func TestComparison_ManyRecords_NeedAPartOfTheirMemory(t *testing.T) {
	c := newTestComparison(t)
	var peak, now runtime.MemStats
	for i := range *compareMany {
		r := runOf("nemo-"+strconv.Itoa(i), record.Time(i)*record.Second+record.Day)
		for _, s := range []side{sideThere, sideHere} {
			if err := c.spool.addEntry(&comparand{Record: r, side: s}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for part, err := range c.spool.eachPart() {
		if err != nil {
			t.Fatal(err)
		}
		jobs := map[string][]*comparand{}
		for _, e := range part {
			jobs[jobID(e.ID)] = append(jobs[jobID(e.ID)], e)
		}
		for _, job := range jobs {
			if missing := c.compareJob(job); len(missing) > 0 {
				t.Fatal(missing)
			}
		}
		if runtime.ReadMemStats(&now); now.HeapInuse > peak.HeapInuse {
			peak = now
		}
		if limit := max(2**compareMany/20, 500); len(part) > limit {
			t.Errorf("%d entries at once", len(part))
		}
	}
	if c.results[kindEqual] != int64(*compareMany) {
		t.Errorf("%d equal", c.results[kindEqual])
	}
	t.Logf("%d records: %d MiB", *compareMany, peak.HeapInuse>>20)
}
