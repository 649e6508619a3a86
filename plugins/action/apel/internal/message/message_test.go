package message_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
)

var now = time.Date(2026, 9, 2, 0, 0, 0, 0, time.UTC)

func summary() message.Summary {
	return message.Summary{
		Site: "UNI-EXAMPLE", Year: 2026, Month: time.August, VO: "atlas", SubmitHost: "ce1.example.org", Processors: 8,
		EarliestEndTime: 1785542400, LatestEndTime: 1785628799, WallDuration: 86400, CPUDuration: 600000,
		NormalisedWallDuration: []message.Amount{{"HEPscore23", 1036800}}, NormalisedCPUDuration: []message.Amount{{"HEPscore23", 7200000}},
		NumberOfJobs: 12,
	}
}

func job() message.Job {
	return message.Job{
		Site: "UNI-EXAMPLE", SubmitHost: "ce1", MachineName: "nemo", Queue: "compute", LocalJobID: "nemo-1", LocalUserID: "alice",
		GlobalUserName: "/DC=org/CN=alice", FQAN: "/atlas/Role=production", VO: "atlas", VOGroup: "/atlas", VORole: "Role=production",
		WallDuration: 60, CPUDuration: 50, Processors: 2, NodeCount: 1, StartTime: 1785542400, EndTime: 1785542460,
		InfrastructureDescription: "BURSAR-SLURM", InfrastructureType: "grid", MemoryReal: 1000, MemoryVirtual: 2000,
		ServiceLevels: []message.Level{{"HEPscore23", 15.25}, {"hepspec", 14}},
	}
}

func TestASummaryIsWrittenAsTheReceiverExpectsIt(t *testing.T) {
	s := summary()
	got := string(message.Pack(message.Summaries, [][]byte{s.Record()}, 1e6, 1000)[0])
	const want = `APEL-normalised-summary-message: v0.4
Site: UNI-EXAMPLE
Month: 8
Year: 2026
VO: atlas
SubmitHost: ce1.example.org
NodeCount: 0
Processors: 8
EarliestEndTime: 1785542400
LatestEndTime: 1785628799
WallDuration: 86400
CpuDuration: 600000
NormalisedWallDuration: {HEPscore23: 1036800}
NormalisedCpuDuration: {HEPscore23: 7200000}
NumberOfJobs: 12
%%
`
	if got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEveryFieldOfASummaryHasItsPlace(t *testing.T) {
	s := summary()
	s.GlobalUserName, s.VOGroup, s.VORole, s.Infrastructure, s.InfrastructureDescription, s.NodeCount = "/CN=a", "/atlas", "prod", "grid", "BURSAR-SLURM", 2
	s.NormalisedWallDuration = append(s.NormalisedWallDuration, message.Amount{"hepspec", 7})
	m := parse(t, message.Pack(message.Summaries, [][]byte{s.Record()}, 1e6, 1000)[0])
	keys := strings.Join(m.Records[0].Keys, " ")
	if keys != "Site Month Year GlobalUserName VO VOGroup VORole SubmitHost Infrastructure InfrastructureDescription NodeCount Processors EarliestEndTime LatestEndTime WallDuration CpuDuration NormalisedWallDuration NormalisedCpuDuration NumberOfJobs" {
		t.Error(keys)
	}
	if d := m.Records[0].Dicts["NormalisedWallDuration"]; d["hepscore23"] != 1036800 || d["hepspec"] != 7 {
		t.Error(d)
	}
}

func TestASyncAndJobsAreWrittenAsTheReceiverExpectsThem(t *testing.T) {
	sync := message.Sync{Site: "UNI-EXAMPLE", SubmitHost: "ce1", NumberOfJobs: 12, Year: 2026, Month: time.August}
	j := job()
	for kind, c := range map[message.Kind]struct {
		record []byte
		want   string
	}{
		message.Syncs: {sync.Record(), "Site: UNI-EXAMPLE\nSubmitHost: ce1\nNumberOfJobs: 12\nMonth: 8\nYear: 2026\n%%\n"},
		message.Jobs03: {j.Record(message.Jobs03), `Site: UNI-EXAMPLE
SubmitHost: ce1
MachineName: nemo
Queue: compute
LocalJobId: nemo-1
LocalUserId: alice
GlobalUserName: /DC=org/CN=alice
FQAN: /atlas/Role=production
VO: atlas
VOGroup: /atlas
VORole: Role=production
WallDuration: 60
CpuDuration: 50
Processors: 2
NodeCount: 1
StartTime: 1785542400
EndTime: 1785542460
InfrastructureDescription: BURSAR-SLURM
InfrastructureType: grid
MemoryReal: 1000
MemoryVirtual: 2000
ServiceLevelType: HEPscore23
ServiceLevel: 15.25
%%
`},
		message.Jobs04: {j.Record(message.Jobs04)[bytes.Index(j.Record(message.Jobs04), []byte("ServiceLevel")):], "ServiceLevel: {HEPscore23: 15.25, hepspec: 14}\n%%\n"},
	} {
		if string(c.record) != c.want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", kind, c.record, c.want)
		}
	}
	for _, kind := range []message.Kind{message.Jobs03, message.Jobs04} {
		if m := parse(t, message.Pack(kind, [][]byte{j.Record(kind)}, 1e6, 1000)[0]); m.Records[0].Values["LocalJobId"] != "nemo-1" {
			t.Error(m)
		}
	}
}

func parse(t *testing.T, text []byte) apeltest.Message {
	t.Helper()
	m, err := apeltest.Parse(string(text), now)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return m
}

func TestWhatTheReceiverWouldRefuseIsRefusedHere(t *testing.T) {
	for what, spoil := range map[string]func(*message.Summary){
		"no site":                  func(s *message.Summary) { s.Site = "" },
		"a site that is none":      func(s *message.Summary) { s.Site = "None" },
		"a newline":                func(s *message.Summary) { s.VO = "a\nSite: B" },
		"what is not ASCII":        func(s *message.Summary) { s.VO = "\u00e4" },
		"the end of a record":      func(s *message.Summary) { s.SubmitHost = "a%%b" },
		"blanks at the end":        func(s *message.Summary) { s.VO = "atlas " },
		"a text that is too long":  func(s *message.Summary) { s.VO = strings.Repeat("a", 256) },
		"no month":                 func(s *message.Summary) { s.Month = 13 },
		"a month in the future":    func(s *message.Summary) { s.Year = 2027 },
		"an end before the month":  func(s *message.Summary) { s.EarliestEndTime = 1785542399 },
		"an end after the month":   func(s *message.Summary) { s.LatestEndTime = 1788220800 },
		"ends in the wrong order":  func(s *message.Summary) { s.EarliestEndTime = s.LatestEndTime + 1 },
		"a negative duration":      func(s *message.Summary) { s.CPUDuration = -1 },
		"a negative normalised":    func(s *message.Summary) { s.NormalisedCPUDuration = []message.Amount{{"hepspec", -1}} },
		"nothing normalised":       func(s *message.Summary) { s.NormalisedWallDuration = nil },
		"an unknown benchmark":     func(s *message.Summary) { s.NormalisedWallDuration = []message.Amount{{"spec", 1}} },
		"a benchmark twice":        func(s *message.Summary) { s.NormalisedWallDuration = []message.Amount{{"hepspec", 1}, {"HEPSPEC", 1}} },
		"a negative number":        func(s *message.Summary) { s.NumberOfJobs = -1 },
		"too many jobs":            func(s *message.Summary) { s.NumberOfJobs = math.MaxInt32 + 1 },
		"a negative number of CPU": func(s *message.Summary) { s.Processors = -8 },
	} {
		s := summary()
		spoil(&s)
		if s.Check(now) == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	for what, spoil := range map[string]func(*message.Job){
		"no id":                 func(j *message.Job) { j.LocalJobID = "" },
		"an end before a start": func(j *message.Job) { j.EndTime = j.StartTime - 1 },
		"an end in the future":  func(j *message.Job) { j.EndTime = now.Unix() + 3*86400 },
		"no start":              func(j *message.Job) { j.StartTime = 0 },
		"a negative duration":   func(j *message.Job) { j.WallDuration = -1 },
		"too much CPU time":     func(j *message.Job) { j.CPUDuration = math.MaxInt32 + 1 },
		"too high a level":      func(j *message.Job) { j.ServiceLevels[0].Value = 1e7 },
		"a level that is none":  func(j *message.Job) { j.ServiceLevels[0].Value = math.NaN() },
		"an unknown benchmark":  func(j *message.Job) { j.ServiceLevels[0].Benchmark = "x" },
		"a newline in the name": func(j *message.Job) { j.GlobalUserName = "a\r" },
	} {
		j := job()
		spoil(&j)
		if j.Check(now) == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	for _, most := range []struct {
		name string
		want int
	}{{"Infrastructure", 20}, {"InfrastructureType", 20}, {"InfrastructureDescription", 100}, {"Queue", 100}, {"VO", 255}} {
		text := strings.Repeat("x", most.want)
		if message.CheckText(most.name, text) != nil || message.CheckText(most.name, text+"x") == nil {
			t.Errorf("%s does not have %d characters", most.name, most.want)
		}
	}
	s, j := summary(), job()
	if err := s.Check(now); err != nil {
		t.Error(err)
	}
	if err := j.Check(now); err != nil {
		t.Error(err)
	}
	if err := (&message.Sync{Site: "A", NumberOfJobs: 1, Year: 2026, Month: 14}).Check(now); err == nil {
		t.Error("a sync of no month is accepted")
	}
}

func TestWhatPassesTheCheckIsReadBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		if s.Check(now) != nil {
			return
		}
		text := message.Pack(message.Summaries, [][]byte{s.Record(), s.Record()}, 1e6, 1000)[0]
		m, err := apeltest.Parse(string(text), now)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(m.Records) != 2 {
			t.Fatalf("%d records in\n%s", len(m.Records), text)
		}
		r := m.Records[1]
		same := r.Values["Site"] == s.Site && value(s.VO) == r.Values["VO"] && value(s.GlobalUserName) == r.Values["GlobalUserName"] &&
			r.Int("WallDuration") == s.WallDuration && r.Int("Processors") == s.Processors && r.Int("NumberOfJobs") == s.NumberOfJobs
		if !same {
			t.Fatalf("%+v was read as %v", s, r.Values)
		}
	})
}

// value is what the receiver makes of a text.
func value(s string) string {
	if slices.Contains([]string{"none", "null"}, strings.ToLower(s)) {
		return ""
	}
	return s
}

func drawn(t *rapid.T) message.Summary {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,20}`), rapid.SampledFrom([]string{"none", "a:b", "{x}", "%", "%%", "a b"}))
	number := rapid.Int64Range(-2, math.MaxInt64)
	s := summary()
	s.Site, s.VO, s.GlobalUserName, s.SubmitHost = text.Draw(t, "site"), text.Draw(t, "vo"), text.Draw(t, "user"), text.Draw(t, "host")
	s.WallDuration, s.Processors, s.NumberOfJobs = number.Draw(t, "wall"), number.Draw(t, "cores"), number.Draw(t, "jobs")
	return s
}

func TestMessagesStayUnderTheLimitAndKeepEveryRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, limit, most := rapid.IntRange(0, 40).Draw(t, "records"), rapid.IntRange(1, 4000).Draw(t, "limit"), rapid.IntRange(1, 10).Draw(t, "most")
		var records [][]byte
		for i := range n {
			records = append(records, (&message.Sync{Site: fmt.Sprintf("S%d", i), NumberOfJobs: 1, Year: 2026, Month: 8}).Record())
		}
		var seen []string
		for _, text := range message.Pack(message.Syncs, records, limit, most) {
			m, err := apeltest.Parse(string(text), now)
			if err != nil || len(m.Records) == 0 || len(m.Records) > most || len(m.Records) != message.Count(text) {
				t.Fatalf("%v: %d records in\n%s", err, len(m.Records), text)
			}
			if len(text) > limit && len(m.Records) > 1 {
				t.Fatalf("%d bytes for a limit of %d", len(text), limit)
			}
			for _, r := range m.Records {
				seen = append(seen, r.Values["Site"])
			}
		}
		for i := range n {
			if seen[i] != fmt.Sprintf("S%d", i) {
				t.Fatal(seen)
			}
		}
	})
}

func TestAMessageIsHalvedBetweenRecords(t *testing.T) {
	var records [][]byte
	for i := range 5 {
		records = append(records, (&message.Sync{Site: fmt.Sprintf("S%d", i), NumberOfJobs: 1, Year: 2026, Month: 8}).Record())
	}
	whole := message.Pack(message.Syncs, records, 1e6, 1000)[0]
	a, b, ok := message.Halve(whole)
	if !ok || len(parse(t, a).Records) != 2 || len(parse(t, b).Records) != 3 || parse(t, b).Records[0].Values["Site"] != "S2" {
		t.Fatalf("%v\n%s\n%s", ok, a, b)
	}
	if _, _, ok := message.Halve(message.Pack(message.Syncs, records[:1], 1e6, 1000)[0]); ok {
		t.Error("one record was halved")
	}
}

func TestBenchmarksAreWrittenInOneWay(t *testing.T) {
	if b, err := message.Benchmark("hepSCORE23"); b != "HEPscore23" || err != nil {
		t.Error(b, err)
	}
	if _, err := message.Benchmark("HS06"); err == nil {
		t.Error("HS06 is accepted")
	}
}

func FuzzHalvesHoldEveryRecord(f *testing.F) {
	f.Add([]byte("h\na: b\n%%\nc: d\n%%\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, b, ok := message.Halve(text)
		if ok && (len(a) >= len(text)+1 || len(b) >= len(text)+1) {
			t.Fatalf("%q became %q and %q", text, a, b)
		}
	})
}
