package web_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/web"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// site is a small cluster with the pages over it.
type site struct {
	*apitest.World

	t     *testing.T
	mux   *http.ServeMux
	pages *web.Pages
}

func newSite(t *testing.T) *site {
	t.Helper()
	return siteOf(t, apitest.New(t))
}

// filled is a site with a little of everything.
func filled(t *testing.T) *site {
	t.Helper()
	return siteOf(t, apitest.Filled(t))
}

func siteOf(t *testing.T, w *apitest.World) *site {
	t.Helper()
	s := &site{World: w, t: t, mux: http.NewServeMux()}
	reader, ok := s.Options.Reader.(access.Reader)
	if !ok {
		t.Fatal("the reader of the interface is another one")
	}
	s.pages = &web.Pages{
		Reader: reader, V1: v1.API{Caller: s}, Node: "agg1", Version: "1.2.3",
		Health: s.Report, Log: slog.New(slog.DiscardHandler), Now: apitest.Noon,
	}
	for pattern, h := range s.pages.Routes() {
		s.mux.Handle(pattern, h)
	}
	return s
}

func (s *site) get(path string) (int, string, http.Header) {
	s.t.Helper()
	return s.getAs(access.Daemon(), path)
}

// getAs gets a page, or an answer of the interface, as someone.
func (s *site) getAs(who access.Principal, path string) (int, string, http.Header) {
	s.t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(access.With(s.t.Context(), who), http.MethodGet, path, nil)
	if strings.HasPrefix(path, "/v1/") {
		o := s.Options
		o.Who = func(*http.Request) access.Principal { return who }
		api.New(o).ServeHTTP(w, r)
	} else {
		s.mux.ServeHTTP(w, r)
	}
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return w.Code, string(body), w.Header()
}

func run(id string, minutes int, user string) record.Record {
	start := time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC)
	return record.Record{
		ID: id, Meta: record.Meta{{Key: "site_id", Values: []string{"here"}}, {Key: "user_id", Values: []string{user}}},
		Components: []record.Component{{Name: "Cores", Amount: 12345, Scores: []record.Score{{Name: "HEPScore23", Value: 11.5}}}},
		Start:      record.FromStd(start), Stop: record.FromStd(start.Add(26 * time.Hour)),
	}
}

func pagePaths() []string {
	return []string{"/", "/ui/records", "/ui/agents", "/ui/quarantine", "/ui/conflicts", "/ui/cluster", "/ui/reports", "/ui/me?user=alice", "/ui/projects", "/ui/centre", "/ui/budgets", "/ui/distributions"}
}

func TestEveryPageOfAnEmptyStoreIsThere(t *testing.T) {
	s := newSite(t)
	for _, path := range pagePaths() {
		if code, body, _ := s.get(path); code != 200 || !strings.Contains(body, "</html>") || strings.Contains(body, `role="alert"`) {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
}

func TestPagesLoadNothingFromElsewhere(t *testing.T) {
	s := newSite(t)
	s.Post(run("r1", 0, "alice"))
	link := regexp.MustCompile(`(?:src|href|action)="([^"]*)"`)
	for _, path := range append(pagePaths(), "/ui/record?id=r1", "/ui/nowhere", "/ui/reports?report=usage&period=2026-01") {
		_, body, head := s.get(path)
		policy := head.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || head.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: policy %q", path, policy)
		}
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			target, _, _ := strings.Cut(html.UnescapeString(m[1]), "#")
			if target == "" {
				continue // on the same page
			}
			if !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
				t.Errorf("%s leads to %s", path, target)
			} else if code, _, _ := s.get(target); code != 200 && !strings.HasPrefix(target, "/ui/reports?report=") { // of which some have nothing to report here
				t.Errorf("%s leads to %s, which answers %d", path, target, code)
			}
		}
		if strings.Contains(body, "<style") || strings.Contains(body, " style=") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(body) || regexp.MustCompile(`\son[a-z]+=`).MatchString(body) {
			t.Errorf("%s has something inline", path)
		}
	}
}

func TestWhatARecordSaysCannotBecomeMarkup(t *testing.T) {
	s := newSite(t)
	const evil = `"><script>alert(1)</script><b onclick='x'>&amp;{{.}}`
	r := run(evil, 0, evil)
	r.Components[0].Name, r.State = evil, evil
	s.Post(r)
	s.Apply(&store.IngestCommand{
		Agent: evil, Epoch: store.Epoch{1}, From: 1, To: 0, Begin: &store.Begin{}, Now: record.FromStd(time.Now()),
	})
	s.Apply(&store.IngestCommand{
		Agent: evil, Epoch: store.Epoch{1}, From: 1, To: 1, After: store.Chain{2}, Now: record.FromStd(time.Now()), Rows: columns.NewBuilder().Bytes(),
		Quarantine: []store.Quarantined{{Source: record.Origin{Agent: evil, Type: evil, Label: evil}, ID: evil, Reason: "input", Message: evil, RecordID: evil, Raw: []byte(evil + "\xff")}},
	})
	s.Options.Agents = apitest.Agents{{Name: evil, Address: evil, Error: evil}}
	paths := append(pagePaths(), "/ui/record?"+url.Values{"id": {evil}}.Encode(), "/ui/record?"+url.Values{"id": {evil + "2"}}.Encode(),
		"/ui/records?"+url.Values{"id": {evil}, "key": {evil}, "value": {evil}, "since": {evil}, "runs": {evil}}.Encode())
	shown := map[string]bool{}
	for _, path := range paths {
		_, body, _ := s.get(path)
		if strings.Contains(body, "<script>") || strings.Contains(body, "<b onclick") {
			t.Errorf("%s:\n%s", path, body)
		}
		shown[path] = strings.Contains(body, "&lt;script&gt;")
	}
	for _, path := range []string{"/", "/ui/records", "/ui/agents", "/ui/quarantine", paths[len(pagePaths())]} {
		if !shown[path] {
			t.Errorf("%s does not show it at all", path)
		}
	}
}

func TestPagesOfRecordsFollowEachOtherWithoutGapOrRepetition(t *testing.T) {
	s := newSite(t)
	var list []record.Record
	for i := range 120 {
		list = append(list, run(fmt.Sprintf("run-%03d", i), i/3, "alice"))
	}
	s.Post(list...)
	id := regexp.MustCompile(`>(run-\d\d\d)<`)
	next := regexp.MustCompile(`href="([^"]*)">Next page`)
	seen := map[string]int{}
	path, pages := "/ui/records?key=user_id&value=alice", 0
	for path != "" && pages < 10 {
		code, body, _ := s.get(path)
		if code != 200 {
			t.Fatal(path, code)
		}
		for _, m := range id.FindAllStringSubmatch(body, -1) {
			seen[m[1]]++
		}
		path = ""
		if m := next.FindStringSubmatch(body); m != nil {
			path = html.UnescapeString(m[1])
		}
		pages++
	}
	if len(seen) != 120 || pages != 3 {
		t.Errorf("%d records on %d pages", len(seen), pages)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", id, n)
		}
	}
}

func TestFiltersFindWhatTheySay(t *testing.T) {
	s := newSite(t)
	open := run("open", 0, "bob")
	open.Stop = record.None
	s.Post(run("early", 0, "alice"), run("late", 600, "bob"), open)
	for query, want := range map[string]string{
		"":                           "early late open",
		"runs=running":               "open",
		"runs=ended":                 "early late",
		"id=late":                    "late",
		"key=user_id&value=bob":      "late open",
		"key=user_id":                "early late open",
		"key=account":                "",
		"since=2026-01-02+10:00":     "late",
		"until=2026-01-02+10:00":     "early",
		"since=2026-01-02":           "early late",
		"until=2026-01-02T02:00Z":    "?",
		"since=yesterday":            "?",
		"value=bob":                  "?",
		"runs=perhaps":               "?",
		"after=bogus":                "?",
		"after=eyJPcmRlciI6OTl9":     "?",
		"until=2026-01-02T02:00:00Z": "",
	} {
		code, body, _ := s.get("/ui/records?" + query)
		var found []string
		for _, id := range []string{"early", "late", "open"} {
			if strings.Contains(body, ">"+id+"</a>") {
				found = append(found, id)
			}
		}
		got := strings.Join(found, " ")
		if code == http.StatusBadRequest && strings.Contains(body, `role="alert"`) {
			got = "?"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

func TestTheOverviewCountsWhatIsThere(t *testing.T) {
	s := newSite(t)
	open := run("open", 0, "bob")
	open.Stop = record.None
	s.Post(run("r1", 0, "alice"), open)
	s.Options.Agents = apitest.Agents{{Name: "h1", Address: "h1:7070", Connected: true, LastContact: time.Date(2026, 3, 1, 11, 59, 30, 0, time.UTC), Behind: 12345}, {Name: "h2", Error: "no route to host"}}
	_, body, _ := s.get("/")
	for _, want := range []string{
		"<b>2</b><span>records</span>", "<b>1</b><span>jobs running</span>", "1<small> of 2</small>", "catching up", "unreachable", "no route to host", "30 s ago", "12\u202f345",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
}

func TestARecordsPageShowsAllOfIt(t *testing.T) {
	s := newSite(t)
	s.Post(run("r/1 ü", 0, "alice"))
	_, body, _ := s.get("/ui/record?" + url.Values{"id": {"r/1 ü"}}.Encode())
	for _, want := range []string{"r/1 ü", "2026-01-01 00:00:00", "2026-01-02 02:00:00", "1-02:00:00", "Cores", "12\u202f345", "rate", "HEPScore23", "11.5", "user_id", "alice", "pushed"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
}

func TestConflictsAreShownWithWhoSaidWhat(t *testing.T) {
	s := newSite(t)
	s.Post(run("r1", 0, "alice"))
	other := run("r1", 90, "alice")
	s.Collect(source(), []record.Record{other}, nil)
	_, body, _ := s.get("/ui/conflicts")
	for _, want := range []string{">r1</a>", "head1/slurm/nemo", "pushed", "2026-01-01 00:00:00", "2026-01-01 01:30:00"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
	if _, body, _ := s.get("/"); !strings.Contains(body, "<b>1</b><span>conflicts</span>") {
		t.Errorf("the overview does not count it:\n%s", body)
	}
	if _, body, _ := s.get("/ui/record?id=r1"); !strings.Contains(body, "Sources disagree") {
		t.Errorf("the record does not say it:\n%s", body)
	}
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	s := newSite(t)
	for path, want := range map[string]string{"/ui/nowhere": "Page not found.", "/ui/static/": "Page not found.", "/ui/record?id=x": "Record &#34;x&#34; not found", "/ui/record": "Record &#34;&#34; not found"} {
		if code, body, _ := s.get(path); code != 404 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestWithoutAPictureOfTheStoreAPageIsAnError(t *testing.T) {
	s := newSite(t)
	s.Down = errors.New("no leader")
	for _, path := range pagePaths() {
		if path == "/ui/cluster" || path == "/ui/reports" {
			continue // they need none
		}
		if code, body, _ := s.get(path); code != 503 || !strings.Contains(body, "no leader") {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// endless answers no question.
type endless struct{ v1.Caller }

func (endless) Call(ctx context.Context, _, _ string, _ url.Values, _, _ any) error {
	<-ctx.Done()
	return fmt.Errorf("no answer: %w", ctx.Err())
}

func TestAPageThatTakesTooLongIsRefusedForNow(t *testing.T) {
	s := newSite(t)
	s.pages.V1 = v1.API{Caller: endless{}}
	synctest.Test(t, func(t *testing.T) {
		s.t = t
		for _, path := range []string{"/ui/projects", "/ui/centre"} {
			code, body, head := s.get(path)
			if code != http.StatusServiceUnavailable || head.Get("Retry-After") == "" || !strings.Contains(body, "not made within 10s") {
				t.Errorf("%s: %d %v %s", path, code, head, body)
			}
		}
	})
}

// late answers each question after a while.
type late struct {
	v1.Caller

	by time.Duration
}

func (l late) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	time.Sleep(l.by)
	return l.Caller.Call(ctx, method, path, query, in, into)
}

func TestAPageThatTakesLongSaysHowLong(t *testing.T) {
	s := newSite(t)
	synctest.Test(t, func(t *testing.T) {
		s.t = t
		for by, want := range map[time.Duration]bool{100 * time.Millisecond: false, 1200 * time.Millisecond: true} {
			s.pages.V1 = v1.API{Caller: late{s, by}}
			if code, body, _ := s.get("/ui/agents"); code != http.StatusOK || regexp.MustCompile(`<span>made in \d\.\d s</span></footer>`).MatchString(body) != want {
				t.Errorf("after %s: %d %s", by, code, body)
			}
		}
	})
}

func TestPagesAskTheInterfaceForTheFiguresOfTheStore(t *testing.T) {
	s := newSite(t)
	s.Post(run("r1", 0, "alice"), run("r2", 0, "bob"))
	a, err := v1.API{Caller: s}.Usage(access.With(t.Context(), access.Daemon()), &v1.UsageQuery{Window: "2026-01", Measure: "Cores"})
	if err != nil || a.Records != 2 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestNoPageStandsWhereAuditorHasARoute(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/record", "/records", "/record/x", "/health_check", "/metrics", "/v1/records"} {
		if _, pattern := s.mux.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)); pattern != "" {
			t.Errorf("%s is answered by %s", path, pattern)
		}
	}
}
