package accounting

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Cost is the name of the weight that prices are.
const Cost = "cost"

// Prices are the price lists of a configuration. They never change.
type Prices struct {
	currency   string
	group      string // the key of groups
	lists      []PriceList
	components []string
	from       []string
	cuts       []record.Time
	spans      []map[thing][]table // before the first of cuts, and from each on
}

// thing is what has prices.
type thing struct {
	component string
	kind      record.Kind
}

// table has the prices that have conditions on the same keys, by the values.
type table struct {
	keys   []int // indexes in Prices.from
	prices map[string]int64
}

// NewPrices makes the prices of settings. An error says what is wrong with them.
func NewPrices(s PriceSettings) (*Prices, error) {
	if err := s.Check().Err(); err != nil {
		return nil, err
	}
	p := &Prices{currency: s.currency(), group: s.groupKey(), lists: listsWithEnds(s.Lists)}
	for i := range p.lists {
		l := &p.lists[i]
		for _, t := range []record.Time{l.From, l.To} {
			if t.Present() {
				p.cuts = append(p.cuts, t)
			}
		}
		for _, r := range l.Rules {
			p.components = append(p.components, r.Component)
			for _, c := range r.When {
				p.from = append(p.from, c.Key)
			}
		}
	}
	p.cuts, p.components, p.from = sortDistinct(p.cuts), sortDistinct(p.components), sortDistinct(p.from)
	p.spans = append(p.spans, p.tablesAt(record.None))
	for _, t := range p.cuts {
		p.spans = append(p.spans, p.tablesAt(t))
	}
	return p, nil
}

// sortDistinct sorts a list and leaves what is there twice out.
func sortDistinct[T cmp.Ordered](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

// listsWithEnds returns the lists in order, with the end of each.
func listsWithEnds(lists []PriceList) []PriceList {
	lists = slices.Clone(lists)
	slices.SortStableFunc(lists, func(a, b PriceList) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.From, b.From)) // None is before all
	})
	for i := range lists {
		if next := i + 1; next < len(lists) && lists[next].Name == lists[i].Name && !lists[i].To.Present() {
			lists[i].To = lists[next].From
		}
	}
	return lists
}

// holdsWithin reports whether a list holds at some instant from a time on, and before another;
// [record.None] in a list is before all, or behind all.
func (l *PriceList) holdsWithin(from, to record.Time) bool {
	return (l.From == record.None || to > l.From) && (l.To == record.None || from < l.To)
}

// tablesAt makes the tables of the prices that hold from t on, the most specific first.
func (p *Prices) tablesAt(t record.Time) map[thing][]table {
	rules := map[thing][]*PriceRule{}
	for i := range p.lists {
		if l := &p.lists[i]; l.holdsWithin(t, t+1) {
			for k := range l.Rules {
				r := &l.Rules[k]
				rules[thing{r.Component, r.Kind}] = append(rules[thing{r.Component, r.Kind}], r)
			}
		}
	}
	out := map[thing][]table{}
	for what, list := range rules {
		slices.SortStableFunc(list, func(a, b *PriceRule) int {
			return cmp.Or(-a.ruleRank(p.group).compareSpecificity(b.ruleRank(p.group)), slices.Compare(a.conditionKeys(), b.conditionKeys()))
		})
		var tables []table
		for i, r := range list {
			if i == 0 || !slices.Equal(r.conditionKeys(), list[i-1].conditionKeys()) {
				tables = append(tables, table{keys: p.keyIndexes(r.conditionKeys()), prices: map[string]int64{}})
			}
			tables[len(tables)-1].prices[r.valuesKey()] = r.Billionths
		}
		out[what] = tables
	}
	return out
}

func (p *Prices) keyIndexes(keys []string) []int {
	out := make([]int, len(keys))
	for i, k := range keys {
		out[i], _ = slices.BinarySearch(p.from, k)
	}
	return out
}

// rank is how specific a rule is: of two that suit, the greater counts.
type rank struct {
	whom       int // a group before a project before a PI before everyone
	conditions int
}

func (r rank) compareSpecificity(o rank) int {
	return cmp.Or(cmp.Compare(r.whom, o.whom), cmp.Compare(r.conditions, o.conditions))
}

func (r *PriceRule) ruleRank(groupKey string) rank {
	whom := 0
	for _, c := range r.When {
		whom = max(whom, slices.Index([]string{PIKey, ProjectKey, groupKey}, c.Key)+1)
	}
	return rank{whom, len(r.When)}
}

// sortedConditions are the conditions by key.
func (r *PriceRule) sortedConditions() []PriceCondition {
	return slices.SortedFunc(slices.Values(r.When), func(a, b PriceCondition) int { return strings.Compare(a.Key, b.Key) })
}

func (r *PriceRule) conditionKeys() []string {
	var keys []string
	for _, c := range r.sortedConditions() {
		keys = append(keys, c.Key)
	}
	return keys
}

// valuesKey is the values of the conditions, in the order of conditionKeys, as a key of a map.
func (r *PriceRule) valuesKey() string {
	var b []byte
	for _, c := range r.sortedConditions() {
		b = appendValue(b, c.Value)
	}
	return string(b)
}

// appendValue appends a value so that lists of different values differ.
func appendValue(b []byte, value string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// Currency is that of all prices; "" without one.
func (p *Prices) Currency() string { return p.currency }

// Weight returns what usage costs; false without a price list.
func (p *Prices) Weight() (usage.Weight, bool) {
	if len(p.lists) == 0 {
		return usage.Weight{}, false
	}
	return usage.Weight{Name: Cost, Unit: p.currency, Components: p.components, From: p.from, Cuts: p.cuts, Of: p.priceOf}, true
}

// priceOf implements Weight.Of.
func (p *Prices) priceOf(component string, kind record.Kind, values []string, lacks []bool, at record.Time) (int64, bool) {
	i, on := slices.BinarySearch(p.cuts, at)
	if on {
		i++
	}
	tables := p.spans[i][thing{component, kind}]
	var room [128]byte
	for k := range tables {
		t := &tables[k]
		key, suits := room[:0], true
		for _, at := range t.keys {
			suits = suits && !lacks[at]
			key = appendValue(key, values[at])
		}
		if price, ok := t.prices[string(key)]; ok && suits {
			return price, true
		}
	}
	return 0, false
}

// Holding is a price and the list that it is of.
type Holding struct {
	List *PriceList // with its end
	Rule *PriceRule
}

// At returns the prices that hold at an instant, by component, the most specific
// first.
func (p *Prices) At(t record.Time) []Holding { return p.Within(t, t+1) }

// Within returns the prices that hold at some instant of a window, which to is not in: by
// component, the most specific first, and what held first before what follows it.
func (p *Prices) Within(from, to record.Time) []Holding {
	var out []Holding
	for i := range p.lists {
		if l := &p.lists[i]; l.holdsWithin(from, to) {
			for k := range l.Rules {
				out = append(out, Holding{l, &l.Rules[k]})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Holding) int {
		return cmp.Or(strings.Compare(a.Rule.Component, b.Rule.Component), cmp.Compare(a.Rule.Kind, b.Rule.Kind),
			-a.Rule.ruleRank(p.group).compareSpecificity(b.Rule.ruleRank(p.group)), slices.Compare(a.Rule.conditionKeys(), b.Rule.conditionKeys()), strings.Compare(a.Rule.valuesKey(), b.Rule.valuesKey()), cmp.Compare(a.List.From, b.List.From))
	})
	return out
}

// checkAmbiguity finds rules of which neither is more specific and that may suit the same
// usage at the same time.
func (c *checker) checkAmbiguity() {
	type place struct{ list, rule int }
	lists, seen, group := c.s.Lists, map[thing][]place{}, c.s.groupKey()
	ends := make([]PriceList, len(lists))
	for i := range lists { // as listsWithEnds has it, in the order of the settings
		ends[i] = lists[i]
		for k := range lists {
			o := &lists[k]
			if o.Name == lists[i].Name && o.From > lists[i].From && (!ends[i].To.Present() || o.From < ends[i].To) {
				ends[i].To = o.From
			}
		}
	}
	for i := range lists {
		for r := range lists[i].Rules {
			rule := &lists[i].Rules[r]
			what := thing{rule.Component, rule.Kind}
			for _, at := range seen[what] {
				other := &lists[at.list].Rules[at.rule]
				if at.list != i && lists[at.list].Name == lists[i].Name {
					continue // which follow each other
				}
				if rule.ruleRank(group) == other.ruleRank(group) && conditionsOverlap(rule.When, other.When) && listsOverlap(&ends[i], &ends[at.list]) {
					c.addClash(rule, &lists[at.list], other)
					break
				}
			}
			seen[what] = append(seen[what], place{i, r})
		}
	}
}

func (c *checker) addClash(rule *PriceRule, list *PriceList, other *PriceRule) {
	if slices.Equal(rule.conditionKeys(), other.conditionKeys()) {
		c.addProblem(rule.Places, "price", "", "price %q has the same%s, and both hold at the same time", list.Name, placeSuffix(other.Places))
		return
	}
	c.addProblem(rule.Places, "price", "", "price %q has one%s that may be for the same usage, and neither is more specific; give one of them a further condition", list.Name, placeSuffix(other.Places))
}

// conditionsOverlap reports whether a record may fulfil both conditions.
func conditionsOverlap(a, b []PriceCondition) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Key == y.Key && x.Value != y.Value {
				return false
			}
		}
	}
	return true
}

func listsOverlap(a, b *PriceList) bool {
	before := func(x, y *PriceList) bool { return x.To.Present() && y.From.Present() && x.To <= y.From }
	return !before(a, b) && !before(b, a)
}

// String writes a rule for people: Cores of group_id=atlas.
func (r *PriceRule) String() string {
	if len(r.When) == 0 {
		return r.Component
	}
	parts := make([]string, len(r.When))
	for i, c := range r.sortedConditions() {
		parts[i] = fmt.Sprintf("%s=%s", c.Key, c.Value)
	}
	return r.Component + " of " + strings.Join(parts, ", ")
}

// Price is what the rule says.
func (r *PriceRule) Price() Amount { return Billionths(big.NewInt(r.Billionths)) }
