//go:build e2e

package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// query is what a panel of a dashboard asks.
type query struct {
	Expr       string
	URL        string
	Selector   string                      `json:"root_selector"`
	URLOptions struct{ Params []keyValue } `json:"url_options"`
}

type keyValue struct{ Key, Value string }

// queries are those of all dashboards, by file and title.
func queries(t *testing.T) map[string]query {
	t.Helper()
	files, err := filepath.Glob("../../aggregator/packaging/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all := map[string]query{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []query
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		for _, p := range board.Panels {
			for i, q := range p.Targets {
				all[fmt.Sprintf("%s: %s %d", filepath.Base(f), p.Title, i)] = q
			}
		}
	}
	return all
}

// ask decodes an answer of a Prometheus, and says when it refuses.
func ask(address string, into any) error {
	answer, err := http.Get(address)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var whole struct {
		Status string
		Error  string
		Data   json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&whole); err != nil || whole.Status != "success" {
		return fmt.Errorf("%s %s %w", answer.Status, whole.Error, err)
	}
	return json.Unmarshal(whole.Data, into)
}

// result is what an expression comes to.
type result struct{ Result []json.RawMessage }

const prometheusConfig = `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [%q, %q]
scrape_configs:
  - job_name: bursar
    static_configs: [{ targets: [%q] }]
`

func (d *desk) prometheus(t *testing.T) {
	config := d.lab.Write("prometheus.yml", fmt.Sprintf(prometheusConfig, append(d.eagerRules(t), strings.TrimPrefix(d.lab.Agg.URL, "http://"))...))
	at := d.lab.Address()
	server := d.lab.Daemon("prometheus", "prometheus", "--config.file", config, "--storage.tsdb.path", filepath.Join(d.lab.Dir, "tsdb"), "--web.listen-address", at)
	server.Become("/usr/bin/prometheus")
	server.Start()
	base := "http://" + at + "/api/v1/"
	d.lab.Eventually("a scrape, and a look at all rules", func() (bool, string) {
		var up result
		var groups struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := ask(base+"query?query="+url.QueryEscape("bursar_store_records > 0"), &up); err != nil || len(up.Result) == 0 {
			return false, fmt.Sprint(up, err)
		}
		err := ask(base+"rules", &groups)
		looked, bad := 0, ""
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				if r.Health == "ok" {
					looked++
				} else {
					bad += fmt.Sprintf("%s: %s %s\n", r.Name, r.Health, r.LastError)
				}
			}
		}
		return err == nil && bad == "" && looked > 30, fmt.Sprint(looked, bad, err)
	})
	for name, q := range queries(t) {
		if q.Expr == "" {
			continue
		}
		var got result
		expr := strings.ReplaceAll(q.Expr, "$__rate_interval", "1m")
		if err := ask(base+"query?query="+url.QueryEscape(expr), &got); err != nil {
			t.Errorf("%s: %s: %v", name, expr, err)
		}
	}
	d.nodeDown(base)
	server.Kill()
}

// jsonata puts the expression of a panel to the answer that the panel asks for.
func (d *desk) jsonata(t *testing.T) {
	q := queries(t)["usage.json: Usage by day, in hours 0"]
	now := time.Now().UTC()
	const form = "2006-01-02T15:04:05.000Z"
	meant := strings.NewReplacer("${__from:date:iso}", now.AddDate(0, 0, -14).Format(form), "${__to:date:iso}", now.Add(-time.Hour).Format(form), "${by}", "group_id", "${measure}", "Cores")
	params := url.Values{}
	for _, p := range q.URLOptions.Params {
		params.Set(p.Key, meant.Replace(p.Value))
	}
	var answer json.RawMessage
	if err := d.lab.Agg.Get(q.URL+"?"+params.Encode(), &answer); err != nil {
		t.Fatal(err)
	}
	var says struct {
		Labels   []string
		Groups   []json.RawMessage
		Measures []struct{ Total float64 }
	}
	if err := json.Unmarshal(answer, &says); err != nil {
		t.Fatal(err)
	}
	expression, err := json.Marshal(q.Selector)
	if err != nil {
		t.Fatal(err)
	}
	tab := d.browser.Tab(t, d.lab.Pages())
	tab.Open("/", 200)
	Eval[bool](tab, Library(t, "jsonata")+"\n;true")
	rows := Eval[[]struct {
		Time, Group string
		Value       float64
	}](tab, fmt.Sprintf("jsonata(%s).evaluate(%s)", expression, answer))
	total := 0.0
	for _, r := range rows {
		if _, err := time.Parse(time.RFC3339, r.Time); err != nil || r.Group == "" {
			t.Errorf("%+v, %v", r, err)
		}
		total += r.Value
	}
	if want := says.Measures[0].Total; len(rows) != len(says.Labels)*len(says.Groups) || len(rows) < 50 || total < want-1e-3 || total > want+1e-3 {
		t.Errorf("%d rows with %f hours in all, want %d × %d with %f", len(rows), total, len(says.Labels), len(says.Groups), want)
	}
}
