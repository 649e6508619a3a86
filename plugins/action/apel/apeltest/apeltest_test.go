package apeltest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
)

var now = time.Date(2026, 9, 2, 0, 0, 0, 0, time.UTC)

// documented is a message as the format's documentation and AUDITOR's plugin have it.
const documented = `APEL-normalised-summary-message: v0.4
Site: UNI-EXAMPLE
Month: 8
Year: 2026
VO: atlas
SubmitHost: ce1.example.org
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

func TestADocumentedMessageIsUnderstood(t *testing.T) {
	m, err := apeltest.Parse(documented, now)
	if err != nil || len(m.Records) != 1 || m.Records[0].Int("NumberOfJobs") != 12 || m.Records[0].Dicts["NormalisedCpuDuration"]["hepscore23"] != 7200000 {
		t.Fatalf("%+v, %v", m, err)
	}
}

func TestWhatTheReceiverRefusesIsRefused(t *testing.T) {
	for what, swap := range map[string][2]string{
		"another header":                {"v0.4", "v0.5"},
		"an unknown field":              {"VO: atlas", "Vo: atlas"},
		"a mandatory field that is not": {"NumberOfJobs: 12\n", ""},
		"null in a mandatory field":     {"Site: UNI-EXAMPLE", "Site: None"},
		"a scalar for a dictionary":     {"{HEPscore23: 1036800}", "1036800"},
		"an unknown benchmark":          {"{HEPscore23: 1036800}", "{HEPspec: 1, foo: 2}"},
		"a benchmark twice":             {"{HEPscore23: 1036800}", "{HEPscore23: 1, hepscore23: 2}"},
		"a fraction of a second":        {"1785628799", "1785628799.5"},
		"an end after the month":        {"LatestEndTime: 1785628799", "LatestEndTime: 1788220801"},
		"an end before the month":       {"EarliestEndTime: 1785542400", "EarliestEndTime: 1785542399"},
		"ends in the wrong order":       {"EarliestEndTime: 1785542400", "EarliestEndTime: 1785628800"},
		"a negative duration":           {"WallDuration: 86400", "WallDuration: -1"},
		"a month that is none":          {"Month: 8", "Month: 13"},
		"a month in the future":         {"Year: 2026", "Year: 2027"},
		"what is not ASCII":             {"VO: atlas", "VO: \u00e4tlas"},
		"a line without a key":          {"VO: atlas", "atlas"},
		"a field out of order":          {"VO: atlas\nSubmitHost: ce1.example.org", "SubmitHost: ce1.example.org\nVO: atlas"},
	} {
		bad := strings.Replace(documented, swap[0], swap[1], 1)
		if bad == documented {
			t.Fatalf("%s: nothing was replaced", what)
		}
		if _, err := apeltest.Parse(bad, now); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func FuzzNoMessageBreaksTheParser(f *testing.F) {
	f.Add(documented)
	f.Add("APEL-sync-message: v0.1\nSite: A\nNumberOfJobs: 1\nMonth: 1\nYear: 2026\n%%\n")
	f.Add("APEL-individual-job-message: v0.4\nSite: A\n%%")
	f.Fuzz(func(_ *testing.T, message string) { _, _ = apeltest.Parse(message, now) })
}
