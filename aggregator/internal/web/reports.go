package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// reportsPage is what the page of reports shows: the list, and one report where one
// is asked for.
type reportsPage struct {
	List  []report.Entry
	Entry *report.Entry // nil: none is asked for
	Form  []entryField
	Needs []string     // what must be said first, by its title
	Doc   *shownReport // nil: there is none, and the page says why
}

// Links lead to a report of the list, for some of its periods.
func (*reportsPage) Links(e report.Entry) []topLink {
	base := "/ui/reports?report=" + e.Name
	p := e.Param("period")
	if p == nil || len(missingTitles(&e, url.Values{})) > 0 {
		return []topLink{{Text: "Choose of whom", Href: base}}
	}
	usual := strings.ReplaceAll(strings.Join(p.Default, " beside "), "-", " ")
	links := []topLink{{Text: strings.ToUpper(usual[:1]) + usual[1:], Href: base}, {Text: "Last week", Href: base + "&period=last-week"}}
	if p.Most > 1 {
		links = append(links, topLink{Text: "Last month beside last year", Href: base + "&period=last-month&period=last-year"})
	}
	return links
}

// addPreviousPeriod sets the period before beside a single one, where a report takes two.
func addPreviousPeriod(e *report.Entry, query url.Values) {
	p := e.Param("period")
	if p == nil || p.Most < 2 {
		return
	}
	list := slices.DeleteFunc(slices.Clone(query["period"]), func(word string) bool { return word == "" })
	if len(list) == 0 {
		list = slices.Clone(p.Default[:1])
	}
	if len(list) == 1 {
		list = append(list, report.Previous)
	}
	query["period"] = list
}

// missingTitles are the titles of what a report needs and was not told.
func missingTitles(e *report.Entry, query url.Values) (titles []string) {
	for i := range e.Parameters {
		if p := &e.Parameters[i]; p.Needed && len(givenValues(p, query)) == 0 {
			titles = append(titles, p.Title)
		}
	}
	return titles
}

// entryField is one of a form, of a parameter of a report.
type entryField struct {
	*report.Param

	Values []string // one for each; at least one
	List   string   // the id of its examples; "" without
	Offers []string // the examples
	Dates  bool     // its first value may be two dates
}

// rowsShown is how many lines of a table the page shows at once. The files have all.
const rowsShown = 100

// shownReport is a report in the page.
type shownReport struct {
	*report.Document

	ways *ways

	Tables []shownTable
	CSV    string // links to the same report as a file, or for print
	XLSX   string
	JSON   string
	HTML   string
	Print  string
	Fixed  string // the same periods by their dates; "" where they are so already

	Earlier, Later string // the pages before and after this one of long tables; "" without
}

// shownTable is a table as text.
type shownTable struct {
	Name, Title string
	Chart       template.HTML
	Head        []shownHead
	Rows        [][]shownCell
	Totals      []shownCell
	Part        string // which lines these are; "" where they are all
	Why         string // what its figures are of; "" where its rows lead there
	Folded      bool   // the chart says it; the figures open when they are wanted

	Caption string   // of a list: what it holds
	Notes   []string // of a list
	Notices []shownNotice
	Lists   []shownTable // below it, under their titles
	Empty   string       // of a list without rows
	CSV     string       // the address of a list as a file; "": none
}

type shownHead struct {
	Title, Below, Label string
	Num                 bool
	Href, About         string // the list sorted by the column, and how
	Sorted              string // ascending or descending, as aria-sort says it; "" where another column sorts
}

type shownCell struct {
	Text, Exact, Label string
	Href               string // the page about what it names
	Class              string
	Num                bool
	Tone               view.Tone // of a state
	Time               string    // of a moment, for machines
	Code               bool      // it can be typed in a shell
}

// reportsContent is what the page of reports shows.
func (p *Pages) reportsContent(r *http.Request) (any, error) {
	page := &reportsPage{List: report.Catalogue()}
	query := r.URL.Query()
	name := query.Get("report")
	query.Del("report")
	if name == "" {
		return page, nil
	}
	e, err := report.Find(name)
	if err != nil {
		return page, status{http.StatusNotFound, asSentence(err.Error())}
	}
	e = e.Own(p.ownKeys())
	addPreviousPeriod(e, query)
	page.Entry, page.Form = e, p.offerValues(r.Context(), formFields(e, query))
	if page.Needs = missingTitles(e, query); len(page.Needs) > 0 {
		return page, nil
	}
	page.Doc, err = p.makeReport(r.Context(), e, query)
	return page, err
}

// makeReport makes a report ready to be shown.
func (p *Pages) makeReport(ctx context.Context, e *report.Entry, query url.Values) (*shownReport, error) {
	page, err := strconv.Atoi(cmp.Or(query.Get("page"), "1"))
	if err != nil || page < 1 {
		return nil, badRequest("page is %q, want a number from 1.", query.Get("page"))
	}
	query.Del("page")
	r := p.once()
	d, err := report.Make(ctx, r, e.Name, query, p.currentTime())
	problem, refused := errors.AsType[*client.Problem](err)
	switch {
	case refused && problem.Status < http.StatusInternalServerError:
		return nil, status{problem.Status, asSentence(problem.Detail)}
	case errors.Is(err, report.ErrNothing):
		return nil, status{http.StatusNotFound, asSentence(err.Error())}
	case errors.Is(err, report.ErrQuery):
		return nil, status{http.StatusBadRequest, asSentence(err.Error())}
	case err != nil:
		return nil, err
	}
	return showReport(p.makeWays(ctx, r, d, query), d, query, page), nil
}

// asSentence is what an error says as a sentence.
func asSentence(text string) string {
	if text == "" {
		return text
	}
	if text = view.Capital(text); !strings.HasSuffix(text, "?") && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// showReport writes the cells of a report as text, and its links.
func showReport(w *ways, d *report.Document, query url.Values, page int) *shownReport {
	s := &shownReport{Document: d, ways: w}
	for i := range d.Tables {
		s.Tables = append(s.Tables, showTable(w, d, d.Table(i), page))
		if len(d.Tables[i].Rows) > page*rowsShown {
			s.Later = pageOf(d.Report, query, page+1)
		}
	}
	if page > 1 {
		s.Earlier = pageOf(d.Report, query, page-1)
	}
	link := func(format, download string) string {
		q := url.Values{"format": {format}}
		if download != "" {
			q.Set("download", download)
		}
		rest := query.Encode()
		if rest != "" {
			rest += "&"
		}
		return v1.ReportAddress(d.Report, nil, "") + "?" + rest + q.Encode()
	}
	s.CSV, s.XLSX, s.JSON, s.HTML, s.Print = link("csv", "1"), link("xlsx", "1"), link("json", ""), link("html", "1"), link("html", "")
	s.Fixed = fixedAddress(d, query)
	return s
}

// pageOf is the address of another page of the same report.
func pageOf(name string, query url.Values, page int) string {
	q := maps.Clone(query)
	q.Set("report", name)
	q.Set("page", strconv.Itoa(page))
	return "/ui/reports?" + q.Encode()
}

// showTable shows a page of the lines of a table; of a shorter table its last one.
func showTable(w *ways, d *report.Document, t *report.Table, page int) shownTable {
	out := shownTable{Name: t.Name, Title: t.Title, Chart: d.Chart(t), Why: w.tableAddress(t)}
	for i := range t.Columns {
		c := &t.Columns[i]
		h := shownHead{Title: c.Title, Below: d.Below(c), Num: c.Kind != report.Text}
		h.Label = h.Title
		if h.Below != "" {
			h.Label += ", " + h.Below
		}
		out.Head = append(out.Head, h)
	}
	from := min((page-1)*rowsShown, max(len(t.Rows)-1, 0)/rowsShown*rowsShown)
	to := min(from+rowsShown, len(t.Rows))
	for _, row := range t.Rows[from:to] {
		out.Rows = append(out.Rows, out.showCells(t, row))
	}
	if to-from < len(t.Rows) {
		out.Part = fmt.Sprintf("Rows %s to %s of %s.", view.Count(from+1), view.Count(to), view.Count(len(t.Rows)))
	}
	if t.Totals != nil {
		out.Totals = out.showCells(t, t.Totals)
		for k := range out.Totals {
			out.Totals[k].Href = w.totalAddress(t, k)
		}
	}
	out.Folded = out.Chart != "" && (len(t.Rows) > mostBeside || t.Chart.Kind == report.Columns || t.Chart.Kind == report.Heat)
	for i := range out.Rows {
		for k := range t.Columns {
			cell := &out.Rows[i][k]
			if cell.Href = w.cellAddress(t, from+i, t.Rows[from+i], k); cell.Href != "" && cell.Num {
				cell.Class += " why"
			}
		}
	}
	return out
}

// mostBeside is how many lines a table may have to stand open below its chart.
const mostBeside = 12

// aboutPage is the page about the value of a column; "" where there is none.
func aboutPage(own report.Keys, column, value string) string {
	switch {
	case value == "" || value == view.NoValue || view.IsOthers(value):
		return ""
	case column == "record_id":
		return "/ui/record?" + url.Values{"id": {value}}.Encode()
	case column == "budget":
		return "/ui/budgets?" + url.Values{"name": {value}}.Encode()
	case slices.Contains(keysWidestFirst(own), column):
		return "/ui/usage?" + url.Values{"where[" + column + "]": {v1.JoinList(value)}, "window": {"30d"}}.Encode()
	}
	return ""
}

func (s *shownTable) showCells(t *report.Table, row []report.Cell) []shownCell {
	var out []shownCell
	for i, c := range row {
		cell := shownCell{Text: (*v1.DocumentTable)(t).Show(row, i), Label: s.Head[i].Label, Num: s.Head[i].Num}
		if cell.Num {
			cell.Exact, cell.Class = c.String(), "num"
		}
		out = append(out, cell)
	}
	return out
}

// formFields are those of the form: what was given, and else the defaults, with an empty
// one more where another may be given.
func formFields(e *report.Entry, query url.Values) []entryField {
	var out []entryField
	for i := range e.Parameters {
		p := &e.Parameters[i]
		f := entryField{Param: p, Values: givenValues(p, query)}
		if len(f.Values) == 0 {
			f.Values = slices.Clone(p.Default)
		}
		if len(f.Values) == 0 || p.Most > len(f.Values) && p.Kind != report.ParamList {
			f.Values = append(f.Values, "")
		}
		if len(p.Words) > 0 && p.Kind != report.ParamChoice {
			f.List, f.Offers = "words-"+p.Name, p.Words
		}
		f.Dates = p.Kind == report.ParamWindow
		out = append(out, f)
	}
	return out
}

// givenValues are the values of a parameter in a query.
func givenValues(p *report.Param, query url.Values) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(query)) {
		name, inner, bracket := strings.Cut(key, "[")
		if name != p.Name {
			continue
		}
		for _, v := range query[key] {
			switch {
			case bracket:
				out = append(out, strings.TrimSuffix(inner, "]")+"="+v)
			case v != "":
				out = append(out, v)
			}
		}
	}
	if p.Kind == report.ParamList && len(out) > 1 {
		out = []string{v1.JoinList(v1.SplitList(out...)...)}
	}
	return out
}

// fixedAddress is the address of the same report with its periods by their dates, so that it
// shows the same when it is opened next month; "" where no period follows the clock.
func fixedAddress(d *report.Document, query url.Values) string {
	words := slices.DeleteFunc(slices.Clone(query["period"]), func(s string) bool { return s == "" })
	if e, err := report.Find(d.Report); err == nil && len(words) == 0 && e.Param("period") != nil {
		words = slices.Clone(e.Param("period").Default)
	}
	zone, err := time.LoadLocation(d.Zone)
	if err != nil {
		return ""
	}
	moves := false
	for i, word := range words[:min(len(words), len(d.Periods))] { // of which the second may be none
		date := datedPeriod(word, d.Periods[i].From.In(zone))
		moves = moves || date != word
		words[i] = date
	}
	if !moves {
		return ""
	}
	q := maps.Clone(query)
	q["period"] = words
	q.Set("report", d.Report)
	return "/ui/reports?" + q.Encode()
}

// datedPeriod is a period by its date, given its start.
func datedPeriod(word string, from time.Time) string {
	switch {
	case word == "today", word == "yesterday":
		return from.Format(time.DateOnly)
	case !strings.HasPrefix(word, "this-") && !strings.HasPrefix(word, "last-"):
		return word
	}
	switch word[len("this-"):] {
	case "week":
		year, week := from.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	case "month":
		return from.Format("2006-01")
	case "quarter":
		return fmt.Sprintf("%d-Q%d", from.Year(), (from.Month()+2)/3)
	case "year":
		return from.Format("2006")
	}
	return word
}

// mergeDates puts the two dates of a form in the place of its first period; false where there
// are none. A date that is missing is today.
func mergeDates(query url.Values) bool {
	from, until := query.Get("from"), query.Get("until")
	if from == "" && until == "" {
		return false
	}
	query.Del("from")
	query.Del("until")
	word := cmp.Or(from, "today") + ".." + cmp.Or(until, "today")
	query["period"] = append([]string{word}, query["period"][min(1, len(query["period"])):]...)
	return true
}

// redirectTidy sends a browser from the address that a form makes to the one without the fields
// that were left empty, which is shorter to pass on.
func redirectTidy(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		changed := mergeDates(query)
		for key, list := range query {
			kept := slices.DeleteFunc(slices.Clone(list), func(v string) bool { return v == "" && !strings.Contains(key, "[") })
			if changed = changed || len(kept) < len(list); len(kept) == 0 {
				delete(query, key)
				continue
			}
			query[key] = kept
		}
		if !changed {
			h.ServeHTTP(w, r)
			return
		}
		http.Redirect(w, r, "/ui/reports?"+query.Encode(), http.StatusFound) //nolint:gosec // it stays on this page
	})
}
