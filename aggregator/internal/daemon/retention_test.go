package daemon

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestRetain_WithoutABlock_NamesStay_WithOneTheyGo(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	until(t, func() bool { // a young cluster agrees on the protocol version first
		_, err := g.agg.replica.Write(t.Context(), &store.ReplaceCommand{})
		return err == nil
	})
	rows := columns.NewBuilder()
	for _, r := range apitest.Records(
		apitest.Job{ID: "old", User: "erika", Group: "atlas", Start: "2020-01-01", Stop: "2020-01-02", Cores: 1, Meta: map[string]string{"job_name": "x"}},
		apitest.Job{ID: "new", User: "erika", Group: "atlas", Start: "2020-01-01", Cores: 1},
	) {
		rows.Add(&columns.Row{Record: r, Rank: record.RankPush, Stop: record.None})
	}
	if _, err := g.agg.replica.Write(t.Context(), &store.PostCommand{Rows: rows.Bytes(), Now: record.FromStd(calendar.Now())}); err != nil {
		t.Fatal(err)
	}
	runs := []store.Document{
		{Space: "action", Key: "mail/former", Value: []byte(`{"format":1,"began":1,"next":2,"oldest":1}`)},
		{Space: "action-run", Key: "mail/former/000000000001", Value: []byte(`{"format":1,"number":1,"planned":1577836800000000,"ended":1577836800000000}`)},
	}
	if _, err := g.agg.replica.Write(t.Context(), &store.DocumentCommand{Sets: runs}); err != nil {
		t.Fatal(err)
	}
	has := func(id string) bool {
		ok, err := store.With(g.agg.store, func(v *store.View) (bool, error) {
			_, ok, err := v.Get(id)
			return ok, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if err := g.agg.removeNamesOnce(t.Context()); err != nil || !has("old") {
		t.Fatal("names go without a block", err)
	}
	told(t, g.agg, `{"retention":{"names_months":18,"drop":["job_name"]}}`, func() bool { return g.agg.retentionPolicy().Months == 18 })
	if err := g.agg.removeNamesOnce(t.Context()); err != nil || has("old") || !has("new") {
		t.Fatal("the name did not go, or a running job's did", err)
	}
	list, err := store.With(g.agg.store, func(v *store.View) ([]action.Status, error) { return g.agg.actions.List(v) })
	if err != nil || len(list) != 1 || list[0].Stored.Next != 2 || list[0].Stored.Oldest != 2 {
		t.Fatal("the run of a former action did not go", list, err)
	}
	count, err := store.With(g.agg.store, func(v *store.View) (uint64, error) { return v.Count(), nil })
	if err != nil || count != 2 {
		t.Fatal(count, err)
	}
}
