//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Holding is what one node holds of the schedulers' jobs, as it says so.
type Holding struct {
	Jobs    Truth
	Pushed  map[string]Register // what clients wrote
	Doubled []string            // ids that were there twice
}

// NewHolding is an empty one.
func NewHolding() *Holding { return &Holding{Jobs: Truth{}, Pushed: map[string]Register{}} }

// Take adds a record that the node has shown.
func (h *Holding) Take(r *record.Record) {
	_, twice := h.Jobs[r.ID]
	if _, pushed := h.Pushed[r.ID]; twice || pushed {
		h.Doubled = append(h.Doubled, r.ID)
	}
	if strings.HasPrefix(r.ID, Pushed) {
		h.Pushed[r.ID] = Register{Start: r.Start, Stop: r.Stop}
		return
	}
	job := Job{Start: r.Start, Stop: r.Stop}
	if cores := r.Component("Cores"); cores != nil {
		job.Cores = cores.Amount
	}
	h.Jobs[r.ID] = job
}

// ErrNotYet is wrapped by an error of [Truth.Compare] that time may cure: jobs
// or their ends are missing, and nothing is wrong.
var ErrNotYet = errors.New("not all has arrived")

// Compare returns what is not as it was: an error that wraps [ErrNotYet] as long
// as jobs or ends are missing, another one when a record is there twice, is
// there without a job, or has a wrong value.
func (t Truth) Compare(h *Holding) error {
	var wrong, missing, open []string
	for id, got := range h.Jobs {
		want, known := t[id]
		switch {
		case !known:
			wrong = append(wrong, fmt.Sprintf("%s was never a job: %+v", id, got))
		case got == want:
		case got.Stop == record.None && got.Start == want.Start && got.Cores == want.Cores:
			open = append(open, id)
		default:
			wrong = append(wrong, fmt.Sprintf("%s is %+v, was %+v", id, got, want))
		}
	}
	for _, id := range h.Doubled {
		wrong = append(wrong, id+" is there twice")
	}
	for id := range t {
		if _, there := h.Jobs[id]; !there {
			missing = append(missing, id)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d records are wrong: %s", len(wrong), beginningOf(wrong))
	}
	if len(missing)+len(open) > 0 {
		return fmt.Errorf("%w: of %d jobs %d are missing (%s), %d have no end (%s)", ErrNotYet, len(t), len(missing), beginningOf(missing), len(open), beginningOf(open))
	}
	if got, want := h.Jobs.Usage(), t.Usage(); got != want {
		return fmt.Errorf("the sum of cores times microseconds is %d, was %d", got, want)
	}
	return nil
}

// Keeps returns an error when a register is not what it was.
func (h *Holding) Keeps(registers map[string]Register) error {
	for id, want := range registers {
		if got := h.Pushed[id]; got != want {
			return fmt.Errorf("%s, written by a client, is %+v, was %+v", id, got, want)
		}
	}
	return nil
}

// beginningOf is the beginning of a list.
func beginningOf(list []string) string {
	slices.Sort(list)
	if len(list) > 5 {
		return fmt.Sprintf("%v and %d more", list[:5], len(list)-5)
	}
	return fmt.Sprint(list)
}
