package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// used is a run of an hour with cores and GPUs, so many hours before the noon at which
// pages are made.
func used(id, group, user string, hours, cores, gpus int64) record.Record {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	start := noon.Add(-time.Duration(hours) * time.Hour)
	r := record.Record{
		ID: id, Meta: record.Meta{{Key: "group_id", Values: []string{group}}, {Key: "user_id", Values: []string{user}}},
		Components: []record.Component{{Name: "Cores", Amount: cores}}, Start: record.FromStd(start), Stop: record.FromStd(start.Add(time.Hour)),
	}
	if gpus > 0 {
		r.Components = append(r.Components, record.Component{Name: "GPUs", Amount: gpus})
	}
	return r
}

func busySite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.Post(
		used("f", "atlas", "alice", 9*24, 1, 0), // records are known from then on
		used("a", "atlas", "alice", 2, 30, 0), used("b", "cms", "bob", 3, 6, 4),
		used("c", "atlas", "alice", 7*24+1, 24, 0),   // by this time last Sunday
		used("d", "atlas", "alice", 7*24-1, 1000, 0), // after it
		used("e", "x&y", "eve", 50, 2, 12),
	)
	return s
}

func TestTheOverviewComparesTodayWithTheSamePartOfTheDayLastWeek(t *testing.T) {
	s := busySite(t)
	_, page, _ := s.get("/")
	body := html.UnescapeString(page)
	for _, want := range []string{
		`<b title="36">36<small> +50.0` + "\u202f" + `%</small></b><span>core-hours today</span><i>24 by this time last Sunday</i>`,
		`<b title="4">4</b><span>GPU-hours today</span><i>none by this time last Sunday</i>`,
		"<b>–</b><span>utilization</span><i>No capacity configured or reported", "queue length unavailable", "<b>6</b><span>records</span>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
}

// What no record is known of, or not of all of the time, is not zero.
func TestTheOverviewSaysWhatIsUnknownOfLastWeek(t *testing.T) {
	for name, want := range map[string]string{
		"none of today":           `<b>–</b><span>core-hours today</span><i>unknown by this time last Sunday</i>`,
		"since today":             `<b title="36">36</b><span>core-hours today</span><i>unknown by this time last Sunday</i>`,
		"since 11:00 last Sunday": `<b title="36">36</b><span>core-hours today</span><i>unknown by this time last Sunday</i>`,
		"a day longer":            `<b title="36">36</b><span>core-hours today</span><i>none by this time last Sunday</i>`,
	} {
		s := newSite(t)
		if name != "none of today" {
			s.Post(used("a", "atlas", "alice", 2, 36, 0))
		}
		switch name {
		case "since 11:00 last Sunday":
			s.Post(used("b", "atlas", "alice", 7*24+1, 24, 0))
		case "a day longer":
			s.Post(used("b", "atlas", "alice", 8*24+1, 24, 0))
		}
		if _, page, _ := s.get("/"); !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("%s: %q is missing in\n%s", name, want, page)
		}
	}
}

func TestTheOverviewLeadsToWhoUsedMostOfWhat(t *testing.T) {
	s := busySite(t)
	_, body, _ := s.get("/")
	if !strings.Contains(body, "Who used most: core-hours of groups, last 7 days") {
		t.Error(body)
	}
	m := regexp.MustCompile(`<a href="([^"]*)"[^>]*>GPU-hours</a>`).FindStringSubmatch(body)
	if m == nil {
		t.Fatal("no link to the GPU-hours")
	}
	code, body, _ := s.get(strings.TrimSuffix(html.UnescapeString(m[1]), "#top"))
	order := regexp.MustCompile(`(?s)x&amp;y</a>.*title="12">12<.*75\.0.*cms</a>.*title="4">4<.*25\.0`)
	if code != 200 || !strings.Contains(body, "GPU-hours of groups, last 7 days") || !order.MatchString(body) || strings.Contains(body, "atlas</a></td><td class=\"wide\">") {
		t.Errorf("%d\n%s", code, body)
	}
	for _, want := range []string{
		"/ui/usage?" + url.Values{"window": {"7d"}, "measure": {"GPUs"}, "where[group_id]": {"x&y"}}.Encode(),
		"/ui/reports?" + url.Values{"report": {"usage"}, "period": {"7d"}, "by": {"group_id"}, "measure": {"GPUs"}, "order": {"GPUs"}}.Encode(),
	} {
		if !strings.Contains(html.UnescapeString(body), `href="`+want+`"`) {
			t.Errorf("no link to %s", want)
		}
		if code, _, _ := s.get(want); code != 200 {
			t.Errorf("%s answers %d", want, code)
		}
	}
}

func TestTheOverviewHasThoseWhoUsedMostOfWhatItShows(t *testing.T) {
	s := newSite(t)
	for i := range int64(12) {
		r := used(fmt.Sprint("r", i), fmt.Sprint("group-", i), "alice", 2, 100+i, 0)
		r.Components = append(r.Components, record.Component{Name: "Accelerators", Amount: 100 - i})
		s.Post(r)
	}
	_, body, _ := s.get("/")
	if !regexp.MustCompile(`(?s)core-hours of groups.*group-11</a>.*title="111">.*group-10</a>.*\(4 others\)</a>`).MatchString(body) || strings.Contains(body, "group-0</a></td><td class=\"wide\">") {
		t.Errorf("the groups are not those with most core-hours:\n%s", body)
	}
}

func TestWithoutCoresTheOverviewShowsAnotherComponent(t *testing.T) {
	s := newSite(t)
	r := used("a", "atlas", "alice", 2, 0, 7)
	r.Components = r.Components[1:]
	s.Post(r)
	if _, body, _ := s.get("/"); !regexp.MustCompile(`(?s)Who used most: GPU-hours of groups.*atlas</a>.*title="7">`).MatchString(body) {
		t.Error(body)
	}
}

// canned answers everything about usage with the same.
type canned struct {
	*site

	answer v1.Usage
}

func (c canned) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	if path == "/v1/usage" {
		text, err := json.Marshal(c.answer)
		return errors.Join(err, json.Unmarshal(text, into))
	}
	return c.World.Call(ctx, method, path, query, in, into)
}

func TestTheOverviewShowsOthersWhenOnlyTheyUsedSomething(t *testing.T) {
	s := newSite(t)
	name, zero, five := "a", json.Number("0"), json.Number("5")
	onlyOthers := v1.Usage{
		UsageAbout: v1.UsageAbout{Records: 3}, Groups: []v1.UsageGroup{{Values: []*string{&name}}, {Values: []*string{nil}, Others: 2}},
		Measures: []v1.Measure{{Name: "Cores", Kind: "rate", Totals: v1.Figures{&zero, &five}, Total: &five}},
	}
	s.pages.V1 = v1.API{Caller: canned{s, onlyOthers}}
	if code, body, _ := s.get("/"); code != http.StatusOK || !strings.Contains(body, "(2 others)</a>") {
		t.Errorf("%d\n%s", code, body)
	}
}

func TestOfNothingTheOverviewSaysSo(t *testing.T) {
	s := busySite(t)
	for query, want := range map[string]string{
		"?in=last-month&of=GPUs": "GPU-hours of groups, last month", "?of=GPU": `class="problem small"`, "?in=lately": `class="problem small">Invalid window &#34;lately&#34;`, "?by=nobody": `class="problem small"`,
	} {
		code, body, _ := s.get("/" + query)
		if code != 200 || !strings.Contains(body, want) || !strings.Contains(body, "core-hours today") || !strings.Contains(body, "Last changed records") {
			t.Errorf("%s: %d\n%s", query, code, body)
		}
	}
}

// broken answers everything but what it is broken for.
type broken struct {
	*site

	path string
}

func (b broken) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	if strings.HasPrefix(path, b.path) {
		return errors.New("<broken>")
	}
	return b.World.Call(ctx, method, path, query, in, into)
}

func TestAPartOfTheOverviewThatFailsSaysSoInItsPlace(t *testing.T) {
	s := busySite(t)
	for path, rest := range map[string][]string{
		"/v1/usage":    {"jobs running", "<b>6</b><span>records</span>", "in quarantine", ">a</a>"},
		"/v1/capacity": {"core-hours today", "atlas</a>", "in quarantine", ">a</a>"},
	} {
		s.pages.V1 = v1.API{Caller: broken{s, path}}
		code, body, _ := s.get("/")
		for _, want := range append(rest, "&lt;broken&gt;") {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is missing in\n%s", path, want, body)
			}
		}
		if code != 200 || strings.Contains(body, `role="alert"`) {
			t.Errorf("%s: %d", path, code)
		}
	}
}

func TestTheOverviewHasTheRowsOfItsReader(t *testing.T) {
	s := busySite(t)
	own := access.Principal{Name: "cms", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"cms"}})}
	code, body, _ := s.getAs(own, "/ui/overview")
	if code != 200 || strings.Contains(body, "atlas") || strings.Contains(body, "alice") || strings.Contains(body, "in quarantine") {
		t.Errorf("%d\n%s", code, body)
	}
	for _, want := range []string{`<b title="6">6</b><span>core-hours today</span>`, "records of yours, last 7 days", "cms</a>", "100\u202f%", "You can see part of the records."} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in\n%s", want, body)
		}
	}
}

func TestTheOverviewSaysNothingOfAgentsThatItCannotKnow(t *testing.T) {
	s := busySite(t)
	s.pages.V1 = v1.API{Caller: broken{s, "/v1/agents"}}
	code, body, _ := s.get("/")
	if code != http.StatusOK || !strings.Contains(body, "&lt;broken&gt;") || !strings.Contains(body, "in quarantine") {
		t.Errorf("%d\n%s", code, body)
	}
	for _, unsaid := range []string{"agents answer", "complete to", "No agent is configured"} {
		if strings.Contains(body, unsaid) {
			t.Errorf("it says %q\n%s", unsaid, body)
		}
	}
}

func TestTheOverviewCountsTheAgentsThatArePulledOnly(t *testing.T) {
	s := newSite(t)
	s.count() // of head1, which no node pulls from any more
	s.Options.Agents = apitest.Agents{{Name: "head2", Connected: true}}
	if _, body, _ := s.get("/"); !strings.Contains(body, "<b>1<small> of 1</small></b><span>agents answer</span>") || !strings.Contains(body, "<b>–</b><span>complete to</span>") || !strings.Contains(body, "not configured") {
		t.Error(body)
	}
}
