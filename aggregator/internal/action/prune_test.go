package action

import (
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// past writes down that an action has run once a day until now, n times, with an
// effect each.
func (c *cluster) past(class sdk.EffectClass, n uint64) {
	c.t.Helper()
	sets := []store.Document{newDocument(actionSpace, testName.String(), encodeDocument(&State{version: version{Format}, Began: 1, Next: n + 1, Oldest: 1}))}
	for i := uint64(1); i <= n; i++ {
		planned := time.Now().Add(-time.Duration(n-i) * 24 * time.Hour)
		key := testName.runKey(i)
		sets = append(sets,
			newDocument(runSpace, key, encodeDocument(&Run{version: version{Format}, Number: i, Class: uint8(class), Planned: unixMicros(planned), Ended: unixMicros(planned), Effects: 1})),
			newDocument(effectSpace, testName.effectKey(i, 0), encodeDocument(&Effect{version: version{Format}, Name: "e", State: Done, Key: key})))
	}
	if _, err := c.apply(&store.DocumentCommand{Sets: sets}); err != nil {
		c.t.Fatal(err)
	}
}

func TestOldRunsGoWithAllThatBelongsToThem(t *testing.T) {
	for _, x := range []struct {
		name  string
		class sdk.EffectClass
		runs  uint64
		left  int
	}{
		{"values that were set go after a month, but for the last hundred", sdk.ClassSet, 150, 100},
		{"what was sent stays for a year and more", sdk.ClassKeyed, 390, 390},
		{"and goes then", sdk.ClassKeyed, 420, 400},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCluster(t)
			c.past(x.class, x.runs)
			n := c.lead(fine(x.class, "@manual", 1))
			m := n.manager()
			r := &runner{Manager: m, set: Setting{Name: testName}, life: m.Life}
			for range 20 {
				if err := r.pruneRuns(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if left := len(c.ledger()); left != x.left {
				t.Errorf("%d effects are left, want %d", left, x.left)
			}
			if state := n.status(m).Stored; state.Next-state.Oldest != uint64(x.left) {
				t.Errorf("%+v", state)
			}
		})
	}
}

func TestForgetRuns_RunsBeforeATime_GoWithTheLastOnesAndOfFormerActions(t *testing.T) {
	for _, c := range []struct {
		name       string
		configured bool
		current    uint64
		days, left int
	}{
		{"the newer ones stay", true, 0, 5, 5},
		{"all may go", true, 0, -1, 0},
		{"all of an action that is not configured any more", false, 0, -1, 0},
		{"but for those from the run under way on", true, 4, -1, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newCluster(t)
			k.past(sdk.ClassKeyed, 10)
			n := k.lead(fine(sdk.ClassKeyed, "@manual", 1))
			m := n.manager()
			if !c.configured {
				m.Set(nil)
			}
			state := State{version: version{Format}, Began: 1, Next: 11, Oldest: 1, Current: c.current, Doubtful: []uint64{1, 9}}
			if _, err := k.apply(&store.DocumentCommand{Sets: []store.Document{newDocument(actionSpace, testName.String(), encodeDocument(&state))}}); err != nil {
				t.Fatal(err)
			}
			removed, err := m.ForgetRuns(t.Context(), time.Now().AddDate(0, 0, -c.days).Add(time.Hour))
			if err != nil || removed != 10-c.left || len(k.ledger()) != c.left {
				t.Errorf("%d are removed and %d effects left, want %d left: %v", removed, len(k.ledger()), c.left, err)
			}
			if got := n.status(m).Stored; got.Next != 11 || got.Next-got.Oldest != uint64(c.left) || len(got.Doubtful) > 0 && got.Doubtful[0] < got.Oldest {
				t.Errorf("%+v", got)
			}
			if again, err := m.ForgetRuns(t.Context(), time.Now().AddDate(0, 0, -c.days).Add(time.Hour)); again != 0 || err != nil {
				t.Errorf("the second time %d are removed: %v", again, err)
			}
		})
	}
}
