package web

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"reflect"
	"strconv"
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
		"count":   count,
		"keyname": keyName,
		"last":    func(i int, trail []crumb) bool { return i == len(trail)-1 },
		"pattern": pattern,
		"title":   capital,
		"unit":    v1.AmountUnit,
		"whenin":  func(t instant, zone string) string { return whenIn(t.UTC(), view.Zone(zone)) },
		"bytes":   sized,
		"clock":   func() string { return p.clock().String() },
		"when":    p.when,
		"date":    func(t instant) string { return t.UTC().Format(time.DateOnly) }, // of completeness, whose days are in UTC
		"iso":     iso,
		"span":    span,
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

// count writes a number with thin spaces between thousands.
func count(n any) string {
	if v := reflect.ValueOf(n); v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "–" // not known
		}
		n = v.Elem().Interface()
	}
	text := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	var b strings.Builder
	for i, c := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(c)
	}
	return sign + b.String()
}

// sized is [size] of a whole number of any type.
func sized(n any) string {
	if v := reflect.ValueOf(n); v.CanInt() {
		return size(uint64(max(v.Int(), 0)))
	}
	return size(reflect.ValueOf(n).Uint())
}

// size writes bytes by its largest unit.
func size(n uint64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 10<<u.shift {
			return fmt.Sprintf("%d\u202f%s", n>>u.shift, u.name)
		}
		if n >= 1<<u.shift {
			return fmt.Sprintf("%.1f\u202f%s", float64(n)/float64(uint64(1)<<u.shift), u.name)
		}
	}
	return fmt.Sprintf("%d\u202fB", n)
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
		return "in " + span(-d)
	case d < 2*time.Second:
		return "now"
	}
	return span(d) + " ago"
}

// span writes a duration by its largest two units.
func span(d time.Duration) string {
	s := int64(math.Round(d.Seconds()))
	switch {
	case s < 120:
		return strconv.FormatInt(s, 10) + " s"
	case s < 2*3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 2*86400:
		return fmt.Sprintf("%d h %02d min", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
}

// runtime writes whole seconds like a scheduler: days-hours:minutes:seconds.
func runtime(s int64) string {
	sign := ""
	if s < 0 {
		sign, s = "-", -s
	}
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if s >= 86400 {
		text = fmt.Sprintf("%d-%s", s/86400, text)
	}
	return sign + text
}

// std turns a record's time into a time of the library; zero when there is none.
func std(t record.Time) time.Time {
	if t == record.None {
		return time.Time{}
	}
	return t.Std().UTC()
}
