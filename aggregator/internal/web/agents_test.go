package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// source is the one whose days are counted.
func source() record.Origin { return apitest.Nemo() }

// count counts days of February 2026 of the source: each has one run that is stored
// and, on the 10th, three that are not; and a gap on the 20th, a day that no one counted.
func (s *site) count() {
	s.t.Helper()
	first := record.FromStd(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	c := &store.IngestCommand{Agent: "head1", Now: first + 28*record.Day, Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 40, After: store.Chain{3}}
	for day := range record.Time(28) {
		from := first + day*record.Day
		if day == 19 {
			continue
		}
		f := wire.Frame{SourceType: "slurm", SourceLabel: "nemo", Kind: wire.KindCount}
		f.Count = wire.Count{From: from, To: from + record.Day, Counted: 1, Records: 1, At: from + 2*record.Day}
		if day == 9 {
			f.Count.Counted, f.Count.Records = 4, 4
		}
		c.Facts = append(c.Facts, store.Fact{Kind: store.FactCount, Source: source(), At: from, Data: wire.AppendFrame(nil, &f)})
		id := "feb-" + time.Duration(day).String()
		c.Writes = append(c.Writes, record.Write{
			Op: record.OpPut, ID: id, Origin: source(), Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: int64(from)},
			Record: &record.Record{ID: id, Start: from, Stop: from + record.Hour, Submit: record.None},
		})
	}
	c.Gaps = []store.Gap{{Source: source(), From: first + 19*record.Day, To: first + 19*record.Day + record.Hour, Reason: "slurmdbd <b>purged</b> it", Noticed: first + 21*record.Day}}
	s.Apply(c)
}

// again has the source say more of its first run.
func (s *site) again() {
	s.t.Helper()
	start := record.FromStd(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	c := &store.IngestCommand{Agent: "head1", Now: start + 29*record.Day, Epoch: store.Epoch{1}, From: 41, To: 41, Before: store.Chain{3}, After: store.Chain{4}}
	c.Writes = []record.Write{{
		Op: record.OpPut, ID: "feb-0s", Origin: source(), Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: int64(start) + 1},
		Record: &record.Record{
			ID: "feb-0s", Start: start, Stop: start + 2*record.Hour, Submit: record.None, State: "COMPLETED", Components: []record.Component{{Name: "Cores", Amount: 2}},
			Meta: record.Meta{{Key: "group_id", Values: []string{"atlas"}}, {Key: "queue", Values: []string{"long"}}},
		},
	}}
	s.Apply(c)
}

func TestTheCalendarShowsEachDayByASignAndInWords(t *testing.T) {
	s := newSite(t)
	s.count()
	code, body, _ := s.get("/ui/agents")
	for _, want := range []string{
		"Completeness, 2026-01 to 2026-03", "head1/slurm/nemo", ">2026-02</caption>",
		`<td class="sq missing" title="missing runs: 4 runs, 3 missing, 1 stored"><b>10</b><span aria-hidden="true">✗</span><span class="hidden">, missing runs: 4 runs, 3 missing, 1 stored</span></td>`,
		`<td class="sq ok" title="complete: 1 run, 1 stored"><b>11</b>`,
		"<b>20</b><span aria-hidden=\"true\">▲</span>", "slurmdbd &lt;b&gt;purged&lt;/b&gt; it",
		"bursar-agent recollect -source slurm/nemo -from 2026-02-10 -to 2026-02-11", `href="/v1/completeness?format=csv&amp;from=2026-01-01&amp;to=2026-04-01"`,
		`href="/v1/gaps?format=csv"`, "Days with differences: 1",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if code != http.StatusOK || t.Failed() {
		t.Errorf("%d\n%s", code, body)
	}
	// February 2026 begins on a Sunday.
	if first := strings.Index(body, `>2026-02</caption>`); !strings.Contains(body[first:first+900], strings.Repeat("<td></td>", 6)+`<td class="sq ok"`) {
		t.Errorf("the first of February is no Sunday:\n%s", body[first:first+900])
	}
}

func TestTheMonthsOfTheCalendarAreInTheAddress(t *testing.T) {
	s := newSite(t)
	s.count()
	for query, want := range map[string]string{
		"":                         "Completeness, 2026-01 to 2026-03<",
		"?months=1":                "Completeness, 2026-03<",
		"?month=2026-02&months=1":  "Completeness, 2026-02<",
		"?month=2025-12&months=12": "Completeness, 2025-01 to 2025-12<",
		"?month=2030-01&months=1":  "Completeness, 2026-03<",
	} {
		if code, body, _ := s.get("/ui/agents" + query); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, no %q", query, code, want)
		}
	}
	_, body, _ := s.get("/ui/agents?month=2026-02&months=1")
	for _, want := range []string{`href="/ui/agents?month=2026-01&amp;months=1#calendar" rel="prev"`, `href="/ui/agents?month=2026-03&amp;months=1#calendar" rel="next"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, query := range []string{"?month=x", "?months=0", "?months=13", "?month=2026-13"} {
		if code, body, _ := s.get("/ui/agents" + query); code != http.StatusBadRequest || !strings.Contains(body, `role="alert"`) {
			t.Errorf("%s: %d", query, code)
		}
	}
}

// counted counts what is asked.
type counted struct {
	*site

	asked map[string]int
}

func (c counted) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	c.asked[path]++
	return c.World.Call(ctx, method, path, query, in, into)
}

func TestTheDaysAreNotComparedEachTimeThePageRenewsItself(t *testing.T) {
	s := newSite(t)
	s.count()
	asked, now := map[string]int{}, s.pages.Now()
	s.pages.V1, s.pages.Now = v1.API{Caller: counted{s, asked}}, func() time.Time { return now }
	some := access.Principal{Name: "pi", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"atlas"}})}
	for i, x := range []struct {
		who        access.Principal
		path       string
		later      time.Duration
		code, want int
	}{
		{access.Daemon(), "/ui/agents", 0, http.StatusOK, 1},
		{access.Daemon(), "/ui/agents", 59 * time.Second, http.StatusOK, 1},
		{access.Principal{Name: "mon", Rights: identity.Monitor}, "/ui/agents", 0, http.StatusOK, 1},
		{some, "/ui/agents", 0, http.StatusForbidden, 1},
		{access.Daemon(), "/ui/agents?months=1", 0, http.StatusOK, 2},
		{access.Daemon(), "/ui/agents", time.Second, http.StatusOK, 3},
	} {
		now = now.Add(x.later)
		code, body := s.as(x.who, x.path)
		if shows := strings.Contains(body, "head1/slurm/nemo"); code != x.code || asked["/v1/completeness"] != x.want || shows != (x.code == http.StatusOK) {
			t.Errorf("%d: %s for %s: %d, asked %d times\n%s", i, x.path, x.who.Name, code, asked["/v1/completeness"], body)
		}
	}
}

// as gets a page with the rights of a principal.
func (s *site) as(p access.Principal, path string) (int, string) {
	s.t.Helper()
	code, body, _ := s.getAs(p, path)
	return code, body
}

func TestPagesAboutAgentsAreForThoseWhoMaySeeThem(t *testing.T) {
	s := newSite(t)
	s.count()
	some := access.Principal{Name: "pi", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"atlas"}})}
	if code, body := s.as(some, "/ui/agents"); code != http.StatusForbidden || strings.Contains(body, "head1") {
		t.Errorf("who sees some of the records: %d\n%s", code, body)
	}
	if code, body := s.as(some, "/ui/conflicts"); code != http.StatusOK || strings.Contains(body, "/ui/quarantine") || strings.Contains(body, `href="/ui/agents">Agents and`) {
		t.Errorf("who sees some of the records: %d\n%s", code, body)
	}
	if code, body := s.as(access.Principal{Name: "mon", Rights: identity.Monitor}, "/ui/agents"); code != http.StatusOK || strings.Contains(body, "/ui/quarantine") || !strings.Contains(body, "head1") {
		t.Errorf("who monitors: %d\n%s", code, body)
	}
	code, body := s.as(access.Daemon(), "/ui/quarantine")
	for _, want := range []string{`href="/ui/agents"`, `href="/ui/quarantine" aria-current="page"`, `href="/ui/conflicts"`, `Quarantine <span class="badge">0</span>`} {
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, no %q in\n%s", code, want, body)
		}
	}
}

func TestPagesAskForTheConfigurationOfThoseWhoMaySeeIt(t *testing.T) {
	s := newSite(t)
	s.Options.Actions = someActions()
	asked := map[string]int{}
	s.pages.V1 = v1.API{Caller: counted{s, asked}}
	for _, path := range []string{"/ui/cluster", "/ui/actions/apel/site"} {
		if code, body := s.as(access.Principal{Name: "mon", Rights: identity.Monitor, Rows: access.AllRows()}, path); code != http.StatusOK {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	if asked["/v1/config"] != 0 {
		t.Errorf("asked %d times in vain", asked["/v1/config"])
	}
	if s.get("/ui/actions/apel/site"); asked["/v1/config"] != 1 {
		t.Errorf("not asked for who may see it: %v", asked)
	}
}
