package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// post sends records in AUDITOR's JSON.
func (s shell) post(t *testing.T, records ...string) {
	t.Helper()
	resp, err := s.client().Post("http://localhost/records", "application/json", strings.NewReader("["+strings.Join(records, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
}

// pull reads another cluster's records by the source auditor, as an agent of that name does.
func (s shell) pull(t *testing.T, agent, label, address string) (code int, out imported) {
	t.Helper()
	config := write(t, t.TempDir(), "agent.hcl", fmt.Sprintf("source \"auditor\" %q {\n  config { relayed = false }\n}\n", label))
	code, text, errs := s.importing(t, "-config", config, "-name", agent, "-format", "json", "auditor", address)
	if code != 0 && code != 2 {
		t.Fatal(code, text, errs)
	}
	return code, importOf(t, text)
}

// sayers are the origins of what is said of a record.
func (s shell) sayers(t *testing.T, id string) (out []string) {
	t.Helper()
	resp, err := s.client().Get("http://localhost/v1/records/" + id)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var entry struct{ Holdings []struct{ Origin string } }
	if err := json.NewDecoder(resp.Body).Decode(&entry); err != nil {
		t.Fatal(err)
	}
	for _, h := range entry.Holdings {
		out = append(out, h.Origin)
	}
	return out
}

func TestRegion_OfThreeSites_HasTheirTotalsAndRefusesALoop(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	record := func(id string, site int) string {
		day := 1 + random.IntN(28)
		return fmt.Sprintf(`{"record_id":%q,"meta":{"user_id":["u%d"],"group_id":["g%d"],"site_id":["s%d"]},"components":[{"name":"Cores","amount":%d,"scores":[]}],`+
			`"start_time":"2026-03-%02dT00:%02d:00Z","stop_time":"2026-03-%02dT%02d:30:00Z"}`, id, random.IntN(9), random.IntN(3), site, 1+random.IntN(64), day, random.IntN(60), day, 1+random.IntN(23))
	}
	const open = "access {\n  plain_role = \"read\"\n}\n"
	region, regionAddress := aggregatorWith(t, open)
	whole := aggregator(t) // has all records at once
	var first shell
	var firstAddress string
	both := record("both", 1) // came to two sites
	for site := 1; site <= 3; site++ {
		s, address := aggregatorWith(t, open)
		records := []string{}
		for i := range 40 + random.IntN(40) {
			records = append(records, record(fmt.Sprintf("s%d-%d", site, i), site))
		}
		whole.post(t, records...)
		if site < 3 {
			records = append(records, both)
		}
		s.post(t, records...)
		if code, out := region.pull(t, "head", fmt.Sprint("site", site), address); code != 0 || out.Records != int64(len(records)) {
			t.Errorf("site %d: exit code %d, %+v", site, code, out)
		}
		if site == 1 {
			first, firstAddress = s, address
		}
	}
	whole.post(t, both)
	if got, want := region.totals(t), whole.totals(t); got != want {
		t.Errorf("the region has\n%s\nits sites\n%s", got, want)
	}
	// The first site pulls from the region in its turn: what the region collected itself comes,
	// and no record of the sites, its own among them.
	own := record("r-0", 4)
	region.post(t, own)
	code, out := first.pull(t, "head1", "region", regionAddress)
	refused := map[string]bool{}
	for _, p := range out.Problems {
		refused[p.Run] = true
	}
	if code != 2 || out.Records != 1 || len(refused) != 3 || !refused["origin head/auditor/site1"] || !refused["origin head/auditor/site3"] {
		t.Errorf("exit code %d, %+v", code, out)
	}
	if got := first.sayers(t, "s1-0"); len(got) != 1 || got[0] != "pushed" {
		t.Errorf("the site's own record is said by %q", got)
	}
	if got := first.sayers(t, "r-0"); len(got) != 1 || got[0] != "head1/auditor/region" {
		t.Errorf("the region's record is said by %q", got)
	}
	if _, list, _ := first.bursar(t.Context(), "quarantine", "list"); !strings.Contains(list, "origin head/auditor/site1") {
		t.Error(list)
	}
	// What it has of the region does not go back.
	before := region.totals(t)
	if code, out := region.pull(t, "head", "site1", firstAddress); code != 2 || len(out.Problems) != 1 || out.Problems[0].Run != "origin head1/auditor/region" {
		t.Errorf("exit code %d, %+v", code, out)
	}
	whole.post(t, own)
	if got := region.totals(t); got != before || got != whole.totals(t) {
		t.Errorf("after the loop the region has\n%s\nnot\n%s", got, before)
	}
	if got := region.sayers(t, "r-0"); len(got) != 1 || got[0] != "pushed" {
		t.Errorf("the region's own record is said by %q", got)
	}
}
