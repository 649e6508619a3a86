package web

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// How many values of a key a form offers, of how long ago, and how long a page waits for them.
const (
	mostOffered = 30
	offeredOf   = "30d"
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
			for _, key := range []string{"site_id", p.ownKeys().Group, "project", p.ownKeys().User} {
				for _, value := range values(key) {
					list = append(list, key+"="+v1.JoinList(value))
				}
			}
		case f.Name == "user":
			list = values(p.ownKeys().User)
		}
		if len(list) > 0 {
			f.List, f.Offers = "words-"+f.Name, list
		}
	}
	return form
}

// offered are the values that a field of a form offers.
type offered struct {
	List   string
	Offers []string
}

// offerFields are the values of keys that the reader's records have, for the fields of these
// names.
func (p *Pages) offerFields(ctx context.Context, names map[string]string) (list []offered) {
	ctx, cancel := context.WithTimeout(ctx, offerWait)
	defer cancel()
	for _, key := range slices.Sorted(maps.Keys(names)) {
		if values := p.valuesOf(ctx, key); len(values) > 0 {
			list = append(list, offered{"words-" + names[key], values})
		}
	}
	return list
}

// valuesOf are the values of a key, those of the most records first; none where the key is
// not known or takes too long.
func (p *Pages) valuesOf(ctx context.Context, key string) (list []string) {
	answer, err := p.usageInHours(ctx, v1.UsageQuery{Window: offeredOf, By: key, Measure: "records", Order: "records", Top: mostOffered})
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
