package web_test

import (
	"html"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// deadEnds are tables with figures from which no link leads on, with the reason.
func deadEnds() map[string]string {
	return map[string]string{
		"/ui/budgets t-burndown":          "a point of the chart of a budget, whose used amount leads to its sum in the first table",
		"/ui/projects t-burndown":         "as on the page of budgets, to which the name of the budget leads",
		"/ui/record?id=nemo-2 components": "what the record says: the page names the command that shows the raw job",
		"/ui/record?id=nemo-2 history":    "numbers of changes",
		"/ sources-title":                 "what agents report of themselves, which the page Agents has, to which the figures above the table lead",
		"/ui/agents agents-table":         "what agents report of themselves now",
		"/ui/agents ingest-table":         "counts of what became of all that was received, not a sum of records that can be listed",
		"/ui/agents stretches-table":      "days of the same state: each day is below",
		"/ui/agents days-table":           "counts of the scheduler beside those of the store, with the command that collects what is missing",
	}
}

// wayPages are the pages whose figures lead on.
func wayPages() []string {
	const period = "period=2026-02"
	return []string{
		"/", "/ui/usage?window=2026-02", "/ui/me?user=bob&" + period, "/ui/projects?" + period, "/ui/centre?" + period, "/ui/budgets", "/ui/prices",
		"/ui/distributions?" + period, "/ui/record?id=nemo-2", "/ui/agents",
	}
}

func TestPages_EachFigure_LeadsOnOrIsListedWithAReason(t *testing.T) {
	s := filled(t)
	section := regexp.MustCompile(`(?s)<h[23] id="(t-[^"]+)"|<table id="([^"]+)"|<section (?:aria-labelled-?by|id)="([^"]+)"|<table class="stack" id="([^"]+)"|<table|<tr[ >].*?</tr>|<(?:div|a) class="tile.*?</(?:div|a)>|</section>`)
	figure := regexp.MustCompile(`<td[^>]*class="[^"]*num[^"]*"[^>]*>[^<]*[0-9]`)
	ends := map[string]bool{}
	for _, path := range wayPages() {
		code, body, _ := s.get(path)
		if code != http.StatusOK {
			t.Fatalf("%s: %d", path, code)
		}
		_, body, _ = strings.Cut(body, "<main")
		short, _, _ := strings.Cut(path, "?")
		if strings.HasPrefix(path, "/ui/record?") {
			short = path
		}
		name := ""
		for _, at := range section.FindAllStringSubmatchIndex(body, -1) {
			part := body[at[0]:at[1]]
			for group := 2; group < len(at); group += 2 {
				if at[group] >= 0 {
					name = strings.TrimRight(body[at[group]:at[group+1]], "-0123456789")
				}
			}
			lacks := strings.HasPrefix(part, `<div class="tile`) || strings.HasPrefix(part, "<tr") && figure.MatchString(part) && !strings.Contains(part, "href=")
			rest, _, _ := strings.Cut(body[at[1]:], "</section>")
			if lacks && !strings.Contains(rest, "What these figures are of") {
				ends[short+" "+name] = true
			}
		}
	}
	for end := range ends {
		if deadEnds()[end] == "" {
			t.Errorf("figures of %s lead nowhere", end)
		}
	}
	for _, end := range slices.Sorted(maps.Keys(deadEnds())) {
		if !ends[end] {
			t.Errorf("figures of %s lead on, or are not there", end)
		}
	}
}

func TestBoards_FiguresOfTheTiles_AreThoseOfThePageTheyLeadTo(t *testing.T) {
	s := filled(t)
	s.pages.Derivation = s.Options.Derivation
	tile := regexp.MustCompile(`<a class="tile" href="([^"]+)"><b title="([^"]+)">[^<]*(?:<small>[^<]*</small>)?</b><span>([^<]+)<`)
	sum := regexp.MustCompile(`(?s)<tfoot>.*?data-value="([^"]*)"`)
	for _, path := range []string{"/ui/centre?period=2026-02", "/ui/projects?period=2026-02&of=project%3Dhiggs", "/ui/me?user=bob&period=2026-02"} {
		_, body, _ := s.get(path)
		seen := 0
		for _, m := range tile.FindAllStringSubmatch(body, -1) {
			to, label := html.UnescapeString(m[1]), m[3]
			code, page, _ := s.get(to)
			total := sum.FindStringSubmatch(page)
			if code != http.StatusOK || total == nil {
				t.Errorf("%s: %s leads to %s: %d", path, label, to, code)
				continue
			}
			got, _ := strconv.ParseFloat(total[1], 64)
			want, _ := strconv.ParseFloat(m[2], 64)
			switch { // the tiles say these in other units
			case strings.HasPrefix(label, "Mean wait"):
				want *= 60
			case label == "CPU efficiency", label == "Utilization":
				want /= 100
			case label == "GiB-hours":
				want *= 1024
			case label == "core-hours unused":
				continue // the part of the core-hours that the efficiency leaves
			}
			if seen++; math.Abs(got-want) > 1e-5*math.Max(1, math.Abs(want)) {
				t.Errorf("%s: %s is %v, and %v on %s", path, label, want, got, to)
			}
		}
		if seen < 4 {
			t.Errorf("%s: %d tiles lead on", path, seen)
		}
	}
}

func TestReportPages_SameQuestion_IsAskedOnce(t *testing.T) {
	s := filled(t)
	asked := map[string]int{}
	s.pages.V1 = v1.API{Caller: counted{s, asked}}
	for path, question := range map[string]string{
		"/ui/budgets?at=now": "/v1/budgets",
		"/ui/distributions?period=2026-02&where[group_id]=atlas,cms": "/v1/distributions",
		"/ui/distributions": "/v1/distributions",
	} {
		clear(asked)
		if code, body, _ := s.get(path); code != http.StatusOK || strings.Contains(body, `role="alert"`) {
			t.Errorf("%s: %d %s", path, code, body)
		}
		if asked[question] != 1 {
			t.Errorf("%s: %s is asked %d times", path, question, asked[question])
		}
	}
}

// TestDistributions_BinOfTimes_LeadsToItsJobs opens the list of each bin.
func TestDistributions_BinOfTimes_LeadsToItsJobs(t *testing.T) {
	s := filled(t)
	bin := regexp.MustCompile(`<td[^>]*class="[^"]*num[^"]*"[^>]*><a href="(/ui/records\?[^"]*(took|waited)_from=[^"]*)">([0-9]+)</a>`)
	for _, period := range []string{"2026-02", "30d", "60d"} { // the last two hold February's jobs
		_, body, _ := s.get("/ui/distributions?where[site_id]=nemo&period=" + period)
		total := map[string]int{}
		for _, m := range bin.FindAllStringSubmatch(body, -1) {
			_, list, _ := s.get(html.UnescapeString(m[1]))
			if found := strings.Count(list, `href="/ui/record?id=`); strconv.Itoa(found) != m[3] {
				t.Errorf("%s has %d records, want %s", m[1], found, m[3])
			}
			n, _ := strconv.Atoi(m[3])
			total[m[2]] += n
		}
		if total["took"] < 5 || total["waited"] < 3 || period == "2026-02" && (total["took"] != 5 || total["waited"] != 3) {
			t.Errorf("the bins of %s lead to %v jobs", period, total)
		}
	}
}
