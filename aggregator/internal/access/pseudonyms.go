package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

// ErrNames is wrapped where an answer could name persons and the principal sees pseudonyms in
// their place.
var ErrNames = errors.New("your access shows pseudonyms, and this could name persons")

// PseudonymPrefix begins every pseudonym.
const PseudonymPrefix = "p-"

// Pseudonyms take the place of the names of persons for who needs none. A person has one, which
// follows from the name by a secret. They are safe for use by many goroutines.
type Pseudonyms struct {
	secret  []byte
	persons map[string]bool // keys whose values are persons
	shown   map[string]bool // further keys whose values are shown as they are
}

// NewPseudonyms returns those of a secret. The values of the keys persons are persons; of other
// meta keys a reader sees those of shown, and no others.
func NewPseudonyms(secret []byte, persons, shown []string) *Pseudonyms {
	p := &Pseudonyms{secret: slices.Clone(secret), persons: map[string]bool{}, shown: map[string]bool{}}
	for _, key := range persons {
		p.persons[key] = true
	}
	for _, key := range shown {
		p.shown[key] = true
	}
	return p
}

// Of returns the pseudonym of a name: [PseudonymPrefix] and 16 letters and digits. It is "" for
// no name.
func (p *Pseudonyms) Of(name string) string {
	if name == "" {
		return ""
	}
	h := hmac.New(sha256.New, p.secret)
	h.Write([]byte(name))
	return PseudonymPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)[:10]))
}

// maskMeta returns what a reader sees of a record's meta, which stays as it is.
func (p *Pseudonyms) maskMeta(m record.Meta) (out record.Meta) {
	for _, e := range m {
		switch {
		case p.persons[e.Key]:
			values := make([]string, len(e.Values))
			for i, name := range e.Values {
				values[i] = p.Of(name)
			}
			out = append(out, record.MetaEntry{Key: e.Key, Values: values})
		case p.shown[e.Key]:
			out = append(out, e)
		}
	}
	return out
}

// maskRow returns a copy of a row as a reader sees it; nil for nil. Of what is lent, it is lent too.
func (p *Pseudonyms) maskRow(row *columns.Row) *columns.Row {
	if p == nil || row == nil {
		return row
	}
	out := *row
	out.Record.Meta = p.maskMeta(row.Record.Meta)
	return &out
}

// maskRows returns a function that gives yield each row as a reader sees it.
func (p *Pseudonyms) maskRows(yield func(*columns.Row) error) func(*columns.Row) error {
	if p == nil {
		return yield
	}
	return func(row *columns.Row) error { return yield(p.maskRow(row)) }
}

// maskEntry puts what a reader sees in the place of the records of an entry.
func (p *Pseudonyms) maskEntry(e *record.Entry) {
	if p == nil {
		return
	}
	e.Holdings = slices.Clone(e.Holdings)
	for i := range e.Holdings {
		if r := e.Holdings[i].Record; r != nil {
			seen := *r
			seen.Meta = p.maskMeta(r.Meta)
			e.Holdings[i].Record = &seen
		}
	}
}

// resolveTests returns tests of names in the place of tests of pseudonyms. The error wraps [ErrNames]
// where a test is of a key that the reader does not see.
func (p *Pseudonyms) resolveTests(ctx context.Context, view *store.View, tests []store.MetaTest) ([]store.MetaTest, error) {
	if p == nil {
		return tests, nil
	}
	tests = slices.Clone(tests)
	for i := range tests {
		t := &tests[i]
		if err := p.mayAsk(t.Key); err != nil {
			return nil, err
		}
		if !p.persons[t.Key] {
			continue
		}
		names, err := view.MetaCounts(ctx, t.Key)
		if err != nil {
			return nil, err
		}
		byPseudonym := make(map[string]string, len(names))
		for name := range names {
			byPseudonym[p.Of(name)] = name
		}
		t.Contains, t.Lacks, t.Any = namesOf(t.Contains, byPseudonym), namesOf(t.Lacks, byPseudonym), namesOf(t.Any, byPseudonym)
	}
	return tests, nil
}

// namesOf returns the names of pseudonyms. What is none becomes a text that no record has.
func namesOf(pseudonyms []string, names map[string]string) (list []string) {
	for _, pseudonym := range pseudonyms {
		name, is := names[pseudonym]
		if !is {
			name = "\x00"
		}
		list = append(list, name)
	}
	return list
}

// maySort returns an error that wraps [ErrNames] where the order of the values of a key would
// tell something of what a reader does not see.
func (p *Pseudonyms) maySort(q *store.Query) error {
	switch {
	case p == nil || q.Order != store.ByMeta:
		return nil
	case p.persons[q.By]:
		return fmt.Errorf("%w: records cannot be in the order of %q", ErrNames, q.By)
	}
	return p.mayAsk(q.By)
}

// mayAsk returns an error that wraps [ErrNames] where a reader does not see the values of a key.
func (p *Pseudonyms) mayAsk(key string) error {
	if p == nil || p.persons[key] || p.shown[key] || record.IsEndKey(key) {
		return nil
	}
	keys := slices.Sorted(maps.Keys(p.shown))
	return fmt.Errorf("%w: values of %q are not shown; the keys are %s", ErrNames, key, strings.Join(slices.Concat(slices.Sorted(maps.Keys(p.persons)), keys), ", "))
}

// realName begins the names of the keys that have names in a derivation with pseudonyms; no
// meta key begins so.
const realName = "\x00"

// maskDerivation returns what follows from meta keys, with pseudonyms in the place of names. What is
// worth what still follows from the names.
func (p *Pseudonyms) maskDerivation(d *usage.Derivation) *usage.Derivation {
	if p == nil {
		return d
	}
	out := &usage.Derivation{Keys: slices.Clone(d.Keys), Weights: slices.Clone(d.Weights)}
	for _, key := range slices.Sorted(maps.Keys(p.persons)) {
		at := slices.IndexFunc(out.Keys, func(k usage.Key) bool { return k.Name == key })
		if at < 0 {
			at = len(out.Keys)
			out.Keys = append(out.Keys, usage.Key{Name: key, From: []string{key}, Of: func(values []string, lacks []bool, _ record.Time) (string, bool) {
				return values[0], !lacks[0]
			}})
		}
		named := out.Keys[at]
		out.Keys[at].Of = func(values []string, lacks []bool, when record.Time) (string, bool) {
			name, has := named.Of(values, lacks, when)
			return p.Of(name), has
		}
		named.Name = realName + key
		out.Keys = append(out.Keys, named)
	}
	for i := range out.Weights {
		from := slices.Clone(out.Weights[i].From)
		for j, key := range from {
			if p.persons[key] {
				from[j] = realName + key
			}
		}
		out.Weights[i].From = from
	}
	return out
}

// Usage answers a question by what follows from meta keys, as the principal sees it. ask is
// [Reader.Usage] for the principal. The error wraps [ErrNames] where the question is about keys
// that the principal does not see.
func (v *View) Usage(ctx context.Context, d *usage.Derivation, ask sums.AskFunc, q sums.Query) (*sums.Answer, error) {
	keys := slices.Clone(q.By)
	for _, f := range q.Having {
		keys = append(keys, f.Key)
	}
	d = v.pseudonyms.maskDerivation(d)
	for _, key := range keys {
		if _, derived := d.Key(key); !derived {
			if err := v.pseudonyms.mayAsk(key); err != nil {
				return nil, err
			}
		}
	}
	return d.Answer(ctx, ask, q)
}

// Shown returns the meta as the principal sees it, which may be m itself.
func (v *View) Shown(m record.Meta) record.Meta {
	if v.pseudonyms == nil {
		return m
	}
	return v.pseudonyms.maskMeta(m)
}

// requireNames returns an error when the principal sees pseudonyms.
func (v *View) requireNames() error {
	if v.who.Pseudonyms {
		return ErrNames
	}
	return nil
}
