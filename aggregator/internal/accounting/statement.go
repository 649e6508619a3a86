package accounting

import (
	"math/big"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Statement says how a budget stands in a period.
type Statement struct {
	Budget *Budget
	Period Period
	// Unit is that of all figures.
	Unit string
	// Now is when this holds.
	Now record.Time
	// KnownFrom is from when records are known: what was used before is not in Used.
	KnownFrom record.Time
	// Used is what counted in the period up to Now.
	Used Amount
	// Reserved is what running runs may still use in the period until their time limits.
	Reserved Amount
	// Running is how many runs are in Reserved, and Unlimited how many of the running
	// ones have no known limit, so that Reserved is the least that they may use.
	Running, Unlimited int
	// Unvalued says that some of what runs may use has no price and is not in Reserved.
	Unvalued bool
	// Paced says that there is a pace: that the period is the present one.
	Paced bool
	// Recent is what was used from PaceFrom to Now, whatever the period.
	Recent   Amount
	PaceFrom record.Time
	// Gone is when the amount was used up, to the minute, or will be at the present
	// pace; [record.None] when not within the period.
	Gone record.Time
	// Unpriced is what was used in the period and is not in Used, since it has no price.
	Unpriced []Unpriced
	// Energy is what Used rests on; nil where the unit is neither of energy nor of CO2.
	Energy *sums.EnergyBasis
	// Problem says why there are no figures; "" when there are.
	Problem string

	// apart is the part of Used that [sums.Worth.Apart] has.
	apart Amount
}

// Unpriced is a part of a component that has no price.
type Unpriced struct {
	Component string
	Kind      record.Kind
	Used      sums.Sum // as in an answer of package sums
}

// Left is what is neither used nor reserved; it may be negative.
func (s *Statement) Left() Amount { return s.Budget.Amount.Sub(s.Used).Sub(s.Reserved) }

// Exhausted reports whether all is used.
func (s *Statement) Exhausted() bool { return s.Problem == "" && s.Used.Cmp(s.Budget.Amount) >= 0 }

// Unknown reports whether nothing is known of what was used, so that Used is not 0: no energy
// or CO2 of it but the embodied part, or no records of the whole time.
func (s *Statement) Unknown() bool {
	if s.Used.Cmp(s.apart) != 0 || s.State() == "future" {
		return false
	}
	return s.Energy != nil && len(s.Unpriced) > 0 || s.KnownFrom >= min(s.Period.To, s.Now)
}

// Begun reports whether records are known from a time within the period on, so that Used may
// be too small.
func (s *Statement) Begun() bool {
	return s.KnownFrom > s.Period.From && s.KnownFrom < min(s.Period.To, s.Now)
}

// State is "past", "present" or "future".
func (s *Statement) State() string {
	switch {
	case s.Now < s.Period.From:
		return "future"
	case s.Now >= s.Period.To:
		return "past"
	}
	return "present"
}

// PerDay is the present pace: what is used in 24 hours.
func (s *Statement) PerDay() Amount {
	if s.Now <= s.PaceFrom {
		return Amount{}
	}
	day := new(big.Int).Mul(s.Recent.big(), big.NewInt(int64(record.Day)))
	return Amount{day.Quo(day, big.NewInt(int64(s.Now-s.PaceFrom)))}
}

// AtLeast reports whether figures are known to be too small.
func (s *Statement) AtLeast() bool { return s.Unlimited > 0 || s.Unvalued || len(s.Unpriced) > 0 }

// forecast sets when the rest will be gone at the present pace.
func (s *Statement) forecast() {
	s.Gone = record.None
	rest, recent := s.Budget.Amount.Sub(s.Used), s.Recent
	if !s.Paced || recent.Sign() <= 0 || rest.Sign() <= 0 {
		return
	}
	// rest ÷ (recent ÷ span), rounded up to the microsecond
	n := new(big.Int).Mul(rest.big(), big.NewInt(int64(s.Now-s.PaceFrom)))
	n.Add(n, recent.big()).Sub(n, big.NewInt(1)).Quo(n, recent.big())
	if n.IsInt64() && record.Time(n.Int64()) < s.Period.To-s.Now {
		s.Gone = s.Now + record.Time(n.Int64())
	}
}

// addUnpriced adds a part without a price.
func (s *Statement) addUnpriced(component string, kind record.Kind, used sums.Sum) {
	if used.IsZero() {
		return
	}
	at := slices.IndexFunc(s.Unpriced, func(u Unpriced) bool { return u.Component == component && u.Kind == kind })
	if at < 0 {
		at = len(s.Unpriced)
		s.Unpriced = append(s.Unpriced, Unpriced{Component: component, Kind: kind})
	}
	s.Unpriced[at].Used = s.Unpriced[at].Used.Add(used)
}
