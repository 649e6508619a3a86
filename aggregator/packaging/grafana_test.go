package packaging_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// board is what a dashboard of Grafana must have.
type board struct {
	UID, Title    string
	SchemaVersion int
	Time          struct{ From, To string }
	Templating    struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []panel
}

type panel struct {
	ID         int
	Type       string
	Title      string
	GridPos    struct{ X, Y, W, H int }
	Datasource struct{ Type, UID string }
	Targets    []struct {
		RefID      string
		Datasource struct{ Type, UID string }
		Expr       string
		URL        string
		RawSQL     string
		Type       string
		Selector   string `json:"root_selector"`
		Columns    []struct{ Selector, Text, Type string }

		PluginVersion, EditorType, QueryType string
		Format                               any
	}
}

// The sources of data, as the variables of dashboards name them.
const (
	fromPrometheus = "prometheus"
	fromJSON       = "yesoreyeram-infinity-datasource"
	fromClickHouse = "grafana-clickhouse-datasource"
)

func boards(t *testing.T) map[string]board {
	t.Helper()
	files, err := filepath.Glob("grafana/*.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	files = append(files, "../../plugins/action/warehouse/grafana/bursar.json")
	all := map[string]board{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var b board
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[f] = b
	}
	return all
}

func TestDashboardsAreWhole(t *testing.T) {
	uids := map[string]string{}
	for file, b := range boards(t) {
		if b.UID == "" || len(b.UID) > 40 || b.Title == "" || b.SchemaVersion < 30 || b.Time.From == "" || b.Time.To == "" || len(b.Panels) == 0 {
			t.Errorf("%s lacks something: %+v", file, b)
		}
		if other, twice := uids[b.UID]; twice {
			t.Errorf("%s and %s have the same uid", file, other)
		}
		uids[b.UID] = file
		sources := map[string]string{}
		for _, v := range b.Templating.List {
			if v.Type == "datasource" {
				sources["${"+v.Name+"}"] = v.Query
			}
		}
		ids := map[int]bool{}
		for i, p := range b.Panels {
			if ids[p.ID] || p.ID == 0 {
				t.Errorf("%s: %q has the id %d of another", file, p.Title, p.ID)
			}
			ids[p.ID] = true
			p.check(t, file, sources)
			for _, q := range b.Panels[:i] {
				if p.overlaps(q) {
					t.Errorf("%s: %q lies on %q", file, p.Title, q.Title)
				}
			}
		}
	}
}

func (p panel) overlaps(q panel) bool {
	a, b := p.GridPos, q.GridPos
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func (p panel) check(t *testing.T, file string, sources map[string]string) {
	t.Helper()
	if g := p.GridPos; g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
		t.Errorf("%s: %q stands at %+v", file, p.Title, g)
	}
	if p.Title == "" || (len(p.Targets) == 0) != (p.Type == "row") {
		t.Errorf("%s: %q of type %q has %d targets", file, p.Title, p.Type, len(p.Targets))
	}
	refs := map[string]bool{}
	for _, q := range p.Targets {
		if q.RefID == "" || refs[q.RefID] {
			t.Errorf("%s: %q has the refId %q twice", file, p.Title, q.RefID)
		}
		refs[q.RefID] = true
		if kind := q.Datasource.Type; sources[q.Datasource.UID] != kind || p.Datasource != q.Datasource {
			t.Errorf("%s: %q asks %+v, and the variables are %v", file, p.Title, q.Datasource, sources)
		} else if kind == fromPrometheus && (q.Expr == "" || !balanced(q.Expr)) {
			t.Errorf("%s: %q asks %q", file, p.Title, q.Expr)
		} else if kind == fromJSON && (!strings.HasPrefix(q.URL, "/v1/") || q.Type != "json" || !balanced(q.Selector) || len(q.Columns) == 0) {
			t.Errorf("%s: %q asks %+v", file, p.Title, q)
		} else if kind == fromClickHouse && (q.RawSQL == "" || !balanced(q.RawSQL)) {
			t.Errorf("%s: %q asks %q", file, p.Title, q.RawSQL)
		} else if shape := fmt.Sprint(q.EditorType, " ", q.QueryType, " ", q.Format); kind == fromClickHouse &&
			(!strings.HasPrefix(q.PluginVersion, "4.") || shape != "sql table 1" && shape != "sql timeseries 0") { // without a version it is taken for a query of release 3
			t.Errorf("%s: %q is a query %q of release %q", file, p.Title, shape, q.PluginVersion)
		}
	}
}

// balanced reports whether each bracket is closed.
func balanced(text string) bool {
	for _, pair := range []string{"()", "[]", "{}"} {
		if strings.Count(text, pair[:1]) != strings.Count(text, pair[1:]) {
			return false
		}
	}
	return true
}

// exported are the labels of the metrics by name. Tests of the daemons and of the plugins
// compare the tables with what they export.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{
		"up": nil, "process_resident_memory_bytes": nil, // Prometheus' own, and of every program
	}
	shown := regexp.MustCompile("(?m)^\\| `(bursar_action_[a-z_]+)\\{([^}]*)\\}` \\|")
	readmes, err := filepath.Glob("../../plugins/action/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range readmes {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			all[m[1]] = append(all[m[1]], strings.Split(m[2], ",")...)
		}
	}
	line := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]+) \\|")
	for _, path := range []string{"../METRICS.md", "../../agent/METRICS.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			all[m[1]] = append(all[m[1]], strings.Split(m[2], ", ")...)
		}
	}
	if len(all) < 80 {
		t.Fatalf("only %d metrics", len(all))
	}
	return all
}

var (
	metricName = regexp.MustCompile(`\b(?:bursar|num|process|promhttp|go)_[a-z_]+|\bup\b`)
	grouping   = regexp.MustCompile(`\b(?:by|on|without) \(([^)]*)\)`)
)

// named checks the names in an expression of PromQL.
func named(t *testing.T, where, expr string, all map[string][]string) {
	t.Helper()
	labels := []string{"instance", "job", "le"}
	found := metricName.FindAllString(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s: no metric in %s", where, expr)
	}
	for _, metric := range found {
		base := metric
		for _, end := range []string{"_bucket", "_count", "_sum"} {
			base = strings.TrimSuffix(base, end)
		}
		has, ok := all[base]
		if !ok {
			t.Errorf("%s: no daemon has the metric %s", where, metric)
		}
		labels = append(labels, has...)
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ", ") {
			if !slices.Contains(labels, label) {
				t.Errorf("%s: none of %q has the label %s", where, found, label)
			}
		}
	}
}

func TestDashboardsNameMetricsThatDaemonsExport(t *testing.T) {
	all := exported(t)
	for file, b := range boards(t) {
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				if q.Datasource.Type == fromPrometheus {
					named(t, file+": "+p.Title, q.Expr, all)
				}
			}
		}
	}
}

// alert is a rule of Prometheus.
type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// shippedAlerts are the rules of both daemons by file.
func shippedAlerts(t *testing.T) map[string][]alert {
	t.Helper()
	all := map[string][]alert{}
	for _, path := range []string{"alerts.yaml", "../../agent/packaging/alerts.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Groups []struct {
				Name  string  `yaml:"name"`
				Rules []alert `yaml:"rules"`
			} `yaml:"groups"`
		}
		dec := yaml.NewDecoder(bytes.NewReader(text))
		dec.KnownFields(true) // as Prometheus does
		if err := dec.Decode(&file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, g := range file.Groups {
			all[path] = append(all[path], g.Rules...)
		}
	}
	return all
}

func TestAlertsOfBothDaemonsNameMetricsThatTheyExport(t *testing.T) {
	all := exported(t)
	for path, rules := range shippedAlerts(t) {
		for i := range rules {
			r := &rules[i]
			if r.Alert == "" || r.Annotations["summary"] == "" || r.Annotations["runbook"] == "" || r.Labels["severity"] == "" || !balanced(r.Expr) {
				t.Errorf("%s: %+v is not complete", path, r)
			}
			named(t, path+": "+r.Alert, r.Expr, all)
		}
	}
}

func TestAlerts_EachShippedRule_HasACaseInWhichItFiresAndEnds(t *testing.T) {
	files, err := filepath.Glob("../../e2e/pages/testdata/alerts_*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fires := map[string]bool{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Tests []struct {
				Name  string
				Cases []struct {
					Samples []struct{ Labels string } `yaml:"exp_samples"`
				} `yaml:"promql_expr_test"`
			}
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, c := range file.Tests {
			if len(c.Cases) != 3 || len(c.Cases[0].Samples)+len(c.Cases[2].Samples) != 0 ||
				len(c.Cases[1].Samples) != 1 || c.Cases[1].Samples[0].Labels != `{alertname="`+c.Name+`"}` {
				t.Errorf("%s: %+v is not a case of before, while and after", path, c)
			}
			fires[c.Name] = true
		}
	}
	for path, rules := range shippedAlerts(t) {
		for i := range rules {
			if name := rules[i].Alert; !fires[name] {
				t.Errorf("%s: %s has no case in e2e/pages/testdata", path, name)
			}
		}
	}
}

func TestAlerts_MetricsOfWhatIsWrong_HaveARule(t *testing.T) {
	var exprs strings.Builder
	for _, rules := range shippedAlerts(t) {
		for i := range rules {
			exprs.WriteString(rules[i].Expr + "\n")
		}
	}
	wrong := regexp.MustCompile(`_(silent_seconds|failing|failures_total|damaged|wrong|differs|disobeyed|diverged|fenced|too_large|refused_total|missing_runs|quarantined_jobs|conflicting_records|not_conserved|gaps|stalled_seconds)$`)
	covered := map[string]string{ // by another metric, which has a rule
		"bursar_backup_failures_total":          "bursar_backup_failing",
		"bursar_config_differs":                 "bursar_node_config_differs",
		"bursar_http_connections_refused_total": "", // of one address; the others are served
		"bursar_pull_failures_total":            "bursar_agent_connected",
	}
	for metric := range exported(t) {
		if by, ok := covered[metric]; ok && (by == "" || strings.Contains(exprs.String(), by)) {
			continue
		}
		if wrong.MatchString(metric) && !regexp.MustCompile(`\b`+metric+`\b`).MatchString(exprs.String()) {
			t.Errorf("no rule looks at %s", metric)
		}
	}
}

func TestThePackageHasEveryDashboardAndTheAlerts(t *testing.T) {
	text, err := os.ReadFile("nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"aggregator/packaging/grafana/README.md", "aggregator/packaging/alerts.yaml", "agent/packaging/alerts.yaml"}
	for file := range boards(t) {
		want = append(want, filepath.Join("aggregator/packaging", file))
	}
	for _, path := range want {
		if !strings.Contains(string(text), "src: "+path+", dst: /usr/share/bursar/") {
			t.Errorf("the package lacks %s", path)
		}
	}
}
