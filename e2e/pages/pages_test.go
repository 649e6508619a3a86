//go:build e2e

package pages

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// walked are all the pages, in the order of the navigation. A new page is a line here.
func walked() []page {
	return []page{
		{path: "/", needs: ".tile", table: true},
		{path: "/ui/usage", needs: "#chart", table: true},
		{path: "/ui/usage?window=7d&by=user_id&measure=GPUs&kind=steps&where[site_id]=hydra", needs: "#chart", table: true},
		{path: "/ui/overview", needs: ".tile", table: true},
		{path: "/ui/centre", needs: "svg", table: true},
		{path: "/ui/projects", needs: "svg", table: true},
		{path: "/ui/me"},
		{path: "/ui/widget", needs: ".tile"},
		{path: "/ui/budgets"},
		{path: "/ui/prices", table: true},
		{path: "/ui/distributions", needs: "svg", table: true},
		{path: "/ui/records", needs: "form", table: true},
		{path: "/ui/records?group=antares&runs=running", needs: "form", table: true},
		{path: "/ui/record?id=lab-2", needs: "dl"},
		{path: "/ui/reports", needs: ".choices"},
		{path: "/ui/reports?report=usage", needs: "svg", table: true},
		{path: "/ui/reports?report=summary", needs: ".report", table: true},
		{path: "/ui/reports?report=efficiency", needs: ".report", table: true},
		{path: "/ui/reports?report=statement&of=group_id%3Dphysics&period=this-month", needs: ".report", table: true},
		{path: "/ui/reports?report=job&job=40", needs: ".report", table: true},
		{path: "/ui/agents", table: true},
		{path: "/ui/quarantine", needs: ".card"},
		{path: "/ui/conflicts", table: true},
		{path: "/ui/actions", table: true},
		{path: "/ui/actions/exec/quota", needs: "dl", table: true},
		{path: "/ui/actions/exec/quota/runs/1", needs: "dl", table: true},
		{path: "/ui/actions/exec/quota/runs/1/effects/0", needs: "pre"},
		{path: "/ui/alerts", table: true},
		{path: "/ui/cluster", table: true},
		{path: "/ui/nothing", status: 404, needs: ".problem"},
	}
}

// desk is where someone looks at the pages of a lab.
type desk struct {
	lab     *Lab
	browser *Browser
	axe     string
}

func TestPages_InABrowser_ShowWhatIsCounted(t *testing.T) {
	t.Parallel()
	d := &desk{NewLab(t), NewBrowser(t), Library(t, "axe")}
	if *screenshots != "" {
		d.takePictures(t)
		return
	}
	t.Run("an unsound page is noticed", d.anUnsoundPage)
	t.Run("every page is sound in the light, in the dark, on a phone and on paper", d.everyLook)
	t.Run("each role begins at a page of its own", d.firstPages)
	t.Run("usage leads from a site to a group to a person to the jobs, and table, chart and v1 agree", d.drill)
	t.Run("each figure of the boards of each role is that of v1", d.boardsAgree)
	t.Run("used, reserved and left of budgets is what v1 says", d.budgetsAgree)
	t.Run("a narrow window has room for large figures", d.largeFigures)
	t.Run("fields that filter suggest what records have, and saved views are offered", d.suggestions)
	t.Run("without script every table is there", d.withoutScript)
	t.Run("a dashboard of a configured origin shows the widget, another origin does not", d.framedWidget)
	t.Run("what dashboards make of the JSON of usage is what usage says", d.jsonata)
	t.Run("who sees some of the records reads of no other on any page", d.someRows)
	t.Run("a real Prometheus answers every query of the dashboards, and says when the node is down and when it is back", d.prometheus)
}

func (d *desk) everyLook(t *testing.T) {
	tab := d.browser.Tab(t, d.lab.Pages())
	d.walk(t, tab, append(walked(), d.reports(t, tab)...), looks())
	tab.Open("/", 200)
	for _, path := range navigation(tab) {
		if !slices.ContainsFunc(walked(), func(p page) bool { return p.path == path }) {
			t.Errorf("the navigation names %s, which is not walked", path)
		}
	}
}

// reports are the other ones that the page of reports names.
func (d *desk) reports(t *testing.T, tab *Tab) (all []page) {
	t.Helper()
	tab.Open("/ui/reports", 200)
	for _, path := range Eval[[]string](tab, `[...document.querySelectorAll(".choices h2 a")].map(a => a.getAttribute("href"))`) {
		if !slices.ContainsFunc(walked(), func(p page) bool { return p.path == path }) {
			all = append(all, page{path: path})
		}
	}
	if len(all) < 2 {
		t.Errorf("only %v", all)
	}
	return all
}

func (d *desk) withoutScript(t *testing.T) {
	tab := d.browser.Tab(t, d.lab.Pages())
	tab.Script(false)
	tab.Look("light", 1280, 900)
	for _, p := range walked() {
		tab.Load(p.path, p.want())
		if p.table && count(tab, rows) == 0 {
			t.Errorf("%s has no table", p.path)
		}
	}
	if problems := tab.Problems(); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}

func (d *desk) someRows(t *testing.T) {
	tab := d.browser.Tab(t, d.lab.As("curie"))
	tab.Look("light", 1280, 900)
	other := regexp.MustCompile(`\b(?:` + strings.Join(strangers(), "|") + `)\b`)
	for _, p := range walked() {
		tab.Refused(p.path) // what is about all records is
		if strings.Contains(p.path, "antares") {
			continue // the name is in the address, and so in the form
		}
		if found := other.FindAllString(tab.HTML(), 3); found != nil {
			t.Errorf("%s has %q", p.path, found)
		}
	}
	tab.Open("/ui/records", 200)
	if page := tab.HTML(); !strings.Contains(page, "physics") || !strings.Contains(page, "curie") {
		t.Error("its own rows are not there")
	}
}
