package api

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// recordsQuery is a parsed query of GET /records. All conditions hold together.
type recordsQuery struct {
	RecordID   string // "" for any
	Start      []condition
	Stop       []condition
	Runtime    []condition
	Meta       []metaCondition
	Components []componentCondition
	SortBy     string // "" for the default: stop_time
	Descending bool
	Limit      int64 // negative: none
}

// condition compares a time in microseconds, or a number.
type condition struct {
	Op    operator
	Value int64
}

type operator string

// The operators of a condition.
const (
	opGt     operator = "gt"
	opGte    operator = "gte"
	opLt     operator = "lt"
	opLte    operator = "lte"
	opEquals operator = "equals"
)

func operators() []operator { return []operator{opGt, opGte, opLt, opLte, opEquals} }

// metaCondition: the record has the key, with all values of Contains, none of Without
// and, where there is some, at least one of Any.
type metaCondition struct {
	Key      string
	Contains []string
	Without  []string
	Any      []string
}

// componentCondition: the record has a component of that name whose amount holds.
type componentCondition struct {
	Name string
	condition
}

// parser collects a query pair by pair.
type parser struct {
	q     recordsQuery
	seen  map[string]bool
	meta  map[string]*metaLists
	asc   string
	desc  string
	extra map[string]*string // fields of the caller's own
}

// metaLists are the values of one key as they stand in the query, with the index
// by which they are ordered.
type metaLists struct {
	contains, without, any []indexed
}

type indexed struct {
	at    int
	value string
}

// parseQuery reads the query grammar of AUDITOR's GET /records. It accepts more
// than AUDITOR does where that is harmless: percent-encoded brackets, and lists
// without an index. extra are fields of the caller's own, whose values it gets;
// it may be nil.
func parseQuery(raw string, extra map[string]*string) (recordsQuery, error) {
	p := parser{seen: map[string]bool{}, meta: map[string]*metaLists{}, extra: extra}
	p.q.Limit = -1
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		if err := p.parsePair(pair); err != nil {
			return p.q, err
		}
	}
	p.finishQuery()
	return p.q, nil
}

// maxDepth is how many brackets a key may have.
const maxDepth = 5

func (p *parser) parsePair(pair string) error {
	rawKey, rawValue, _ := strings.Cut(pair, "=")
	key, err := url.QueryUnescape(rawKey)
	if err != nil {
		return fmt.Errorf("%q is not percent-encoded", rawKey)
	}
	value, err := url.QueryUnescape(rawValue)
	if err != nil {
		return fmt.Errorf("the value of %s is not percent-encoded: %q", key, rawValue)
	}
	field, path, err := splitKey(rawKey, key)
	if err != nil {
		return err
	}
	return p.parseField(key, field, path, value)
}

// splitKey cuts a[b][c] into a and [b c]. Brackets that are percent-encoded count
// as brackets only where the key has no literal ones.
func splitKey(raw, key string) (field string, path []string, err error) {
	literal := strings.Contains(raw, "[")
	text := key
	if literal {
		text = raw
	}
	field, rest, _ := strings.Cut(text, "[")
	if len(rest) == 0 {
		return field, nil, nil
	}
	if !strings.HasSuffix(rest, "]") {
		return "", nil, fmt.Errorf("the brackets of %q do not match", key)
	}
	for part := range strings.SplitSeq(rest[:len(rest)-1], "][") {
		if literal {
			if part, err = url.QueryUnescape(part); err != nil {
				return "", nil, fmt.Errorf("%q is not percent-encoded", part)
			}
		}
		path = append(path, part)
	}
	if len(path) > maxDepth {
		return "", nil, fmt.Errorf("%q has more than %d brackets", key, maxDepth)
	}
	return field, path, nil
}

func fieldNames() []string {
	return []string{"record_id", "start_time", "stop_time", "runtime", "meta", "component", "sort_by", "limit"}
}

func (p *parser) parseField(key, field string, path []string, value string) error {
	if out, ok := p.extra[field]; ok {
		return p.setScalar(key, path, value, func() error { *out = value; return nil })
	}
	switch field {
	case "record_id":
		return p.setScalar(key, path, value, func() error { p.q.RecordID = value; return nil })
	case "limit":
		return p.setScalar(key, path, value, func() (err error) { p.q.Limit, err = parseCount(value); return err })
	case "start_time":
		return p.addCondition(key, path, value, parseInstant, &p.q.Start)
	case "stop_time":
		return p.addCondition(key, path, value, parseInstant, &p.q.Stop)
	case "runtime":
		return p.addCondition(key, path, value, parseCount, &p.q.Runtime)
	case "component":
		return p.addComponent(key, path, value)
	case "meta":
		return p.addMetaPair(key, path, value)
	case "sort_by":
		return p.setOrder(key, path, value)
	}
	return fmt.Errorf("unknown field `%s`, expected one of %s", field, quoteWords(fieldNames()))
}

func quoteWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "`" + w + "`"
	}
	return strings.Join(out, ", ")
}

// checkRepeated refuses a scalar key that is there twice.
func (p *parser) checkRepeated(key string) error {
	if p.seen[key] {
		return fmt.Errorf("Multiple values for one key: %q", key) //nolint:revive,staticcheck // AUDITOR's text
	}
	p.seen[key] = true
	return nil
}

// setScalar takes a value without brackets; an empty one is absent.
func (p *parser) setScalar(key string, path []string, value string, set func() error) error {
	if len(path) > 0 {
		field, _, _ := strings.Cut(key, "[")
		return fmt.Errorf("`%s` takes a plain value, as in %s=…", field, field)
	}
	if err := p.checkRepeated(key); err != nil || value == "" {
		return err
	}
	return set()
}

func (p *parser) addCondition(key string, path []string, value string, parse func(string) (int64, error), out *[]condition) error {
	field, _, _ := strings.Cut(key, "[")
	if len(path) != 1 {
		return fmt.Errorf("`%s` takes an operator, as in %s[gte]=…", field, field)
	}
	c, err := p.parseCondition(key, path[0], value, parse)
	if err == nil && c != nil {
		*out = append(*out, *c)
	}
	return err
}

// parseCondition reads one comparison; nil when the value is empty and so absent.
func (p *parser) parseCondition(key, op, value string, parse func(string) (int64, error)) (*condition, error) {
	if !slices.Contains(operators(), operator(op)) {
		return nil, fmt.Errorf("unknown variant `%s`, expected one of `gt`, `gte`, `lt`, `lte`, `equals`", op)
	}
	if err := p.checkRepeated(key); err != nil || value == "" {
		return nil, err
	}
	v, err := parse(value)
	if err != nil {
		return nil, err
	}
	return &condition{operator(op), v}, nil
}

func parseInstant(s string) (int64, error) {
	t, err := record.ParseTime(s)
	return int64(t), err
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("Parsing '%s' failed. Want a whole number of zero or more", s) //nolint:revive,staticcheck // AUDITOR's text
	}
	return n, nil
}

func (p *parser) addComponent(key string, path []string, value string) error {
	if len(path) != 2 {
		return errors.New("`component` takes a name and an operator, as in component[Cores][gte]=8")
	}
	c, err := p.parseCondition(key, path[1], value, parseCount)
	if err == nil && c != nil {
		p.q.Components = append(p.q.Components, componentCondition{path[0], *c})
	}
	return err
}

func (p *parser) setOrder(key string, path []string, value string) error {
	if len(path) != 1 || path[0] != "asc" && path[0] != "desc" {
		return errors.New("`sort_by` takes asc or desc, as in sort_by[desc]=start_time")
	}
	if err := p.checkRepeated(key); err != nil || value == "" {
		return err
	}
	if !slices.Contains(sortColumns(), value) {
		return fmt.Errorf("unknown variant `%s`, expected one of %s", value, quoteWords(sortColumns()))
	}
	if path[0] == "asc" {
		p.asc = value
	} else {
		p.desc = value
	}
	return nil
}

func sortColumns() []string { return []string{"start_time", "stop_time", "runtime", "record_id"} }

// addMetaPair takes meta[key][c][0]=v, meta[key][c][]=v and meta[key][c]=v, and the
// same with dnc and with any, which AUDITOR does not have.
func (p *parser) addMetaPair(key string, path []string, value string) error {
	if len(path) < 2 || len(path) > 3 || !slices.Contains([]string{"c", "dnc", "any"}, path[1]) {
		return errors.New("`meta` takes a key and c (contains), dnc (does not contain) or any (contains one of several), as in meta[site_id][c][0]=…")
	}
	at := -1
	if len(path) == 3 && path[2] != "" {
		n, err := strconv.ParseUint(path[2], 10, 31)
		if err != nil {
			return fmt.Errorf("%q: want the index of a list, as in [0]", path[2])
		}
		at = int(n)
		if err := p.checkRepeated(key); err != nil {
			return err
		}
	}
	if value == "" {
		return fmt.Errorf("%s: the value is empty", key)
	}
	lists := p.meta[path[0]]
	if lists == nil {
		lists = &metaLists{}
		p.meta[path[0]] = lists
	}
	list := map[string]*[]indexed{"c": &lists.contains, "dnc": &lists.without, "any": &lists.any}[path[1]]
	*list = append(*list, indexed{at, value})
	return nil
}

func (p *parser) finishQuery() {
	for _, key := range slices.Sorted(maps.Keys(p.meta)) {
		lists := p.meta[key]
		p.q.Meta = append(p.q.Meta, metaCondition{key, valuesInOrder(lists.contains), valuesInOrder(lists.without), valuesInOrder(lists.any)})
	}
	switch {
	case p.asc != "":
		p.q.SortBy = p.asc
	case p.desc != "":
		p.q.SortBy, p.q.Descending = p.desc, true
	}
}

func valuesInOrder(list []indexed) []string {
	slices.SortStableFunc(list, func(a, b indexed) int { return a.at - b.at })
	var out []string
	for _, e := range list {
		out = append(out, e.value)
	}
	return out
}
