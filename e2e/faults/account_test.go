//go:build e2e

package faults_test

import (
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/faults"
)

// account is a ledger of two runs and what has happened.
type account struct {
	runs     []faults.Run
	happened []faults.Happened
	stale    map[string]bool
}

func someAccount() *account {
	at := func(second int64) *time.Time { t := time.Unix(second, 0); return &t }
	done := "done"
	return &account{
		runs: []faults.Run{
			{Number: 1, Planned: at(1), Ended: at(2), Effects: 1, Ledger: []faults.Effect{
				{Name: "a", State: "done", Key: "k1", Tries: 2, Attempts: []faults.Attempt{{Number: 1}, {Number: 2, Fence: 7, Outcome: &done}}},
			}},
			{Number: 2, Planned: at(3), Ended: at(4), Effects: 1, Ledger: []faults.Effect{
				{Name: "a", State: "done", Key: "k2", Tries: 1, Attempts: []faults.Attempt{{Number: 1, Fence: 9, Outcome: &done}}},
			}},
		},
		happened: []faults.Happened{{Key: "k1", Attempt: 2, Fence: 7, Name: "a"}, {Key: "k2", Attempt: 1, Fence: 9, Name: "a"}},
		stale:    map[string]bool{},
	}
}

func (a *account) compare(class faults.Class) error {
	armed := &faults.Armed{Type: "test", Label: "a", Class: class, Target: &faults.Target{}}
	return armed.Compare(a.runs, a.happened, a.happened, a.stale)
}

func TestAccount_NothingWrong_IsAccepted(t *testing.T) {
	first := faults.Happened{Key: "k1", Attempt: 1, Fence: 5, Name: "a"}
	for name, change := range map[string]func(*account){
		"as it is":                          func(*account) {},
		"a repeated effect":                 func(a *account) { a.happened = append([]faults.Happened{first}, a.happened...) },
		"one that a paused leader did late": func(a *account) { a.happened = append(a.happened, first); a.stale[first.String()] = true },
	} {
		a := someAccount()
		change(a)
		if err := a.compare(faults.Keyed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAccount_SomethingWrong_IsRefused(t *testing.T) {
	for name, change := range map[string]func(*account){
		"an effect that is not in the ledger":  func(a *account) { a.happened[0].Key = "k3" },
		"an attempt that is not in the ledger": func(a *account) { a.happened[1].Attempt = 2 },
		"an effect that is done and was not":   func(a *account) { a.happened = a.happened[:1] },
		"an effect that happened twice":        func(a *account) { a.happened = append(a.happened, a.happened[1]) },
		"another fence than in the ledger":     func(a *account) { a.happened[0].Fence = 6 },
		"a fence that went back": func(a *account) {
			a.runs[1].Ledger[0].Attempts[0].Fence, a.happened[1].Fence = 3, 3
		},
		"a lost run":                      func(a *account) { a.runs = a.runs[1:] },
		"a lost effect of a run":          func(a *account) { a.runs[1].Ledger = nil },
		"a run that overlaps another":     func(a *account) { a.runs[0].Ended = nil },
		"a run planned before the last":   func(a *account) { a.runs[1].Planned = a.runs[0].Planned },
		"an effect that is left in doubt": func(a *account) { a.runs[0].Ledger[0].State = "dispatched" },
		"one key of two effects":          func(a *account) { a.runs[1].Ledger[0].Key = "k1" },
		"an unknown effect of a class that repeats": func(a *account) {
			a.runs[1].Ledger[0].State = "unknown"
		},
	} {
		a := someAccount()
		change(a)
		if a.compare(faults.Keyed) == nil {
			t.Errorf("%s is not seen", name)
		}
	}
	a := someAccount()
	a.happened = append([]faults.Happened{{Key: "k1", Attempt: 1, Fence: 5, Name: "a"}}, a.happened...)
	if a.compare(faults.AtMostOnce) == nil {
		t.Error("an effect of at most once that was repeated is not seen")
	}
}
