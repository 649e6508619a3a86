//go:build e2e

package pages

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// boardFigures is what a board shows: tiles by label, and tables by title, with exact figures.
type boardFigures struct {
	Tiles  map[string]string
	Tables map[string][]map[string]string // the cells of each row by label
	JSON   string
}

// readBoard reads a board, what is folded included.
const readBoard = `(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const cell = (td) => [td.dataset.label, td.matches(".num") ? td.title : td.textContent.trim()];
  return {
    Tiles: Object.fromEntries(all("main > .tiles .tile").map((t) => [t.querySelector("span").textContent, t.querySelector("b").title])),
    Tables: Object.fromEntries(all(".report section").filter((s) => s.querySelector("table")).map((s) => [s.querySelector("h3").textContent,
      all("tbody tr:not(.total)", s).map((row) => Object.fromEntries(all("td", row).map(cell)))])),
    JSON: all(".links a").find((a) => a.textContent === "JSON")?.getAttribute("href") ?? "",
  };
})()`

// ask decodes what the aggregator answers to the reader.
func (r reader) ask(t *testing.T, path string, into any) {
	t.Helper()
	answer, err := http.Get(r.at + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, into)
	}
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", path, answer.Status, body, err)
	}
}

// tileMeasures are the measures of /v1/usage that tiles show, and by what they are multiplied.
func tileMeasures() map[string]measureOf {
	return map[string]measureOf{
		"Cost, EUR": {"cost", 1}, "core-hours": {"Cores", 1}, "GPU-hours": {"GPUs", 1}, "GiB-hours": {"Memory", 1.0 / 1024},
		"Jobs": {"jobs", 1}, "People": {"people", 1}, "Mean wait, minutes": {"wait", 1.0 / 60}, "CPU efficiency": {"efficiency", 100},
		"core-hours unused": {"unused", 1}, "Utilization": {"utilization", 100},
	}
}

type measureOf struct {
	name  string
	times float64
}

// boardsAgree compares the boards of each role with what /v1 answers to the same reader, for days
// that are over.
func (d *desk) boardsAgree(t *testing.T) {
	today := time.Now().UTC()
	days := url.QueryEscape(today.AddDate(0, 0, -9).Format(time.DateOnly) + ".." + today.AddDate(0, 0, -2).Format(time.DateOnly))
	of := map[string]string{"user": "&where[user_id]=hodgkin"}
	for _, r := range d.readers(t) {
		tab := d.browser.Tab(t, r.at)
		tab.Look("light", 1280, 900)
		path := map[string]string{"/": "/ui/projects"}[r.first]
		if path == "" {
			path = r.first
		}
		tab.Open(path+"?period="+days, 200)
		b := Eval[boardFigures](tab, readBoard)
		d.tilesAgree(t, r, b, "window="+days+of[r.role])
		d.tablesAgree(t, r, b, "window="+days+of[r.role])
		d.reportAgrees(t, r, b)
	}
}

// tilesAgree compares the tiles with the sums of /v1/usage.
func (d *desk) tilesAgree(t *testing.T, r reader, b boardFigures, asked string) {
	t.Helper()
	if len(b.Tiles) < 4 {
		t.Errorf("the board of the %s has only the tiles %v", r.role, b.Tiles)
	}
	for label, shown := range b.Tiles {
		m, known := tileMeasures()[label]
		if !known {
			t.Errorf("the board of the %s has a tile %q of which no measure is known", r.role, label)
			continue
		}
		path := "/v1/usage?unit=hour&measure=" + m.name + "&" + asked
		var says struct{ Measures []measure }
		r.ask(t, path, &says)
		if got, err := strconv.ParseFloat(shown, 64); err != nil || len(says.Measures) != 1 || !close(got, says.Measures[0].Total*m.times) {
			t.Errorf("the board of the %s shows %s %s, and %s has %v", r.role, shown, label, path, says.Measures)
		}
	}
}

// tableKeys are the keys by which the tables are that have what each used.
func tableKeys() map[string]string {
	return map[string]string{"Projects": "project", "Groups": "group_id", "The largest groups": "group_id", "Members": "user_id"}
}

// tablesAgree compares the tables of who used what with /v1/usage.
func (d *desk) tablesAgree(t *testing.T, r reader, b boardFigures, asked string) {
	t.Helper()
	compared := 0
	for title, rows := range b.Tables {
		key := tableKeys()[title]
		if key == "" {
			continue
		}
		var says usageFigures
		path := "/v1/usage?unit=hour&measure=Cores,jobs&by=" + key + "&" + asked
		r.ask(t, path, &says)
		used := map[string]map[string]float64{} // by the name of the measure
		for g := range says.Groups {
			if v := says.Groups[g].Values; len(v) == 1 && v[0] != nil {
				used[*v[0]] = map[string]float64{}
				for _, m := range says.Measures {
					used[*v[0]][m.Name] = m.Totals[g]
				}
			}
		}
		for _, row := range rows {
			name := row[map[string]string{"project": "Project", "group_id": "Group", "user_id": "User"}[key]]
			want, found := used[name]
			if !found { // such as the others together
				continue
			}
			cores, err1 := strconv.ParseFloat(row["Used, core-hours"], 64)
			jobs, err2 := strconv.ParseFloat(row["Jobs"], 64)
			if compared++; err1 != nil || err2 != nil || !close(cores, want["Cores"]) || !close(jobs, want["jobs"]) {
				t.Errorf("the board of the %s has %v in %s, and %s has %v", r.role, row, title, path, want)
			}
		}
	}
	if compared == 0 && r.role != "user" {
		t.Errorf("the board of the %s has no table of who used what: %v", r.role, slices.Collect(maps.Keys(b.Tables)))
	}
}

// reportAgrees compares each figure of each table of days that are over with the report of /v1
// that the page links to.
func (d *desk) reportAgrees(t *testing.T, r reader, b boardFigures) {
	t.Helper()
	var says v1.Document
	r.ask(t, b.JSON, &says)
	compared := 0
	for i := range says.Tables {
		table := &says.Tables[i]
		rows := b.Tables[table.Title]
		if now := table.Name == "years" || strings.HasPrefix(table.Name, "bu"); now || table.Name == "figures" {
			continue // it goes up to now; or the tiles have it
		}
		if len(rows) != len(table.Rows) {
			t.Errorf("the board of the %s has %d rows in %s, and %s has %d", r.role, len(rows), table.Title, b.JSON, len(table.Rows))
			continue
		}
		for n, row := range table.Rows {
			figures := slices.Collect(maps.Values(rows[n]))
			for c, cell := range row {
				if table.Columns[c].Kind == "text" || !cell.Known() {
					continue
				}
				if compared++; !slices.Contains(figures, cell.String()) {
					t.Errorf("the board of the %s lacks %s in row %d of %s, which %s has: %v", r.role, cell, n, table.Title, b.JSON, figures)
				}
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d figures of the board of the %s are compared", compared, r.role)
	}
}

// budgetsAgree compares the page of budgets with /v1/budgets, which is asked before and after: runs
// that go on use more meanwhile.
func (d *desk) budgetsAgree(t *testing.T) {
	r := reader{role: "administrator", at: d.lab.Pages()}
	tab := d.browser.Tab(t, r.at)
	var before, after v1.Budgets
	r.ask(t, "/v1/budgets", &before)
	tab.Open("/ui/budgets", 200)
	b := Eval[boardFigures](tab, readBoard)
	r.ask(t, "/v1/budgets", &after)
	rows := b.Tables["Budgets"]
	if len(rows) != len(before.Budgets) || len(rows) == 0 {
		t.Fatalf("the page has %v, and /v1 %+v", b.Tables, before.Budgets)
	}
	between := func(shown string, x, y *json.Number) bool {
		if x == nil || y == nil {
			return false
		}
		is, err1 := strconv.ParseFloat(shown, 64)
		low, err2 := x.Float64()
		high, err3 := y.Float64()
		return err1 == nil && err2 == nil && err3 == nil && min(low, high)-1e-6 <= is && is <= max(low, high)+1e-6
	}
	for _, row := range rows {
		i := slices.IndexFunc(before.Budgets, func(one v1.Budget) bool { return one.Name == row["Budget"] })
		if i < 0 || i >= len(after.Budgets) || before.Budgets[i].BudgetStanding == nil || after.Budgets[i].BudgetStanding == nil {
			t.Errorf("/v1 has no figures of %v", row)
			continue
		}
		was, is := before.Budgets[i].BudgetStanding, after.Budgets[i].BudgetStanding
		for label, ends := range map[string][2]*json.Number{"Used": {was.Used, is.Used}, "Left": {was.Left, is.Left}, "Share used": {was.Share, is.Share}, "Reserved": {&was.Reserved, &is.Reserved}} {
			if !between(row[label], ends[0], ends[1]) {
				t.Errorf("%s: the page has %s %s, and /v1 %s", row["Budget"], label, row[label], fmt.Sprint(ends[0], " to ", ends[1]))
			}
		}
	}
	if problems := tab.Problems(); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}
