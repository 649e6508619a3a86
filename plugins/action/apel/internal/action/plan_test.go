package action

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/gridtest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestAMonthIsSentAsSyncAndSummary(t *testing.T) {
	r := newRig(t, oneSite)
	r.data.records = []record.Record{
		job("1", "nemo", "2026-08-01T00:00:00Z", 3600), job("2", "nemo", "2026-08-31T23:59:59Z", 7200),
		job("3", "nemo", "2026-07-31T23:59:59Z", 100), job("4", "nemo", "2026-09-01T00:00:00Z", 100), job("5", "other", "2026-08-02T00:00:00Z", 100),
	}
	p := r.plans(t, "2026-08-31T23:59:59Z", nil)
	if got := names(p); !slices.Equal(got, []string{"site=UNI-EXAMPLE month=2026-08 sync", "site=UNI-EXAMPLE month=2026-08 summary"}) {
		t.Fatal(got)
	}
	if got, want := text(t, p.Effects[0]), "APEL-sync-message: v0.1\nSite: UNI-EXAMPLE\nSubmitHost: ce1.example.org\nNumberOfJobs: 2\nMonth: 8\nYear: 2026\n%%\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	const want = `APEL-normalised-summary-message: v0.4
Site: UNI-EXAMPLE
Month: 8
Year: 2026
VO: atlas
SubmitHost: ce1.example.org
InfrastructureDescription: BURSAR-UNKNOWN-UNKNOWN
NodeCount: 1
Processors: 8
EarliestEndTime: 1785542400
LatestEndTime: 1788220799
WallDuration: 10800
CpuDuration: 43200
NormalisedWallDuration: {HEPscore23: 108000}
NormalisedCpuDuration: {HEPscore23: 432000}
NumberOfJobs: 2
%%
`
	if got := text(t, p.Effects[1]); got != want || p.Effects[1].Show != want {
		t.Errorf("got\n%s", got)
	}
	if p.Partial || len(p.Notes) != 0 || p.Effects[1].Summary != "UNI-EXAMPLE 2026-08: 2 jobs, 10800 s wall, 43200 s CPU: summary of 1 rows" {
		t.Errorf("%+v", p)
	}
	if again := r.plans(t, "2026-08-31T23:59:59Z", nil); !slices.Equal(names(again), names(p)) || text(t, again.Effects[1]) != want {
		t.Error("the same plan made again is another")
	}
}

func TestPlan_RecordsInArchives_AreSent(t *testing.T) {
	r := newRig(t, oneSite)
	r.data.records, r.data.archived = []record.Record{job("1", "nemo", "2026-08-02T00:00:00Z", 3600)}, []record.Record{job("2", "nemo", "2026-08-01T00:00:00Z", 3600)}
	if got := r.plans(t, "2026-08-31T23:59:59Z", nil).Effects[1].Summary; !strings.Contains(got, "2 jobs, 7200 s wall") {
		t.Error(got)
	}
}

func TestPlan_PartsOfRuns_CountWhatTheyUsedAndAreNoJobs(t *testing.T) {
	for send, want := range map[string]struct{ jobs, summaries string }{
		`send = "summaries"`: {"NumberOfJobs: 1\n", "WallDuration: 180\nCpuDuration: 720\n"},
		`send = "jobs"`:      {"NumberOfJobs: 3\n", "LocalJobId: helper"},
	} {
		r := newRig(t, oneSite+send+"\n")
		for _, id := range []string{"helper", "run", "helper 2"} {
			one := job(id, "nemo", "2026-08-10T00:00:00Z", 60)
			if id != "run" {
				one.Meta = slices.Insert(one.Meta, 0, record.MetaEntry{Key: record.PartKey, Values: []string{id}})
			}
			r.data.records = append(r.data.records, one)
		}
		p := r.runs(t, "2026-08-31T23:59:59Z", nil)
		if len(p.Effects) != 2 || p.Partial {
			t.Fatalf("%s: %+v", send, p)
		}
		if sync, rows := text(t, p.Effects[0]), text(t, p.Effects[1]); !strings.Contains(sync, want.jobs) || !strings.Contains(rows, want.summaries) {
			t.Errorf("%s: got\n%s\n%s", send, sync, rows)
		}
	}
}

func TestPlan_PartsAlone_AreSent(t *testing.T) {
	r := newRig(t, oneSite)
	one := job("helper", "nemo", "2026-08-10T00:00:00Z", 60)
	one.Meta = slices.Insert(one.Meta, 0, record.MetaEntry{Key: record.PartKey, Values: []string{"helper"}})
	r.data.records = append(r.data.records, one)
	if p := r.runs(t, "2026-08-31T23:59:59Z", nil); len(p.Effects) != 2 || !strings.Contains(text(t, p.Effects[1]), "NumberOfJobs: 0\n") {
		t.Errorf("%+v", p)
	}
}

func TestNoMonthIsSkippedWhateverTheOutage(t *testing.T) {
	r := newRig(t, oneSite)
	for m := range 12 {
		r.data.records = append(r.data.records, job(fmt.Sprint(m), "nemo", fmt.Sprintf("2026-%02d-15T00:00:00Z", m+1), 60))
	}
	r.runs(t, "2026-08-20T00:00:00Z", nil)
	p := r.runs(t, "2027-01-20T00:00:00Z", nil)
	var months []string
	for _, name := range names(p) {
		if m, ok := strings.CutSuffix(name, " summary"); ok {
			months = append(months, strings.TrimPrefix(m, "site=UNI-EXAMPLE month="))
		}
	}
	if !slices.Equal(months, []string{"2026-09", "2026-10", "2026-11", "2026-12"}) { // August has not changed since
		t.Error(months)
	}
	if p := r.plans(t, "2027-01-20T00:00:00Z", nil); len(p.Effects) != 0 {
		t.Error(names(p))
	}
}

func TestTheLastMonthBeforeAnOutageIsSentWhole(t *testing.T) {
	r := newRig(t, oneSite)
	r.data.records = []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60)}
	r.runs(t, "2026-08-20T00:00:00Z", nil)
	r.data.records = append(r.data.records, job("2", "nemo", "2026-08-25T00:00:00Z", 60))
	p := r.plans(t, "2026-12-20T00:00:00Z", nil)
	if len(p.Effects) != 2 || !strings.Contains(text(t, p.Effects[1]), "NumberOfJobs: 2\n") {
		t.Errorf("%v", names(p))
	}
}

func TestALateRecordSendsItsMonthAgainAndSaysWhatWillChange(t *testing.T) {
	r := newRig(t, oneSite)
	r.data.records = []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60)}
	r.runs(t, "2026-09-01T00:00:00Z", nil)
	r.data.records = append(r.data.records, job("2", "nemo", "2026-08-31T00:00:00Z", 60))
	p := r.runs(t, "2026-09-20T00:00:00Z", nil)
	if len(p.Effects) != 2 || !strings.Contains(p.Effects[1].Summary, "2 jobs, 120 s wall, 480 s CPU (sent before: 1 jobs, 60 s wall, 240 s CPU)") {
		t.Errorf("%+v", p.Effects)
	}
	// In October August is too old to be looked at again.
	r.data.records = append(r.data.records, job("3", "nemo", "2026-08-30T00:00:00Z", 60))
	r.runs(t, "2026-10-01T00:00:00Z", nil)
	if p := r.runs(t, "2026-10-02T00:00:00Z", nil); len(p.Effects) != 0 {
		t.Error(names(p))
	}
	if p := r.runs(t, "2026-10-02T00:00:00Z", map[string]string{"month": "2026-08"}); len(p.Effects) != 2 || !strings.Contains(text(t, p.Effects[1]), "NumberOfJobs: 3\n") {
		t.Error(names(p))
	}
}

func TestAMonthIsSentAgainOnDemand(t *testing.T) {
	r := newRig(t, mapped+`
site "A" { ids = ["a"] }
site "B" {}
`)
	r.data.records = []record.Record{job("1", "a", "2026-08-10T00:00:00Z", 60), job("2", "B", "2026-08-10T00:00:00Z", 60)}
	if p := r.runs(t, "2026-09-10T00:00:00Z", nil); len(p.Effects) != 4 {
		t.Fatal(names(p))
	}
	for what, c := range map[string]struct {
		arguments map[string]string
		effects   int
	}{"all sites": {map[string]string{"month": "2026-08"}, 4}, "one site": {map[string]string{"month": "2026-08", "site": "B"}, 2}, "an empty month": {map[string]string{"month": "2026-09"}, 0}} {
		if p := r.plans(t, "2026-09-10T00:00:00Z", c.arguments); len(p.Effects) != c.effects {
			t.Errorf("%s: %v", what, names(p))
		}
	}
	before := r.state
	r.runs(t, "2026-09-10T00:00:00Z", map[string]string{"month": "2026-08", "site": "A"})
	if string(before) != string(r.state) {
		t.Errorf("the state %s became %s", before, r.state)
	}
	for what, arguments := range map[string]map[string]string{
		"a month before from": {"month": "2026-07"}, "a month in the future": {"month": "2026-10"}, "no month": {"site": "A"},
		"no such site": {"site": "C", "month": "2026-08"}, "no month at all": {"month": "August"}, "another argument": {"mont": "2026-08"},
	} {
		if _, err := r.tries(t, "2026-09-10T00:00:00Z", arguments); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func TestARecordWithoutAMandatoryFieldIsListedAndTheOthersGo(t *testing.T) {
	r := newRig(t, oneSite)
	nobody, foreign, lame := job("nobody", "nemo", "2026-08-10T00:00:00Z", 60), job("foreign", "nemo", "2026-08-10T00:00:00Z", 60), job("lame", "nemo", "2026-08-10T00:00:00Z", 60)
	nobody.Meta = nobody.Meta[:1]
	foreign.Meta[1].Values = []string{"/ops"}
	lame.Components[0].Scores = nil
	idle, odd := job("idle", "nemo", "2026-08-10T00:00:00Z", 0), job("odd", "nemo", "2026-08-10T00:00:00Z", -5)
	r.data.records = []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60), nobody, foreign, lame, idle, odd}
	p := r.plans(t, "2026-08-20T00:00:00Z", nil)
	if !p.Partial || len(p.Effects) != 2 || !strings.Contains(text(t, p.Effects[1]), "NumberOfJobs: 1\n") {
		t.Fatalf("%+v", p)
	}
	all := strings.Join(p.Notes, "\n")
	for _, want := range []string{"3 records are left out", `left out: VO: test.hcl:16:80: `, `with the key "voms": nobody`, `"/ops" begins with no key of the map`, ": foreign", "HEPscore23: score: component Cores has no score HEPscore23: lame", "2 records that ran for less than a second"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %s", want, all)
		}
	}
	if len(p.Gauges) != 2 || p.Gauges[1].Value != 3 {
		t.Errorf("%+v", p.Gauges)
	}
}

func TestListsOfWhatIsLeftOutAreBounded(t *testing.T) {
	r := newRig(t, oneSite)
	for i := range 1200 {
		bad := job(fmt.Sprint("bad-", i), "nemo", "2026-08-10T00:00:00Z", 60)
		bad.Meta = bad.Meta[:1]
		r.data.records = append(r.data.records, bad)
	}
	p := r.plans(t, "2026-08-20T00:00:00Z", nil)
	if len(p.Effects) != 0 || len(p.Notes) > 40 || !strings.HasSuffix(p.Notes[len(p.Notes)-1], "left out: 200 more, which are not listed") || !strings.Contains(p.Notes[1], "bad-20, bad-21") || !p.Partial {
		t.Errorf("%v", p.Notes)
	}
	for _, n := range p.Notes {
		if len(n) > 512 {
			t.Errorf("the daemon cuts %q", n)
		}
	}
}

func TestARecordThatSeveralKeysFindCountsOnce(t *testing.T) {
	r := newRig(t, mapped+`
site_meta = ["site_id", "site"]
site "UNI" { ids = ["nemo", "bw"] }
`)
	both := job("1", "nemo", "2026-08-10T00:00:00Z", 60)
	both.Meta = append(both.Meta, record.MetaEntry{Key: "site", Values: []string{"bw", "nemo"}}).Sorted()
	r.data.records = []record.Record{both, job("2", "bw", "2026-08-10T00:00:00Z", 60)}
	p := r.plans(t, "2026-08-20T00:00:00Z", nil)
	if !strings.Contains(text(t, p.Effects[1]), "NumberOfJobs: 2\n") || len(r.data.asked) != 4 {
		t.Errorf("%s\n%v", text(t, p.Effects[1]), r.data.asked)
	}
}

func TestAnAnswerThatIsBrokenOffPlansNothing(t *testing.T) {
	r := newRig(t, oneSite)
	r.data.records = []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60), job("2", "nemo", "2026-08-10T00:00:00Z", 60)}
	r.data.fails = errBroken
	if p, err := r.tries(t, "2026-08-20T00:00:00Z", nil); !errors.Is(err, errBroken) || len(p.Effects) != 0 || p.State != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestRowsThatVanishedAreSaidToStayAtTheReceiver(t *testing.T) {
	r := newRig(t, oneSite)
	r.data.records = []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60)}
	r.runs(t, "2026-08-20T00:00:00Z", nil)
	r.data.records = nil
	p := r.runs(t, "2026-08-21T00:00:00Z", nil)
	if len(p.Effects) != 0 || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "the receiver keeps what it has") {
		t.Errorf("%+v", p)
	}
}

func TestAPlanMarksTheRowsThatWillChangeAtTheReceiver(t *testing.T) {
	r := newRig(t, strings.Replace(oneSite, "\"ce1.example.org\"\n", "record.meta.ce[0]\n", 1))
	add := func(id, ce string) {
		one := job(id, "nemo", "2026-08-10T00:00:00Z", 60)
		one.Meta = append(one.Meta, record.MetaEntry{Key: "ce", Values: []string{ce}}).Sorted()
		r.data.records = append(r.data.records, one)
	}
	add("1", "ce1")
	add("2", "ce2")
	if p := r.runs(t, "2026-08-20T00:00:00Z", nil); strings.Contains(p.Effects[1].Show, "new") || strings.Contains(p.Effects[1].Summary, "new") {
		t.Errorf("%+v", p.Effects[1])
	}
	add("3", "ce2")
	add("4", "ce3")
	p := r.runs(t, "2026-08-21T00:00:00Z", nil)
	if want := "summary of 3 rows, 1 new, 1 changed, 1 as they were"; !strings.HasSuffix(p.Effects[1].Summary, want) {
		t.Error(p.Effects[1].Summary)
	}
	for ce, want := range map[string]string{"ce1": "%%\n", "ce2": "%% changed\n", "ce3": "%% new\n"} {
		_, row, _ := strings.Cut(p.Effects[1].Show, "SubmitHost: "+ce)
		if i := strings.Index(row, "%%"); !strings.HasPrefix(row[i:], want) {
			t.Errorf("%s: %s", ce, row)
		}
	}
	if got := text(t, p.Effects[1]); strings.Contains(got, "changed") {
		t.Errorf("the marks are sent:\n%s", got)
	}
	if p := r.plans(t, "2026-08-22T00:00:00Z", map[string]string{"month": "2026-08"}); !strings.HasSuffix(p.Effects[1].Summary, "0 new, 0 changed, 3 as they were") {
		t.Error(p.Effects[1].Summary)
	}
}

func TestRowsWhoseKeyChangedAreTold(t *testing.T) {
	r := newRig(t, strings.Replace(oneSite, "\"ce1.example.org\"\n", "record.meta.site_id[0]\n", 1))
	r.data.records = []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60), job("2", "nemo", "2026-08-10T00:00:00Z", 60)}
	r.data.records[1].Meta = append(r.data.records[1].Meta[1:], record.MetaEntry{Key: "site_id", Values: []string{"old", "nemo"}}).Sorted()
	r.runs(t, "2026-08-20T00:00:00Z", nil)
	r.data.records[1].Meta[0].Values = []string{"new", "nemo"}
	for _, now := range []string{"2026-08-21T00:00:00Z", "2026-08-22T00:00:00Z"} {
		r.data.records[0].Stop += record.Second
		if p := r.runs(t, now, nil); len(p.Effects) != 2 || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "1 rows that were sent have no job any more") {
			t.Errorf("%s: %v", now, p.Notes)
		}
	}
}

func TestAStateThatIsTooLongGoesWithoutItsRows(t *testing.T) {
	s, err := readState(nil)
	if err != nil {
		t.Fatal(err)
	}
	site := s.stateOf("UNI")
	site.Through, site.Sent["2026-08"] = "2026-08", &sent{Jobs: 7, Rows: slices.Repeat([]string{"abcdefgh"}, 10_000)}
	text, err := s.encodeState()
	if again, bad := readState(text); err != nil || bad != nil || len(text) > maxState || again.stateOf("UNI").Sent["2026-08"].Jobs != 7 {
		t.Errorf("%d bytes, %v, %v", len(text), err, bad)
	}
}

func TestACertificateThatEndsIsToldAndOneThatEndedStopsThePlan(t *testing.T) {
	r := newRig(t, oneSite)
	ends := gridtest.Ends()
	if p := r.plans(t, ends.AddDate(0, 0, -3).Format("2006-01-02T15:04:05Z"), nil); len(p.Notes) == 0 || !strings.Contains(p.Notes[0], "ends at 2099-01-01") {
		t.Error(p.Notes)
	}
	if _, err := r.tries(t, ends.AddDate(0, 0, 1).Format("2006-01-02T15:04:05Z"), nil); err == nil || !strings.Contains(err.Error(), "ended at") {
		t.Error(err)
	}
}

func TestBeforeTheFirstMonthNothingIsSent(t *testing.T) {
	r := newRig(t, oneSite)
	r.data.records = []record.Record{job("1", "nemo", "2026-07-10T00:00:00Z", 60)}
	if p := r.runs(t, "2026-07-20T00:00:00Z", nil); len(p.Effects) != 0 || len(r.data.asked) != 0 {
		t.Error(names(p))
	}
}

func TestAStateOfAnotherFormatIsRefused(t *testing.T) {
	r := newRig(t, oneSite)
	for _, bad := range []string{`{"version":2}`, `{`, `{"version":1,"sites":{"UNI":null}}`, `{"version":1,"sites":{"UNI":{"through":"x"}}}`} {
		r.state = []byte(bad)
		if _, err := r.tries(t, "2026-08-20T00:00:00Z", nil); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	r.state = []byte(`{"version":1,"sites":{"UNI-EXAMPLE":{"through":"2026-08","sent":{"2026-08":{"digest":"d","jobs":1,"wall":2,"cpu":3}}}}}`)
	if _, err := r.tries(t, "2026-08-20T00:00:00Z", nil); err != nil {
		t.Error(err)
	}
}

func TestThePluginSaysWhatItIs(t *testing.T) {
	d := New().Describe()
	if d.Type != "apel" || d.Class != sdk.ClassKeyed || d.Schedule == "" {
		t.Errorf("%+v", d)
	}
	var _ sdk.Action = New()
}

// What was reported, whenever and however often, is in the end what the records say.
func TestTheReceiverEndsWithWhatTheRecordsSay(t *testing.T) {
	r := newRig(t, oneSite)
	var receiver apeltest.Receiver
	seen := 0
	for day := range 120 {
		now := at("2026-08-01T12:00:00Z").AddDate(0, 0, day)
		stop := now.AddDate(0, 0, -(day*7)%12) // some come late
		if !stop.Before(at("2026-08-01T00:00:00Z")) {
			r.data.records = append(r.data.records, job(fmt.Sprint(day), "nemo", stop.Format("2006-01-02T15:04:05Z"), 60+day))
		}
		if day%5 == 3 || day > 40 && day < 75 { // days without a run, and an outage
			continue
		}
		r.runs(t, now.Format("2006-01-02T15:04:05Z"), nil)
		for _, m := range r.service.Messages()[seen:] {
			if err := receiver.Take(plain(t, m.Data), now); err != nil {
				t.Fatal(err)
			}
			seen++
		}
	}
	var wall int64
	for _, one := range r.data.records {
		seconds, _ := one.Runtime()
		wall += seconds
	}
	if got := receiver.Sum("APEL-norm", "WallDuration"); got != wall {
		t.Errorf("the receiver has %d s, want %d", got, wall)
	}
	if jobs, syncs := receiver.Sum("APEL-norm", "NumberOfJobs"), receiver.Sum("APEL-sync", "NumberOfJobs"); jobs != int64(len(r.data.records)) || syncs != jobs {
		t.Errorf("the receiver has %d jobs and was told of %d, want %d", jobs, syncs, len(r.data.records))
	}
}

func TestJobsAreSentByDayAndADayThatChangedAgain(t *testing.T) {
	for version, header := range map[string]string{"0.3": "APEL-individual-job-message: v0.3", "0.4": "APEL-individual-job-message: v0.4"} {
		r := newRig(t, oneSite+"send = \"jobs\"\njobs_version = \""+version+"\"\n")
		var receiver apeltest.Receiver
		take := func(p sdk.Plan, now string) {
			for _, e := range p.Effects {
				if err := receiver.Take(text(t, e), at(now)); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.data.records = []record.Record{job("2", "nemo", "2026-08-10T10:00:00Z", 60), job("1", "nemo", "2026-08-10T09:00:00Z", 60), job("3", "nemo", "2026-08-11T00:00:00Z", 60)}
		p := r.runs(t, "2026-08-20T00:00:00Z", nil)
		take(p, "2026-08-20T00:00:00Z")
		want := []string{"site=UNI-EXAMPLE month=2026-08 sync", "site=UNI-EXAMPLE month=2026-08 jobs day=2026-08-10", "site=UNI-EXAMPLE month=2026-08 jobs day=2026-08-11"}
		if !slices.Equal(names(p), want) || !strings.HasPrefix(text(t, p.Effects[1]), header) {
			t.Fatal(names(p))
		}
		r.data.records = append(r.data.records, job("4", "nemo", "2026-08-11T23:59:59Z", 60), job("5", "nemo", "2026-08-12T00:00:00Z", 60))
		p = r.runs(t, "2026-08-21T00:00:00Z", nil)
		take(p, "2026-08-21T00:00:00Z")
		if got := names(p); len(got) != 3 || !strings.HasSuffix(got[1], "2026-08-11") || !strings.HasSuffix(got[2], "2026-08-12") {
			t.Error(got)
		}
		if rows, syncs := receiver.Rows("APEL-ind"), receiver.Sum("APEL-sync", "NumberOfJobs"); len(rows) != 5 || syncs != 5 || rows[0].Values["LocalJobId"] != "1" {
			t.Errorf("%d rows, %d jobs", len(rows), syncs)
		}
		if p := r.plans(t, "2026-08-22T00:00:00Z", nil); len(p.Effects) != 0 {
			t.Error(names(p))
		}
		if p := r.plans(t, "2026-08-22T00:00:00Z", map[string]string{"month": "2026-08"}); len(p.Effects) != 4 {
			t.Error(names(p))
		}
	}
}
