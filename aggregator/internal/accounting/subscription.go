package accounting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/proto/record"
)

// ErrNoUnits says that nothing is known of service units.
var ErrNoUnits = errors.New("service units are not configured; add a service_units block with a default_factor, or host_class blocks")

// Standing says how the usage of a principal investigator stands to the contribution.
type Standing string

// The standings.
const (
	// Exempt: all projects are.
	Exempt Standing = "exempt"
	// Both: there is usage and a contribution, so there is a ratio.
	Both Standing = "both"
	// Over: there is usage and no contribution.
	Over Standing = "over"
	// Under: there is a contribution and no usage.
	Under Standing = "under"
	// Neither: there is none of the two.
	Neither Standing = "neither"
)

// Subscription compares what principal investigators used with what is credited to
// them, in a window.
type Subscription struct {
	From, To record.Time
	// Unit is that of what was used.
	Unit string
	// Index is the index of the log of which the figures are.
	Index uint64
	// Open is how many of the records go on.
	Open uint64
	// Shares are by usage, then by contribution, the largest first.
	Shares []Share
	// Used is what all shares are together, and Contributed what counts of the
	// contributions: those of who is exempt do not.
	Used, Contributed *big.Rat
	// Unclaimed was used by groups and users without a principal investigator; it is in
	// no share.
	Unclaimed *big.Rat
	// Lacking is what has no worth in units, by component: in hours of a rate, or in
	// the unit of a total.
	Lacking map[string]*big.Rat
}

// Share is one principal investigator.
type Share struct {
	PI, Name string
	// Used is in service units. ExemptUsed is the part of it that exempt projects used.
	Used, ExemptUsed *big.Rat
	// Contributed is amount × per cent × factor, of each contribution as much as its
	// part of the window.
	Contributed *big.Rat
	State       Standing
	// Ratio is the share of the usage ÷ that of the contribution; nil where one of them
	// is nothing. What exempt projects used is not in it, unless all are exempt.
	Ratio *big.Rat
}

// Subscription compares usage with contributions in the window of a question, of
// which Edges, Where, Credit and Now count.
func (d *Directory) Subscription(ctx context.Context, ask sums.AskFunc, q sums.Query) (*Subscription, error) {
	w, ok := d.Units()
	if !ok {
		return nil, fmt.Errorf("%w: %w", sums.ErrQuery, ErrNoUnits)
	}
	s := &Subscription{From: q.Edges[0], To: q.Edges[len(q.Edges)-1], Unit: w.Unit, Used: new(big.Rat), Contributed: new(big.Rat), Unclaimed: new(big.Rat), Lacking: map[string]*big.Rat{}}
	q.Edges, q.Components, q.Unscored = []record.Time{s.From, s.To}, w.Components, w.Components
	if len(d.projects) > 0 {
		q.By = []string{PIKey, ExemptKey}
	}
	q.Weights = []string{ServiceUnitMeasure}
	a, err := ask(ctx, q)
	if err != nil {
		return nil, err
	}
	s.Index, s.Open = a.Index, a.Open
	d.fillSubscription(s, a)
	return s, nil
}

func (d *Directory) fillSubscription(s *Subscription, a *sums.Answer) {
	shares := d.sharesIn(s.From, s.To)
	for g := range a.Groups {
		used := unitsOfSum(a.Worths[0].Sum[g])
		if len(a.By) == 0 || a.Groups[g].Lacks[0] {
			s.Unclaimed.Add(s.Unclaimed, used)
			continue
		}
		pi := a.Groups[g].Values[0]
		if shares[pi] == nil {
			shares[pi] = d.newShare(pi)
		}
		shares[pi].Used.Add(shares[pi].Used, used)
		if a.Groups[g].Values[1] == "true" {
			shares[pi].ExemptUsed.Add(shares[pi].ExemptUsed, used)
		}
	}
	for i := range a.Worths[0].Lacking {
		l := &a.Worths[0].Lacking[i]
		for _, used := range l.Used {
			s.addLacking(l, used)
		}
	}
	for _, pi := range slices.Sorted(maps.Keys(shares)) {
		sh := shares[pi]
		s.Used.Add(s.Used, sh.Used)
		if sh.State != Exempt {
			s.Contributed.Add(s.Contributed, sh.Contributed)
		}
		s.Shares = append(s.Shares, *sh)
	}
	for i := range s.Shares {
		s.setStanding(&s.Shares[i])
	}
	slices.SortStableFunc(s.Shares, func(a, b Share) int { return cmp.Or(b.Used.Cmp(a.Used), b.Contributed.Cmp(a.Contributed)) })
}

// unitsOfSum is a figure of [sums.Worth.Sum] in the unit.
func unitsOfSum(sum sums.Sum) *big.Rat {
	const whole = 3_600_000_000_000_000_000
	return new(big.Rat).SetFrac(sum.Big(), big.NewInt(whole))
}

// addLacking adds what has no worth.
func (s *Subscription) addLacking(l *sums.Unvalued, used sums.Sum) {
	per := int64(1_000_000)
	if l.Kind == record.Rate {
		per *= 3600
	}
	if s.Lacking[l.Component] == nil {
		s.Lacking[l.Component] = new(big.Rat)
	}
	s.Lacking[l.Component].Add(s.Lacking[l.Component], new(big.Rat).SetFrac(used.Big(), big.NewInt(per)))
}

// setStanding sets state and ratio of a share.
func (s *Subscription) setStanding(sh *Share) {
	used := new(big.Rat).Set(sh.Used)
	if sh.State != Exempt {
		used.Sub(used, sh.ExemptUsed)
	}
	uses, gave := used.Sign() > 0, sh.Contributed.Sign() > 0
	if uses && gave && s.Contributed.Sign() > 0 {
		sh.Ratio = used.Quo(used, s.Used)
		sh.Ratio.Mul(sh.Ratio, s.Contributed).Quo(sh.Ratio, sh.Contributed)
	}
	switch {
	case sh.State == Exempt:
	case uses && gave:
		sh.State = Both
	case uses:
		sh.State = Over
	case gave:
		sh.State = Under
	default:
		sh.State = Neither
	}
}

func (d *Directory) newShare(pi string) *Share {
	name, _ := d.Name(pi)
	return &Share{PI: pi, Name: name, Used: new(big.Rat), ExemptUsed: new(big.Rat), Contributed: new(big.Rat)}
}

// sharesIn are the shares of everyone who is a principal investigator at a time of the
// window, or has contributed.
func (d *Directory) sharesIn(from, to record.Time) map[string]*Share {
	out := map[string]*Share{}
	of := func(pi string) *Share {
		if out[pi] == nil {
			out[pi] = d.newShare(pi)
		}
		return out[pi]
	}
	counts := map[string]bool{} // who has a project that is not exempt
	for _, project := range d.projects {
		for _, s := range d.investors[project] {
			if s.overlapsWindow(from, to) {
				of(s.value).State = Exempt
				counts[s.value] = counts[s.value] || !d.isExemptThroughout(project, max(s.from, from), min(s.to, to))
			}
		}
	}
	for pi := range counts {
		if counts[pi] {
			out[pi].State = ""
		}
	}
	for i := range d.set.Contributions {
		c := &d.set.Contributions[i]
		if part := c.unitsIn(from, to); part.Sign() > 0 {
			sh := of(c.creditedTo())
			sh.Contributed.Add(sh.Contributed, part)
		}
	}
	return out
}

// isExemptThroughout reports whether a project is exempt for all of a time.
func (d *Directory) isExemptThroughout(project string, from, to record.Time) bool {
	for _, s := range d.exempt[project] {
		if s.value == "true" && s.from <= from && to <= s.to {
			return true
		}
	}
	return false
}

func (c *Contribution) creditedTo() string { return cmp.Or(c.Credit, c.By) }

// Units are what the contribution counts while it is there.
func (c *Contribution) Units() *big.Rat {
	u := new(big.Rat).Mul(c.Amount.rat(), c.Split.rat())
	return u.Mul(u, c.Factor.rat())
}

// unitsIn is what the contribution counts in a window: as much as its part of it.
func (c *Contribution) unitsIn(from, to record.Time) *big.Rat {
	s := newSpan(c.From, c.To, "", "")
	if !s.overlapsWindow(from, to) {
		return new(big.Rat)
	}
	part := big.NewRat(int64(min(s.to, to)-max(s.from, from)), int64(to-from))
	return part.Mul(part, c.Units())
}
