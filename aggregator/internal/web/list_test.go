package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// odd are values that a list has to escape, and values that look as if it had.
func odd(n int) []string {
	list := []string{"oak", "elm", "oak,elm", `oak\,elm`, `oak\`, `\,`, ",", `DOMAIN\user`, `a=b,c=d`, `"quoted", twice`, "x,"}
	some := rapid.StringOfN(rapid.SampledFrom([]rune{',', '\\', '=', '"', '&', '[', ']', 'a', 'b', 'é'}), 1, 8, -1)
	for seed := 0; len(list) < n; seed++ {
		if v := some.Example(seed); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

func TestLists_LinksOfValues_LeadToThatValueAlone(t *testing.T) {
	s := newSite(t)
	values := odd(40)
	for i, v := range values {
		s.Post(job(fmt.Sprintf("r%03d", i), "2026-02-26", v, v, int64(i+1)))
	}
	into := func(body, name string) string {
		m := regexp.MustCompile(`class="into" href="([^"]*)">` + regexp.QuoteMeta(html.EscapeString(name)) + `</a>`).FindStringSubmatch(body)
		if m == nil {
			return ""
		}
		return html.UnescapeString(m[1])
	}
	_, body, _ := s.get("/ui/usage?window=2026-02&by=group_id&top=100")
	for i, name := range values {
		path := into(body, name)
		code, below, _ := s.get(path)
		rows := cells(below, "usage")
		if path == "" || code != http.StatusOK || len(rows) != 1 || rows[0][0] != name || strings.TrimSuffix(rows[0][1], ".000000") != fmt.Sprint(i+1) {
			t.Errorf("the group %q leads to %s: %d %v, want %d", name, path, code, rows, i+1)
			continue
		}
		if trail := regexp.MustCompile(`(?s)<nav id="trail".*?</nav>`).FindString(below); !strings.Contains(trail, html.EscapeString(name)) {
			t.Errorf("the way into %q is %s", name, trail)
		}
		records := into(below, name)
		_, below, _ = s.get(records)
		if !strings.HasPrefix(records, "/ui/records?") || !strings.Contains(below, fmt.Sprintf(">r%03d</a>", i)) || strings.Count(below, "/ui/record?id=") != 1 {
			t.Errorf("the user %q leads to %s, which has %d records", name, records, strings.Count(below, "/ui/record?id="))
		}
		_, below, _ = s.get(fmt.Sprintf("/ui/record?id=r%03d", i))
		for _, link := range regexp.MustCompile(`href="(/ui/records\?(?:group|user)=[^"]*)"`).FindAllStringSubmatch(below, -1) {
			if _, list, _ := s.get(html.UnescapeString(link[1])); strings.Count(list, "/ui/record?id=") != 1 {
				t.Errorf("the record of %q leads to %s, which has %d records", name, link[1], strings.Count(list, "/ui/record?id="))
			}
		}
	}
}

func TestUsagePage_NoRecordHasAGroupOrAUser_EachLineLeadsToAPage(t *testing.T) {
	s := newSite(t)
	for i, v := range []string{"oak", "elm"} {
		r := job(fmt.Sprintf("r%d", i), "2026-02-26", v, "alice", int64(i+1))
		r.Meta = record.Meta{{Key: "queue", Values: []string{v}}, {Key: "site_id", Values: []string{"hall"}}}
		s.Post(r)
	}
	link := regexp.MustCompile(`class="into" href="([^"]*)"`)
	for _, by := range []string{"queue", "site_id", "queue,site_id"} {
		code, body, _ := s.get("/ui/usage?window=2026-02&by=" + by)
		links := link.FindAllStringSubmatch(body, -1)
		if code != http.StatusOK || len(links) == 0 {
			t.Errorf("by %s: %d, %d links", by, code, len(links))
		}
		for _, m := range links {
			if code, _, _ := s.get(html.UnescapeString(m[1])); code != http.StatusOK {
				t.Errorf("by %s: %s is answered with %d", by, m[1], code)
			}
		}
	}
}

func TestUsagePage_ByAKeyWithAComma_LeadsToItsValues(t *testing.T) {
	s := newSite(t)
	const key = `a,rack\` // the first one, so that the page chooses it beside the group
	for i, v := range []string{"oak", "elm,oak"} {
		r := job(fmt.Sprintf("r%d", i), "2026-02-26", v, "alice", int64(i+1))
		r.Meta = record.Meta{{Key: key, Values: []string{v}}, {Key: "group_id", Values: []string{"atlas"}}, {Key: "user_id", Values: []string{"alice"}}}
		s.Post(r)
	}
	option := func(body string) string {
		m := regexp.MustCompile(`<option value="([^"]*)" selected>` + regexp.QuoteMeta(html.EscapeString(key)) + `</option>`).FindStringSubmatch(body)
		if m == nil {
			return ""
		}
		return html.UnescapeString(m[1])
	}
	_, body, _ := s.get("/ui/usage?window=2026-02&where[group_id]=atlas&where[user_id]=alice")
	by := option(body)
	if want := v1.JoinList(key); by != want {
		t.Fatalf("the form offers %q, want %q", by, want)
	}
	code, body, _ := s.get("/ui/usage?window=2026-02&by=" + url.QueryEscape(by))
	if option(body) != by || len(cells(body, "usage")) != 2 || !strings.Contains(body, "by "+key) {
		t.Errorf("%d, chosen %q, %v", code, option(body), cells(body, "usage"))
	}
	for i, v := range []string{"oak", "elm,oak"} {
		m := regexp.MustCompile(`class="into" href="([^"]*)">` + v + `</a>`).FindStringSubmatch(body)
		if m == nil {
			t.Errorf("no link into %q", v)
			continue
		}
		code, below, _ := s.get(html.UnescapeString(m[1]))
		if rows := cells(below, "usage"); code != http.StatusOK || len(rows) != 1 || strings.TrimSuffix(rows[0][1], ".000000") != fmt.Sprint(i+1) {
			t.Errorf("%q leads to %s: %d %v", v, m[1], code, rows)
		}
	}
	_, body, _ = s.get("/ui/usage?" + url.Values{"window": {"2026-02"}, "where[" + key + "]": {"ash"}}.Encode())
	if !strings.Contains(body, "No record has the "+html.EscapeString(key)) {
		t.Error("a value that no record has is not named")
	}
	_, body, _ = s.get("/ui/overview?" + url.Values{"in": {"2026-02"}, "by": {by}}.Encode())
	want := url.Values{"where[" + key + "]": {"oak"}}.Encode()
	if !strings.Contains(body, want) {
		t.Errorf("the overview has no link with %s", want)
	}
}

func TestUsagePage_ByTwoKeys_LeadsToTheValuesOfBoth(t *testing.T) {
	s := newSite(t)
	s.Post(job("r1", "2026-02-26", "atlas", "alice", 1), job("r2", "2026-02-26", "atlas", "bob", 2), job("r3", "2026-02-26", "cms", "bob", 4))
	_, body, _ := s.get("/ui/usage?window=2026-02&by=user_id,group_id")
	m := regexp.MustCompile(`class="into" href="([^"]*)">bob / atlas</a>`).FindStringSubmatch(body)
	if m == nil || !strings.Contains(body, "by user and group") {
		t.Fatal(cells(body, "usage"))
	}
	u, err := url.Parse(html.UnescapeString(m[1]))
	if err != nil || u.Query().Get("user") != "bob" || u.Query().Get("group") != "atlas" {
		t.Error(m[1], err)
	}
}

func TestLists_LinksOfReportsAndTheOverview_LeadToThatValueAlone(t *testing.T) {
	s := newSite(t)
	values := odd(25)
	for i, v := range values {
		s.Post(used(fmt.Sprintf("r%03d", i), v, v, 2, int64(i+1), 0))
	}
	for _, path := range []string{"/ui/reports?report=usage&period=30d&by=group_id&top=100", "/ui/overview"} {
		_, body, _ := s.get(path)
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`href="(/ui/usage\?[^"]*where[^"]*)"`).FindAllStringSubmatch(body, -1) {
			address := html.UnescapeString(m[1])
			u, err := url.Parse(address)
			if err != nil || seen[address] {
				continue
			}
			seen[address] = true
			_, below, _ := s.get(address + "&by=user_id")
			if rows := cells(below, "usage"); len(rows) != 1 || !slices.Contains(values, rows[0][0]) {
				t.Errorf("%s leads to %s: %v", path, u.Query(), rows)
			}
		}
		if len(seen) < 8 {
			t.Errorf("%s has %d links to groups", path, len(seen))
		}
	}
}

func TestUsage_RunsWhoseGroupChanges_CountOnceInTotals(t *testing.T) {
	s := newSite(t)
	s.Post(job("a1", "2026-02-25", "atlas", "alice", 40), job("a2", "2026-02-26", "atlas", "bob", 10))
	noon := record.FromStd(time.Date(2026, 2, 25, 0, 30, 0, 0, time.UTC))
	s.Options.Derivation = func() *usage.Derivation {
		return &usage.Derivation{Keys: []usage.Key{{Name: "project", From: []string{"group_id"}, Cuts: []record.Time{noon}, Of: func(_ []string, _ []bool, at record.Time) (string, bool) {
			return map[bool]string{true: "old", false: "new"}[at < noon], true
		}}}}
	}
	s.pages.Derivation = s.Options.Derivation
	_, body, _ := s.get("/ui/usage?window=2026-02&by=project&measure=records&step=day")
	row := regexp.MustCompile(`data-name="2026-02-25".*?class="num sum">([^<]*)<`).FindStringSubmatch(body)
	if row == nil || row[1] != "1" {
		t.Errorf("of the day of the change %q, want 1 in all", row)
	}
}
