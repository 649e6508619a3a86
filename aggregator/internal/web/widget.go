package web

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// widgetPage is the usage of the reader, or of all that the reader sees, as a card of a
// dashboard of another site. Its links leave the frame.
type widgetPage struct {
	Title      string
	Login      string // why figures are shown only after the login
	Nothing    string // why figures are not shown
	Tiles      []tile
	Notes      []string
	Href, Link string // where there is more
}

func (w *widgetPage) pageTitle() string { return w.Title }

// budgetsShown is how many budgets the widget has at most.
const budgetsShown = 3

// fillWidget makes the widget, or asks to log in. A browser keeps the cookie of the session from
// a frame in a page of another site, and says that it is one.
func (p *Pages) fillWidget(r *http.Request, f *frame) int {
	if access.From(r.Context()).May(identity.Read) {
		return p.fillFromView(r, p.widgetContent, f)
	}
	page := &widgetPage{Title: pageTitles()["widget"], Login: "Log in to see your usage.", Href: "/ui/login?" + url.Values{"to": {"/"}}.Encode(), Link: "Log in"}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		page.Login, page.Href, page.Link = "This page is of another site than bursar, so the browser does not say here who you are.", "/", "My usage"
	}
	f.Content = page
	return http.StatusUnauthorized
}

func (p *Pages) widgetContent(r *http.Request, v *access.View) (any, error) {
	ctx, who, own := r.Context(), v.Principal(), p.ownKeys()
	page := &widgetPage{Title: "Usage this month", Href: "/", Link: "More"}
	query := url.Values{"period": {"this-month"}}
	var mine []store.MetaTest
	user := ownUser(who, own.User)
	if user != "" {
		page.Title, page.Href, page.Link = "My usage this month", "/ui/me?"+query.Encode(), "My usage"
		mine = []store.MetaTest{{Key: own.User, Contains: []string{user}}}
	}
	running, err := countRunning(ctx, v, mine...)
	if err != nil {
		return nil, err
	}
	if user != "" {
		running.Href += "&" + url.Values{"user": {user}}.Encode()
	}
	d, err := report.Brief(ctx, p.V1, user, query.Get("period"), p.currentTime())
	_, refused := errors.AsType[*client.Problem](err)
	switch {
	case errors.Is(err, report.ErrNothing), refused:
		page.Nothing, page.Tiles = p.lackText(ctx, err), []tile{running}
		return page, nil
	case err != nil:
		return nil, err
	}
	page.Notes = d.Notes
	for i := range d.Tables {
		switch t := &d.Tables[i]; t.Name {
		case "figures":
			page.Tiles = append(figureTiles(t.Rows, page.Href), running)
		case "budgets":
			page.Tiles = append(page.Tiles, budgetTiles(t.Rows)...)
		}
	}
	return page, nil
}

// figureTiles are the figures of the widget: hours of cores and of GPUs, and how much of them
// was left unused.
func figureTiles(rows [][]v1.Cell, href string) (list []tile) {
	for _, row := range rows {
		t := figureTile(row)
		t.Href, t.More = href, nil
		switch row[0].String() {
		case "Cores", "GPUs", "CPU efficiency":
			list = append(list, t)
		case "Unused":
			t.Small = ""
			list = append(list, t)
		}
	}
	return list
}

// budgetTiles are what is left of budgets, from the rows of their table.
func budgetTiles(rows [][]v1.Cell) (list []tile) {
	for i, row := range rows {
		name, unit, amount, left, share := row[0].String(), row[2].String(), row[3], row[6], row[7]
		if i == budgetsShown {
			return append(list, tile{Href: "/ui/budgets", Value: view.Count(len(rows) - i), Label: "more budgets"})
		}
		t := tile{Href: "/ui/budgets", Value: v1.ShowIn(report.Number, unit, left), Exact: left.String(), Label: unit + " left of " + v1.ShowIn(report.Number, unit, amount) + ", " + name}
		if left.Known() && left.Number().Sign() <= 0 {
			t.Tone = "warn"
		}
		if share.Known() {
			t.More = []string{v1.Show(report.Share, share) + " used"}
		}
		list = append(list, t)
	}
	return list
}
