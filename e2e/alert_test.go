//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

const alertAction = `
action "alert" "site" {
  schedule = "1s"
  config {
    url  = "https://bursar.example.org"
    keep = "2s"
    rule "silent-source" {
      findings = ["agent-silent", "source-silent", "source-failing"]
      for      = "5s"
      severity = "critical"
    }
    receiver "manager" {
      alertmanager {
        url    = "http://%s"
        labels = { site = "lab" }
        resend = "1m"
      }
    }
  }
}
`

const alertmanagerConfig = `
route: { receiver: test, group_wait: 0s, group_interval: 1s, repeat_interval: 1h, group_by: [alertname] }
receivers:
  - name: test
    webhook_configs: [{ url: %q, send_resolved: true }]
`

// alertScrapes has the rules of a file, or of none, and an address to scrape.
const alertScrapes = `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [%q]
scrape_configs:
  - job_name: bursar
    static_configs: [{ targets: [%q] }]
`

// notified is what an Alertmanager has told its receiver, in order.
type notified struct {
	*httptest.Server

	mu   sync.Mutex
	list []string
}

func newNotified(t *testing.T) *notified {
	w := &notified{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var in struct {
			Alerts []struct {
				Status string            `json:"status"`
				Labels map[string]string `json:"labels"`
			} `json:"alerts"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, a := range in.Alerts {
			w.list = append(w.list, a.Labels["site"]+" "+a.Labels["alertname"]+" "+a.Labels["severity"]+" "+a.Status)
		}
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *notified) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// watch is a site whose alerts go to an Alertmanager and a Prometheus of Debian.
type watch struct {
	*testing.T
	site             *site.Site
	agent            *site.Agent
	agg              *site.Aggregator
	manager, metrics string // addresses
	told             *notified
}

func newWatch(t *testing.T) *watch {
	s := site.New(t)
	w := &watch{T: t, site: s, manager: s.Address(), metrics: s.Address(), told: newNotified(t)}
	jobs := s.Jobs()
	jobs.Write(100)
	w.agent = s.Agent(site.AgentSpec{Name: "head1", Sources: jobs.Source()})
	w.agg = s.Aggregator(w.agent)
	w.agg.Add(fmt.Sprintf(alertAction, w.manager))
	config := s.Write("alertmanager.yml", fmt.Sprintf(alertmanagerConfig, w.told.URL))
	manager := s.Daemon("alertmanager", "alertmanager", "--config.file", config, "--storage.path", filepath.Join(s.Dir, "alertmanager"),
		"--web.listen-address", w.manager, "--cluster.listen-address", "")
	manager.Become("/usr/bin/prometheus-alertmanager")
	manager.Start()
	config = s.Write("prometheus.yml", fmt.Sprintf(alertScrapes, "none.yml", strings.TrimPrefix(w.agg.URL, "http://")))
	startPrometheus(s, config, w.metrics)
	w.agent.Start()
	s.Eventually("the agent answers", func() (bool, string) {
		_, err := w.agent.Status()
		return err == nil, fmt.Sprint(err)
	})
	w.agg.Start()
	jobs.Arrive(w.agg)
	return w
}

// startPrometheus starts Debian's Prometheus at an address.
func startPrometheus(s *site.Site, config, address string) {
	server := s.Daemon("prometheus", "prometheus", "--config.file", config, "--storage.tsdb.path", filepath.Join(s.Dir, "tsdb"), "--web.listen-address", address)
	server.Become("/usr/bin/prometheus")
	server.Start()
}

// get decodes an answer.
func get(address string, into any) error {
	answer, err := http.Get(address)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// fires waits until all say whether the alert fires.
func (w *watch) fires(yes bool) {
	w.Helper()
	want := 0
	if yes {
		want = 1
	}
	w.site.Eventually(fmt.Sprintf("the Alertmanager has %d alerts", want), func() (bool, string) {
		var list []struct {
			Labels, Annotations map[string]string
			GeneratorURL        string
		}
		err := get("http://"+w.manager+"/api/v2/alerts", &list)
		ok := err == nil && len(list) == want
		if ok && yes {
			a := list[0]
			ok = a.Labels["alertname"] == "silent-source" && a.Labels["about"] == "head1 (agent-silent)" && a.Labels["action"] == "site" &&
				strings.Contains(a.Annotations["summary"], "agent head1") && a.Annotations["description"] != "" && a.GeneratorURL == "https://bursar.example.org/ui/alerts"
		}
		return ok, fmt.Sprint(list, err)
	})
	w.site.Eventually(fmt.Sprintf("Prometheus has %d series", want), func() (bool, string) {
		var got struct {
			Data struct{ Result []json.RawMessage }
		}
		err := get("http://"+w.metrics+"/api/v1/query?query="+url.QueryEscape(`bursar_action_alert_firing{action="site",rule="silent-source",severity="critical"} == 1`), &got)
		return err == nil && len(got.Data.Result) == want, fmt.Sprint(got, err)
	})
	w.site.Eventually("bursar alerts list says so", func() (bool, string) {
		out, err := w.agg.Bursar("alerts", "list", "-check")
		return strings.Contains(out, "silent-source") == yes && (err != nil) == yes, fmt.Sprint(out, err)
	})
}

// state is what bursar alerts list says of the only alert; empty without one.
func (w *watch) state() string {
	var list v1.Alerts
	out, err := w.agg.Bursar("alerts", "list", "-format", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	if err != nil {
		return fmt.Sprint(err, out)
	}
	if len(list.Alerts) == 0 {
		return ""
	}
	return list.Alerts[0].State
}

func TestAlert_AgentIsKilled_FiresAndItsRestartRecovers(t *testing.T) {
	t.Parallel()
	w := newWatch(t)
	w.fires(false)
	w.agent.Kill()
	w.fires(true)
	w.agent.Start()
	w.fires(false)
	w.site.Eventually("the Alertmanager has told both, in order", func() (bool, string) {
		all := w.told.all()
		return slices.Equal(all, []string{"lab silent-source critical firing", "lab silent-source critical resolved"}), fmt.Sprint(all)
	})
	if out, err := w.agg.Bursar("alerts", "silence", "rule=silent-*", "-for", "1h", "-comment", "maintenance"); err != nil {
		t.Fatal(err, out)
	}
	w.agent.Kill()
	w.site.Eventually("the alert is silenced", func() (bool, string) { s := w.state(); return s == "silenced", s })
	time.Sleep(3 * time.Second) // some runs
	if all := w.told.all(); len(all) != 2 {
		t.Errorf("under a silence the Alertmanager was told: %q", all)
	}
	var list v1.Alerts
	if err := w.agg.Get("/v1/alerts", &list); err != nil || len(list.Silences) != 1 || list.Silences[0].Comment != "maintenance" || list.Silences[0].Author == "" {
		t.Fatalf("%v %+v", err, list)
	}
	if out, err := w.agg.Bursar("alerts", "expire", list.Silences[0].ID); err != nil {
		t.Fatal(err, out)
	}
	w.site.Eventually("the Alertmanager is told when the silence is over", func() (bool, string) {
		all := w.told.all()
		return len(all) == 3 && strings.HasSuffix(all[2], " firing"), fmt.Sprint(all)
	})
	w.agent.Start()
	w.fires(false)
}

// eagerRules is a copy of the aggregator's rules without the time for which each must hold.
func eagerRules(t *testing.T, s *site.Site) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Top(), "aggregator/packaging/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Write("alerts.yaml", regexp.MustCompile(`(?m)^ +for: .*\n`).ReplaceAllString(string(text), ""))
}

func TestAlert_ShippedRulesOfPrometheus_FireAndRecover(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	plugins := filepath.Join(s.Dir, "plugins")
	hangers(t, plugins, "source", []string{"told"})
	complete := func(at time.Time) {
		t.Helper()
		path := filepath.Join(plugins, "bursar-source-told.complete")
		err := os.WriteFile(path+".new", []byte(at.UTC().Format(time.RFC3339)), 0o600)
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	complete(time.Now().Add(-2 * time.Hour))
	agent := s.Agent(site.AgentSpec{Name: "head1", Plugins: []string{plugins}, Sources: "source \"told\" \"lab\" {\n  interval = \"1s\"\n  record {\n    id = job.id\n    start = \"2026-01-01T00:00:00Z\"\n  }\n}\n"})
	agg := s.Aggregator(agent) // which wants 32 MiB free
	disk := s.SmallDisk(agg.DataDir, "256m")
	address := s.Address()
	startPrometheus(s, s.Write("prometheus.yml", fmt.Sprintf(alertScrapes, eagerRules(t, s), strings.TrimPrefix(agg.URL, "http://"))), address)
	agent.Start()
	agg.Start()
	fires := func(alert, label, about string, want bool) {
		t.Helper()
		s.Eventually(fmt.Sprintf("%s fires: %t", alert, want), func() (bool, string) {
			var got struct {
				Data struct {
					Result []struct{ Metric map[string]string }
				}
			}
			err := get("http://"+address+"/api/v1/query?query="+url.QueryEscape(fmt.Sprintf(`ALERTS{alertname=%q, alertstate="firing"}`, alert)), &got)
			list := got.Data.Result
			return err == nil && len(list) > 0 == want && (!want || list[0].Metric[label] == about), fmt.Sprint(got, err)
		})
	}
	instance := strings.TrimPrefix(agg.URL, "http://")
	fires("BursarSourceSilent", "source", "head1/told/lab", true)
	fires("BursarDiskFull", "instance", instance, false)
	complete(time.Now())
	fires("BursarSourceSilent", "source", "head1/told/lab", false)
	disk.Fill(16 << 20)
	fires("BursarDiskFull", "instance", instance, true)
	disk.Empty()
	fires("BursarDiskFull", "instance", instance, false)
}
