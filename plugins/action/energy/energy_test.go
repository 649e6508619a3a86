package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func configure(t *testing.T, text string) (*action, error) {
	t.Helper()
	a := &action{}
	return a, a.Configure(t.Context(), plugintest.Config(t, "monthly", text))
}

func configured(t *testing.T, text string) *action {
	t.Helper()
	a, err := configure(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func march(day int) v1.Time { return v1.Time{Time: time.Date(2026, 3, day, 0, 0, 0, 0, time.UTC)} }

// cluster answers as the daemon does, of the records of testdata.
type cluster struct{ *testing.T }

func (c cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	about := v1.UsageAbout{Window: v1.UsageSpan{From: march(1), To: march(32)}}
	switch {
	case r.URL.Path == "/v1/records":
		c.records(w, q.Get("stop_time[gte]"), q.Get("stop_time[lt]"))
	case q.Get("by") == "":
		if q.Get("measure") == "energy,co2" {
			about.Energy = &v1.UsageEnergy{Total: "1.5", Measured: "0", WithoutFactor: "0.3", DefaultPue: "1.5", DefaultLoad: "0"}
		}
		c.json(w, v1.Usage{UsageAbout: about})
	default:
		alice, n := "alice", func(s string) *json.Number { n := json.Number(s); return &n }
		c.json(w, map[string]any{"about": about})
		c.json(w, v1.UsageLine{Group: map[string]*string{q.Get("by"): &alice}, From: march(1), To: march(32), Measures: map[string]*json.Number{
			"Cores*HEPScore23": n("1234.5"), "efficiency": n("0.5"), "Cores": n("100"), "energy": n("1.5"), "energy_modelled": n("1.5"), "energy_measured": nil, "co2": n("0.363"),
		}})
	}
}

func (c cluster) json(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		c.Error(err)
	}
}

func (c cluster) records(w http.ResponseWriter, from, to string) {
	f, err := os.Open("../../../proto/auditor/utilization/testdata/records.ndjson")
	if err != nil {
		c.Error(err)
		return
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var r struct {
			Stop string `json:"stop_time"`
		}
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			c.Error(err)
		}
		if r.Stop >= from[:10] && r.Stop < to[:10] {
			fmt.Fprintln(w, in.Text())
		}
	}
}

func (c cluster) plan(a *action, state []byte) sdk.Plan {
	c.Helper()
	p, err := a.Plan(c.Context(), sdk.PlanStart{Now: time.Date(2026, 4, 2, 7, 0, 0, 0, time.UTC), State: state}, sdk.NewData(c))
	if err != nil {
		c.Fatal(err)
	}
	return p
}

func TestReadme_HasTheTableOfSettings(t *testing.T) { plugintest.Settings(t, new(settings)) }

// The files of testdata were written by version 0.11.0 of AUDITOR's utilization plugin, of PyPI,
// with pandas 3.1 and numpy 2.4, from records.ndjson.
func TestCompat_AuditorsFigures_AreTheSameToTheDigit(t *testing.T) {
	for name, settings := range map[string]string{
		"htcondor": `watt_per_core_of_site = { a = "4.6", b = "7.25" }`,
		"slurm":    "collector_type = \"slurm\"\ngrouped_list = [\"atlas\", \"bob\"]",
	} {
		dir := t.TempDir()
		p := cluster{t}.plan(configured(t, fmt.Sprintf("directory = %q\nbenchmark = \"HEPscore23\"\ncompat {\n%s\n}", dir, settings)), nil)
		f, err := readFile(p.Effects[0].Payload)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("../../../proto/auditor/utilization/testdata/" + name + ".csv")
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != "auditor_monthly_3_2026.csv" || f.Text != string(want) {
			t.Errorf("%s: got\n%s, want\n%s", f.Name, f.Text, want)
		}
	}
}

const mailBlock = "\nto = [\"head@example.org\", \"ops@example.org\"]\nmail {\n from = \"Accounting <accounting@example.org>\"\n host = \"localhost\"\n tls = \"none\"\n}\n"

func TestPlan_EachFileAndMailOfAPeriod_IsPlannedOnce(t *testing.T) {
	dir := t.TempDir()
	a := configured(t, fmt.Sprintf("directory = %q\nby = [\"user_id\", \"project\"]", dir)+mailBlock)
	p := cluster{t}.plan(a, nil)
	var names []string
	for _, e := range p.Effects {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, "; "); got != "file auditor_user_id_2026-03.csv; file auditor_project_2026-03.csv; mail 2026-03 to=head@example.org; mail 2026-03 to=ops@example.org" {
		t.Fatal(got)
	}
	// khs23h is 1234.5 ÷ 1000; what no record has measured is empty and not 0.
	const want = "user_id,khs23h,cpu_eff,corehours,power [kWh],measured [kWh],modelled [kWh],co2 [kg],embodied [kg]\nalice,1.2345,0.5,100,1.5,,1.5,0.363,\n"
	if f, err := readFile(p.Effects[0].Payload); err != nil || f.Text != want {
		t.Errorf("%v\n%s", err, f.Text)
	}
	if mail := string(p.Effects[2].Payload); !strings.Contains(mail, "To: <head@example.org>") || !strings.Contains(mail, "auditor_user_id_2026-03.csv") || strings.Contains(mail, "ops@") {
		t.Error(mail)
	}
	// What rests on a default is said once in the plan and in each mail.
	notes := []string{
		"1.50 kWh of energy are modelled.",
		"1.50 kWh (100\u202f%) of energy have a PUE of 1, because none is set; set pue in the energy block.",
		"0.3000 kWh (20.0\u202f%) of energy have no CO2 factor at their time and are in no CO2.",
	}
	if !slices.Equal(p.Notes, notes) {
		t.Errorf("%q", p.Notes)
	}
	for _, note := range notes {
		if n := strings.Count(p.Effects[2].Show, note); n != 1 {
			t.Errorf("%q is %d times in the mail", note, n)
		}
	}
	if again := (cluster{t}).plan(a, p.State); len(again.Effects) != 0 {
		t.Errorf("%+v", again.Effects)
	}
	start := sdk.PlanStart{Now: time.Date(2026, 4, 3, 7, 0, 0, 0, time.UTC), State: p.State, Arguments: map[string]string{"files": "again"}}
	late, err := a.Plan(t.Context(), start, sdk.NewData(cluster{t}))
	if err != nil || len(late.Effects) != 2 || late.Effects[0].Name != "file auditor_user_id_2026-03.csv again at 2026-04-03T07:00:00Z" || string(late.Effects[0].Payload) != string(p.Effects[0].Payload) {
		t.Errorf("files=again plans %+v, %v", late.Effects, err)
	}
}

func TestFile_WrittenOrNot_IsFoundByTheProbe(t *testing.T) {
	dir := t.TempDir()
	a := configured(t, fmt.Sprintf("directory = %q\nby = \"user_id\"", dir))
	try := sdk.Attempt{Effect: cluster{t}.plan(a, nil).Effects[0]}
	path := filepath.Join(dir, "auditor_user_id_2026-03.csv")
	if r := a.Probe(t.Context(), try, nil); r.Outcome != sdk.Retry {
		t.Errorf("before: %+v", r)
	}
	if err := os.WriteFile(path, []byte("user_id,kh"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := a.Probe(t.Context(), try, nil); r.Outcome != sdk.Retry {
		t.Errorf("half: %+v", r)
	}
	for range 2 { // a second time does no harm
		if r := a.Execute(t.Context(), try, nil); r.Outcome != sdk.Done {
			t.Errorf("%+v", r)
		}
	}
	if r := a.Probe(t.Context(), try, nil); r.Outcome != sdk.Done {
		t.Errorf("after: %+v", r)
	}
	if r := configured(t, "by = \"user_id\""+mailBlock).Execute(t.Context(), try, nil); r.Outcome != sdk.Rejected {
		t.Errorf("without directory: %+v", r)
	}
}

func TestPlan_APeriodThatGoesOn_IsRefused(t *testing.T) {
	a := configured(t, fmt.Sprintf("directory = %q", t.TempDir()))
	_, err := a.Plan(t.Context(), sdk.PlanStart{Now: time.Date(2026, 3, 20, 7, 0, 0, 0, time.UTC)}, sdk.NewData(cluster{t}))
	if err == nil || !strings.Contains(err.Error(), "has not ended") {
		t.Error(err)
	}
}

func TestConfigure_WhatIsWrong_IsSaidWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"": "missing: set directory, or mail and to",
		"directory = \"/d\"\nto = [\"a@example.org\"]":                               "to and a mail block are set together",
		"directory = \"relative\"":                                                   "is not an absolute path",
		"directory = \"/d\"\nfile_name = \"../x\"":                                   "invalid name",
		"directory = \"/d\"\nzone = \"Mars\"":                                        "want one like",
		"directory = \"/d\"\nzone = \"Europe/Berlin\"\ncompat {}":                    "AUDITOR's months are those of UTC",
		"directory = \"/d\"\nby = [\"user_id\"]\ncompat {}":                          "leave by out",
		"directory = \"/d\"\nwhere = { group_id = \"a\" }\ncompat {}":                "leave where out",
		"directory = \"/d\"\ncompat {\n watt_per_core_of_site = { a = \"much\" }\n}": `invalid watts "much"`,
		"directory = \"/d\"\ncompat {\n collector_type = \"pbs\"\n}":                 "collector_type",
		strings.Replace(mailBlock, "head@example.org", "nonsense", 1):                `invalid address "nonsense"`,
	} {
		if _, err := configure(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
