package daemon

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// told changes the node's files and waits until the node obeys them.
func told(t *testing.T, a *Aggregator, settings string, obeys func() bool) {
	t.Helper()
	a.SetFiles(&clusterconfig.Document{Settings: []byte(settings)})
	until(t, obeys)
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come to be")
		}
	}
}

func TestExpireStops_OnlyThoseThatWaitedForSoLong(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	until(t, func() bool { // a young cluster agrees on the protocol version first
		_, err := g.agg.replica.Write(t.Context(), &store.DismissStopsCommand{IDs: []string{"none"}})
		return err == nil
	})
	now := time.Now()
	stop := func(id string, observed time.Time) record.Write {
		return record.Write{ID: id, Op: record.OpStop, Origin: record.Pushed, Rank: record.RankPush, Version: record.Version{Ended: true, Observed: int64(record.FromStd(observed))}, Stop: 1}
	}
	if _, err := g.agg.replica.Write(t.Context(), &store.IngestCommand{
		Agent: "head1", Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 1, After: store.Chain{1}, Now: record.FromStd(now),
		Writes: []record.Write{stop("old", now.Add(-49*time.Hour)), stop("young", now.Add(-47*time.Hour))},
	}); err != nil {
		t.Fatal(err)
	}
	waiting := func() string {
		ids, err := g.agg.stopsUntil(int64(record.FromStd(now)))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(ids, " ")
	}
	for _, c := range []struct{ after, want string }{{"", "old young"}, {"48h", "young"}, {"48h", "young"}, {"24h", ""}} {
		if c.after != "" {
			after, _ := time.ParseDuration(c.after)
			told(t, g.agg, `{"waiting_stops":{"expire_after":"`+c.after+`"}}`, func() bool { return g.agg.stopsExpire.Load() == int64(after) })
		}
		if err := g.agg.expireOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := waiting(); got != c.want {
			t.Errorf("after %q %q wait, want %q", c.after, got, c.want)
		}
	}
}

func TestComponentBlock_SaysTheKindOfWhatIsPosted(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	told(t, g.agg, `{"component":[{"kind":"total","name":"joules"}]}`, func() bool { return (*g.agg.kinds.Load())["joules"] == record.Total })
	client := g.ca.Client(g.ca.Issue(identity.Identity{Role: identity.Client, Name: "collector", Rights: identity.Read | identity.Write}))
	body := `{"record_id":"a","components":[{"name":"Cores","amount":1,"scores":[]},{"name":"joules","amount":1,"scores":[]},{"name":"TotalCPU","amount":1,"scores":[]}],"start_time":"2024-02-24T00:27:58Z"}`
	resp, err := client.Post(g.tls+"/record", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	view, err := g.agg.store.View()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	row, ok, err := view.Get("a")
	if resp.StatusCode != http.StatusOK || !ok || err != nil {
		t.Fatal(resp.Status, ok, err)
	}
	for i, want := range []record.Kind{record.Rate, record.Total, record.Total} {
		if c := row.Record.Components[i]; c.Kind != want {
			t.Errorf("%s is a %s", c.Name, c.Kind)
		}
	}
}
