//go:build e2e

package e2e_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/gridtest"
)

// pluginJob is a job that AUDITOR's plugins for APEL, utilization and priorities look at.
type pluginJob struct {
	id, siteID, site, voms, group string
	cores, nodes, cpu, seconds    int64
	hepscore, hepspec             float64
	stop                          time.Time
}

func (j *pluginJob) start() time.Time { return j.stop.Add(-time.Duration(j.seconds) * time.Second) }

func (j *pluginJob) record() string {
	return fmt.Sprintf(`{"record_id":%q,"meta":{"site_id":[%q],"site":[%q],"voms":[%q],"VOMS":[%q],"group_id":[%q],"headnode":["ce%d"],"subject":["/DC=org/CN=%s"]},
		"components":[{"name":"Cores","amount":%d,"scores":[{"name":"HEPscore23","value":%g},{"name":"hepscore23","value":%g}]},{"name":"NumCPUs","amount":%d,"scores":[{"name":"HEPSPEC","value":%g}]},
		{"name":"TotalCPU","amount":%d,"scores":[]},{"name":"NNodes","amount":%d,"scores":[]}],"start_time":%q,"stop_time":%q}`,
		j.id, j.siteID, j.site, j.voms, j.voms, j.group, j.nodes, j.group, j.cores, j.hepscore, j.hepscore, j.cores, j.hepspec,
		j.cpu, j.nodes, j.start().Format(time.RFC3339), j.stop.Format(time.RFC3339))
}

// pluginJobs are jobs of last month and of this one.
func pluginJobs(chance *rand.Rand, month, now time.Time) (all []pluginJob) {
	pick := func(list ...string) string { return list[chance.IntN(len(list))] }
	edge := now.AddDate(0, 0, -14) // of the look-back of priorities
	for len(all) < 400 {
		j := pluginJob{
			id: fmt.Sprintf("slurm-%d", len(all)), siteID: pick("site_id_1", "site_id_2", "site_id_3", "elsewhere"), site: pick("site-a", "site-b"),
			voms: pick("/atlas/Role=production/Capability=NULL", "/cms/dcms/Role=lcgadmin", "/ops/Role=NULL/Capability=NULL", "/belle/Role=pilot/x"), group: pick("group1", "group2", "group3", "other"),
			cores: 1 + chance.Int64N(16), nodes: 1 + chance.Int64N(3), seconds: 1 + chance.Int64N(200_000), hepscore: 10 + float64(chance.IntN(40))/4, hepspec: 1 + chance.Float64(),
			stop: now.Add(-time.Duration(1+chance.Int64N(int64(now.Sub(month)/time.Second))) * time.Second),
		}
		j.cpu = 500 * chance.Int64N(2*j.cores*j.seconds) // AUDITOR's milliseconds, halves of seconds among them
		if apart := j.start().Sub(edge).Abs(); apart > time.Hour {
			all = append(all, j)
		}
	}
	// A group of which all jobs stop on one day.
	for i := range 5 {
		j := all[i]
		j.id, j.voms, j.stop = fmt.Sprintf("day-%d", i), "/single/Role=day/x", month.AddDate(0, 0, 9).Add(time.Duration(i)*time.Hour)
		all = append(all, j)
	}
	return all
}

// AUDITOR's plugins for APEL and for utilization, as PyPI has them, and its rule for
// priorities say of the same records what the configurations that are converted from theirs
// say.
func TestMoving_PublishedPlugins_AgreeWithTheirConversions(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	now := time.Now().UTC().Truncate(time.Second)
	month := time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, time.UTC)
	t.Logf("seed %d", *seed)
	jobs := pluginJobs(rand.New(rand.NewPCG(*seed, 16)), month, now)
	cert, key := gridtest.New(t).Host(t, "bursar.example.org", gridtest.RSA(t))
	agg := s.Aggregator()
	host, port, _ := strings.Cut(strings.TrimPrefix(agg.URL, "http://"), ":")
	apel := auditorExample(t, s, "apel.yml", "/etc/grid-security/hostcert.pem", cert, "/etc/grid-security/hostkey.pem", key, "log_level: INFO", "log_level: TRACE",
		"ip: 127.0.0.1", "ip: "+host, "port: 3333", "port: "+port, "use_tls: True", "use_tls: False", "/var/log", s.Dir, "/var/lib/auditor_apel_plugin", s.Dir)
	utilization := auditorExample(t, s, "utilization.yml", "[auditor.example.org]", "["+host+"]", "[8001]", "["+port+"]", "enable_email_report: True", "enable_email_report: False",
		"/var/lib/auditor_utilization_plugin", s.Dir, "file: app.log", "file: "+filepath.Join(s.Dir, "app.log"), "[production, lcgadmin, ilc, ops]", "[]")
	priority := auditorExample(t, s, "priority.yml")
	outgoing := t.TempDir()
	blocks := converted(t, s, apel)
	blocks = regexp.MustCompile(`(?s)    sign \{.*?\n    \}\n`).ReplaceAllString(blocks, "")
	blocks = regexp.MustCompile(`(?s)    ams \{.*?\n    \}\n`).ReplaceAllString(blocks, fmt.Sprintf("directory { path = %q }\n", outgoing))
	blocks = regexp.MustCompile(`from( *)= "[0-9-]*"`).ReplaceAllString(blocks, fmt.Sprintf("from = %q", month.Format("2006-01")))
	blocks += converted(t, s, priority) + converted(t, s, utilization)
	agg.Add(regexp.MustCompile(`schedule = "[^"]*"`).ReplaceAllString(blocks, `schedule = "@manual"`))
	agg.Start()
	agg.AwaitReady()
	var posts []string
	for i := range jobs {
		posts = append(posts, jobs[i].record())
	}
	agg.Post("/records", "["+strings.Join(posts, ",")+"]")
	t.Run("APEL", func(t *testing.T) { sameAPEL(t, agg, apel, outgoing, month) })
	t.Run("Utilization", func(t *testing.T) {
		sameUtilization(t, s, agg, utilization, month, fmt.Sprintf("auditor_summary_%s_%d_%d.csv", host, int(month.Month()), month.Year()))
	})
	t.Run("Priority", func(t *testing.T) { samePriorities(t, agg, jobs, now.AddDate(0, 0, -14)) })
}

var summary = regexp.MustCompile(`(?s)Message:\n(APEL-normalised-summary.*?%%\n) \(`)

// sameAPEL compares the rows of APEL's messages.
func sameAPEL(t *testing.T, agg *site.Aggregator, config, outgoing string, month time.Time) {
	theirs, ours := &apeltest.Receiver{}, &apeltest.Receiver{}
	for _, name := range []string{"SITE_A", "SITE_B"} {
		out, err := exec.CommandContext(t.Context(), rig.AuditorPlugin(t, "auditor-apel-republish"), "-y", month.Format("2006"), "-m", month.Format("1"), "-s", name, "-c", config, "--dry-run").CombinedOutput()
		found := summary.FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("AUDITOR's APEL plugin: %v\n%.3000s", err, out)
		}
		if err := theirs.Take(string(found[1]), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := agg.Bursar("actions", "run", "apel/auditor"); err != nil {
		t.Fatal(out, err)
	}
	site.Eventually(t, "the messages are written", func() (bool, string) {
		var r apelRun
		err := agg.Get("/v1/actions/apel/auditor/runs/1", &r)
		return err == nil && r.Run.Ended != nil && r.Run.Done == r.Run.Effects && r.Run.Done > 0, fmt.Sprintf("%+v %v", r, err)
	})
	files, _ := filepath.Glob(filepath.Join(outgoing, "????????", "??????????????"))
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err == nil {
			err = ours.Take(string(text), time.Now())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rows := func(r *apeltest.Receiver) (all []apeltest.Record) {
		all = slices.DeleteFunc(r.Rows("APEL-normalised"), func(row apeltest.Record) bool { return row.Values["Month"] != month.Format("1") }) // bursar sends this month, too
		for i := range all {
			for name := range all[i].Dicts {
				delete(all[i].Values, name)
			}
			delete(all[i].Values, "InfrastructureDescription") // bursar's own
		}
		return all
	}
	want, got := rows(theirs), rows(ours)
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(apeltest.Record{}, "Keys")); d != "" || len(want) < 50 {
		t.Errorf("%d rows (-AUDITOR +bursar)\n%.4000s", len(want), d)
	}
	t.Logf("%d rows", len(want))
}

// sameUtilization compares AUDITOR's file with that of the converted action.
func sameUtilization(t *testing.T, s *site.Site, agg *site.Aggregator, config string, month time.Time, name string) {
	out, err := exec.CommandContext(t.Context(), rig.AuditorPlugin(t, "auditor-utilization-plugin"), "-c", config, "--month", month.Format("1"), "--year", month.Format("2006"), "--oneshot").CombinedOutput()
	theirs, missing := os.ReadFile(filepath.Join(s.Dir, name))
	if missing != nil {
		t.Fatalf("AUDITOR's utilization plugin: %v, %v\n%.3000s", err, missing, out)
	}
	if out, err := agg.Bursar("actions", "run", "energy/auditor", "period="+month.Format("2006-01")); err != nil {
		t.Fatal(out, err)
	}
	var ours []byte
	site.Eventually(t, "the table is written", func() (bool, string) {
		ours, err = os.ReadFile(filepath.Join(s.Dir, month.Format("auditor_summary_auditor_1_2006.csv")))
		return err == nil, fmt.Sprint(err)
	})
	if d := cmp.Diff(string(theirs), string(ours)); d != "" || strings.Count(string(theirs), "\n") != 6 {
		t.Errorf("(-AUDITOR +bursar)\n%s", d)
	}
}

// samePriorities compares what a run would set with AUDITOR's formula.
func samePriorities(t *testing.T, agg *site.Aggregator, jobs []pluginJob, since time.Time) {
	used, sum := map[string]float64{"group1": 0, "group2": 0, "group3": 0}, 0.0
	for i := range jobs {
		if j := &jobs[i]; j.group != "other" && !j.start().Before(since) {
			used[j.group] += float64(j.seconds) * float64(j.cores) * j.hepspec
			sum += float64(j.seconds) * float64(j.cores) * j.hepspec
		}
	}
	plan, err := agg.Bursar("actions", "plan", "priority/auditor", "-v")
	if err != nil {
		t.Fatal(plan, err)
	}
	for group, r := range used {
		want := fmt.Sprintf("priority %.0f of 1 to 65335", math.Round((65335-1)/sum*r+1))
		_, of, _ := strings.Cut(plan, "group="+group)
		if of, _, _ = strings.Cut(of, "group="); !strings.Contains(of, want) {
			t.Errorf("%s: want %s:\n%s", group, want, of)
		}
	}
}
