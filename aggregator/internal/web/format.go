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

// templateFunctions are what the templates can call.
func (p *Pages) templateFunctions() template.FuncMap {
	return template.FuncMap{
		"asset":   p.files.assetAddress,
		"count":   view.Count,
		"keyname": func(key string) string { return keyName(key, p.ownKeys()) },
		"last":    func(i int, trail []crumb) bool { return i == len(trail)-1 },
		"pattern": patternPath,
		"title":   view.Capital,
		"unit":    v1.AmountUnit,
		"whenin":  func(t instant, zone string) string { return whenIn(t.UTC(), view.Zone(zone)) },
		"bytes":   view.Size,
		"clock":   func() string { return p.siteZone().String() },
		"when":    p.formatTime,
		"date":    func(t instant) string { return t.UTC().Format(time.DateOnly) }, // of completeness, whose days are in UTC
		"iso":     formatISO,
		"span":    view.Span,
		"short":   func(s string) string { return s[:min(len(s), 12)] },
		"ago":     func(t instant) string { return formatAge(p.currentTime().Sub(t.UTC()), t.UTC()) },
		"values":  func(v []string) string { return strings.Join(v, ", ") },
		"recpath": func(id string) string { return "/ui/record?" + url.Values{"id": {id}}.Encode() },
	}
}

// instant is a [time.Time] or a [v1.Time].
type instant interface {
	IsZero() bool
	UTC() time.Time
}

// formatTime writes a time for people, by the site's clock.
func (p *Pages) formatTime(t instant) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().In(p.siteZone()).Format("2006-01-02 15:04:05")
}

func formatISO(t instant) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// formatAge writes how long a moment is past.
func formatAge(d time.Duration, t time.Time) string {
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

// stdTime turns a record's time into a time of the library; zero when there is none.
func stdTime(t record.Time) time.Time {
	if t == record.None {
		return time.Time{}
	}
	return t.Std().UTC()
}
