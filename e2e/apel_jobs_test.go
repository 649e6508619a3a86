//go:build e2e

package e2e_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
)

// gridJob is a job as the test knows it.
type gridJob struct {
	id, site            string // site as GOCDB names it
	meta                string // by which it is the site's
	voms, host, class   string
	cores, seconds, cpu int64
	stop                time.Time
}

// record is the job as AUDITOR's clients post it.
func (j gridJob) record() string {
	voms := ""
	if j.voms != "" {
		voms = fmt.Sprintf(`"voms":[%q],`, j.voms)
	}
	return fmt.Sprintf(`{"record_id":%q,"meta":{%s,%s"headnode":[%q],"class":[%q]},"components":[{"name":"Cores","amount":%d,"scores":[]},{"name":"TotalCPU","amount":%d,"scores":[]}],"start_time":%q,"stop_time":%q}`,
		j.id, j.meta, voms, j.host, j.class, j.cores, j.cpu, j.stop.Add(-time.Duration(j.seconds)*time.Second).Format(time.RFC3339), j.stop.Format(time.RFC3339))
}

// apelSites are the sites of the configuration, with how records name them.
func apelSites() map[string][]string {
	return map[string][]string{
		"UNI-A": {`"site_id":["a1"]`, `"grid_site":["a2"]`, `"site_id":["a1"],"grid_site":["a2"]`},
		"UNI-B": {`"site_id":["b"]`},
	}
}

// varied is a text of random length that begins so.
func varied(chance *rand.Rand, begin string, most int) string {
	b := []byte(begin)
	for range chance.IntN(most) {
		b = append(b, `abcdefghijklmnopqrstuvwxyz/=:.ABCDEF0123456789`[chance.IntN(46)])
	}
	return string(b)
}

// gridHosts are submit hosts with names of different length.
func gridHosts() []string {
	var list []string
	for i := range 6 {
		list = append(list, fmt.Sprintf("ce%d.example.org:9619/%s", i, strings.Repeat("ce-queue/", 2*i)))
	}
	return list
}

// gridJobs are n jobs of each site that stopped in a month, with long texts of different
// length.
func gridJobs(chance *rand.Rand, month time.Time, name string, n int) []gridJob {
	var out []gridJob
	pick := func(list ...string) string { return list[chance.IntN(len(list))] }
	for _, s := range slices.Sorted(maps.Keys(apelSites())) {
		for i := range n {
			length := int64(month.AddDate(0, 1, 0).Sub(month) / time.Second)
			out = append(out, gridJob{
				id: varied(chance, fmt.Sprintf("%s-%s-%s-%d-", name, s, month.Format("200601"), i), 180), site: s, meta: pick(apelSites()[s]...),
				voms: varied(chance, pick("/atlas/", "/atlas/Role=production/", "/cms/"), 200), host: pick(gridHosts()...), class: pick("new", "old", "other"),
				cores: []int64{1, 8}[chance.IntN(2)], seconds: 1 + chance.Int64N(100_000), cpu: chance.Int64N(800_000), stop: month.Add(time.Duration(chance.Int64N(length)) * time.Second),
			})
		}
	}
	return out
}

// postJobs writes the records of jobs, all or none.
func postJobs(t *testing.T, g *site.Aggregator, jobs ...gridJob) {
	t.Helper()
	var list []string
	for _, j := range jobs {
		list = append(list, j.record())
	}
	g.Post("/records", "["+strings.Join(list, ",")+"]")
}

// apelSum is what APEL should have of the jobs that one row stands for.
type apelSum struct {
	Wall, CPU, First, Last, Jobs     int64
	NewWall, NewCPU, OldWall, OldCPU int64 // normalised by HEPscore23 and by hepspec
}

func vo(voms string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(voms, "/"), "/")
	return name
}

// hepscore is what a core of a class of nodes scores, as the configuration says.
func hepscore(class string) float64 {
	switch class {
	case "new":
		return 21.5
	case "old":
		return 9.25
	}
	return 10
}

// sums adds up jobs by what makes a row; those that have no VO go nowhere.
func sums(jobs []gridJob) map[string]apelSum {
	out := map[string]apelSum{}
	for _, j := range jobs {
		if j.voms == "" {
			continue
		}
		key := fmt.Sprint(j.site, " ", j.stop.Year(), "-", int(j.stop.Month()), " ", vo(j.voms), " ", j.host, " ", j.cores)
		s, there := out[key]
		if stop := j.stop.Unix(); !there {
			s.First, s.Last = stop, stop
		} else {
			s.First, s.Last = min(s.First, stop), max(s.Last, stop)
		}
		norm := func(seconds int64, score float64) int64 { return int64(math.RoundToEven(float64(seconds) * score)) }
		s.Wall, s.CPU, s.Jobs = s.Wall+j.seconds, s.CPU+j.cpu, s.Jobs+1
		s.NewWall, s.NewCPU = s.NewWall+norm(j.seconds, hepscore(j.class)), s.NewCPU+norm(j.cpu, hepscore(j.class))
		s.OldWall, s.OldCPU = s.OldWall+norm(j.seconds, 12), s.OldCPU+norm(j.cpu, 12)
		out[key] = s
	}
	return out
}

// held are the rows that a receiver has.
func held(r *apeltest.Receiver) map[string]apelSum {
	out := map[string]apelSum{}
	for _, row := range r.Rows("APEL-normalised") {
		key := fmt.Sprint(row.Values["Site"], " ", row.Values["Year"], "-", row.Values["Month"], " ", row.Values["VO"], " ", row.Values["SubmitHost"], " ", row.Values["Processors"])
		norm := func(field, benchmark string) int64 { return int64(row.Dicts[field][benchmark]) }
		out[key] = apelSum{
			Wall: row.Int("WallDuration"), CPU: row.Int("CpuDuration"), First: row.Int("EarliestEndTime"), Last: row.Int("LatestEndTime"), Jobs: row.Int("NumberOfJobs"),
			NewWall: norm("NormalisedWallDuration", "hepscore23"), NewCPU: norm("NormalisedCpuDuration", "hepscore23"),
			OldWall: norm("NormalisedWallDuration", "hepspec"), OldCPU: norm("NormalisedCpuDuration", "hepspec"),
		}
	}
	return out
}

// sameSums compares what a receiver has with what the jobs say.
func sameSums(t *testing.T, r *apeltest.Receiver, jobs []gridJob) {
	t.Helper()
	got, want := held(r), sums(jobs)
	if !maps.Equal(got, want) {
		t.Errorf("the receiver has %d rows, the jobs make %d:\n%v\n%v", len(got), len(want), got, want)
	}
	var n int64
	for _, s := range want {
		n += s.Jobs
	}
	if told := r.Sum("APEL-sync", "NumberOfJobs"); told != n {
		t.Errorf("the sync messages tell of %d jobs, and there are %d", told, n)
	}
}
