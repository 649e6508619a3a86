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

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
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
		"user=bob%2C+the+second":            "small",
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
