package web_test

import (
	"encoding/csv"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// job is a record of an hour for each core.
func job(id, day, group, user string, cores int64, gpus ...int64) record.Record {
	start, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	r := record.Record{
		ID: id, Meta: record.Meta{{Key: "group_id", Values: []string{group}}, {Key: "site_id", Values: []string{"here"}}, {Key: "user_id", Values: []string{user}}},
		Components: []record.Component{{Name: "Cores", Amount: cores}}, Start: record.FromStd(start), Stop: record.FromStd(start.Add(time.Hour)),
	}
	for _, n := range gpus {
		r.Components = append(r.Components, record.Component{Name: "GPUs", Amount: n})
	}
	return r
}

// february is what some groups did.
func february(s *site) {
	s.Post(job("a1", "2026-02-25", "atlas", "alice", 40, 3), job("a2", "2026-02-26", "atlas", "bob", 10), job("c1", "2026-02-26", "cms", "carol", 20, 5), job("n1", "2026-02-10", "neuro", "dora", 7))
}

// seenBy gets a page of someone.
func (s *site) seenBy(p access.Principal, path string) string {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequestWithContext(access.With(s.t.Context(), p), http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		s.t.Errorf("%s: %d", path, w.Code)
	}
	return w.Body.String()
}

// linkOf is the address of the link with an id.
func linkOf(body, id string) string {
	m := regexp.MustCompile(`id="` + id + `" href="([^"]*)"`).FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// cells are the names and exact figures of a table's lines.
func cells(body, id string) (rows [][]string) {
	_, table, _ := strings.Cut(body, `<table id="`+id+`"`)
	_, table, _ = strings.Cut(table, "<tbody>")
	table, _, _ = strings.Cut(table, "</tbody>")
	name := regexp.MustCompile(`(?s)<th scope="row"[^>]*>(.*?)</th>`)
	value := regexp.MustCompile(`data-value="([^"]*)"`)
	for row := range strings.SplitSeq(table, "</tr>") {
		m := name.FindStringSubmatch(row)
		if m == nil {
			continue
		}
		text := strings.TrimSpace(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], "")))
		line := []string{text}
		for _, v := range value.FindAllStringSubmatch(row, -1) {
			line = append(line, v[1])
		}
		rows = append(rows, line)
	}
	return rows
}

func (s *site) ask(address string) (f v1.Usage) {
	s.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.API().Caller.Call(s.t.Context(), http.MethodGet, u.Path, u.Query(), nil, &f); err != nil {
		s.t.Fatal(address, err)
	}
	return f
}

// said is a text or number of an answer, "" for null.
func said[T ~string](v *T) string {
	if v == nil {
		return ""
	}
	return string(*v)
}

func TestTheTablesOfUsageAreWhatTheInterfaceSays(t *testing.T) {
	s := newSite(t)
	february(s)
	for _, query := range []string{
		"", "window=2026-02", "window=2026-02&by=user_id&measure=GPUs", "window=2026-02&by=site_id&step=week&kind=bars", "window=2026-02&measure=jobs&top=1", "window=2026-02&measure=started",
		"from=2026-02-25&to=2026-02-27&zone=Europe/Berlin", "window=2026-02&where[group_id]=atlas&by=user_id", "window=2026&measure=wait", "window=2026-02&measure=running",
	} {
		code, body, _ := s.get("/ui/usage?" + query)
		if code != http.StatusOK {
			t.Fatal(query, code, body)
		}
		f := s.ask(linkOf(body, "json"))
		var rows, steps [][]string
		n := max(1, len(f.Labels))
		for g, group := range f.Groups {
			var values []string
			for _, v := range group.Values {
				values = append(values, said(v))
			}
			name := strings.Join(values, "/")
			if group.Others > 0 {
				name = view.Others(group.Others)
			}
			row := []string{name}
			for _, m := range f.Measures {
				row = append(row, said(m.Totals[g]))
			}
			if f.Measures[0].Name == "jobs" && len(f.Measures) > 1 {
				row[1], row[2] = row[2], row[1]
			}
			rows = append(rows, row)
		}
		m := f.Measures[len(f.Measures)-1]
		for b := range n {
			row := []string{}
			for g := range f.Groups {
				row = append(row, said(m.Values[g*n+b]))
			}
			steps = append(steps, row)
		}
		if d := cmp.Diff(rows, cells(body, "usage")); d != "" || len(rows) == 0 {
			t.Errorf("%s: the groups: %s", query, d)
		}
		shown := cells(body, "steps")
		for i := range shown {
			shown[i] = shown[i][1:]
		}
		if d := cmp.Diff(steps, shown); d != "" {
			t.Errorf("%s: the steps: %s", query, d)
		}
		if !strings.Contains(body, `data-value="`+said(m.Total)+`"`) {
			t.Errorf("%s: no total of %s", query, said(m.Total))
		}
	}
}

func TestTheCSVOfUsageIsThatOfTheTable(t *testing.T) {
	s := newSite(t)
	february(s)
	_, body, _ := s.get("/ui/usage?window=2026-02&step=month")
	w := httptest.NewRecorder()
	o := s.Options
	o.Who = func(*http.Request) access.Principal { return access.Daemon() }
	api.New(o).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, linkOf(body, "csv"), nil))
	table, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || w.Code != http.StatusOK {
		t.Fatal(w.Code, err)
	}
	if d := cmp.Diff([][]string{
		{"group_id", "bucket", "from", "to", "jobs", "Cores [hour]"},
		{"atlas", "2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "2", "50"},
		{"cms", "2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "1", "20"},
		{"neuro", "2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "1", "7"},
	}, table); d != "" {
		t.Error(d)
	}
}

func TestOneLooksFromASiteIntoAGroupAUserAndHisRecords(t *testing.T) {
	s := newSite(t)
	february(s)
	path := "/ui/usage?window=2026-02&by=site_id"
	for _, name := range []string{"here", "atlas", "alice"} {
		code, body, _ := s.get(path)
		m := regexp.MustCompile(`class="into" href="([^"]*)">` + name + `</a>`).FindStringSubmatch(body)
		if code != http.StatusOK || m == nil {
			t.Fatalf("%s: %d, no link into %s in\n%s", path, code, name, body)
		}
		path = html.UnescapeString(m[1])
	}
	if u, err := url.Parse(path); err != nil || u.Path != "/ui/records" || u.Query().Get("user") != "alice" || u.Query().Get("group") != "atlas" || u.Query().Get("site") != "here" || !strings.HasPrefix(u.Query().Get("ran_since"), "2026-02-01") {
		t.Errorf("alice leads to %s", path)
	}
	if _, body, _ := s.get(path); !strings.Contains(body, ">a1</a>") || strings.Contains(body, ">a2</a>") {
		t.Errorf("%s is not the records of alice", path)
	}
	_, body, _ := s.get("/ui/usage?window=2026-02&by=user_id&where[site_id]=here&where[group_id]=atlas")
	trail := regexp.MustCompile(`(?s)<nav id="trail".*?</nav>`).FindString(body)
	var ways []string
	for _, m := range regexp.MustCompile(`<li><a href="([^"]*)"`).FindAllStringSubmatch(trail, -1) {
		q, err := url.Parse(html.UnescapeString(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		ways = append(ways, q.Query().Get("by"))
	}
	if d := cmp.Diff([]string{"site_id", "group_id", "user_id"}, ways); d != "" {
		t.Error("the way back", d)
	}
}

func TestUsageOfNothingSaysWhatThereIs(t *testing.T) {
	s := newSite(t)
	if _, body, _ := s.get("/ui/usage"); !strings.Contains(body, "There are no records yet.") {
		t.Error("of an empty store:", body)
	}
	february(s)
	for query, want := range map[string][]string{
		"window=2025":                                        {"Nothing ran from 2025-01-01 00:00 to 2026-01-01 00:00.", "begin on 2026-02-10 and end on 2026-02-26", "from=2026-02-10&amp;to=2026-02-27"},
		"window=2026-02&where[group_id]=atlsa":               {"No record has the group &#34;atlsa&#34;.", "Did you mean", "where%5Bgroup_id%5D=atlas"},
		"window=2026-02&where[group_id]=x":                   {"There are:", ">cms</a>"},
		"window=2026-02&measure=Tapes":                       {"No record here has Tapes.", "measure=GPUs"},
		"window=2026-02&where[user_id]=bob&measure=GPUs":     {"No record here has GPUs.", "measure=Cores"},
		"window=2025&where[group_id]=neuro":                  {"begin on 2026-02-10 and end on 2026-02-10"},
		"window=2026&where[group_id]=cms&where[user_id]=bob": {"No record has the user &#34;bob&#34;"},
	} {
		code, body, _ := s.get("/ui/usage?" + query)
		for _, text := range want {
			if code != http.StatusOK || !strings.Contains(body, text) {
				t.Errorf("%s: %d, no %q in\n%s", query, code, text, body)
			}
		}
		if strings.Contains(body, `id="usage"`) {
			t.Errorf("%s: a table of nothing", query)
		}
	}
}

func TestWithoutAPeriodUsageShowsTheNewestDaysWithRecords(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		s := newSite(t)
		s.Options.Zone = func() *time.Location { return zone }
		s.pages.Zone = s.Options.Zone
		old := job("old", "2025-06-10", "atlas", "alice", 5)
		s.Post(old, job("older", "2024-06-10", "atlas", "alice", 5))
		end := old.Stop.Std().In(zone).AddDate(0, 0, 1).Format(time.DateOnly) + " 00:00 " + name
		code, body, _ := s.get("/ui/usage")
		if code != http.StatusOK || !strings.Contains(body, "newest days with records") || !strings.Contains(body, end) {
			t.Errorf("%s: %d, no %s\n%s", name, code, end, body)
		}
		if d := cmp.Diff([][]string{{"atlas", "5", "1"}}, cells(body, "usage")); d != "" {
			t.Error(name, d)
		}
	}
}

func TestQuestionsForUsageThatMakeNoSenseSayWhatDoes(t *testing.T) {
	s := newSite(t)
	february(s)
	for query, want := range map[string]string{
		"window=2026-13": "there is no month 13", "kind=pie": "steps or bars", "top=0": "from 1 to 100", "top=x": "from 1 to 100", "window=2026-02&by=colour": "the keys are group_id",
		"window=2026-02&step=decade": "quarter or year", "window=2026&zone=Nowhere": "Europe/Berlin", "window=2026&step=hour": "choose a longer step", "from=2026-02-02&to=2026-02-01": "after the begin",
	} {
		code, body, _ := s.get("/ui/usage?" + query)
		if code != http.StatusBadRequest || !strings.Contains(body, want) || !strings.Contains(body, `id="explore"`) {
			t.Errorf("%s: %d, no %q in\n%s", query, code, want, body)
		}
	}
}

func TestAFormOfUsageLeadsToAShortAddress(t *testing.T) {
	s := newSite(t)
	code, _, head := s.get("/ui/usage?window=7d&from=2026-01-01T00:00&to=&by=user_id&measure=&step=&zone=&where[project]=")
	if want := "/ui/usage?by=user_id&where%5Bproject%5D=&window=7d"; code != http.StatusSeeOther || head.Get("Location") != want {
		t.Errorf("%d to %s, want %s", code, head.Get("Location"), want)
	}
}

func TestWhoSeesSomeRecordsSeesTheirUsageOnly(t *testing.T) {
	s := newSite(t)
	february(s)
	alice := access.Principal{Name: "alice", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"alice"}})}
	body := s.seenBy(alice, "/ui/usage?window=2026-02&by=user_id")
	if d := cmp.Diff([][]string{{"alice", "40", "1"}}, cells(body, "usage")); d != "" {
		t.Error(d)
	}
	for _, path := range []string{"/ui/usage?window=2026-02&where[user_id]=boob", "/ui/usage?window=2025", "/ui/usage?window=2026-02"} {
		if body := s.seenBy(alice, path); strings.Contains(body, "bob<") || strings.Contains(body, "cms") || strings.Contains(body, "on 2026-02-10") {
			t.Errorf("%s tells of others:\n%s", path, body)
		}
	}
}

func TestNamesInUsageCannotBecomeMarkup(t *testing.T) {
	s := newSite(t)
	const evil = `"><script>alert(1)</script><b onclick='x'>&amp;{{.}},`
	r := job("e", "2026-02-25", evil, evil, 5)
	r.Components[0].Name = "Cores" + evil
	s.Post(r)
	for _, q := range []url.Values{
		{"window": {"2026-02"}}, {"window": {"2026-02"}, "where[group_id]": {evil}}, {"window": {evil}}, {"zone": {evil}}, {"by": {evil}}, {"window": {"2026-02"}, "where[" + evil + "]": {evil}},
		{"window": {"2026-02"}, "measure": {"Cores" + evil}}, {"step": {evil}}, {"kind": {evil}}, {"top": {evil}}, {"from": {"2026-02-01"}, "to": {evil}},
	} {
		_, body, _ := s.get("/ui/usage?" + q.Encode())
		if strings.Contains(body, "<script>") || strings.Contains(body, "<b onclick") || regexp.MustCompile(`(?:href|action)="javascript`).MatchString(body) {
			t.Errorf("%v:\n%s", q, body)
		}
	}
}

func TestWhatHasNoPriceIsSaidBesideTheCost(t *testing.T) {
	s := newSite(t)
	cost := usage.Weight{Name: "cost", Unit: "EUR", Components: []string{"Cores"}, From: []string{"group_id"}, Of: func(_ string, _ record.Kind, v []string, _ []bool, _ record.Time) (int64, bool) {
		return 10_000_000, v[0] != "cms"
	}}
	s.Options.Derivation = func() *usage.Derivation { return &usage.Derivation{Weights: []usage.Weight{cost}} }
	s.pages.Derivation = s.Options.Derivation
	february(s)
	if code, body, _ := s.get("/ui/usage?window=2026-02&measure=cost&by=group_id"); code != http.StatusOK || !strings.Contains(body, "20 core-hours have no price at their time and are not in cost.") {
		t.Errorf("%d\n%s", code, body)
	}
}

func TestTheRecordsBehindAFigureAreThoseThatRanInTheWindow(t *testing.T) {
	s := newSite(t)
	february(s)
	open, late := job("open", "2026-02-20", "atlas", "zoe", 1), job("late", "2026-02-20", "atlas", "zoe", 1)
	open.Stop, late.Stop = record.None, record.FromStd(s.pages.Now().AddDate(0, 1, 0))
	s.Post(open, late, job("before", "2026-01-20", "atlas", "zoe", 1), job("after", "2026-03-01", "atlas", "zoe", 1))
	_, body, _ := s.get("/ui/usage?window=2026-02&by=user_id&where[group_id]=atlas")
	m := regexp.MustCompile(`href="(/ui/records\?[^"]*user=zoe[^"]*)"`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no link to the records of zoe in\n%s", body)
	}
	_, body, _ = s.get(html.UnescapeString(m[1]))
	if got := strings.Join(shown(body), " "); got != "open late" {
		t.Errorf("%s has %q", m[1], got)
	}
}
