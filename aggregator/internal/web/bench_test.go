package web_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/web"
	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

var benchRecords = flag.Int("records", 100_000, "records of the year of which BenchmarkPages shows the pages")

// callCounter counts what is asked.
type callCounter struct {
	v1.Caller

	calls atomic.Int64
}

func (c *callCounter) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	c.calls.Add(1)
	return c.Caller.Call(ctx, method, path, query, in, into)
}

func (c *callCounter) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	c.calls.Add(1)
	return c.Caller.Stream(ctx, path, query)
}

// benchSettings have a project for every third of 60 groups, with prices and budgets.
func benchSettings() accounting.Settings {
	s := apitest.Settings()
	s.Directory.Projects, s.Money.Budgets = nil, nil
	for i := range s.Money.Lists {
		s.Money.Lists[i].Rules = s.Money.Lists[i].Rules[:1]
	}
	for i := range 20 {
		s.Directory.Projects = append(s.Directory.Projects, accounting.Project{ID: fmt.Sprintf("p%02d", i), From: record.None, To: record.None, States: []accounting.ProjectState{{
			From: record.None, PI: fmt.Sprintf("pi%02d", i/2), Groups: []string{fmt.Sprintf("group%02d", 3*i), fmt.Sprintf("group%02d", 3*i+1)},
		}}})
		s.Money.Budgets = append(s.Money.Budgets, accounting.Budget{
			Name: fmt.Sprintf("budget%02d", i), Scope: []accounting.PriceCondition{{Key: "project", Value: fmt.Sprintf("p%02d", i)}}, Unit: accounting.CoreHours,
			Amount: accounting.Billionths(big.NewInt(1e18)), Every: calendar.Year, From: record.None, To: record.None,
		})
	}
	return s
}

// benchSite is a cluster with records of a year up to now, and its pages.
func benchSite(b *testing.B, n int) (*http.ServeMux, *callCounter) {
	b.Helper()
	w := apitest.New(b)
	fillBench(w, n)
	w.Settings = benchSettings()
	w.Keep()
	done := make(chan struct{})
	w.Usages = sums.NewKeeper(sums.Options{Views: storeViews{w.Store}, Life: func(*store.View) (string, error) { return "", nil }}, slog.New(slog.DiscardHandler), nil)
	w.Usages.Set(sums.Settings{Dimensions: []string{"site_id", "group_id", "user_id"}, Zones: []string{"UTC"}, Classes: w.Accounting.Now().Directory.Classes()})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { defer close(done); _ = w.Usages.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	for way := ""; !strings.HasPrefix(way, "index"); { // until it is made
		a, err := w.Usages.Answer(b.Context(), sums.Query{Edges: []record.Time{apitest.At("2026-02-01"), apitest.At("2026-02-02")}, Now: apitest.At("2026-03-01")})
		if err != nil {
			b.Fatal(err)
		}
		way = a.Way
	}
	reader := access.Reader{Source: w, Usages: w.Usages, Reaches: &access.Reaches{}}
	w.Options.Reader, w.Options.Usage = reader, reader
	common := w.Options.Common()
	w.Options.Common = func() map[record.Origin]record.Meta { return common }
	c := &callCounter{Caller: api.New(w.Options)}
	pages := &web.Pages{Reader: reader, V1: v1.API{Caller: c}, Node: "agg1", Version: "1.2.3", Health: w.Report, Log: slog.New(slog.DiscardHandler), Now: apitest.Noon, Derivation: w.Accounting.Derivation}
	mux := http.NewServeMux()
	for pattern, h := range pages.Routes() {
		mux.Handle(pattern, h)
	}
	return mux, c
}

type storeViews struct{ store *store.Store }

func (v storeViews) View() (*store.View, error) { return v.store.View() }

func fillBench(w *apitest.World, n int) {
	g := benchmark.Generator(1, n, benchmark.Slurm)
	g.Extended = true
	year := apitest.At("2026-03-01T12:00:00Z") - apitest.At("2025-01-01")
	var list []record.Record
	for r := range g.All() {
		r.Start, r.Stop, r.Submit = r.Start+year, r.Stop+year, r.Submit+year
		if r.Stop > apitest.At("2026-03-01T12:00:00Z") {
			continue
		}
		if list = append(list, r); len(list) == 4096 {
			w.Post(list...)
			list = list[:0]
		}
	}
	w.Post(list...)
}

// cpuTime is what this process has taken of processors, which other work beside it does not change.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPages shows each page of a cluster with the records of a year.
func BenchmarkPages(b *testing.B) {
	mux, c := benchSite(b, *benchRecords)
	problem := regexp.MustCompile(`<p class="problem".*`)
	pi := access.Principal{Name: "pi", Person: "pi05", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"group30", "group31"}})}
	user := access.Principal{Name: "user0011", Person: "user0011", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"user0011"}})}
	for _, p := range []struct {
		who  access.Principal
		path string
	}{
		{access.Daemon(), "/ui/overview"},
		{access.Daemon(), "/ui/usage"},
		{access.Daemon(), "/ui/usage?window=7d&by=user_id&measure=GPUs&kind=steps&where[site_id]=nemo"},
		{access.Daemon(), "/ui/usage?window=this-year&by=user_id"},
		{access.Daemon(), "/ui/centre"},
		{access.Daemon(), "/ui/projects"},
		{access.Daemon(), "/ui/projects?of[project]=p03"},
		{access.Daemon(), "/ui/projects?of[pi]=pi03"},
		{pi, "/ui/projects"},
		{access.Daemon(), "/ui/me?user=user0003"},
		{user, "/ui/me"},
		{access.Daemon(), "/ui/widget"},
		{access.Daemon(), "/ui/budgets"},
		{access.Daemon(), "/ui/prices"},
		{access.Daemon(), "/ui/distributions"},
		{access.Daemon(), "/ui/records"},
		{pi, "/ui/records"},
		{user, "/ui/records"},
		{access.Daemon(), "/ui/records?sort=-runtime"},
		{access.Daemon(), "/ui/records?sort=-component.Cores"},
		{access.Daemon(), "/ui/records?from=2026-02-01T00:00:00Z&to=2026-03-01T00:00:00Z&sort=-runtime"},
		{access.Daemon(), "/ui/records?group=group30&runs=running"},
		{access.Daemon(), "/ui/record?id=nemo-slurm-1000100"},
		{access.Daemon(), "/ui/reports"},
		{access.Daemon(), "/ui/reports?report=usage"},
		{access.Daemon(), "/ui/reports?report=summary"},
		{access.Daemon(), "/ui/reports?report=efficiency"},
		{access.Daemon(), "/ui/reports?report=statement&of=group_id%3Dgroup30&period=last-month"},
		{access.Daemon(), "/ui/reports?report=utilization"},
		{access.Daemon(), "/ui/reports?report=job&job=1000100"},
		{access.Daemon(), "/ui/reports?report=subscription"},
		{access.Daemon(), "/ui/agents"},
		{access.Daemon(), "/ui/quarantine"},
		{access.Daemon(), "/ui/conflicts"},
		{access.Daemon(), "/ui/alerts"},
		{access.Daemon(), "/ui/cluster"},
	} {
		name := p.path
		if p.who.Person != "" {
			name += " as " + p.who.Person
		}
		b.Run(name, func(b *testing.B) {
			before, cpu := c.calls.Load(), cpuTime()
			for b.Loop() {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(access.With(b.Context(), p.who), http.MethodGet, p.path, nil)
				mux.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Errorf("%d %s", w.Code, problem.Find(w.Body.Bytes()))
				}
			}
			b.ReportMetric(float64(c.calls.Load()-before)/float64(b.N), "calls/op")
			b.ReportMetric(float64((cpuTime()-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
