//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// TestWarehouse_CurrentEngine_AnswersAsDebians has one aggregator write to Debian's release and
// to the engine of a current one.
func TestWarehouse_CurrentEngine_AnswersAsDebians(t *testing.T) {
	t.Parallel()
	debian, current := newTwins(t, 7)
	for _, state := range []string{"with corrections", "replaced"} {
		for _, w := range []*warehouse{debian, current} {
			if state == "replaced" {
				w.order("replace=all", "agree at change")
			}
			w.agree()
			w.order("check=all", "agree at change")
		}
		for _, statement := range readmeQueries(t, false) {
			want := debian.figures(statement)
			if len(want) < 2 {
				t.Errorf("%s: no rows", statement)
			}
			current.same(statement, want, current.figures(statement))
		}
	}
	everything := "SELECT cluster, site, month, start_us, stop_us, stop, record_id, seq, sign, state, group_id, user_id, Cores, TotalCPU FROM bursar.ledger ORDER BY month, stop_us, record_id, seq, sign"
	current.same("the ledger", debian.figures(everything), current.figures(everything))
}

// newTwins starts an aggregator with two actions, one for each release, and gives it records
// with corrections and deletions.
func newTwins(t *testing.T, seed uint64) (debian, current *warehouse) {
	t.Helper()
	debian = makeWarehouse(t, seed)
	twin := *debian
	current = &twin
	current.label = "current"
	current.ch = rig.NewCurrentClickHouse(t, debian.site.Address())
	current.ch.Start()
	debian.agg.Add(fmt.Sprintf(warehouseAction, current.label, current.ch.URL(), debian.ch.PasswordFile(), "batch = 500"))
	debian.begin(debian.ch.URL(), "batch = 500")
	debian.fill(1000)
	for range 2 { // so that both have rows that are taken back
		debian.arrive()
		current.arrive()
		debian.shake(75)
	}
	debian.rest()
	debian.arrive()
	current.arrive()
	return debian, current
}

// readmeQueries are those that the README of the warehouse shows: of what goes on, or the others.
func readmeQueries(t *testing.T, now bool) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Top(), "plugins/action/warehouse/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllSubmatch(text, -1) {
		if regexp.MustCompile(`_now|snapshots`).Match(block[1]) == now {
			list = append(list, string(block[1]))
		}
	}
	if len(list) == 0 {
		t.Fatal("the README has no queries")
	}
	return list
}

// figures are the rows of an answer and the names of its columns, each with its number and
// without zeros behind the point. Rows that end with a zero are left out: of records that were
// deleted one copy may never have had any.
func (w *warehouse) figures(statement string) map[string]string {
	w.Helper()
	out := map[string]string{}
	for line := range strings.SplitSeq(w.ch.MustQuery(statement+" FORMAT TabSeparatedWithNames"), "\n") {
		cells := strings.Split(line, "\t")
		for i := range cells {
			cells[i] = withoutZeros(cells[i])
		}
		if cells[len(cells)-1] != "0" {
			out[fmt.Sprint("row ", len(out))] = strings.Join(cells, "\t")
		}
	}
	return out
}

// dashboard is the Grafana dashboard of the warehouse, as far as it asks ClickHouse.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ RawSQL string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Top(), "plugins/action/warehouse/grafana/bursar.json"))
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// inGrafana replaces variables and macros of a query as Grafana and its ClickHouse data source
// do, for whole days of a period in UTC. A variable without values is "All".
func inGrafana(query string, from, to time.Time, variables map[string][]string) string {
	query = regexp.MustCompile(`\$__conditionalAll\(((?:[^()]|\([^()]*\))*), \$(\w+)\)`).ReplaceAllStringFunc(query, func(macro string) string {
		inner := strings.TrimSuffix(strings.TrimPrefix(macro, "$__conditionalAll("), ")")
		condition, name := inner[:strings.LastIndex(inner, ", $")], inner[strings.LastIndex(inner, ", $")+len(", $"):]
		if len(variables[name]) == 0 {
			return "1=1"
		}
		return condition
	})
	query = regexp.MustCompile(`\$\{(\w+)(:singlequote)?\}`).ReplaceAllStringFunc(query, func(name string) string {
		name, quoted := strings.CutSuffix(strings.Trim(name, "${}"), ":singlequote")
		if !quoted {
			return variables[name][0]
		}
		var list []string
		for _, v := range variables[name] {
			list = append(list, "'"+strings.ReplaceAll(v, "'", `\'`)+"'")
		}
		return strings.Join(list, ",")
	})
	first, last := fmt.Sprintf("toDateTime(%d)", from.Unix()), fmt.Sprintf("toDateTime(%d)", to.Unix())
	query = regexp.MustCompile(`\$__timeFilter\((\w+)\)`).ReplaceAllString(query, "$1 >= "+first+" AND $1 <= "+last)
	query = regexp.MustCompile(`\$__dateFilter\((\w+)\)`).ReplaceAllString(query, "$1 >= toDate('"+from.Format(time.DateOnly)+"') AND $1 <= toDate('"+to.Format(time.DateOnly)+"')")
	return strings.NewReplacer("$__fromTime", first, "$__toTime", last).Replace(query)
}

func TestWarehouse_DashboardQueries_AddUpToUsage(t *testing.T) {
	t.Parallel()
	debian, current := newTwins(t, 8)
	d := readDashboard(t)
	from, to := time.Date(2023, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, chosen := range []map[string][]string{{}, {"site": {"s0", "s1", "justus"}}, {"group": {"g0\t'", "group01", "group05"}}} {
		variables := maps.Clone(chosen)
		for name, value := range map[string]string{"database": "bursar", "daily": "daily", "ledger": "ledger"} {
			variables[name] = []string{value}
		}
		used := debian.used(chosen)
		for _, by := range []string{"site", "group_id", "user_id"} {
			variables["by"] = []string{by}
			for _, p := range d.Panels {
				query := inGrafana(p.Targets[0].RawSQL, from, to, variables)
				if strings.Contains(query, "$") {
					t.Fatalf("%s: a macro is left: %s", p.Title, query)
				}
				rows := debian.numbers(query)
				if p.Title == "Corrections" { // of a record that changed twice at once a copy has the last state
					if n := sumOf(rows, "corrections"); n == 0 && len(chosen) == 0 {
						t.Error("no correction was counted")
					}
					continue
				}
				if other := current.numbers(query); !reflect.DeepEqual(rows, other) {
					t.Errorf("%s by %s of %v: %v, and a current ClickHouse %v", p.Title, by, chosen, rows, other)
				}
				if other := debian.numbers(strings.ReplaceAll(query, "bursar.daily", "bursar.monthly")); !reflect.DeepEqual(rows, other) {
					t.Errorf("%s by %s of %v: %v, and of months %v", p.Title, by, chosen, rows, other)
				}
				switch {
				case p.Title == "Core-hours" || p.Title == "Sites" || p.Title == "Core-hours by year" || p.Title == "Core-hours by month" && by == "site":
					if got := sumOf(rows, "core_hours") * 3600; math.Abs(got-used["Cores"]) > 1e-9*used["Cores"] || got == 0 {
						t.Errorf("%s of %v: %v core-seconds, usage has %v", p.Title, chosen, got, used["Cores"])
					}
				case strings.HasPrefix(p.Title, "Jobs that stopped"):
					if got := sumOf(rows, "jobs"); got != used["stopped"] {
						t.Errorf("%s of %v: %v, usage has %v", p.Title, chosen, got, used["stopped"])
					}
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			query := inGrafana(v.Query, from, to, map[string][]string{"database": {"bursar"}, "daily": {"daily"}})
			debian.same(v.Name, debian.figures(query), current.figures(query))
		}
	}
}

// TestWarehouse_Dashboards_FitGrafanasSchema reads all dashboards as Grafana's schema has them.
func TestWarehouse_Dashboards_FitGrafanasSchema(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(site.Top(), "aggregator/packaging/grafana/*.json"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	mine := filepath.Join(site.Top(), "plugins/action/warehouse/grafana/bursar.json")
	if faults := rig.GrafanaFaults(t, append(files, mine)...); faults != "" {
		t.Error(faults)
	}
	text, err := os.ReadFile(mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range [][2]string{
		{`"gridPos"`, `"gridpos"`}, {`"type": "table"`, `"type": "list"`}, {`"type": "query"`, `"type": "queries"`},
		{`"drawStyle": "bars"`, `"drawStyle": "columns"`}, {`"hide": 0`, `"hide": false`}, {`"unit": "short"`, `"unit": "hours"`},
	} {
		other := filepath.Join(t.TempDir(), "other.json")
		if err := os.WriteFile(other, []byte(strings.Replace(string(text), fault[0], fault[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if rig.GrafanaFaults(t, other) == "" {
			t.Errorf("%s is not found", fault[1])
		}
	}
}

// used are sums of /v1/usage of the sites and groups that are chosen.
func (w *warehouse) used(chosen map[string][]string) map[string]float64 {
	w.Helper()
	query := url.Values{"from": {"2023-12-01"}, "to": {"2027-01-01"}, "zone": {"UTC"}, "measure": {"Cores,stopped"}, "unit": {"second"}, "format": {"ndjson"}}
	for name, values := range chosen {
		query.Set("where["+map[string]string{"site": "site_id", "group": "group_id"}[name]+"]", strings.Join(values, ","))
	}
	answer, err := http.Get(w.agg.URL + "/v1/usage?" + query.Encode())
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	out := map[string]float64{}
	in := json.NewDecoder(answer.Body)
	for first := true; ; first = false {
		var line v1.UsageLine
		if err := in.Decode(&line); err == io.EOF {
			return out
		} else if err != nil || answer.StatusCode != http.StatusOK {
			w.Fatal(err, answer.Status)
		}
		for name, n := range line.Measures {
			if n != nil && !first {
				f, _ := strconv.ParseFloat(n.String(), 64)
				out[name] += f
			}
		}
	}
}

// numbers are the rows of an answer by the names of its columns; numbers have twelve digits.
// Rows that end with a zero are left out, as by figures.
func (w *warehouse) numbers(statement string) (rows []map[string]string) {
	w.Helper()
	var names []string
	for i, line := range strings.Split(w.ch.MustQuery(statement+" FORMAT TabSeparatedWithNames"), "\n") {
		cells := strings.Split(line, "\t")
		if i == 0 {
			names = cells
			continue
		}
		row := map[string]string{}
		for k, cell := range cells {
			if f, err := strconv.ParseFloat(cell, 64); err == nil {
				cell = strconv.FormatFloat(f, 'g', 12, 64)
			}
			row[names[k]] = cell
		}
		if last := names[len(names)-1]; row[last] != "0" {
			rows = append(rows, row)
		}
	}
	return rows
}

// sumOf adds up a column.
func sumOf(rows []map[string]string, column string) (sum float64) {
	for _, row := range rows {
		f, _ := strconv.ParseFloat(row[column], 64)
		sum += f
	}
	return sum
}
