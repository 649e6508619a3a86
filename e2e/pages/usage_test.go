//go:build e2e

package pages

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// shown is what the usage page shows, as a script in it reads.
type shown struct {
	Lines []line    // of the table
	Total float64   // below it
	Steps []float64 // all figures of the table by steps, a step after the other
	Chart []float64 // the same as the chart has them
	JSON  string    // where the figures come from
}

type line struct {
	Name  string
	Value float64
	Jobs  float64
}

// readUsage reads the page. What the chart has is asked of the chart's library.
const readUsage = `(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const value = (cell) => Number(cell?.dataset.value || 0);
  const rows = all("#steps tbody tr");
  const steps = rows.map((row) => all("td[data-value]", row).map(value));
  const series = echarts.getInstanceByDom(document.getElementById("chart")).getOption().series;
  const drawn = (v) => Number(v?.value ?? v ?? 0);
  // A line ends before a part of an interval, so there the chart has nothing to compare.
  const has = (s, i, step) => rows[step].dataset.partial && s.data[step] === null ? steps[step][i] : drawn(s.data[step]);
  return {
    Lines: all("#usage tbody tr").map((row) => ({ Name: row.querySelector(".into").textContent, Value: value(row.querySelectorAll("td[data-value]")[0]), Jobs: value(row.querySelectorAll("td[data-value]")[1]) })),
    Total: value(document.querySelector("#usage tfoot td[data-value]")),
    Steps: steps.flat(),
    Chart: steps.map((_, step) => series.map((s, i) => has(s, i, step))).flat(),
    JSON: document.getElementById("json").getAttribute("href"),
  };
})()`

// usageFigures is what /v1/usage says.
type usageFigures struct {
	Edges, Labels []string
	Groups        []struct {
		Values []*string
		Others int
	}
	Measures []measure
}

type measure struct {
	Name   string
	Values []float64
	Totals []float64
	Total  float64
}

func close(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b)) }

// agree compares what the page shows with what /v1 answers to the link of the page.
func (d *desk) agree(t *testing.T, tab *Tab) shown {
	t.Helper()
	s := Eval[shown](tab, readUsage)
	where := Eval[string](tab, "location.pathname + location.search")
	if !strings.HasPrefix(s.JSON, "/v1/usage?") || len(s.Lines) == 0 || len(s.Steps) == 0 {
		t.Fatalf("%s: %+v", where, s)
	}
	if !slices.EqualFunc(s.Steps, s.Chart, close) {
		t.Errorf("%s: the table has %v and the chart %v", where, s.Steps, s.Chart)
	}
	var says usageFigures
	if err := d.lab.Agg.Get(s.JSON, &says); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(says.Measures, func(m measure) bool { return m.Name == "Cores" })
	if at < 0 {
		t.Fatalf("%s has no Cores", s.JSON)
	}
	m, sum := says.Measures[at], 0.0
	for i, v := range s.Steps { // a step after the other; of the answer, a group after the other
		if groups := len(says.Groups); !close(v, m.Values[i%groups*len(says.Labels)+i/groups]) {
			t.Errorf("%s: %s of %s has %f, another figure than in %s", where, s.Lines[i%groups].Name, says.Labels[i/groups], v, s.JSON)
		}
	}
	for i, l := range s.Lines {
		sum += l.Value
		if g := says.Groups[i]; len(g.Values) > 0 && g.Values[0] != nil && *g.Values[0] != l.Name {
			t.Errorf("%s: line %d is of %s, and of %s in %s", where, i, l.Name, *g.Values[0], s.JSON)
		}
		if !close(m.Totals[i], l.Value) {
			t.Errorf("%s: %s has %f, and %f in %s", where, l.Name, l.Value, m.Totals[i], s.JSON)
		}
	}
	if len(s.Lines) != len(says.Groups) || !close(sum, s.Total) || !close(m.Total, s.Total) {
		t.Errorf("%s: %d lines with %f, in all %f; %d with %f in %s", where, len(s.Lines), sum, s.Total, len(says.Groups), m.Total, s.JSON)
	}
	return s
}

// about compares figures of which one is of a page that was opened a little later: runs
// that go on have used a little more.
func about(a, b float64) bool { return math.Abs(a-b) <= 1e-3*max(1, math.Abs(a)) }

// value of the line with a name.
func (s shown) of(name string) float64 {
	for _, l := range s.Lines {
		if l.Name == name {
			return l.Value
		}
	}
	return math.NaN()
}

// drill goes from the whole to the jobs of one person, by the links of the page, and
// back by a click into the chart.
func (d *desk) drill(t *testing.T) {
	tab := d.browser.Tab(t, d.lab.Pages())
	tab.Look("light", 1280, 900)
	tab.Open("/ui/usage?by=site_id&measure=Cores&window=30d&kind=bars", 200)
	sites := d.agree(t, tab)
	tab.Follow("#usage a.into", "hydra")
	groups := d.agree(t, tab)
	if !about(sites.of("hydra"), groups.Total) {
		t.Errorf("hydra has %f among the sites, and its groups %f", sites.of("hydra"), groups.Total)
	}
	tab.Follow("#usage a.into", "chemistry")
	users := d.agree(t, tab)
	if !about(groups.of("chemistry"), users.Total) {
		t.Errorf("chemistry has %f among the groups, and its people %f", groups.of("chemistry"), users.Total)
	}
	tab.Follow("#usage a.into", "pauling")
	tab.Await(`location.search.includes("pauling")`)
	if Eval[string](tab, "location.pathname") != "/ui/records" {
		tab.Follow(`main a[href^="/ui/records"]`, "")
	}
	page := Eval[string](tab, `document.querySelector("main table").textContent`) // the fields suggest others
	if count(tab, rows) == 0 || !strings.Contains(page, "pauling") || strings.Contains(page, "hodgkin") {
		t.Errorf("%s does not show the jobs of pauling", Eval[string](tab, "location.href"))
	}
	if problems := tab.Problems(); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
	d.zoom(t, tab)
}

// zoom drags over the chart, and clicks into it.
func (d *desk) zoom(t *testing.T, tab *Tab) {
	tab.Open("/ui/usage?by=site_id&measure=Cores&window=14d&step=day&kind=bars", 200)
	before := d.agree(t, tab)
	tab.Drag("#chart", 0.3, 0.6, 0.6, 0.6)
	tab.Await(`!location.search.includes("window=14d")`)
	tab.Ready()
	after := d.agree(t, tab)
	if after.Total <= 0 || after.Total >= before.Total {
		t.Errorf("a part of the fortnight has %f, and all of it %f", after.Total, before.Total)
	}
	at, err := url.Parse(Eval[string](tab, "location.href"))
	if err != nil || at.Query().Get("by") != "site_id" {
		t.Errorf("%s is not the same question for a part of the time", at)
	}
	bar := Eval[[2]float64](tab, fmt.Sprintf(firstBar, "[0, 0]"))
	tab.Drag("#chart", bar[0], bar[1], bar[0], bar[1])
	tab.Await(`location.search.includes("where")`)
	tab.Ready()
	d.agree(t, tab)
}

// firstBar is where the largest series has its highest bar, as parts of the chart.
const firstBar = `(() => {
  const place = document.getElementById("chart"), chart = echarts.getInstanceByDom(place), series = chart.getOption().series[0];
  const drawn = series.data.map((v) => Number(v?.value ?? v ?? 0)), step = drawn.indexOf(Math.max(...drawn));
  const [x, y] = chart.convertToPixel({ seriesIndex: 0 }, [step, drawn[step] / 2]);
  return place.clientWidth ? [x / place.clientWidth, y / place.clientHeight] : %s;
})()`

// fill types a value into a field, and leaves it.
func fill(tab *Tab, field, value string) {
	Eval[bool](tab, fmt.Sprintf(`(() => {
  const field = document.querySelector(%q);
  field.value = %q;
  return field.dispatchEvent(new Event("input", { bubbles: true })) && field.dispatchEvent(new Event("change", { bubbles: true }));
})()`, field, value))
}

// largeFigures makes the figures of the usage page those of a large site. A few digits more fit; what
// does not is scrolled in its place, and the page stays as wide as the window.
func (d *desk) largeFigures(t *testing.T) {
	tab := d.browser.Tab(t, d.lab.Pages())
	tab.Look("light", 360, 740)
	tab.Open("/ui/usage?by=group_id", 200)
	const room = `(() => { const box = document.querySelector(".figures .wide-table"); return box.scrollWidth - box.clientWidth; })()`
	for text, fits := range map[string]bool{"40 999 999": true, "888 888 888 888 888 888 888": false} {
		Eval[bool](tab, fmt.Sprintf(`(() => { for (const cell of document.querySelectorAll("#usage td.num:not(.change)")) cell.textContent = %q; return true; })()`, text))
		if wide := Eval[int](tab, beyond); wide > 0 {
			t.Errorf("with %s it is %d pixels wider than the window: %s", text, wide, Eval[string](tab, widest))
		}
		if over := Eval[int](tab, room); (over <= 0) != fits {
			t.Errorf("with %s the table is %d pixels wider than its place", text, over)
		}
	}
}

// suggestions types into the fields that filter, with values that they suggest, and opens a view
// that the configuration names.
func (d *desk) suggestions(t *testing.T) {
	tab := d.browser.Tab(t, d.lab.Pages())
	tab.Look("light", 1280, 900)
	tab.Open("/ui/usage?by=user_id&measure=Cores&window=30d", 200)
	all := d.agree(t, tab)
	if count(tab, `[name=where][list=words-where]`) == 0 || count(tab, `#words-where option[value="site_id=hydra"]`) == 0 {
		t.Error("the field for filters does not suggest hydra")
	}
	fill(tab, "[name=where]", "site=hydra")
	tab.Await(`new URLSearchParams(location.search).get("where[site_id]") === "hydra"`)
	tab.Ready()
	if hydra := d.agree(t, tab); hydra.Total <= 0 || hydra.Total >= all.Total || count(tab, "#chips .chip") != 1 {
		t.Errorf("hydra used %f of %f", hydra.Total, all.Total)
	}
	tab.Open("/ui/usage", 200)
	tab.Follow("#views a", "Groups of hydra")
	if d.agree(t, tab); count(tab, `#views a[aria-current=page]`) != 1 || !strings.Contains(Eval[string](tab, "location.search"), "hydra") {
		t.Errorf("the saved view is not shown: %s", Eval[string](tab, "location.href"))
	}
	tab.Open("/ui/records", 200)
	if count(tab, `#words-key option[value=site_id]`) == 0 || count(tab, `#words-component option[value=Cores]`) == 0 || count(tab, "#words-value") > 0 {
		t.Error("the fields of the list suggest no keys and components, or values of no key")
	}
	fill(tab, "[name=key]", "site_id")
	tab.Await(`document.querySelector("#words-value option[value=hydra]")`)
	if problems := tab.Problems(); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}
