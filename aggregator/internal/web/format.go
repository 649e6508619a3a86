package web

import (
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// functions are what the templates can call.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset":   p.files.address,
		"count":   view.Count,
		"keyname": func(key string) string { return keyName(key, p.ownKeys()) },
		"last":    func(i int, trail []crumb) bool { return i == len(trail)-1 },
		"pattern": pattern,
		"title":   view.Capital,
		"unit":    v1.AmountUnit,
		"whenin":  func(t instant, zone string) string { return whenIn(t.UTC(), view.Zone(zone)) },
		"bytes":   view.Size,
		"clock":   func() string { return p.clock().String() },
		"when":    p.when,
		"date":    func(t instant) string { return t.UTC().Format(time.DateOnly) }, // of completeness, whose days are in UTC
		"iso":     iso,
		"span":    view.Span,
		"short":   func(s string) string { return s[:min(len(s), 12)] },
		"ago":     func(t instant) string { return ago(p.now().Sub(t.UTC()), t.UTC()) },
		"values":  func(v []string) string { return strings.Join(v, ", ") },
		"recpath": func(id string) string { return "/ui/record?" + url.Values{"id": {id}}.Encode() },
	}
}

// instant is a [time.Time] or a [v1.Time].
type instant interface {
	IsZero() bool
	UTC() time.Time
}

// when writes a time for people, by the site's clock.
func (p *Pages) when(t instant) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().In(p.clock()).Format("2006-01-02 15:04:05")
}

func iso(t instant) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// ago writes how long a moment is past.
func ago(d time.Duration, t time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case d < 0:
		return "in " + view.Span(-d)
	case d < 2*time.Second:
		return "now"
	}
	return view.Span(d) + " ago"
}

// std turns a record's time into a time of the library; zero when there is none.
func std(t record.Time) time.Time {
	if t == record.None {
		return time.Time{}
	}
	return t.Std().UTC()
}
