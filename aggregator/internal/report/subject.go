package report

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// firstRecords is before any record that a report is asked for.
const firstRecords = "2000-01-01"

// subjectText says of whom a report is, from conditions of /v1/usage.
func subjectText(where map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(where)) {
		parts = append(parts, key+" "+strings.Join(v1.SplitList(where[key]), " or "))
	}
	return strings.Join(parts, ", ")
}

// exactConditions are conditions of /v1/usage, each of which is that a key has one value.
func exactConditions(values map[string]string) map[string]string {
	where := map[string]string{}
	for key, value := range values {
		where[key] = v1.JoinList(value)
	}
	return where
}

// askUsage asks /v1/usage.
func askUsage(ctx context.Context, r v1.API, q v1.UsageQuery) (*v1.Usage, error) {
	a, err := r.Usage(ctx, &q)
	return &a, err
}

// absent is the error of a report that has nothing in it: it says whether there are such
// a group and such a time at all, and what is near.
type absent struct {
	of      string // report NAME
	where   map[string]string
	zone    string
	periods []string
	begin   time.Time // of the first period
}

// periodsText names periods in a sentence: the last 30 days, which are asked for as 30d.
func periodsText(words []string) string {
	list := slices.Clone(words)
	for i, word := range list {
		if days, err := strconv.Atoi(strings.TrimSuffix(word, "d")); err == nil && strings.HasSuffix(word, "d") && days > 1 {
			list[i] = fmt.Sprintf("the last %d days", days)
		}
	}
	return strings.Join(list, " and ")
}

func (n *absent) explainAbsence(ctx context.Context, r v1.API) error {
	periods := periodsText(n.periods)
	for _, key := range slices.Sorted(maps.Keys(n.where)) {
		known, err := n.allValues(ctx, r, key)
		if err != nil {
			return err
		}
		values := v1.SplitList(n.where[key])
		if len(known) == 0 || slices.Contains(values, "") || slices.ContainsFunc(values, func(v string) bool { return slices.Contains(known, v) }) {
			continue
		}
		value := values[0]
		if near := hcl.Suggest(value, known); near != "" {
			return fmt.Errorf("%w: no record of %s has the %s %q; did you mean %q?", ErrNothing, periods, key, value, near)
		}
		return fmt.Errorf("%w: no record of %s has the %s %q; there are %s", ErrNothing, periods, key, value, SomeOf(known))
	}
	months, err := n.monthsWithRecords(ctx, r)
	if err != nil {
		return err
	}
	what := "no record"
	if len(n.where) > 0 {
		what += " of " + subjectText(n.where)
	}
	if months == "" {
		return fmt.Errorf("%w: %s ran in %s, nor in any other month", ErrNothing, what, periods)
	}
	return fmt.Errorf("%w: %s ran in %s; the nearest months that have some are %s", ErrNothing, what, periods, months)
}

// checkAnswers returns an error when all answers are empty: it says whether there is such a
// subject at all. The first answer is of the first period.
func (n *absent) checkAnswers(ctx context.Context, r v1.API, answers []*v1.Usage) error {
	for _, a := range answers {
		if a.Records != 0 {
			return nil
		}
	}
	n.begin = windowOf(answers[0]).From
	return n.explainAbsence(ctx, r)
}

// queryAllTime asks /v1/usage for the number of records, from the first one to now.
func (n *absent) queryAllTime(ctx context.Context, r v1.API, q v1.UsageQuery) (*v1.Usage, error) {
	q.From, q.To, q.Measure, q.Zone = firstRecords, "now", "records", n.zone
	a, err := askUsage(ctx, r, q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.of, err)
	}
	return a, nil
}

// allValues are all values of a key that records have.
func (n *absent) allValues(ctx context.Context, r v1.API, key string) (known []string, err error) {
	a, err := n.queryAllTime(ctx, r, v1.UsageQuery{By: v1.JoinList(key)})
	if err != nil {
		return nil, err
	}
	for _, g := range a.Groups {
		if len(g.Values) == 1 && g.Values[0] != nil {
			known = append(known, *g.Values[0])
		}
	}
	return known, nil
}

// monthsWithRecords names up to three, the nearest to what was asked for.
func (n *absent) monthsWithRecords(ctx context.Context, r v1.API) (string, error) {
	a, err := n.queryAllTime(ctx, r, v1.UsageQuery{Bucket: "month", Where: n.where})
	if err != nil {
		return "", err
	}
	var known []string
	for i, label := range a.Labels {
		for _, m := range a.Measures {
			if i < len(m.Values) && m.Values[i] != nil && !isZero(*m.Values[i]) {
				known = append(known, label)
			}
		}
	}
	return strings.Join(NearestMonths(known, n.begin), ", "), nil
}

// NearestMonths are the up to three months next to a time, in their order.
func NearestMonths(months []string, begin time.Time) []string {
	far := func(label string) time.Duration {
		month, err := time.Parse("2006-01", label)
		if err != nil {
			return 0
		}
		return month.Sub(begin).Abs()
	}
	slices.SortStableFunc(months, func(a, b string) int { return int(far(a).Hours() - far(b).Hours()) })
	return slices.Sorted(slices.Values(months[:min(len(months), 3)]))
}

// SomeOf names a few of many.
func SomeOf(names []string) string {
	slices.Sort(names)
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + fmt.Sprintf(" and %d more", len(names)-8)
	}
	return strings.Join(names, ", ")
}
