package access_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// pseudonymous is what a reader of pseudonyms sees.
func (b *box) pseudonymous(rows access.Rows) *access.View {
	b.t.Helper()
	names := access.NewPseudonyms([]byte("secret"), []string{"user", "pi"}, []string{"site", "group"})
	reader := access.Reader{Source: b, Pseudonyms: func(context.Context, *store.View) (*access.Pseudonyms, error) { return names, nil }}
	v, err := reader.Read(b.t.Context(), access.Principal{Name: "agency", Rights: identity.Read, Rows: rows, Pseudonyms: true})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := v.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return v
}

// Read implements access.Source.
func (b *box) Read(context.Context) (*store.View, error) { return b.store.View() }

func TestPseudonyms_AnyQuery_ShowsTheSameRecordsAndNoName(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	b := newBox(t)
	people := []string{"alice", "bob", "p-alice", "ünal", "a,b"}
	metas := map[string]record.Meta{}
	for i := range 200 {
		user := people[rng.IntN(len(people))]
		m := record.Meta{
			{Key: "group", Values: []string{fmt.Sprint("g", rng.IntN(3))}}, {Key: "job_name", Values: []string{"run of " + user}},
			{Key: "pi", Values: []string{people[rng.IntN(2)]}}, {Key: "site", Values: []string{fmt.Sprint("s", rng.IntN(2))}}, {Key: "user", Values: []string{user}},
		}
		if rng.IntN(5) == 0 {
			m[4].Values = append(m[4].Values, people[rng.IntN(len(people))])
		}
		if rng.IntN(5) == 0 {
			m = m[:4]
		}
		id := fmt.Sprint("job-", i)
		metas[id] = m
		b.post(id, m)
		if rng.IntN(4) == 0 {
			b.apply(&store.PutStopCommand{ID: id, Stop: 25e14, Now: 4e15})
		}
	}
	grants := access.AllRows()
	if rng.IntN(2) == 0 {
		grants = access.SomeRows(access.Grant{"site": {"s0"}}, access.Grant{"user": {"alice"}})
	}
	named, seen := b.view(grants), b.pseudonymous(grants)
	names := map[string]string{} // by pseudonym
	pseudonyms := map[string]string{}
	check := func(row *columns.Row) {
		t.Helper()
		was, drawn := metas[row.Record.ID]
		if !drawn { // of the box
			return
		}
		for _, key := range []string{"user", "pi"} {
			for i, p := range row.Record.Meta.Get(key) {
				name := was.Get(key)[i]
				if !strings.HasPrefix(p, access.PseudonymPrefix) || names[p] != "" && names[p] != name || pseudonyms[name] != "" && pseudonyms[name] != p || slices.Contains(people, p) {
					t.Errorf("%s of %s: %q, which is %q of %q", key, row.Record.ID, p, names[p], name)
				}
				names[p], pseudonyms[name] = name, p
			}
			if len(row.Record.Meta.Get(key)) != len(was.Get(key)) {
				t.Errorf("%s: %v of %v", row.Record.ID, row.Record.Meta, was)
			}
		}
		if len(row.Record.Meta.Get("job_name")) > 0 || !slices.Equal(row.Record.Meta.Get("group"), was.Get("group")) {
			t.Errorf("%s: %v of %v", row.Record.ID, row.Record.Meta, was)
		}
	}
	look := func(q store.Query) {
		t.Helper()
		if err := seen.Query(t.Context(), q, func(row *columns.Row) error { check(row); return nil }); err != nil {
			t.Error(err)
		}
	}
	for _, q := range []store.Query{{}, {ReuseRows: true}, {Order: store.BySeq}, {Order: store.ByStop, Limit: 7}, {Order: store.ByMeta, By: "group"}, {Order: store.BySeq, Tombstones: true}} {
		look(q)
		if diff := cmp.Diff(b.ids(named, q), b.ids(seen, q)); diff != "" {
			t.Errorf("%+v: %s", q, diff)
		}
	}
	for range 50 {
		ask := func(name string) []string {
			p := access.NewPseudonyms([]byte("secret"), nil, nil).Of(name)
			return []string{p}
		}
		user, group := people[rng.IntN(len(people))], fmt.Sprint("g", rng.IntN(3))
		of, as := store.MetaTest{Key: "user"}, store.MetaTest{Key: "user"}
		switch rng.IntN(3) {
		case 0:
			of.Contains, as.Contains = []string{user}, ask(user)
		case 1:
			of.Lacks, as.Lacks = []string{user}, ask(user)
		case 2:
			of.Any, as.Any = []string{user, "alice"}, append(ask(user), ask("alice")...)
		}
		more := store.MetaTest{Key: "group", Any: []string{group}}
		want, got := b.ids(named, store.Query{Meta: []store.MetaTest{more, of}}), b.ids(seen, store.Query{Meta: []store.MetaTest{more, as}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v: %s", of, diff)
		}
		if got := b.ids(seen, store.Query{Meta: []store.MetaTest{{Key: "user", Any: []string{user, "zoe"}}}}); len(got) > 0 {
			t.Errorf("a name finds records: %v", got)
		}
	}
	for id := range metas {
		row, ok, err := seen.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		entry, err := seen.Entry(id)
		if err != nil || ok != (len(entry.Holdings) > 0) {
			t.Fatal(id, ok, entry, err)
		}
		if !ok {
			continue
		}
		check(&row)
		for i := range entry.Holdings {
			check(&columns.Row{Record: *entry.Holdings[i].Record})
		}
		past, _, err := seen.History(&row, 10)
		for i := range past {
			check(&past[i])
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := seen.Ledger(t.Context(), store.LedgerPart{}, func(now, former *columns.Row) error {
		for _, row := range []*columns.Row{now, former} {
			if row != nil {
				check(row)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	keys, err := seen.Keys(t.Context())
	if err != nil || slices.Contains(keys, "job_name") {
		t.Error(keys, err)
	}
	for _, q := range []store.Query{
		{Meta: []store.MetaTest{{Key: "job_name", Any: []string{"run of alice"}}}}, {Order: store.ByMeta, By: "user"}, {Order: store.ByMeta, By: "job_name"},
	} {
		if err := seen.Query(t.Context(), q, func(*columns.Row) error { return nil }); !errors.Is(err, access.ErrNames) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := seen.MetaCounts(t.Context(), "user"); !errors.Is(err, access.ErrNames) {
		t.Error(err)
	}
	if err := seen.Quarantine(nil); !errors.Is(err, access.ErrNames) {
		t.Error(err)
	}
}

func TestPseudonyms_Usage_FollowsFromNamesAndShowsNone(t *testing.T) {
	b := newBox(t)
	seen := b.pseudonymous(access.AllRows())
	groups := []sums.Group{{Values: []string{"alice"}, Lacks: []bool{false}}, {Values: []string{"bob"}, Lacks: []bool{false}}, {Values: []string{""}, Lacks: []bool{true}}}
	priced := 0
	d := &usage.Derivation{
		Keys: []usage.Key{{Name: "pi", From: []string{"user"}, Of: func(values []string, lacks []bool, _ record.Time) (string, bool) {
			return "boss of " + values[0], !lacks[0]
		}}},
		Weights: []usage.Weight{{Name: "cost", Unit: "EUR", Components: []string{"Cores"}, From: []string{"user"}, Of: func(_ string, _ record.Kind, values []string, lacks []bool, _ record.Time) (int64, bool) {
			if values[0] == "alice" {
				priced++
			} else if !lacks[0] && values[0] != "bob" {
				t.Errorf("a price is asked of %q", values[0])
			}
			return 1, true
		}}},
	}
	for _, by := range []string{"user", "pi"} {
		ask := func(_ context.Context, q sums.Query) (*sums.Answer, error) {
			if !slices.Equal(q.By, []string{"user"}) {
				t.Errorf("asked by %v", q.By)
			}
			return &sums.Answer{Edges: q.Edges, By: q.By, Groups: groups, Components: []sums.Component{{Name: "Cores", Kind: record.Rate, Used: make([]sums.Sum, 3)}}}, nil
		}
		q := sums.Query{Edges: []record.Time{0, record.Hour}, By: []string{by}, Components: []string{"Cores"}, Weights: []string{"cost"}}
		got, err := seen.Usage(t.Context(), d, ask, q)
		if err != nil || len(got.Groups) != 3 {
			t.Fatal(got, err)
		}
		lacking := 0
		for _, g := range got.Groups {
			if g.Lacks[0] {
				lacking++
			} else if !strings.HasPrefix(g.Values[0], access.PseudonymPrefix) {
				t.Errorf("by %s: %q", by, g.Values[0])
			}
		}
		if lacking != 1 {
			t.Errorf("by %s: %+v", by, got.Groups)
		}
	}
	if priced == 0 {
		t.Error("no price is of alice")
	}
	if _, err := seen.Usage(t.Context(), d, nil, sums.Query{By: []string{"job_name"}}); !errors.Is(err, access.ErrNames) {
		t.Error(err)
	}
}
