package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// totals are those that an erasure must leave as they are.
func (s shell) totals(t *testing.T) string {
	t.Helper()
	var all []string
	for _, by := range []string{"group_id", "site_id"} {
		code, out, errs := s.bursar(t.Context(), "usage", "-window", "2026-03", "-bucket", "day", "-by", by, "-measure", "records,started,stopped,people,Cores", "-format", "csv")
		if code != 0 {
			t.Fatal(code, errs)
		}
		all = append(all, out)
	}
	return strings.Join(all, "\n")
}

func TestPersonErase_TotalsStay_AndTheNameIsInNoAnswer(t *testing.T) {
	s := aggregator(t)
	var posts []string
	const erikas = 450
	for i := range 2 * erikas {
		user := []string{"erika", "erikason", "alice"}[min(i%2, 1)*(1+i/2%2)]
		day := 1 + i%28
		posts = append(posts, fmt.Sprintf(`{"record_id":"job-%d","meta":{"user_id":[%q],"group_id":["g%d"],"site_id":["s"],"home":["/home/%s"],"job_name":["x-%d"]},`+
			`"components":[{"name":"Cores","amount":%d,"scores":[{"name":"HEPScore23","value":1.5}]}],"start_time":"2026-03-%02dT00:00:00Z","stop_time":"2026-03-%02dT%02d:30:00Z"}`,
			i, user, i%3, user, i, 1+i%7, day, day, i%24))
	}
	resp, err := s.client().Post("http://localhost/records", "application/json", strings.NewReader("["+strings.Join(posts, ",")+"]"))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	resp.Body.Close()
	before := s.totals(t)
	ask := func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		got, stdout, stderr := s.bursar(t.Context(), args...)
		if got != code {
			t.Fatal(args, got, stderr)
		}
		return stdout, stderr
	}
	exported, errs := ask(0, "person", "export", "erika")
	if strings.Count(exported, "\n") != erikas || strings.Contains(exported, "erikason") || !strings.Contains(errs, "backups and snapshots") {
		t.Errorf("%d lines: %s", strings.Count(exported, "\n"), errs)
	}
	if _, errs := ask(0, "person", "erase", "erika", "-plan", "-without", "job_name"); !strings.Contains(errs, "450 records, 0 quarantined jobs; keys that stay: group_id, home, site_id, user_id") {
		t.Error(errs)
	}
	ask(1, "person", "erase", "erika", "-as", "was-erika")
	ask(0, "person", "erase", "erika", "-without", "job_name")
	if _, errs := ask(2, "person", "erase", "erika"); !strings.Contains(errs, `no record has user_id "erika"`) {
		t.Error(errs)
	}
	if after := s.totals(t); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	all, _ := ask(0, "records", "-limit", "-1", "-format", "json")
	if n := strings.Count(all, `"user_id":["erika"]`) + strings.Count(all, `/home/erika"`); n != 0 || strings.Count(all, "\n") != 2*erikas {
		t.Errorf("%d of %d lines name her", n, strings.Count(all, "\n"))
	}
	if log, _ := ask(0, "audit", "-limit", "100000", "-format", "csv"); strings.Contains(log, "erika") ||
		!strings.Contains(log, "erased-") || strings.Count(log, ",DELETE /v1/records/{id...},") != erikas {
		t.Errorf("the audit log: %.2000s", log)
	}
	if others := strings.Count(all, `"user_id":["erikason"]`); others != erikas/2 {
		t.Errorf("%d records of another person", others)
	}
	if n := strings.Count(all, `["erased-`) + strings.Count(all, `["/home/erased-`); n != 2*erikas || strings.Count(all, "job_name") != erikas {
		t.Errorf("%d values are replaced; %d records have job_name", n, strings.Count(all, "job_name"))
	}
}

func TestPersonErase_ARunningJob_IsRefused(t *testing.T) {
	s := aggregator(t)
	resp, err := s.client().Post("http://localhost/record", "application/json", strings.NewReader(`{"record_id":"a","meta":{"user_id":["erika"]},"components":[],"start_time":"2026-03-01T00:00:00Z"}`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	resp.Body.Close()
	if code, _, errs := s.bursar(t.Context(), "person", "erase", "erika"); code != 1 || !strings.Contains(errs, "cannot erase user_id=erika: 1 record still running") {
		t.Error(code, errs)
	}
}

// archivedPeople is a cluster whose months February and March of 2026 are archived: of erika
// in February and in April, of bob in March. The keys of keep stay in the store.
func archivedPeople(t *testing.T, keep ...string) (shell, *apitest.World, archiveFiles) {
	t.Helper()
	w := apitest.New(t)
	job := func(id, user, day string) apitest.Job {
		return apitest.Job{ID: id, Group: "g", User: user, Start: day, Stop: day + "T10:00:00Z", Cores: 4, Meta: map[string]string{"home": "/home/" + user}}
	}
	w.Collect(apitest.Nemo(), apitest.Records(
		job("a", "erika", "2026-02-03"), job("b", "erika", "2026-02-05"), job("c", "bob", "2026-02-05"), job("d", "bob", "2026-03-07"), job("e", "erika", "2026-04-01"),
	), nil)
	files := archiveFiles{}
	files.archive(t, w.Serve(), "2026-02", "2026-02-01", "2026-03-01", keep...)
	files.archive(t, w.Serve(), "2026-03", "2026-03-01", "2026-04-01", keep...)
	w.Options.Archives = func(context.Context) (api.ArchiveReader, error) { return files, nil }
	return at(w.Serve()), w, files
}

func TestPersonExport_ArchivedRecords_AreInItWithTheirDetails(t *testing.T) {
	for _, keep := range []string{"user_id", "group_id"} {
		s, _, _ := archivedPeople(t, keep)
		checkArchivedExport(t, s)
	}
}

func checkArchivedExport(t *testing.T, s shell) {
	t.Helper()
	for who, want := range map[string]int{"erika": 3, "bob": 2} {
		code, out, errs := s.bursar(t.Context(), "person", "export", who)
		if code != 0 || strings.Count(out, "\n") != want || strings.Count(out, "/home/"+who) != want || !strings.Contains(errs, fmt.Sprintf("%d records, 0 quarantined jobs", want)) {
			t.Errorf("%s: %d\n%s%s", who, code, out, errs)
		}
	}
	if code, out, errs := s.bursar(t.Context(), "person", "export", "erica"); code != 2 || out != "" || !strings.Contains(errs, `no record has user_id "erica"`) {
		t.Errorf("an unknown person: %d %s%s", code, out, errs)
	}
}

func TestPersonExport_FilesOfAnArchiveAreMissing_FailsAndNamesIt(t *testing.T) {
	s, _, files := archivedPeople(t, "user_id")
	delete(files, "2026-03")
	for _, do := range []string{"export", "erase"} {
		if code, _, errs := s.bursar(t.Context(), "person", do, "erika"); code != 1 || !strings.Contains(errs, "archive 2026-03: records.parquet") {
			t.Errorf("%s: %d %s", do, code, errs)
		}
	}
}

func TestPersonErase_ArchivedRecords_AreRefusedAndNamed(t *testing.T) {
	s, w, _ := archivedPeople(t, "user_id")
	for who, want := range map[string]string{"erika": "2 records archived in 2026-02;", "bob": "2 records archived in 2026-02, 2026-03;"} {
		for _, args := range [][]string{{}, {"-plan"}} {
			w.Asked()
			code, _, errs := s.bursar(t.Context(), append([]string{"person", "erase", who}, args...)...)
			if code != 1 || !strings.Contains(errs, want) || !strings.Contains(errs, "bursar archive restore ACTION ARCHIVE") || strings.Contains(errs, "Erased") {
				t.Errorf("%s %s: %d %s", who, args, code, errs)
			}
			for _, asked := range w.Asked() {
				if !strings.HasPrefix(asked, "GET ") {
					t.Errorf("%s: a refused erasure asked %s", who, asked)
				}
			}
		}
	}
}

func TestPersonErase_ArchivesWithoutThePerson_AreNamed(t *testing.T) {
	s, w, _ := archivedPeople(t, "user_id")
	w.Collect(apitest.Nemo(), apitest.Records(apitest.Job{ID: "f", Group: "g", User: "carl", Start: "2026-02-03", Stop: "2026-02-04", Cores: 1}), nil)
	code, _, errs := s.bursar(t.Context(), "person", "erase", "carl", "-plan")
	if code != 0 || !strings.Contains(errs, "1 record, 0 quarantined jobs") || !strings.Contains(errs, "the files of the archives 2026-02, 2026-03") {
		t.Errorf("%d %s", code, errs)
	}
}

func TestPersonErase_UserKeyLeftWithArchives_IsRefused(t *testing.T) {
	s, _, _ := archivedPeople(t, "group_id")
	for _, who := range []string{"erika", "norbert"} {
		if code, _, errs := s.bursar(t.Context(), "person", "erase", who); code != 1 || !strings.Contains(errs, `"user_id" is not in the store for 2026-02, 2026-03`) || !strings.Contains(errs, "restore the archive") {
			t.Errorf("%s: %d %s", who, code, errs)
		}
	}
}

func TestPersonErase_NamesThatContainEachOther_TotalsAreEqual(t *testing.T) {
	s := aggregator(t)
	rng := rand.New(rand.NewPCG(1, rand.Uint64()))
	names := []string{"al", "alpha", "pal", "al.b", "x-al", "al_1", "erased", "e"}
	pick := func() string { return names[rng.IntN(len(names))] }
	keys := []string{"group_id", "site_id", "project", "pi", "cluster", "account", "partition", "vo", "host"}
	type job struct {
		ID    string              `json:"record_id"`
		Meta  map[string][]string `json:"meta"`
		Parts []map[string]any    `json:"components"`
		Start string              `json:"start_time"`
		Stop  string              `json:"stop_time"`
	}
	var jobs []job
	for i := range 300 {
		user := pick()
		if i < len(names) {
			user = names[i]
		}
		meta := map[string][]string{"user_id": {user}, "home": {"/home/" + user, "/home/" + pick()}, "dn": {"/CN=" + user + " " + pick()}}
		for _, key := range keys {
			if meta[key] = []string{pick()}; i < len(names) { // of the user's name
				meta[key] = meta["user_id"]
			}
		}
		start := time.Date(2026, 3, 1+i%28, i%24, 0, 0, 0, time.UTC)
		jobs = append(jobs, job{
			fmt.Sprintf("job-%d", i), meta, []map[string]any{{"name": "Cores", "amount": 1 + rng.IntN(9), "scores": []any{}}},
			start.Format(time.RFC3339), start.Add(time.Duration(1+rng.IntN(40)) * time.Hour).Format(time.RFC3339),
		})
	}
	body, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client().Post("http://localhost/records", "application/json", bytes.NewReader(body))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	resp.Body.Close()
	ask := func(args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := s.bursar(t.Context(), args...)
		if code != 0 {
			t.Fatal(args, code, stderr)
		}
		return stdout, stderr
	}
	usage := func() map[string]string {
		all := map[string]string{}
		for _, key := range keys {
			all[key], _ = ask("usage", "-window", "2026-03..2026-05", "-bucket", "day", "-by", key, "-measure", "records,started,stopped,people,Cores", "-format", "csv")
		}
		return all
	}
	records := func() map[string]string {
		all := map[string]string{}
		out, _ := ask("records", "-limit", "-1", "-format", "json")
		for line := range strings.Lines(out) {
			r := job{}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			all[r.ID] = line
		}
		return all
	}
	for _, who := range []string{"al", "e", "alpha"} {
		usageBefore, before := usage(), records()
		_, errs := ask("person", "erase", who)
		for _, key := range keys {
			if !strings.Contains(errs, key+"="+who) {
				t.Errorf("%s=%s stays, and is not named: %s", key, who, errs)
			}
		}
		if diff := cmp.Diff(usageBefore, usage()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", who, diff)
		}
		after := records()
		for id, line := range before {
			if mine := strings.Contains(line, `"user_id":["`+who+`"]`); mine == (after[id] != "") || !mine && after[id] != line {
				t.Errorf("%s: %s was %s and is %s", who, id, line, after[id])
			}
		}
		for id, line := range after {
			if strings.HasPrefix(id, "erased-") && before[id] == "" && (strings.Contains(line, "/home/"+who+`"`) || strings.Contains(line, "/CN="+who+" ")) {
				t.Errorf("%s is named: %s", who, line)
			}
		}
	}
}

func TestPersonErase_KeyOfTotals_IsRefused(t *testing.T) {
	s, _ := filled(t)
	for _, key := range []string{"group_id", "site_id", "project", "cluster"} {
		if code, _, errs := s.bursar(t.Context(), "person", "erase", "atlas", "-key", key); code != 1 || !strings.Contains(errs, fmt.Sprintf("invalid -key %q", key)) {
			t.Errorf("%s: %d %s", key, code, errs)
		}
	}
}

func TestPersonErase_TokensAndActions_AreNamedWithWhatRemovesThem(t *testing.T) {
	s, w := filled(t)
	w.Options.Actions = troubled()
	for _, args := range [][]string{
		{"token", "create", "-role", "read", "-person", "eve", "-name", "first"}, {"token", "create", "-role", "read", "-where", "user_id=alice,eve", "-name", "second"},
		{"token", "create", "-role", "read", "-name", "laptop of eve"}, {"token", "create", "-role", "read", "-name", "evening"}, {"token", "create", "-role", "read", "-person", "alice"},
	} {
		if code, _, errs := s.bursar(t.Context(), args...); code != 0 {
			t.Fatal(args, errs)
		}
	}
	tokens, err := w.API().Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	code, _, errs := s.bursar(t.Context(), "person", "export", "eve")
	if code != 0 {
		t.Fatal(code, errs)
	}
	for _, k := range tokens.Tokens {
		if got, want := strings.Contains(errs, "bursar token revoke "+k.ID), k.Name != "evening" && k.Person != "alice"; got != want {
			t.Errorf("token %s %q is named: %v: %s", k.Person, k.Name, got, errs)
		}
	}
	kept := fmt.Sprintf("after %d days, those that set values after 30, but the last %d of each action", action.KeepFor/(24*time.Hour), action.KeepLeast)
	for _, want := range []string{kept, "mail/monthly", "sessions of the pages. They end within 12 hours"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing: %s", want, errs)
		}
	}
	w.Options.Who = func(*http.Request) access.Principal {
		return access.Principal{Rights: identity.Read | identity.Monitor, Rows: access.AllRows()}
	}
	if code, _, errs := s.bursar(t.Context(), "person", "export", "eve"); code != 0 || !strings.Contains(errs, "not searched: tokens") {
		t.Errorf("without the role admin: %d %s", code, errs)
	}
}

func TestPersonErase_NameInTheDirectory_IsSaidWithTheReplacement(t *testing.T) {
	s, _ := filled(t)
	for who, want := range map[string]bool{"carol": true, "alice": false, "bob": false} {
		code, _, errs := s.bursar(t.Context(), "person", "erase", who, "-plan", "-as", "x1")
		if code != 0 || strings.Contains(errs, "The directory has the name "+who+": ") != want || strings.Contains(errs, "write x1 in its place") != want {
			t.Errorf("%s: %d %s", who, code, errs)
		}
	}
}
