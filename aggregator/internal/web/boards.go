package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// firstPage is where someone begins: a person at the own usage, who leads projects or a group
// there, who only reads at the centre, who sees pseudonyms at the usage, and who keeps the
// cluster at the overview. userKey is the meta key of users.
func firstPage(who access.Principal, userKey string) string {
	switch {
	case who.Pseudonyms:
		return "/ui/usage"
	case who.Rows.All() && who.May(identity.Monitor):
		return "/ui/overview"
	case who.Rows.All():
		return "/ui/centre"
	case seesOnlyOwn(who, userKey):
		return "/ui/me"
	}
	return "/ui/projects"
}

// ownUser is the user that the reader is; "" where that is not said.
func ownUser(who access.Principal, userKey string) string {
	if who.Person != "" {
		return who.Person
	}
	if only := who.Rows.Only(userKey); len(only) == 1 {
		return only[0]
	}
	return ""
}

// seesOnlyOwn reports whether the reader sees the own records, and no others.
func seesOnlyOwn(who access.Principal, userKey string) bool {
	only := who.Rows.Only(userKey)
	return len(only) == 1 && only[0] == ownUser(who, userKey)
}

// byRole shows the overview to who begins there, and to who asks for a part of it by its
// address; everyone else is sent to the own first page.
func (p *Pages) byRole(overview http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := firstPage(access.From(r.Context()), p.ownKeys().User)
		if to == "/ui/overview" || r.URL.RawQuery != "" {
			overview.ServeHTTP(w, r)
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
}

// navLink is a page that the reader may open, in the navigation of every page.
type navLink struct {
	Text, Href string
	Here       bool
}

// navLinks are the pages for a reader. What is of all records is not for who sees some.
func navLinks(who access.Principal, userKey, page string) (list []navLink) {
	for _, n := range []struct {
		href, text string
		pages      []string
		is         bool
	}{
		{"/ui/me", "My usage", []string{"me"}, ownUser(who, userKey) != ""},
		{"/", "Overview", []string{"overview"}, firstPage(who, userKey) == "/ui/overview"},
		{"/ui/overview", "Overview", []string{"overview"}, firstPage(who, userKey) != "/ui/overview"},
		{"/ui/centre", "Centre", []string{"centre"}, who.Rows.All()},
		{"/ui/projects", map[bool]string{true: "Projects", false: "My projects"}[who.Rows.All()], []string{"projects"}, !seesOnlyOwn(who, userKey)},
		{"/ui/usage", "Usage", []string{"usage"}, true},
		{"/ui/distributions", "Distributions", []string{"distributions"}, true},
		{"/ui/budgets", "Budgets", []string{"budgets"}, true},
		{"/ui/prices", "Prices", []string{"prices"}, true},
		{"/ui/records", "Records", []string{"records", "record"}, true},
		{"/ui/reports", "Reports", []string{"reports"}, true},
		{"/ui/agents", "Agents", []string{"agents", "quarantine", "conflicts"}, true},
		{"/ui/actions", "Actions", []string{"actions", "action", "run", "effect", "plan"}, true},
		{"/ui/alerts", "Alerts", []string{"alerts"}, true},
		{"/ui/cluster", "Cluster", []string{"cluster"}, true},
	} {
		of := n.href
		if of == "/" {
			of = "/{$}"
		}
		need := access.Routes()["GET "+of]
		figures := !need.Rights.Any(identity.Monitor) || who.Rows.All() || who.May(identity.Monitor)
		if n.is && who.May(need.Rights) && figures && (need.Pseudonyms || !who.Pseudonyms) {
			list = append(list, navLink{n.text, n.href, slices.Contains(n.pages, page)})
		}
	}
	return list
}

// boardPage is a report as a page of its own: its figures as tiles, and its other tables.
type boardPage struct {
	Path   string
	Form   []entryField // what can be chosen
	Ranges []choice     // the usual periods
	Needs  string       // what must be chosen first
	Doc    *shownReport // nil: there is none, and the page says why
	Tiles  []tile
	Lacks  bool   // the reader sees what sources lack
	Report string // the address of the same on the page of reports
	Title  string
}

func (b *boardPage) pageTitle() string { return b.Title }

// boardHandler makes the handler of a page of a report. choose sets the values that the page
// itself gives, and says what must be chosen first.
func (p *Pages) boardHandler(name string, choose func(r *http.Request, query url.Values) (needs string)) http.Handler {
	return p.plainHandler(name, func(r *http.Request) (any, error) {
		query := r.URL.Query()
		who := access.From(r.Context())
		page := &boardPage{Path: r.URL.Path, Title: pageTitles()[name], Lacks: who.Rows.All() && !who.Pseudonyms}
		page.Needs = choose(r, query)
		switch user := query.Get("user"); {
		case name == "me" && user != "" && user != ownUser(who, p.ownKeys().User):
			page.Title = "Usage of " + user
		case name == "projects" && !who.Rows.All():
			page.Title = "My projects"
		}
		of := map[string]string{"me": "person"}[name]
		if of == "" {
			of = name
		}
		e, err := report.Find(of)
		if err != nil {
			return nil, err
		}
		e = e.Own(p.ownKeys())
		page.Form = p.offerValues(r.Context(), formFields(e, query))
		if p := e.Param("period"); p != nil {
			page.Ranges = markChosen(cmp.Or(query.Get("period"), p.Default[0]), windowChoices())
		}
		if page.Needs != "" {
			return page, nil
		}
		if page.Doc, err = p.makeReport(r.Context(), e, query); err != nil {
			var s status
			if errors.As(err, &s) && s.code == http.StatusNotFound { // nothing is an answer
				page.Needs, err = s.text, nil
			}
			return page, err
		}
		page.offerBudgets()
		page.Report = "/ui/reports?report=" + of + "&" + query.Encode()
		page.splitFigures()
		return page, nil
	})
}

// offerBudgets gives the field for the name of a budget those of the report.
func (b *boardPage) offerBudgets() {
	field := slices.IndexFunc(b.Form, func(f entryField) bool { return f.Name == "name" })
	for i := range b.Doc.Document.Tables {
		t := &b.Doc.Document.Tables[i]
		column := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.Name == "budget" })
		if field < 0 || column < 0 {
			continue
		}
		f := &b.Form[field]
		f.List, f.Offers = "words-name", nil
		for _, row := range t.Rows {
			f.Offers = append(f.Offers, row[column].String())
		}
		return
	}
}

// chooseOwnUser chooses the person: the reader, where there is no other one.
func (p *Pages) chooseOwnUser(r *http.Request, query url.Values) string {
	if own := ownUser(access.From(r.Context()), p.ownKeys().User); query.Get("user") == "" && own != "" {
		query.Set("user", own)
	}
	if query.Get("user") == "" {
		return "Enter a user to see what this person used."
	}
	return ""
}

func chooseNothing(*http.Request, url.Values) string { return "" }

// splitFigures takes the figures out of the tables, and makes tiles of them.
func (b *boardPage) splitFigures() {
	i := slices.IndexFunc(b.Doc.Tables, func(t shownTable) bool { return t.Name == "figures" })
	if i < 0 {
		return
	}
	for _, row := range b.Doc.Document.Tables[i].Rows {
		if b.Doc.Report == "person" && row[0].String() == "People" {
			continue
		}
		t := figureTile(row)
		t.Href = b.Doc.ways.figureAddress(row[0].String())
		b.Tiles = append(b.Tiles, t)
	}
	b.Doc.Tables = slices.Delete(b.Doc.Tables, i, i+1)
}

// figureTile is a row of the figures of a report.
func figureTile(row []v1.Cell) tile {
	t := tile{Value: v1.ShowIn(report.Number, row[1].String(), row[2]), Exact: row[2].String(), Label: row[0].String()}
	switch unit := row[1].String(); {
	case unit == "%":
		t.Value += "\u202f%"
	case strings.HasSuffix(unit, "-hours") && t.Label != "Unused":
		t.Label = unit
	case unit == "core-hours":
		t.Label = "core-hours unused"
	case unit != "":
		t.Label += ", " + unit
	}
	if row[4].Known() {
		t.Small = v1.Show(report.Change, row[4])
	}
	if row[3].Known() {
		t.More = []string{v1.ShowIn(report.Number, row[1].String(), row[3]) + " before"}
	}
	return t
}
