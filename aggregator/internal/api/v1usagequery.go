package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// usageQuery is a query of /v1/usage.
type usageQuery struct {
	usage.Request

	format string
}

// usageWords are the fields of /v1/usage that are not those of records. Lists are those of
// [v1.SplitList], and may be written again.
type usageWords map[string][]string

func usageFields() []string {
	return []string{"window", "from", "to", "zone", "bucket", "by", "measure", "component", "credit", "unit", "top", "order", "compare", "people", "cpu", "cores", "open", "format"}
}

func usageLists() []string { return []string{"by", "measure", "component"} }

// usageFilters are the fields of records that choose them.
func usageFilters() []string {
	return []string{"record_id", "start_time", "stop_time", "runtime", "meta", "component"}
}

// parseUsage reads a query of /v1/usage: the filters of /v1/records, and fields of
// its own.
func (s *Server) parseUsage(r *http.Request, now record.Time) (q usageQuery, err error) {
	words, filters, err := splitUsage(r.URL.RawQuery)
	if err != nil {
		return q, err
	}
	records, err := parseQuery(filters, nil)
	if err != nil {
		return q, err
	}
	q.Where, q.Now = records.storeQuery(), now
	if q.Zone, err = s.parseZone(words.onlyValue("zone")); err != nil {
		return q, err
	}
	q.format = words.onlyValue("format")
	if accept := r.Header.Get("Accept"); q.format == "" {
		q.format = formatOf(accept)
		if strings.Contains(accept, parquetType) {
			q.format = "parquet"
		}
	}
	for _, read := range []func(usageWords) error{q.parseTimes, q.parseFigures, q.parseChoices} {
		if err := read(words); err != nil {
			return q, err
		}
	}
	return q, nil
}

// splitUsage takes the fields of its own out of a query.
func splitUsage(query string) (words usageWords, rest string, err error) {
	words = usageWords{}
	var others []string
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		rawKey, rawValue, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(rawKey)
		if err != nil {
			return nil, "", fmt.Errorf("%q is not percent-encoded", rawKey)
		}
		field, inner, _ := strings.Cut(key, "[")
		if field == "where" {
			if err := words.addCondition(strings.TrimSuffix(inner, "]"), rawValue); err != nil {
				return nil, "", err
			}
			continue
		}
		if !slices.Contains(usageFields(), key) {
			if !slices.Contains(usageFilters(), field) {
				return nil, "", fmt.Errorf("unknown field `%s`, expected one of %s", field, quoteWords(slices.Concat(usageFields(), []string{"where[KEY]"}, usageFilters()[:5])))
			}
			others = append(others, pair)
			continue
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return nil, "", fmt.Errorf("the value of %s is not percent-encoded: %q", key, rawValue)
		}
		if err := words.addValue(key, value); err != nil {
			return nil, "", err
		}
	}
	return words, strings.Join(others, "&"), nil
}

// addCondition adds the field of a condition on a key: its values, of which one is wanted.
func (u usageWords) addCondition(key, rawValue string) error {
	value, err := url.QueryUnescape(rawValue)
	if err != nil {
		return fmt.Errorf("the value of where[%s] is not percent-encoded: %q", key, rawValue)
	}
	if wrong := record.ValidateName(key); key == "" || wrong != "" {
		return fmt.Errorf("where[%s]: %s; want where[KEY]=VALUE, or several values with commas, or nothing for what has no value; a comma of a value is written \\,", key, wrong)
	}
	if u[whereKey+key] != nil {
		return fmt.Errorf("where[%s] given more than once", key)
	}
	u[whereKey+key] = v1.SplitList(value)
	return nil
}

// conditions are the conditions on keys, sorted by key.
func (u usageWords) conditions() (list []sums.Filter) {
	for _, field := range slices.Sorted(maps.Keys(u)) {
		if key, is := strings.CutPrefix(field, whereKey); is {
			list = append(list, sums.Filter{Key: key, Values: u[field]})
		}
	}
	return list
}

// splitConditions takes the conditions on keys out of a query.
func splitConditions(query string) (having []sums.Filter, rest string, err error) {
	words := usageWords{}
	var others []string
	for pair := range strings.SplitSeq(query, "&") {
		rawKey, rawValue, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(rawKey)
		if inner, is := strings.CutPrefix(key, whereKey); err == nil && is {
			if err := words.addCondition(strings.TrimSuffix(inner, "]"), rawValue); err != nil {
				return nil, "", err
			}
			continue
		}
		others = append(others, pair)
	}
	return words.conditions(), strings.Join(others, "&"), nil
}

// whereKey begins the names of conditions among the words.
const whereKey = "where["

func (u usageWords) addValue(key, value string) error {
	switch {
	case slices.Contains(usageLists(), key):
		if value != "" {
			u[key] = append(u[key], v1.SplitList(value)...)
		}
	case u[key] != nil:
		return fmt.Errorf("%s given more than once", key)
	default:
		u[key] = []string{value}
	}
	return nil
}

// onlyValue is the only value of a field, "" when it is not there.
func (u usageWords) onlyValue(key string) string {
	if u[key] == nil {
		return ""
	}
	return u[key][0]
}

// parseTimes reads window or from and to, bucket and compare.
func (q *usageQuery) parseTimes(u usageWords) (err error) {
	if err := q.setWindow(u); err != nil {
		return err
	}
	if q.Bucket, err = calendar.ParseUnit(u.onlyValue("bucket")); err != nil {
		return err
	}
	q.Window = q.Window.InIntervals(q.Bucket, q.Zone)
	if q.VersusWord = u.onlyValue("compare"); q.VersusWord == "" {
		return nil
	}
	other, err := q.Window.Comparison(q.VersusWord, q.Now, q.Zone)
	if err == nil && q.Bucket != calendar.None && q.format != "json" {
		err = fmt.Errorf("a comparison is of whole windows, and a line of format=%s is of a bucket; leave bucket or compare out, or ask for format=json", q.format)
	}
	q.Versus = &other
	return err
}

func (q *usageQuery) setWindow(u usageWords) error {
	w := queryWords{"window": u.onlyValue("window"), "from": u.onlyValue("from"), "to": u.onlyValue("to")}
	if w["window"]+w["from"] == "" {
		return fmt.Errorf("no time is given; want window=, one of %s, or from= and to=", calendar.Words)
	}
	window, err := w.parseWindow(q.Now, q.Zone)
	if err != nil {
		return err
	}
	q.Word, q.Window = w["window"], *window
	return nil
}

// parseFigures reads what is to be shown of whom.
func (q *usageQuery) parseFigures(u usageWords) error {
	q.By, q.Measures, q.Components = u["by"], u["measure"], u["component"]
	q.People, q.CPU, q.Cores = u.onlyValue("people"), u.onlyValue("cpu"), u.onlyValue("cores")
	for _, key := range q.By {
		if wrong := record.ValidateName(key); wrong != "" {
			return fmt.Errorf("by: invalid meta key %q: %s", key, wrong)
		}
	}
	q.Having = u.conditions()
	q.Order = u.onlyValue("order")
	top := u.onlyValue("top")
	if top == "" {
		return nil
	}
	n, err := strconv.Atoi(top)
	if err != nil || n < 1 || n > usage.MaxCells {
		return fmt.Errorf("top is %q, want how many groups have a line of their own, at least 1", top)
	}
	q.Top = n
	return nil
}

// parseChoices reads fields that have a few words.
func (q *usageQuery) parseChoices(u usageWords) error {
	for _, c := range []struct {
		field string
		words []string
	}{
		{"credit", []string{"", "spread", "stop"}}, {"unit", []string{"", "second", "hour"}},
		{"open", []string{"", "true", "false"}}, {"format", []string{"", "json", "ndjson", "csv", "parquet"}},
	} {
		if word := u.onlyValue(c.field); !slices.Contains(c.words, word) {
			return fmt.Errorf("%s is %q, want %s", c.field, word, strings.Join(c.words[1:], " or "))
		}
	}
	if u.onlyValue("credit") == "stop" {
		q.Credit = sums.AtStop
	}
	q.Hours = u.onlyValue("unit") == "hour"
	switch u.onlyValue("open") {
	case "true":
		q.Where.Open = store.OnlyOpen
	case "false":
		q.Where.Open = store.OnlyClosed
	}
	return nil
}
