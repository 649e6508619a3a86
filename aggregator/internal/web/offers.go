package web

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// How many values of a key a form offers, of how long ago, and how long a page waits for them.
const (
	mostOffered = 30
	offeredDays = 30
	offerWait   = 300 * time.Millisecond
)

// offerValues gives the fields of a form the values that the reader's records have: without them
// the examples of the catalogue stay.
func (p *Pages) offerValues(ctx context.Context, form []entryField) []entryField {
	ctx, cancel := context.WithTimeout(ctx, offerWait)
	defer cancel()
	known := map[string][]string{}
	values := func(key string) []string {
		list, ok := known[key]
		if !ok {
			list = p.valuesOf(ctx, key)
			known[key] = list
		}
		return list
	}
	for i := range form {
		f := &form[i]
		var list []string
		switch {
		case f.Kind == report.ParamPairs:
			list = p.offerPairs(values)
		case f.Name == "user":
			list = values(p.ownKeys().User)
		case f.Name == "by":
			list = addMissing(f.Words, p.keysKnown(ctx))
		case f.Name == "measure":
			list = addMissing(f.Words, p.componentsKnown(ctx))
		}
		if len(list) > 0 {
			f.List, f.Offers = "words-"+f.Name, list
		}
	}
	return form
}

// offerPairs are conditions: keys by which one usually filters, with their values.
func (p *Pages) offerPairs(valuesOf func(key string) []string) (list []string) {
	for _, key := range []string{"site_id", p.ownKeys().Group, "project", p.ownKeys().User} {
		for _, value := range valuesOf(key) {
			list = append(list, key+"="+v1.JoinList(value))
		}
	}
	return list
}

// offerConditions are conditions with the values of the usual keys, and the start of conditions
// with the others.
func (p *Pages) offerConditions(ctx context.Context, keys []string) []string {
	ctx, cancel := context.WithTimeout(ctx, offerWait)
	defer cancel()
	list := p.offerPairs(func(key string) []string { return p.valuesOf(ctx, key) })
	for _, key := range keys {
		if !slices.ContainsFunc(list, func(pair string) bool { return strings.HasPrefix(pair, key+"=") }) {
			list = append(list, key+"=")
		}
	}
	return list
}

// addMissing is a list with those of another that it does not have.
func addMissing(list, more []string) []string {
	list = slices.Clone(list)
	for _, word := range more {
		if !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list
}

// keysKnown are the keys by which usage can be asked; none where they are not known.
func (p *Pages) keysKnown(ctx context.Context) []string {
	v, err := p.Reader.Read(ctx, access.From(ctx))
	if err != nil {
		return nil
	}
	keys, err := p.usageKeys(ctx, v)
	if errors.Join(err, v.Close()) != nil {
		return nil
	}
	return keys
}

// offeredFrom is from when records have the values that are offered: the start of a day, for which
// no rows are read.
func (p *Pages) offeredFrom() string {
	now := p.currentTime().In(p.siteZone())
	return time.Date(now.Year(), now.Month(), now.Day()-offeredDays, 0, 0, 0, 0, p.siteZone()).Format(time.RFC3339)
}

// componentsKnown are the components of the records of the last month.
func (p *Pages) componentsKnown(ctx context.Context) (list []string) {
	answer, err := p.usageInHours(ctx, v1.UsageQuery{From: p.offeredFrom()})
	if err != nil {
		return nil
	}
	for i := range answer.Measures {
		if m := &answer.Measures[i]; m.Component != "" {
			list = append(list, string(m.Component))
		}
	}
	return list
}

// offered are the values that a field of a form offers.
type offered struct {
	List   string
	Offers []string
}

// offerFilters are what the fields of the page of records offer: values of the usual keys, keys,
// components, and values of the key that is typed.
func (p *Pages) offerFilters(ctx context.Context, v *access.View, key string) (list []offered) {
	ctx, cancel := context.WithTimeout(ctx, offerWait)
	defer cancel()
	known, err := v.Names(ctx, nil)
	if err != nil {
		return nil // a page without suggestions
	}
	add := func(field string, values []string) {
		if len(values) > 0 {
			list = append(list, offered{"words-" + field, values})
		}
	}
	var find []string
	names := fieldsOf(p.ownKeys())
	for _, of := range slices.Sorted(maps.Keys(names)) {
		values := p.valuesOf(ctx, of)
		add(names[of], values)
		for _, value := range values {
			if word := v1.JoinList(value); !strings.ContainsFunc(word, unicode.IsSpace) { // which ends a word of the search
				find = append(find, names[of]+"="+word)
			}
		}
	}
	add("find", find)
	add("key", slices.Sorted(maps.Keys(known.Keys)))
	add("component", slices.Sorted(maps.Keys(known.Components)))
	if key != "" {
		add("value", p.valuesOf(ctx, key))
	}
	return list
}

// valuesOf are the values of a key, those of the most records first; none where the key is
// not known or takes too long.
func (p *Pages) valuesOf(ctx context.Context, key string) (list []string) {
	answer, err := p.usageInHours(ctx, v1.UsageQuery{From: p.offeredFrom(), By: key, Measure: "records", Order: "records", Top: mostOffered})
	if err != nil {
		return nil
	}
	for g := range answer.Groups {
		if v := answer.Groups[g].Values; len(v) == 1 && v[0] != nil && *v[0] != "" {
			list = append(list, *v[0])
		}
	}
	return slices.Clip(list)
}
