package erasure

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// ingest has two sources say something of the same runs: the users of the first one are not shown.
func (b *box) ingest(stop record.Time, shown, hidden map[string]string) {
	c := &store.IngestCommand{Agent: "head1", Now: stop, Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: uint64(len(shown) + len(hidden)), After: store.Chain{1}}
	for label, users := range map[string]map[string]string{"live": shown, "past": hidden} {
		for id, user := range users {
			r := &record.Record{ID: id, Start: stop - record.Hour, Stop: stop, Submit: record.None, State: "COMPLETED", Meta: record.Meta{{Key: "group_id", Values: []string{"g1"}}, {Key: "job_name", Values: []string{"run of ann"}}}}
			if user != "" {
				r.Meta = append(r.Meta, record.MetaEntry{Key: "user_id", Values: []string{user}})
			}
			w := record.Write{Op: record.OpPut, ID: id, Origin: record.Origin{Agent: "head1", Type: "slurm", Label: label}, Rank: record.RankImport, Version: record.Version{Ended: true, Observed: 1}, Record: r, Stop: record.None}
			if label == "live" {
				w.Rank = record.RankScheduler
			}
			c.Writes = append(c.Writes, w)
		}
	}
	if r, ok := b.apply(c).(store.IngestResult); !ok || !r.Accepted {
		b.t.Fatalf("not accepted: %+v", r)
	}
}

// heldUsers are the users whom any origin names, and the texts of the records that are shown.
func (b *box) heldUsers() (users, texts []string) {
	_, err := store.With(b, func(v *store.View) (struct{}, error) {
		return struct{}{}, v.Held(func(e *record.Entry) error {
			for i := range e.Holdings {
				if r := e.Holdings[i].Record; r != nil {
					users = append(users, r.Meta.Get("user_id")...)
				}
			}
			return nil
		})
	})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range b.records() {
		users, texts = append(users, r.Meta.Get("user_id")...), append(texts, r.Meta.Get("job_name")...)
	}
	slices.Sort(users)
	return slices.Compact(users), texts
}

func TestRetainer_NameThatIsNotShown_GoesToo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, d := newBox(t), testDirectory(t)
		policy := Policy{Months: 18}
		user := rapid.SampledFrom([]string{"", "carl"}).Draw(t, "shown")
		young := rapid.Bool().Draw(t, "young")
		stop := policy.Until(now) - record.Day
		if young {
			stop += 2 * record.Day
		}
		b.ingest(stop, map[string]string{"job-1": user}, map[string]string{"job-1": "ann"})
		before := b.records()
		if users, _ := b.heldUsers(); len(before) != 1 || !slices.Contains(users, "ann") || slices.Equal(before[0].Meta.Get("user_id"), []string{"ann"}) {
			t.Fatal(before, users)
		}
		keys := NewPolicyKeys(d, policy)
		due, err := store.With(b, func(v *store.View) (*Due, error) { return Look(t.Context(), v, policy, keys, now) })
		if want := map[bool]int{false: 1}[young]; err != nil || due.Records != want {
			t.Fatalf("%+v %v, want %d records", due, err, want)
		}
		r := &Retainer{Views: b, Write: b.write, Policy: policy, Directory: d, Now: now}
		if state, err := r.Run(t.Context()); err != nil || state.Records != int64(due.Records) {
			t.Fatalf("%+v %v", state, err)
		}
		users, texts := b.heldUsers()
		names := func(text string) bool { return HasWord(text, "ann") || HasWord(text, "carl") }
		if slices.ContainsFunc(users, names) != young || slices.ContainsFunc(texts, names) != young {
			t.Fatalf("young %v: %q, %q", young, users, texts)
		}
		if after := b.records(); len(after) != 1 || after[0].Stop != stop || len(after[0].Meta.Get("user_id")) != len(before[0].Meta.Get("user_id")) {
			t.Fatalf("%+v", after)
		}
	})
}
