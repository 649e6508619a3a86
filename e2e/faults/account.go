//go:build e2e

package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Account compares the effects that have happened with the ledger of a node. Stale
// are the attempts, as [Happened.String] names them, that a leader may have finished
// after another one had begun.
func (a *Armed) Account(node *Member, stale map[string]bool) ([]Run, error) {
	first, err := a.readHappened()
	if err != nil {
		return nil, err
	}
	runs, err := node.Runs(a.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	last, err := a.readHappened() // what is done in the ledger happened before this
	if err != nil {
		return nil, err
	}
	return runs, a.Compare(runs, first, last, stale)
}

// Compare returns what is wrong of runs, with what had happened before they were
// looked at and after that.
func (a *Armed) Compare(runs []Run, first, last []Happened, stale map[string]bool) error {
	if err := a.inOrder(runs); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	if a.Target == nil || a.Nameless {
		return nil
	}
	effects := map[string]*Effect{}
	for i := range runs {
		for j := range runs[i].Ledger {
			e := &runs[i].Ledger[j]
			if effects[e.Key] != nil {
				return fmt.Errorf("%s: two effects have the key %s", a, e.Key)
			}
			effects[e.Key] = e
		}
	}
	if err := a.judgeHappened(first, effects, stale); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	return a.judgeDone(last, effects)
}

func (a *Armed) readHappened() ([]Happened, error) {
	if a.Target == nil {
		return nil, nil
	}
	return a.Target.Happened()
}

// String is KEY/ATTEMPT.
func (h *Happened) String() string { return fmt.Sprintf("%s/%d", h.Key, h.Attempt) }

// mayBePartial reports whether a run says that it is partial since the cluster could not answer
// it, which had no leader then, and whether its action looks again in its next run.
func (a *Armed) mayBePartial(r *Run) bool {
	return a.LooksAgain && len(r.Notes) > 0 && !slices.ContainsFunc(r.Notes, func(note string) bool { return !strings.Contains(note, "503: the cluster cannot answer now") })
}

// inOrder checks what must hold of the runs alone.
func (a *Armed) inOrder(runs []Run) error {
	fences := map[uint64]bool{}
	for i := range runs {
		r := &runs[i]
		switch {
		case r.Number != uint64(i+1) || r.Effects != len(r.Ledger):
			return fmt.Errorf("run %d of %d effects is the %dth one and has %d", r.Number, r.Effects, i+1, len(r.Ledger))
		case r.Failure != "" && (r.Effects > 0 || r.Ended == nil):
			return fmt.Errorf("run %d could not be planned, and has effects or goes on: %+v", r.Number, *r)
		case r.Ended == nil && i < len(runs)-1:
			return fmt.Errorf("run %d has not ended, and there is another one", r.Number)
		case i > 0 && !r.Planned.After(*runs[i-1].Planned):
			return fmt.Errorf("run %d was planned for %s, the one before for %s", r.Number, r.Planned, runs[i-1].Planned)
		case r.Partial && !a.mayBePartial(r) || r.Rejected > 0 && !a.Rejects:
			return fmt.Errorf("run %d is partial or has effects that were rejected: %+v", r.Number, *r)
		}
		for _, e := range r.Ledger {
			if r.Ended != nil && (e.State == "planned" || e.State == "dispatched") {
				return fmt.Errorf("run %d has ended, and %s is %s", r.Number, e.Name, e.State)
			}
			last := uint64(0)
			for _, t := range e.Attempts {
				if t.Fence == 0 {
					continue // no one has said how it ended
				}
				if t.Fence <= last || fences[t.Fence] {
					return fmt.Errorf("run %d: the fences of %s do not grow: %+v", r.Number, e.Name, e.Attempts)
				}
				last, fences[t.Fence] = t.Fence, true
			}
		}
	}
	return nil
}

// judgeHappened checks that what happened is in the ledger, as it happened, and not too often.
func (a *Armed) judgeHappened(all []Happened, effects map[string]*Effect, stale map[string]bool) error {
	times, fence := map[string]int{}, uint64(0)
	for i := range all {
		h := &all[i]
		e := effects[h.Key]
		if e == nil || h.Name != "" && e.Name != h.Name || h.Attempt > e.Tries {
			return fmt.Errorf("%+v has happened, and the ledger has %+v", *h, e)
		}
		times[h.Key]++
		if n := times[h.Key]; n > e.Tries || n > 1 && a.Class.isOnce() {
			return fmt.Errorf("%+v happened %d times; the ledger has %+v", *h, n, *e)
		}
		for _, t := range e.Attempts {
			if t.Number == h.Attempt && t.Fence != 0 && t.Fence != h.Fence {
				return fmt.Errorf("%+v has happened, and in the ledger the attempt is %+v", *h, t)
			}
		}
		if h.Fence <= fence && !stale[h.String()] {
			return fmt.Errorf("%+v has happened after the fence %d", *h, fence)
		}
		fence = max(fence, h.Fence)
	}
	return nil
}

// judgeDone checks that what the ledger says is done has happened.
func (a *Armed) judgeDone(all []Happened, effects map[string]*Effect) error {
	there := map[string]bool{}
	for i := range all {
		there[all[i].Key] = true
	}
	for key, e := range effects {
		switch {
		case e.State == "done" && !there[key]:
			return fmt.Errorf("%s: %+v is done and has not happened", a, *e)
		case e.State == "unknown" && (!a.Class.isOnce() || a.Class == Probed && len(e.Attempts) == 0):
			return fmt.Errorf("%s: %+v is unknown; effects of this class never are", a, *e)
		}
	}
	return nil
}

// judgeCount judges the plugin that counts: no state of a plan was lost or counted twice,
// and in the end the receiver has the right number.
func (a *Armed) judgeCount(_ *Member, truth Truth, runs []Run) error {
	want := 0
	for i := range runs {
		r := &runs[i]
		if r.Failure != "" { // while no node leads nothing can be asked for a plan
			continue
		}
		if len(r.Ledger) != 2 || r.Ledger[1].Summary != strconv.Itoa(want) {
			return fmt.Errorf("%s: run %d should say %d: %+v", a, r.Number, want, r.Ledger)
		}
		if a.Class.isOnce() || r.Ended != nil && r.isDone() {
			want++
		}
	}
	all, err := a.readHappened()
	if err != nil {
		return err
	}
	value := ""
	for i := range all {
		if all[i].Name == "records" {
			value = all[i].Value
		}
	}
	if want := len(truth) + a.Old.len(); value != strconv.Itoa(want) {
		return fmt.Errorf("%w: %s has told its receiver %q records last, there are %d", ErrNotYet, a, value, want)
	}
	return nil
}

// judgeFed judges the program that is handed the changes: each one is in one run.
func (a *Armed) judgeFed(node *Member, _ Truth, runs []Run) error {
	all, err := a.readHappened()
	if err != nil {
		return err
	}
	told := map[string]string{}
	for i := range all {
		told[all[i].Key] = all[i].Value
	}
	last, planned := uint64(0), map[uint64]bool{}
	for i := range runs {
		for j, e := range runs[i].Ledger {
			seqs, err := node.changesOfEffect(a.String(), runs[i].Number, j)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNotYet, err)
			}
			if got, happened := told[e.Key]; happened && strings.TrimSpace(got) != strings.Trim(fmt.Sprint(seqs), "[]") {
				return fmt.Errorf("%s: run %d planned the changes %v, and the program got %s", a, runs[i].Number, seqs, got)
			}
			for _, seq := range seqs {
				if seq <= last {
					return fmt.Errorf("%s: run %d hands over change %d after %d", a, runs[i].Number, seq, last)
				}
				last, planned[seq] = seq, true
			}
		}
	}
	return node.allIn(planned)
}

// judgeMirror judges a receiver of changes that remembers keys: it has got all.
func (a *Armed) judgeMirror(node *Member, _ Truth, _ []Run) error {
	all, err := a.readHappened()
	if err != nil {
		return err
	}
	got := map[uint64]bool{}
	for i := range all {
		for field := range strings.FieldsSeq(all[i].Value) {
			seq, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return err
			}
			got[seq] = true
		}
	}
	return node.allIn(got)
}

// changesOfEffect are the changes of the input of an effect.
func (m *Member) changesOfEffect(action string, run uint64, effect int) (seqs []uint64, err error) {
	text, err := m.effectPayload(action, run, effect)
	if err != nil {
		return nil, err
	}
	var in struct {
		Changes []struct {
			Seq uint64 `json:"seq"`
		} `json:"changes"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, err
	}
	for _, c := range in.Changes {
		seqs = append(seqs, c.Seq)
	}
	return seqs, nil
}

// allIn checks that all changes that the node shows are among those.
func (m *Member) allIn(planned map[uint64]bool) error {
	for after := uint64(0); ; {
		var page struct {
			Changes []struct {
				Seq uint64 `json:"seq"`
			} `json:"changes"`
			Last uint64 `json:"last"`
			More bool   `json:"more"`
		}
		if err := m.fetchJSON(fmt.Sprintf("/v1/changes?after=%d&limit=1000", after), &page); err != nil {
			return fmt.Errorf("%w: %w", ErrNotYet, err)
		}
		for _, c := range page.Changes {
			if !planned[c.Seq] {
				return fmt.Errorf("%w: change %d was not handed over", ErrNotYet, c.Seq)
			}
		}
		if len(page.Changes) == 0 {
			return nil
		}
		after = page.Last
	}
}
