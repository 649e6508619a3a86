package clusterconfig_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/hcl"
)

// large is a document of some megabytes, with an agent whose address names it.
func large(name string, rows int) *clusterconfig.Document {
	list := make([][]string, rows)
	for i := range list {
		list[i] = []string{fmt.Sprintf("user-%06d of %s", i, name), fmt.Sprintf("group-%03d", i%300), "A name of somebody", "somebody@example.org"}
	}
	text, err := json.Marshal(map[string]any{"agent": []any{map[string]any{"name": "a", "address": name, "rows": list}}})
	if err != nil {
		panic(err)
	}
	return &clusterconfig.Document{Settings: text}
}

// parts are the keys of the parts that the store has, and whether there is a draft.
func (c *trio) parts(documents ...*clusterconfig.Document) (list []string, draft bool) {
	c.t.Helper()
	view, err := c.store.View()
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	for _, d := range documents {
		digest := d.Digest()
		for i := range 64 {
			key := fmt.Sprintf("part/%s/%03d", digest, i)
			if _, ok, err := view.Document("config", key); err != nil {
				c.t.Fatal(err)
			} else if ok {
				list = append(list, key)
			}
		}
	}
	_, draft, err = view.Document("config", "draft")
	if err != nil {
		c.t.Fatal(err)
	}
	return list, draft
}

func TestADocumentLargerThanAnEntryIsCommittedInPartsThatGoWithIt(t *testing.T) {
	c := newTrio(t)
	first, second := large("first", 9_000), large("second", 5_000)
	a := c.start("a", first)
	want(t, "large", c.lead(a), "first by a")
	if list, draft := c.parts(first); len(list) < 3 || draft {
		t.Error(list, draft)
	}
	want(t, "obeyed", a.obeyed, []string{"first"})
	a.SetFiles(second)
	want(t, "another", c.lead(a), "second by a")
	if list, _ := c.parts(first); list != nil {
		t.Error("parts stay behind:", list)
	}
	a.SetFiles(one("small"))
	want(t, "small", c.lead(a), "small by a")
	if list, draft := c.parts(first, second); list != nil || draft {
		t.Error("parts stay behind:", list, draft)
	}
}

func TestACommitThatBreaksOffChangesNothingAndTheNextOneTidiesUp(t *testing.T) {
	first, second := large("first", 5_000), large("second", 5_000)
	steps := len(plan(t, newTrio(t), second, nil))
	for stop := range steps {
		c := newTrio(t)
		for i, s := range plan(t, c, second, nil)[:stop] {
			if r, err := c.Write(t.Context(), s); err != nil || !done(r) {
				t.Fatal(i, r, err)
			}
		}
		if now := c.committed(); now != "nothing" {
			t.Fatalf("after %d of %d commands there is %s", stop, steps, now)
		}
		want(t, "the next", c.lead(c.start("a", first)), "first by a")
		if list, draft := c.parts(second); list != nil || draft {
			t.Errorf("after %d of %d commands parts stay behind: %v %v", stop, steps, list, draft)
		}
	}
}

func plan(t *testing.T, c *trio, d *clusterconfig.Document, before *clusterconfig.Committed) []*store.DocumentCommand {
	t.Helper()
	view, err := c.store.View()
	if err != nil {
		t.Fatal(err)
	}
	steps, err := clusterconfig.Plan(view, d, before, "somebody", time.Unix(1_700_000_000, 0))
	if err = errors.Join(err, view.Close()); err != nil {
		t.Fatal(err)
	}
	return steps
}

func done(result any) bool {
	r, ok := result.(store.DocumentResult)
	return ok && r.Done
}

// TestOfTwoWhoCommitAtOnceOneWins mixes the commands of two in all ways.
func TestOfTwoWhoCommitAtOnceOneWins(t *testing.T) {
	first, second := large("first", 3_000), large("second", 3_000)
	for mix := range 1 << 6 {
		c := newTrio(t)
		plans := [][]*store.DocumentCommand{plan(t, c, first, nil), plan(t, c, second, nil)}
		won := []bool{true, true}
		for bit := 0; len(plans[0])+len(plans[1]) > 0; bit++ {
			who := mix >> bit & 1
			if bit >= 6 || len(plans[who]) == 0 {
				who = slices.IndexFunc(plans, func(p []*store.DocumentCommand) bool { return len(p) > 0 })
			}
			ok, err := clusterconfig.Execute(t.Context(), c.Write, plans[who][:1])
			if err != nil {
				t.Fatal(err)
			}
			if plans[who] = plans[who][1:]; !ok {
				won[who], plans[who] = false, nil
			}
		}
		now := c.committed()
		if won[0] && won[1] || won[0] && now != "first by somebody" || won[1] && now != "second by somebody" || !won[0] && !won[1] && now != "nothing" {
			t.Fatalf("%06b: %v and %s", mix, won, now)
		}
	}
}

func TestADocumentThatIsTooLargeIsRefusedWithTheLimit(t *testing.T) {
	c := newTrio(t)
	d := large("huge", 260_000)
	a := c.start("a", d)
	want(t, "huge", c.lead(a), "nothing")
	if !strings.Contains(a.log.String(), "at most 16777216 are possible") {
		t.Error(a.log)
	}
	if err := d.Fits(); !errors.Is(err, clusterconfig.ErrTooLarge) {
		t.Error(err)
	}
}

func TestAMissingOrDamagedPartIsAnError(t *testing.T) {
	for text, change := range map[string][]byte{"is missing": nil, "have the digest": []byte("{")} {
		c := newTrio(t)
		d := large("first", 5_000)
		c.lead(c.start("a", d))
		list, _ := c.parts(d)
		set := &store.DocumentCommand{Sets: []store.Document{{Space: "config", Key: list[1], Value: change}}}
		if r, err := c.Write(t.Context(), set); err != nil || !done(r) {
			t.Fatal(r, err)
		}
		view, err := c.store.View()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clusterconfig.Read(view); !errors.Is(err, clusterconfig.ErrDocument) || !strings.Contains(err.Error(), text) {
			t.Error(err)
		}
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheBytesOfAHeadStayTheSameForEver(t *testing.T) {
	steps := plan(t, newTrio(t), large("golden", 3_000), nil)
	last := steps[len(steps)-1]
	golden(t, "committed-2-of-3.json", string(last.Sets[0].Value)+"\n")
	for _, s := range steps[1 : len(steps)-1] {
		if !strings.HasPrefix(s.Sets[0].Key, "part/") {
			t.Error(s.Sets[0].Key)
		}
	}
}

func TestALongValueIsNotShownInFull(t *testing.T) {
	value := func(c string) []hcl.Member {
		return []hcl.Member{{Name: "x", Value: []byte(strings.Repeat(c, 9000))}}
	}
	list := clusterconfig.Diff(value("1"), value("2"))
	if len(list) != 1 {
		t.Fatal(list)
	}
	if n := len(list[0].String()); n > 1500 || !strings.Contains(list[0].String(), " bytes)") {
		t.Error(n, list[0])
	}
}
