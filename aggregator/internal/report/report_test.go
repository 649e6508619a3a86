package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

func now() time.Time { return time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC) }

// jobsOfCMS are those of two users in October: ann leaves processors unused, and bob uses
// more than booked.
func jobsOfCMS() []apitest.Job {
	job := func(id, user, submit, start, stop string, cores, cpu int64) apitest.Job {
		return apitest.Job{
			ID: id, Group: "cms", User: user, Submit: "2026-10-0" + submit + ":00Z", Start: "2026-10-0" + start + ":00:00Z", Stop: "2026-10-0" + stop + ":00:00Z",
			Cores: cores, CPU: cpu, Memory: 2048, MemoryUsed: 1024, State: "COMPLETED",
		}
	}
	return []apitest.Job{
		job("a1", "ann", "2T23:55", "3T00", "3T10", 8, 30*3600),
		job("a2", "ann", "3T23:55", "4T00", "4T01", 4, 3600),
		job("a3", "ann", "4T23:40", "5T00", "5T01", 1, 3600),
		job("b1", "<b>bob", "4T23:59", "5T00", "5T01", 1, 9000),
		job("b2", "<b>bob", "4T23:58", "5T00", "5T01", 2, 3600),
	}
}

// unnamed is a job of no user, which does not say what it used.
func unnamed() apitest.Job {
	return apitest.Job{ID: "n1", Group: "cms", Start: "2026-10-06T00:00:00Z", Stop: "2026-10-06T01:00:00Z", Cores: 10, GPUs: 5}
}

// worldOf is a cluster with these jobs in November.
func worldOf(t *testing.T, jobs ...apitest.Job) *apitest.World {
	t.Helper()
	w := apitest.New(t)
	w.Options.Now = now
	w.Collect(apitest.Nemo(), apitest.Records(jobs...), &store.IngestCommand{
		Now: apitest.At("2026-11-22"), Watermarks: []store.Watermark{{Source: apitest.Nemo(), CompleteTo: apitest.At("2026-11-22T13:00:00Z")}},
	})
	return w
}

// autumn is a cluster of three groups, with clusters, service units and what was
// contributed.
func autumn(t *testing.T) *apitest.World {
	t.Helper()
	katana := map[string]string{"site_id": "katana"}
	month := func(id, day string) apitest.Job {
		return apitest.Job{ID: id, Group: "zeus", User: "hera", Start: day, Stop: day + "T05:00:00Z", Cores: 1, HS: 2}
	}
	jobs := append(jobsOfCMS(), unnamed(), month("z5", "2026-05-03"), month("z6", "2026-06-03"), month("z8", "2026-08-03"), month("z9", "2026-09-03"),
		apitest.Job{ID: "x1", Group: "<b>atlas", User: "zed", Start: "2026-10-01", Stop: "2026-10-31T21:07:24.404435Z", Cores: 1667, HS: 2, Meta: katana},
		apitest.Job{ID: "x2", Group: "<b>atlas", User: "zed", Start: "2026-10-07", Cores: 1, HS: 2, Meta: katana},
		apitest.Job{ID: "g1", User: "gast", Start: "2026-10-08", Stop: "2026-10-08T05:00:00Z", Cores: 1},
	)
	w := worldOf(t, jobs...)
	one := accounting.One
	claims := func(id, pi string, exempt bool, groups ...string) accounting.Project {
		return accounting.Project{ID: id, From: record.None, To: record.None, States: []accounting.ProjectState{{From: record.None, PI: pi, Groups: groups, Exempt: &exempt}}}
	}
	gave := func(by string, amount accounting.Decimal) accounting.Contribution {
		return accounting.Contribution{ID: by, By: by, Amount: amount * one, Split: 100 * one, Factor: one, From: record.None, To: record.None}
	}
	w.Settings.Directory = accounting.DirectorySettings{
		People:        []accounting.Person{{ID: "Bell", Name: "A. Bell"}},
		Projects:      []accounting.Project{claims("higgs", "Bell", false, "<b>atlas"), claims("lhc", "Turing", false, "cms"), claims("guests", "Guests", true, "zeus")},
		Units:         accounting.UnitRates{Default: &one},
		Contributions: []accounting.Contribution{gave("Bell", 12), gave("Darwin", 15), gave("Guests", 8)},
	}
	site := func(name string) []accounting.NodeMatch {
		return []accounting.NodeMatch{{Key: "site_id", Values: []string{name}}}
	}
	has := func(from string, cores int64) []accounting.ClusterPart {
		return []accounting.ClusterPart{{From: apitest.At(from), To: record.None, Components: map[string]int64{"Cores": cores}}}
	}
	w.Settings.Capacity = accounting.CapacityPlan{Clusters: []accounting.Cluster{
		{Name: "katana", Match: site("katana"), Parts: has("2026-10-02", 2000)},
		{Name: "scluster", Match: site("scluster"), Parts: has("2026-01-01", 10)},
	}}
	w.Keep()
	return w
}

func reportOfBoth(t *testing.T) *report.Document {
	t.Helper()
	d, err := report.Usage(t.Context(), autumn(t).API(), report.UsageOptions{Periods: []string{"2026-10", "this-year"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func reportOfShares(t *testing.T) *report.Document {
	t.Helper()
	d, err := report.Subscription(t.Context(), autumn(t).API(), report.SubscriptionOptions{Periods: []string{"2026-10"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func reportOfClusters(t *testing.T) *report.Document {
	t.Helper()
	d, err := report.Utilization(t.Context(), autumn(t).API(), report.UtilizationOptions{Periods: []string{"2026-10"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheSamePeriodTwiceIsTwoColumns(t *testing.T) {
	once, err := report.Usage(t.Context(), autumn(t).API(), report.UsageOptions{Periods: []string{"2026-10"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.Usage(t.Context(), autumn(t).API(), report.UsageOptions{Periods: []string{"2026-10", "2026-10"}, Now: now()})
	if err != nil || len(d.Tables[0].Columns) != 2*len(once.Tables[0].Columns)-1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestAClusterMayBeCalledAsTheBucketIs(t *testing.T) {
	w := autumn(t)
	w.Settings.Capacity.Clusters[0].Name = "day"
	w.Keep()
	d, err := report.Utilization(t.Context(), w.API(), report.UtilizationOptions{Periods: []string{"2026-10"}, Now: now()})
	if err != nil || !slices.ContainsFunc(d.Tables[1].Columns, func(c report.Column) bool { return c.Name == "day (cluster)" }) {
		t.Error(d, err)
	}
}

func TestClustersOfWhichNoCapacityIsKnownHaveNoUtilization(t *testing.T) {
	w := worldOf(t, jobsOfCMS()...)
	w.Settings.Capacity.Clusters = []accounting.Cluster{{Name: "nemo", Match: []accounting.NodeMatch{{Key: "group_id", Values: []string{"cms"}}}}}
	w.Settings.Capacity.Clusters[0].Sources = []string{apitest.Nemo().String()}
	w.Collect(apitest.Nemo(), nil, &store.IngestCommand{Facts: []store.Fact{apitest.Capacity(apitest.Nemo(), "2026-11-01", 4)}})
	w.Keep()
	_, err := report.Utilization(t.Context(), w.API(), report.UtilizationOptions{Periods: []string{"2026-10"}, Now: now()})
	if !errors.Is(err, report.ErrNothing) || !strings.Contains(err.Error(), "no capacity configured or reported") {
		t.Error(err)
	}
}

func TestAReportOfWhatIsNotThereSaysSoAndNamesWhatIsNear(t *testing.T) {
	w := autumn(t)
	for _, c := range []struct {
		options report.UsageOptions
		says    string
	}{
		{report.UsageOptions{Periods: []string{"2031"}}, "no record ran in 2031; the nearest months that have some are 2026-09, 2026-10, 2026-11"},
		{report.UsageOptions{Periods: []string{"2031", "2026-10"}, By: "user_id", Where: map[string]string{"group_id": "cmss"}}, `no record of 2031 and 2026-10 has the group_id "cmss"; did you mean "cms"?`},
		{report.UsageOptions{Periods: []string{"2031", "2026-10"}, By: "user_id", Where: map[string]string{"group_id": "zeus"}}, "no record of group_id zeus ran in 2031 and 2026-10; the nearest months that have some are 2026-06, 2026-08, 2026-09"},
		{report.UsageOptions{Periods: []string{"2031", "2026-10"}, By: "user_id", Where: map[string]string{"group_id": "quite-another"}}, "there are <b>atlas, cms"},
	} {
		c.options.Now = now()
		_, err := report.Usage(t.Context(), w.API(), c.options)
		if !errors.Is(err, report.ErrNothing) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %s", c.options, err, c.says)
		}
	}
}

func TestADocumentSurvivesItsJSON(t *testing.T) {
	d := reportOfBoth(t)
	var first, second bytes.Buffer
	if err := d.WriteJSON(&first); err != nil {
		t.Fatal(err)
	}
	var again report.Document
	if err := json.Unmarshal(first.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	if err := again.WriteJSON(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error(err, cmp.Diff(first.String(), second.String()))
	}
}

func TestAPageNeedsNothingElseAndTrustsNoText(t *testing.T) {
	var b bytes.Buffer
	if err := reportOfBoth(t).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "http:", "https:", "<link", "@import", "<b>atlas"} {
		if strings.Contains(strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, ""), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page, "&lt;b&gt;atlas") || !strings.Contains(page, "<svg") {
		t.Error("the page has no atlas, or no chart")
	}
}

func TestReportsAreWrittenAsTheyWereReleased(t *testing.T) {
	for name, d := range map[string]*report.Document{
		"usage": reportOfBoth(t), "subscription": reportOfShares(t), "utilization": reportOfClusters(t),
		"efficiency": reportOfEfficiency(t), "statement": reportOfCMS(t),
	} {
		for ending, write := range map[string]func(*bytes.Buffer) error{
			"json": func(b *bytes.Buffer) error { return d.WriteJSON(b) },
			"csv":  func(b *bytes.Buffer) error { return d.WriteCSV(b) },
			"html": func(b *bytes.Buffer) error { return d.WriteHTML(b) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name+"."+ending, b.Bytes())
		}
	}
}

// What stands lowest in a chart – names of rows, or the legend where there is one – is at its end.
func TestCharts_RoomBelow_IsThatOfWhatStandsThere(t *testing.T) {
	t.Parallel()
	charts := 0
	for name, query := range map[string]url.Values{
		"distributions": {"period": {"2026-10"}}, "usage": {"period": {"2026-10"}, "by": {"group_id"}}, "centre": {"period": {"2026-10"}}, "efficiency": {"period": {"2026-10"}},
	} {
		d, err := report.Make(t.Context(), autumn(t).API(), name, query, now())
		var b bytes.Buffer
		if err == nil {
			err = d.WriteHTML(&b)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		for _, svg := range regexp.MustCompile(`(?s)<svg viewBox="0 0 \d+ (\d+)".*?</svg>`).FindAllStringSubmatch(b.String(), -1) {
			height, _ := strconv.ParseFloat(svg[1], 64)
			lowest := 0.0
			for _, at := range regexp.MustCompile(`<text [^>]*\by="([0-9.]+)"`).FindAllStringSubmatch(svg[0], -1) {
				y, _ := strconv.ParseFloat(at[1], 64)
				lowest = max(lowest, y)
			}
			if charts++; lowest > height || lowest < height-25 {
				t.Errorf("%s: of a chart of height %g the lowest text is at %g: %.200s", name, height, lowest, svg[0])
			}
		}
	}
	if charts < 5 {
		t.Errorf("%d charts", charts)
	}
}
