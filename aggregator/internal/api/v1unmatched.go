package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/hcl"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// isLenient reports whether a client takes an empty answer to a filter that nothing can
// match, as actions do: a group may have its first job later.
func isLenient(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Prefer"), func(v string) bool { return strings.Contains(v, "handling=lenient") })
}

// unmatched finds out why filters found nothing.
type unmatched struct {
	*Server

	view       *access.View
	derivation *usage.Derivation
	ask        sums.AskFunc // nil: filters have no derived keys
}

// checkFilters refuses an empty answer when no record that the principal sees ever had a key
// or a value that a filter names, and says which ones are near. Where there is no
// record at all nothing can be said of names.
func (u *unmatched) checkFilters(ctx context.Context, where *store.Query, having []sums.Filter) error {
	tests := where.Meta
	if len(tests)+len(where.Amounts)+len(having) == 0 {
		return nil
	}
	if some, err := u.anyRecord(ctx, store.Query{}); err != nil || !some {
		return err
	}
	for i := range tests {
		for _, v := range tests[i].Contains {
			having = append(having, sums.Filter{Key: tests[i].Key, Values: []string{v}})
		}
		if tests[i].Any != nil {
			having = append(having, sums.Filter{Key: tests[i].Key, Values: tests[i].Any})
		}
	}
	for _, f := range having {
		if err := u.checkFilter(ctx, f); err != nil {
			return err
		}
	}
	for i := range where.Amounts {
		if err := u.checkComponent(ctx, where.Amounts[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// checkFilter refuses a filter that no record can pass.
func (u *unmatched) checkFilter(ctx context.Context, f sums.Filter) error {
	if slices.ContainsFunc(u.derivation.Keys, func(k usage.Key) bool { return k.Name == f.Key }) {
		return u.checkDerived(ctx, f)
	}
	has, err := u.anyRecord(ctx, store.Query{Meta: []store.MetaTest{{Key: f.Key}}})
	if err != nil {
		return err
	}
	if !has {
		keys, err := keysOf(ctx, u.view, u.derivation)
		if err != nil {
			return err
		}
		return noMatch("no record has a meta key %q%s", f.Key, describeNear(f.Key, keys))
	}
	if slices.Contains(f.Values, "") { // of those without a value
		return nil
	}
	if has, err = u.anyRecord(ctx, store.Query{Meta: []store.MetaTest{{Key: f.Key, Any: f.Values}}}); err != nil || has {
		return err
	}
	known, err := u.view.Names(ctx, []string{f.Key})
	if err != nil {
		return err
	}
	return noValue(f, slices.Collect(maps.Keys(known.Values[f.Key])))
}

// checkComponent refuses a filter on a component that no record has.
func (u *unmatched) checkComponent(ctx context.Context, name string) error {
	if has, err := u.anyRecord(ctx, store.Query{Amounts: []store.AmountTest{anyAmount(name)}}); err != nil || has {
		return err
	}
	known, err := u.view.Names(ctx, nil)
	if err != nil {
		return err
	}
	return noMatch("no record has a component %q%s", name, describeNear(name, slices.Collect(maps.Keys(known.Components))))
}

// checkOrder refuses an order by a key or a component that no record has where another is near. By
// others, such as a column of a page that no record has, all records are equal.
func (u *unmatched) checkOrder(ctx context.Context, q *store.Query) error {
	having, what := store.Query{}, "meta key"
	switch q.Order {
	case store.ByMeta:
		having.Meta = []store.MetaTest{{Key: q.By}}
	case store.ByAmount, store.ByUsed:
		having.Amounts, what = []store.AmountTest{anyAmount(q.By)}, "component"
	default:
		return nil
	}
	if has, err := u.anyRecord(ctx, having); err != nil || has {
		return err
	}
	known, err := u.view.Names(ctx, nil)
	if err != nil {
		return err
	}
	names := known.Keys
	if q.Order != store.ByMeta {
		names = known.Components
	}
	if near := nearestName(q.By, slices.Collect(maps.Keys(names))); near != "" {
		return newRefusal(http.StatusBadRequest, "no record has a %s %q; did you mean %q?", what, q.By, near)
	}
	return nil
}

// anyAmount asks for records with a component.
func anyAmount(name string) store.AmountTest {
	t := store.AmountTest{Name: name}
	t.Amount.GTE(math.MinInt64)
	return t
}

// checkDerived refuses a value that neither a record nor the directory has. Who sees some of
// the records only is told of those alone.
func (u *unmatched) checkDerived(ctx context.Context, f sums.Filter) error {
	if u.ask == nil || f.Key == clusterKey || slices.Contains(f.Values, "") { // unknown clusters are refused before
		return nil
	}
	r := usage.Request{Now: u.currentTime()}
	all, err := r.Ever(ctx, u.ask, f.Key)
	if err != nil {
		return err
	}
	var names []string
	for g := range all.Groups {
		if !all.Groups[g].Lacks[0] {
			names = append(names, all.Groups[g].Values[0])
		}
	}
	if u.view.SeesAll() && u.opt.Directory != nil {
		for _, p := range u.opt.Directory().Settings().Projects {
			switch f.Key {
			case "project":
				names = append(names, p.ID)
			case "pi":
				for _, s := range p.States {
					names = append(names, s.PI)
				}
			}
		}
	}
	if slices.ContainsFunc(f.Values, func(v string) bool { return slices.Contains(names, v) }) {
		return nil
	}
	return noValue(f, names)
}

const clusterKey = "cluster"

func noValue(f sums.Filter, names []string) error {
	var values []string
	for _, v := range f.Values {
		values = append(values, strconv.Quote(v))
	}
	return noMatch("no record has %s %s%s", f.Key, strings.Join(values, " or "), describeNear(f.Values[0], names))
}

// noMatch refuses a filter that no record can pass.
func noMatch(format string, args ...any) error {
	return &refusal{status: http.StatusBadRequest, detail: fmt.Sprintf(format, args...), kind: v1.TypeNoMatch}
}

// describeNear says what there is in the place of a name that there is not.
func describeNear(name string, names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if slices.Contains(names, name) {
		return ""
	}
	if best := nearestName(name, names); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	more := ""
	if len(names) > 8 {
		more = fmt.Sprintf(" and %d more", len(names)-8)
		names = names[:8]
	}
	if len(names) == 0 {
		return ""
	}
	return "; known are " + strings.Join(names, ", ") + more
}

// nearestName is the name that is near to another, or has it in it, such as project of proj; ""
// where there is none.
func nearestName(name string, names []string) string {
	best := hcl.Suggest(name, names)
	for _, n := range names {
		if best == "" && len(name) > 2 && strings.Contains(strings.ToLower(n), strings.ToLower(name)) {
			best = n
		}
	}
	return best
}

var errFound = errors.New("found")

// anyRecord reports whether a record that the principal sees passes.
func (u *unmatched) anyRecord(ctx context.Context, q store.Query) (bool, error) {
	q.Order, q.ReuseRows, q.Limit = store.BySeq, true, 1
	err := u.view.Query(ctx, q, func(*columns.Row) error { return errFound })
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}
