//go:build e2e

package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// page is a page that is walked.
type page struct {
	path   string
	status int64  // 0 is 200
	needs  string // a selector of CSS of what must be there
	table  bool   // it has one, also without script
	may    bool   // it may say with an error that there is nothing to show
}

func (p page) want() int64 {
	if p.status == 0 {
		return 200
	}
	return p.status
}

// look is a way to look at a page. Of a page that stays open only what changes with the look is
// looked at again.
type look struct {
	scheme        string
	width, height int64
	open          bool // the page stays open from the look before
	print         bool
}

func (v look) String() string {
	if v.print {
		return v.scheme + ", printed"
	}
	return fmt.Sprintf("%s, %d px", v.scheme, v.width)
}

// looks are those of every page. Paper comes behind the dark, from which a page may be printed.
func looks() []look {
	return []look{
		{scheme: "light", width: 1280, height: 900}, {scheme: "dark", width: 1280, height: 900, open: true}, {scheme: "dark", print: true, open: true},
		{scheme: "light", width: 360, height: 740}, {scheme: "dark", width: 360, height: 740, open: true},
	}
}

// briefLooks are those of pages that are walked with all looks elsewhere.
func briefLooks() []look {
	return []look{{scheme: "light", width: 360, height: 740}, {scheme: "dark", print: true, open: true}}
}

// visit is a page, who opened it, and how long it took until it was there.
type visit struct {
	role string
	path string
	took time.Duration
}

// walk opens pages in a tab, in each of the looks, and inspects them.
func (d *desk) walk(t *testing.T, tab *Tab, pages []page, looks []look) (visits []visit) {
	t.Helper()
	for _, p := range pages {
		for i, v := range looks {
			if v.print {
				tab.Print(v.scheme)
			} else {
				tab.Look(v.scheme, v.width, v.height)
			}
			if !v.open {
				begun := time.Now()
				switch {
				case p.may && strings.HasPrefix(p.path, "/ui/reports?"):
					tab.Refused(p.path, 400) // a report of what is not configured
				case p.may:
					tab.Refused(p.path)
				default:
					tab.Open(p.path, p.want())
				}
				if i == 0 {
					visits = append(visits, visit{path: p.path, took: time.Since(begun)})
				}
			}
			d.inspect(t, tab, p, v)
		}
	}
	return visits
}

// logSlowest logs how long the pages took that took longest.
func logSlowest(t *testing.T, visits []visit) {
	t.Helper()
	slices.SortFunc(visits, func(x, y visit) int { return cmp.Compare(y.took, x.took) })
	for _, v := range visits[:min(len(visits), 12)] {
		t.Logf("%6d ms  %-14s %s", v.took.Milliseconds(), v.role, v.path)
	}
}

// inspect looks at the page in a tab.
func (d *desk) inspect(t *testing.T, tab *Tab, p page, v look) {
	t.Helper()
	if p.needs != "" && count(tab, p.needs) == 0 || p.table && count(tab, rows) == 0 {
		t.Errorf("%s, %s: there is no %s, or no table", p.path, v, p.needs)
	}
	if !v.open && !Eval[bool](tab, says) {
		t.Errorf("%s, %s: it is empty, and does not say why", p.path, v)
	}
	if wide := Eval[int](tab, beyond); wide > 0 {
		t.Errorf("%s, %s: it is %d pixels wider than the window: %s", p.path, v, wide, Eval[string](tab, widest))
	}
	if v.print {
		for _, what := range Eval[[]string](tab, misprinted) {
			t.Errorf("%s, %s: %s", p.path, v, what)
		}
	}
	for _, f := range tab.Violations(d.axe, v.open) {
		if f.Serious() {
			t.Errorf("%s, %s: %s", p.path, v, f)
		} else if !v.open && v.width > 1000 {
			t.Logf("%s, %s: %s", p.path, v, f)
		}
	}
	if problems := tab.Problems(); len(problems) > 0 {
		t.Errorf("%s, %s:\n%s", p.path, v, strings.Join(problems, "\n"))
	}
}

// navigation returns the paths of the pages that the open page has in its navigation.
func navigation(tab *Tab) []string {
	tab.t.Helper()
	return Eval[[]string](tab, `[...document.querySelectorAll("header nav a")].map(a => a.getAttribute("href"))`)
}

// rows are the rows of a page's tables, as a selector of CSS.
const rows = "main table tbody tr"

func count(tab *Tab, selector string) int {
	return Eval[int](tab, "document.querySelectorAll(`"+selector+"`).length")
}

// says is whether a page says something beside its title, its fields and its links.
const says = `(() => {
  const main = document.querySelector("main").cloneNode(true);
  main.querySelectorAll("h1, h2, h3, form, nav, .links, thead, caption").forEach((e) => e.remove());
  return main.querySelector("svg, canvas") !== null || main.textContent.trim() !== "";
})()`

// beyond is by how many pixels the page is wider than the window.
const beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

// widest names what stands out of the window.
const widest = `[...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 200)).join("\n")`

// misprinted names what paper cannot show, and what has no place on it: what is cut off where
// one cannot scroll, charts and tables that are not there though they are not folded, and what
// is for pressing.
const misprinted = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (e) => e.checkVisibility({ contentVisibilityAuto: true }) && e.getClientRects().length > 0;
  const name = (e) => e.outerHTML.slice(0, 150);
  const clips = (e) => {
    const style = getComputedStyle(e);
    return style.position !== "absolute" && (style.overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1 || style.overflowY !== "visible" && e.scrollHeight > e.clientHeight + 1);
  };
  return [
    ...all("main *").filter((e) => !(e instanceof SVGElement) && shown(e) && clips(e)).map((e) => "paper cuts off " + name(e)),
    ...all("header, form, footer, button:not([aria-pressed=true]), select, summary, .links, .skip").filter(shown).map((e) => "paper has " + name(e)),
    ...all(".chart svg, #chart canvas, main table").filter((e) => !e.closest("form, details:not([open])") && !shown(e)).map((e) => "paper lacks " + name(e)),
  ].slice(0, 5);
})()`
