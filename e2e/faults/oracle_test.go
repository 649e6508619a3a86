//go:build e2e

package faults_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/faults"
	"github.com/bursar-accounting/bursar/proto/record"
)

func someJobs() faults.Truth {
	return faults.Truth{
		"lab-1": {Start: 1_000_000, Stop: 3_000_000, Cores: 4},
		"lab-2": {Start: 1_000_000, Stop: 1_000_001, Cores: 1},
		"lab-3": {Start: 5_000_000, Stop: record.None, Cores: 8},
	}
}

// hold is a node that holds the jobs.
func hold(jobs faults.Truth) *faults.Holding {
	h := faults.NewHolding()
	for id, j := range jobs {
		h.Take(recordOf(id, j))
	}
	return h
}

func recordOf(id string, j faults.Job) *record.Record {
	return &record.Record{ID: id, Start: j.Start, Stop: j.Stop, Components: []record.Component{{Name: "Cores", Amount: j.Cores}}}
}

func TestOracle_Truth_IsAccepted(t *testing.T) {
	if err := someJobs().Compare(hold(someJobs())); err != nil {
		t.Error(err)
	}
}

func TestOracle_SomethingWrong_IsSeen(t *testing.T) {
	cases := []struct {
		name   string
		change func(held faults.Truth)
		notYet bool
	}{
		{"a lost record", func(h faults.Truth) { delete(h, "lab-2") }, true},
		{"a lost end", func(h faults.Truth) { h["lab-1"] = faults.Job{Start: 1_000_000, Stop: record.None, Cores: 4} }, true},
		{"an end of a job that runs", func(h faults.Truth) { h["lab-3"] = faults.Job{Start: 5_000_000, Stop: 6_000_000, Cores: 8} }, false},
		{"a record of no job", func(h faults.Truth) { h["lab-4"] = faults.Job{} }, false},
		{"a microsecond too much", func(h faults.Truth) { h["lab-2"] = faults.Job{Start: 1_000_000, Stop: 1_000_002, Cores: 1} }, false},
		{"a core too much", func(h faults.Truth) { h["lab-2"] = faults.Job{Start: 1_000_000, Stop: 1_000_001, Cores: 2} }, false},
	}
	for _, c := range cases {
		held := maps.Clone(someJobs())
		c.change(held)
		err := someJobs().Compare(hold(held))
		if err == nil {
			t.Errorf("%s is not seen", c.name)
		}
		if errors.Is(err, faults.ErrNotYet) != c.notYet {
			t.Errorf("%s: may it be cured by time? want %t: %v", c.name, c.notYet, err)
		}
	}
}

func TestOracle_DoubledRecord_IsSeen(t *testing.T) {
	held := hold(someJobs())
	held.Take(recordOf("lab-1", someJobs()["lab-1"]))
	if err := someJobs().Compare(held); err == nil || errors.Is(err, faults.ErrNotYet) {
		t.Errorf("got %v", err)
	}
}

func TestSchedule_SameSeed_IsTheSame(t *testing.T) {
	one, two, other := faults.Schedule(7, 30, 3, 3, ""), faults.Schedule(7, 30, 3, 3, ""), faults.Schedule(8, 30, 3, 3, "")
	same := func(a, b []faults.Cycle) bool {
		for i := range a {
			if len(a[i].Faults) != len(b[i].Faults) || a[i].Faults[0] != b[i].Faults[0] {
				return false
			}
		}
		return true
	}
	if !same(one, two) || same(one, other) {
		t.Error("a schedule is not a function of its seed")
	}
}
