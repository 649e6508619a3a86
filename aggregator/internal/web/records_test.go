package web_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// shown are the ids of the records on a page, in order.
func shown(body string) (ids []string) {
	for _, m := range regexp.MustCompile(`href="/ui/record\?id=[^"]*">([^<]*)<`).FindAllStringSubmatch(body, -1) {
		ids = append(ids, html.UnescapeString(m[1]))
	}
	return ids
}

func TestEachFieldOfTheFilterNarrowsAndTheTableToDownloadIsTheSame(t *testing.T) {
	s := newSite(t)
	open, small := run("open", 0, "bob"), run("small", 5, "bob, the second")
	open.Stop = record.None
	small.Components[0].Amount, small.Meta[0].Values[0] = 3, "there"
	s.Post(run("early", 0, "alice"), run("late", 600, "bob"), open, small)
	csvLink := regexp.MustCompile(`href="(/v1/records\?[^"]*)">Download CSV`)
	for query, want := range map[string]string{
		"":                                  "open late small early",
		"site=here":                         "open late early",
		"user=bob":                          "open late",
		"user=bob&runs=ended":               "late",
		"user=bob%5C%2C+the+second":         "small",
		"user=bob&key=user_id&value=bob":    "open late",
		"user=bob&key=user_id&value=alice":  "",
		"component=Cores&least=4":           "open late early",
		"component=Cores":                   "open late small early",
		"component=GPUs":                    "",
		"since=2026-01-02+02:05&site=there": "small",
		"until=2026-01-02+02:05":            "early",
		"ran_since=2026-01-02+02:05":        "open late",
		"ran_until=2026-01-01+00:05":        "open early",
		"ran_since=2026-01-02+02:01&ran_until=2026-01-01+09:00": "open small",
		"id=late": "late",
	} {
		_, body, _ := s.get("/ui/records?" + query)
		if got := strings.Join(shown(body), " "); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
		link := csvLink.FindStringSubmatch(body)
		if want == "" {
			continue
		}
		if link == nil {
			t.Errorf("%q: no link", query)
			continue
		}
		code, text, head := s.get(html.UnescapeString(link[1]))
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if code != http.StatusOK || err != nil || !strings.HasPrefix(head.Get("Content-Type"), "text/csv") {
			t.Errorf("%s: %d %v\n%s", link[1], code, err, text)
			continue
		}
		var ids []string
		for _, row := range rows[1:] {
			ids = append(ids, row[0])
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %q, want %q", link[1], got, want)
		}
	}
	for _, query := range []string{"least=4", "component=Cores&least=x", "component=Cores&least=-1", "ran_since=x", "ran_until=yesterday"} {
		if code, body, _ := s.get("/ui/records?" + query); code != http.StatusBadRequest || !strings.Contains(body, `role="alert"`) {
			t.Errorf("%s: %d", query, code)
		}
	}
}

func TestWhatIsNotFoundIsSaidWithWhatIsNear(t *testing.T) {
	s := newSite(t)
	s.Post(run("r1", 0, "alice"))
	for query, want := range map[string]string{
		"user=alise":                    "No record has the user_id alise; did you mean alice?<",
		"group=atlas":                   "No record has the meta key group_id; there are site_id, user_id.<",
		"key=site_id&value=x":           "No record has the site_id x; there are here.<",
		"user=alice&id=r2":              "No record matches.<",
		"component=Corse":               "No record has the component Corse; did you mean Cores?<",
		"component=Cores&least=4711000": "No record matches.<",
	} {
		if _, body, _ := s.get("/ui/records?" + query); !strings.Contains(body, want) {
			t.Errorf("%s: no %q in\n%s", query, want, body)
		}
	}
	some := access.Principal{Name: "pi", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"bob"}})}
	for _, rights := range []identity.Rights{identity.Read, identity.Read | identity.Monitor} {
		some.Rights = rights
		if code, body := s.as(some, "/ui/records?user=alise"); code != http.StatusOK || strings.Contains(body, "alice") || !strings.Contains(body, "No record matches.<") {
			t.Errorf("a hint names what a reader with %s may not see: %d\n%s", rights, code, body)
		}
	}
}

func TestRecords_HintsOfALimitedReader_NameOnlyItsRecords(t *testing.T) {
	s := newSite(t)
	s.Post(run("r1", 0, "alice"), run("r2", 0, "alicia"))
	some := access.Principal{Name: "pi", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"alicia"}})}
	for query, want := range map[string]string{
		"user=alise":      "No record has the user_id alise; there are alicia.<",
		"user=alice":      "No record has the user_id alice; there are alicia.<",
		"user=x":          "No record has the user_id x; there are alicia.<",
		"component=Corse": "No record has the component Corse; did you mean Cores?<",
	} {
		if code, body := s.as(some, "/ui/records?"+query); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, no %q in\n%s", query, code, want, body)
		}
	}
}

func TestRecords_AnyColumn_SortsThemInPages(t *testing.T) {
	s := newSite(t)
	var list []record.Record
	for i := range 130 {
		r := run(fmt.Sprintf("r%03d", i), i, fmt.Sprintf("user%03d", i*37%130))
		r.Components[0].Amount = int64(1 + i*53%130)
		list = append(list, r)
	}
	s.Post(list...)
	_, body, _ := s.get("/ui/records")
	for _, m := range regexp.MustCompile(`<th scope="col"[^>]*><a href="([^"]*)"[^>]*>([^<]*)`).FindAllStringSubmatch(body, -1) {
		for _, path := range []string{m[1], strings.Replace(m[1], "sort=-", "sort=", 1)} {
			seen, pages := map[string]bool{}, 0
			for next := html.UnescapeString(path); next != ""; pages++ {
				code, page, _ := s.get(next)
				if code != 200 || pages > 0 && !strings.Contains(page, "aria-sort=") {
					t.Fatalf("%s: %d", next, code)
				}
				for _, id := range regexp.MustCompile(`/ui/record\?id=(r\d+)`).FindAllStringSubmatch(page, -1) {
					seen[id[1]] = true
				}
				next = ""
				if more := regexp.MustCompile(`href="([^"]*)">Next page`).FindStringSubmatch(page); more != nil {
					next = html.UnescapeString(more[1])
				}
			}
			if pages != 3 || len(seen) != 130 {
				t.Errorf("%s: %d pages with %d of 130 records", path, pages, len(seen))
			}
		}
	}
	for sort, want := range map[string]string{"-component.Cores": "r103", "meta.user_id": "r000", "-meta.user_id": "r007"} {
		_, page, _ := s.get("/ui/records?sort=" + sort)
		if first := regexp.MustCompile(`/ui/record\?id=(r\d+)`).FindStringSubmatch(page); first == nil || first[1] != want {
			t.Errorf("%s: the first is %v, want %s", sort, first, want)
		}
		address := regexp.MustCompile(`href="(/v1/records[^"]*)">Download`).FindStringSubmatch(page)
		if code, file, _ := s.get(html.UnescapeString(address[1])); code != 200 || !strings.HasPrefix(strings.SplitN(file, "\n", 3)[1], want) {
			t.Errorf("%s: %d %.300s", address[1], code, file)
		}
	}
	if code, _, _ := s.get("/ui/records?sort=meta."); code != 400 {
		t.Error(code)
	}
}

func TestHintsAreOfTheNewestRecordsOnly(t *testing.T) {
	s := newSite(t)
	s.Post(run("first", 0, "alice"))
	var list []record.Record
	for i := range 20_000 {
		list = append(list, run(fmt.Sprint("r", i), 1, "bob"))
	}
	for part := range slices.Chunk(list, 4000) {
		s.Post(part...)
	}
	if _, body, _ := s.get("/ui/records?user=alise"); !strings.Contains(body, "None of the newest records has the user_id alise; there are bob.<") {
		t.Errorf("older records were looked at:\n%s", body)
	}
}

func TestARecordShowsItsHistoryAndLeadsToThoseLikeIt(t *testing.T) {
	s := newSite(t)
	s.count()
	s.again()
	_, body, _ := s.get("/ui/record?" + url.Values{"id": {"feb-0s"}}.Encode())
	for _, want := range []string{"<h1>Record feb-0s</h1>", "head1/slurm/nemo", ">the first<", ">stop, state, meta, components<", "2026-02-01 01:00:00", "2026-02-01 02:00:00", `href="/ui/records?group=atlas"`, `href="/ui/records?key=queue&amp;value=long"`, `href="/v1/records/feb-0s"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	some := access.Principal{Name: "pi", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"atlas"}})}
	if _, body := s.as(some, "/ui/record?id=feb-0s"); strings.Contains(body, "2026-02-01 01:00:00") || !strings.Contains(body, "2026-02-01 02:00:00") {
		t.Errorf("a version that the reader may not see is shown:\n%s", body)
	}
}

func TestTheScriptOfARecordsPageIsThere(t *testing.T) {
	s := newSite(t)
	_, body, _ := s.get("/ui/records")
	if !strings.Contains(body, `src="/ui/static/records.js`) || !strings.Contains(body, `role="status"`) {
		t.Error(body)
	}
	if ids := regexp.MustCompile(` id="([^"]*)"`).FindAllString(body, -1); len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids) {
		t.Errorf("an id is there twice: %v", ids)
	}
}

func TestRecords_NamesOfJobs_HaveAColumnWhereThereAreSome(t *testing.T) {
	s := newSite(t)
	const cell, head = `<td data-label="Job" class="nowrap">relax</td>`, `>Job</a>`
	list := []record.Record{apitest.Job{ID: "nemo-1", Group: "atlas", Start: "2026-02-25T01:00:00Z", Stop: "2026-02-25T02:00:00Z", Cores: 4}.Record()}
	s.Collect(apitest.Nemo(), list, nil)
	if _, body, _ := s.get("/ui/records"); strings.Contains(body, head) || strings.Contains(body, `"Job"`) {
		t.Error("a column without a value: ", body)
	}
	for i, key := range []string{"job_name", "job"} { // Nomad and Kubernetes call it so
		named := list[0]
		named.ID = fmt.Sprint("nemo-2", i)
		named.Meta = append(slices.Clone(named.Meta), record.MetaEntry{Key: key, Values: []string{"relax"}}).Sorted()
		s.Collect(apitest.Nemo(), []record.Record{named}, nil)
		if _, body, _ := s.get("/ui/records"); strings.Count(body, cell) != i+1 || !strings.Contains(body, head) {
			t.Error(key, body)
		}
	}
}

func TestRecord_RunsOfAnArrayAndRequeues_StandInATimeline(t *testing.T) {
	s := newSite(t)
	var list []record.Record
	for i, id := range []string{"nemo-7_1", "nemo-7_2", "nemo-7_2-1795248798", "nemo-77_1", "nemo-8"} {
		list = append(list, apitest.Job{
			ID: id, Group: "atlas", User: "alice", Submit: "2026-02-25T00:00:00Z", Start: fmt.Sprintf("2026-02-25T0%d:00:00Z", i+1), Stop: fmt.Sprintf("2026-02-25T0%d:30:00Z", i+1),
			Cores: 4, CPU: 3600, GPUs: 2, GPUTime: 900, GPUMemory: 80_000, GPUMemoryUsed: 60_000, State: "COMPLETED",
		}.Record())
	}
	other := list[0]
	other.ID, other.Meta = "nemo-7_9", record.Meta{{Key: "user_id", Values: []string{"bob"}}}
	s.Collect(apitest.Nemo(), append(list, other), nil)
	if _, body, _ := s.get("/ui/records?sort=meta.state"); strings.Count(body, `<td data-label="State"><span class="badge dim">COMPLETED</span></td>`) != len(list)+1 {
		t.Error(body)
	}
	_, body, _ := s.get("/ui/record?id=nemo-7_2")
	_, runs, _ := strings.Cut(body, `id="runs"`)
	runs, _, _ = strings.Cut(runs, "</table>")
	for want, is := range map[string]bool{"<b>nemo-7_2</b>": true, "nemo-7_1</a>": true, "nemo-7_2-1795248798</a>": true, "nemo-77_1": false, "nemo-8": false, "nemo-7_9": false} {
		if strings.Contains(runs, want) != is {
			t.Errorf("%s is there: %v, want %v\n%s", want, !is, is, runs)
		}
	}
	for _, want := range []string{"waited 2 h 00 min", "<dt>CPU efficiency</dt>", "50.0\u202f%", "<dt>GPU efficiency</dt>", "25.0\u202f%", "<dt>GPU memory efficiency</dt>", "75.0\u202f%", "2\u202fcore-hours", `class="runs" x="`} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if _, body, _ := s.get("/ui/record?id=nemo-8"); strings.Contains(body, `id="runs"`) {
		t.Error("a job of one run has a timeline")
	}
	bob := access.Principal{Name: "bob", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"bob"}})}
	if code, _, _ := s.getAs(bob, "/ui/record?id=nemo-7_2"); code != http.StatusNotFound {
		t.Error(code)
	}
	if _, body, _ := s.getAs(bob, "/ui/record?id=nemo-7_9"); strings.Contains(body, "nemo-7_1") {
		t.Error("the run of another is there")
	}
}

func TestRecord_UserWithVeryManyRuns_TimelineHasThoseNearby(t *testing.T) {
	s := newSite(t)
	start := record.FromStd(time.Date(2026, 2, 20, 0, 0, 0, 0, time.UTC))
	var list []record.Record
	for i := range 10_100 {
		at := start + record.Time(i)*record.Second
		list = append(list, record.Record{ID: fmt.Sprint("nemo-", 1000+i), Start: at, Stop: at + record.Second, Meta: record.Meta{{Key: "user_id", Values: []string{"alice"}}}})
	}
	list[0].ID, list[10_000].ID, list[10_050].ID = "nemo-7_0", "nemo-7_1", "nemo-7_2"
	for part := range slices.Chunk(list, 4000) {
		s.Collect(apitest.Nemo(), part, nil)
	}
	_, body, _ := s.get("/ui/record?id=nemo-7_2")
	_, runs, _ := strings.Cut(body, `id="runs"`)
	runs, _, _ = strings.Cut(runs, "</table>")
	for want, is := range map[string]bool{"nemo-7_0": false, "nemo-7_1": true, "<b>nemo-7_2</b>": true, "Of the runs of this user, the 20 000 that began nearest were looked at.": true} {
		if strings.Contains(runs, want) != is {
			t.Errorf("%s is there: %v\n%s", want, !is, runs)
		}
	}
}

func TestRecords_TheSearchField_MakesFiltersWithChips(t *testing.T) {
	s := newSite(t)
	open, small := run("open", 0, "bob"), run("small", 5, "alice")
	open.Stop, small.Components[0].Amount = record.None, 3
	small.Meta = append(record.Meta{{Key: "queue", Values: []string{"long"}}}, small.Meta...)
	s.Post(run("early", 0, "alice"), run("late", 600, "bob"), open, small)
	for find, want := range map[string]string{
		"": "open late small early", "user=bob": "open late", "user_id=bob ended": "late", "running": "open", "Cores>=4 user=alice": "early", "late": "late", "queue=long": "small", "site=here until=2026-01-02T02:05": "early",
	} {
		_, body, _ := s.get("/ui/records?" + url.Values{"find": {find}}.Encode())
		if got := strings.Join(shown(body), " "); got != want {
			t.Errorf("%q: %q, want %q", find, got, want)
		}
		if chips := strings.Count(body, "Remove the filter"); chips != len(strings.Fields(find)) {
			t.Errorf("%q: %d chips", find, chips)
		}
	}
	if code, _, _ := s.get("/ui/records?find=queue%3Dlong+partition%3Dx"); code != http.StatusBadRequest {
		t.Error(code)
	}
	for sort, want := range map[string]string{
		"": "open late small early", "stop": "early small late open", "-start": "late small early open", "start": "early open small late", "id": "early late open small", "-id": "small open late early",
	} {
		_, body, _ := s.get("/ui/records?sort=" + sort)
		if got := strings.Join(shown(body), " "); got != want {
			t.Errorf("sort %q: %q, want %q", sort, got, want)
		}
	}
	if code, _, _ := s.get("/ui/records?sort=colour"); code != http.StatusBadRequest {
		t.Error(code)
	}
}

func TestRecords_EveryOrder_PagesThroughAll(t *testing.T) {
	s := newSite(t)
	var list []record.Record
	for i := range 120 {
		list = append(list, run(fmt.Sprintf("r%03d", i), i%7, "alice"))
	}
	s.Post(list...)
	next := regexp.MustCompile(`href="([^"]*)">Next page`)
	for _, sort := range []string{"", "stop", "-start", "start", "-runtime", "runtime", "id", "-id"} {
		seen, path := map[string]bool{}, "/ui/records?sort="+sort
		for path != "" {
			_, body, _ := s.get(path)
			for _, id := range shown(body) {
				if seen[id] {
					t.Fatalf("%s: %s twice", sort, id)
				}
				seen[id] = true
			}
			path = ""
			if m := next.FindStringSubmatch(body); m != nil {
				path = html.UnescapeString(m[1])
			}
		}
		if len(seen) != len(list) {
			t.Errorf("%q: %d of %d", sort, len(seen), len(list))
		}
	}
}

// newEnergySite has the energy of three people, one record each: it is measured, modelled and
// unknown, as the person and the record are named.
func newEnergySite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.Settings.Energy = &accounting.EnergySettings{
		Measured: "Energy", Zone: "DE", Factors: []accounting.CO2Factor{{Zone: "DE", From: record.MinTime, To: record.None, Grams: 300e6}},
		Classes: []accounting.PowerClass{{
			Name: "here", Match: []accounting.NodeMatch{{Key: "site_id", Values: []string{"here"}}},
			Draws: []accounting.Draw{{Component: "Cores", Amount: 1, Watts: accounting.One}},
		}},
	}
	s.Keep()
	list := []record.Record{run("measured", 0, "measured"), run("modelled", 0, "modelled"), run("unknown", 0, "unknown")}
	list[0].Components = append(list[0].Components, record.Component{Name: "Energy", Kind: record.Total, Amount: 360_000})
	list[2].Meta[0].Values = []string{"there"}
	for i := range list {
		list[i].Meta = append(record.Meta{{Key: "group_id", Values: []string{"all"}}}, list[i].Meta...)
	}
	s.Post(list...)
	return s
}

func TestRecord_Energy_SaysMeasuredModelledOrUnknown(t *testing.T) {
	s := newEnergySite(t)
	for _, way := range []string{"measured", "modelled", "unknown"} {
		_, body, _ := s.get("/ui/record?id=" + way)
		for _, want := range []string{"<dt>Energy (" + way + ")</dt>", "<dt>CO2 (" + way + ")</dt>"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s is not on the page of %s", want, way)
			}
		}
		if got := strings.Contains(body, "kWh</dd>"); got != (way != "unknown") {
			t.Errorf("%s: a figure is there: %v", way, got)
		}
	}
}

// To count the records of some is to read all.
func TestRecords_InAll_OnlyForThoseWhoSeeAll(t *testing.T) {
	s := filled(t)
	for who, want := range map[*access.Principal]bool{
		new(reader(identity.Read)):                                     true,
		new(reader(identity.Read, access.Grant{"user_id": {"alice"}})): false,
	} {
		if code, body, _ := s.getAs(*who, "/ui/records"); code != http.StatusOK || regexp.MustCompile(`\d records? in all<`).MatchString(body) != want {
			t.Errorf("%v: %d %s", who.Rows, code, body)
		}
	}
}
