package accounting

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// yearly is a budget of a project.
func yearly(name string, amount int64, scope ...string) Budget {
	b := Budget{Name: name, Unit: "EUR", Amount: Billionths(big.NewInt(amount * 1e9)), Every: calendar.Year, From: record.None, To: record.None}
	for i := 0; i < len(scope); i += 2 {
		b.Scope = append(b.Scope, PriceCondition{scope[i], scope[i+1]})
	}
	return b
}

// placeAll gives the attributes of blocks places that are their names.
func placeAll(s *PriceSettings) {
	place := func(p *hcl.Places, names ...string) {
		all := hcl.Places{"": (*p)[""]}
		for _, name := range names {
			all[name] = hcl.Range{Filename: name}
		}
		*p = all
	}
	for i := range s.Lists {
		l := &s.Lists[i]
		place(&l.Places, "name", "currency", "from", "to", "zone")
		for k := range l.Rules {
			place(&l.Rules[k].Places, "component", "hour", "unit", "class", "group", "project", "pi")
		}
	}
	for i := range s.Budgets {
		place(&s.Budgets[i].Places, "name", "group", "project", "pi", "amount", "unit", "component", "period", "from", "to", "zone", "pace")
	}
}

func TestSettingsThatMakeNoSenseSayWhere(t *testing.T) {
	dollars := always(rate("Memory", 1))
	dollars.Name, dollars.Currency = "us", "USD"
	list := func(change func(*PriceList)) PriceSettings {
		l := always(rate("Cores", 1))
		change(&l)
		return PriceSettings{Lists: []PriceList{l}}
	}
	budget := func(change func(*Budget)) PriceSettings {
		b := yearly("b", 1, ProjectKey, "p")
		change(&b)
		return PriceSettings{Lists: []PriceList{always(rate("Cores", 1))}, Budgets: []Budget{b}}
	}
	another := always(rate("Cores", 2))
	another.Places = hcl.Places{"": {Filename: "a.hcl:3"}}
	other := another
	other.Name = "other"
	other.Rules = []PriceRule{rate("Cores", 3)}
	other.Rules[0].Places = hcl.Places{"": {Filename: "a.hcl:4"}}
	for _, c := range []struct {
		set   PriceSettings
		field string
		want  string
	}{
		{PriceSettings{Lists: []PriceList{always(rate("Cores", 1)), dollars}}, "currency", "one currency"},
		{list(func(l *PriceList) { l.Currency = "" }), "currency", "like EUR"},
		{list(func(l *PriceList) { l.Currency = "su" }), "currency", "unit of its own"},
		{list(func(l *PriceList) { l.Currency = "core-hours" }), "currency", "like EUR"},
		{list(func(l *PriceList) { l.Rules = nil }), "", "no prices"},
		{list(func(l *PriceList) { l.Name = " " }), "name", "blank"},
		{list(func(l *PriceList) { l.From, l.To = 5, 5 }), "to", "not after from"},
		{list(func(l *PriceList) { l.Rules = []PriceRule{rate("", 1)} }), "component", "blank"},
		{list(func(l *PriceList) { l.Rules = []PriceRule{rate("Cores", 1e15+1)} }), "hour", "more than 1000000000"},
		{list(func(l *PriceList) { l.Rules = []PriceRule{rate("Cores", 1, ClassKey, "")} }), "class", "blank"},
		{list(func(l *PriceList) { l.Rules = []PriceRule{rate("Cores", 1, "", "x")} }), "", "blank"},
		{list(func(l *PriceList) { l.Rules = []PriceRule{rate("Cores", 1, PIKey, "a", PIKey, "b")} }), "pi", "two conditions on pi"},
		{list(func(l *PriceList) { l.Rules = []PriceRule{rate("Cores", 1), rate("Cores", 1)} }), "", "has the same"},
		{list(func(l *PriceList) {
			l.Rules = []PriceRule{rate("Cores", 1, "qos", "a"), rate("Cores", 1, ClassKey, "b")}
		}), "", "neither is more specific"},
		{PriceSettings{Lists: []PriceList{another, always(rate("Cores", 1))}}, "from", "(a.hcl:3)"},
		{PriceSettings{Lists: []PriceList{other, always(rate("Cores", 1))}}, "", "(a.hcl:4)"},
		{PriceSettings{Lists: []PriceList{{Name: "a", Currency: "EUR", From: 1, To: 9, Rules: []PriceRule{rate("Cores", 1)}}, {Name: "a", Currency: "EUR", From: 5, To: record.None, Rules: []PriceRule{rate("Cores", 1)}}}}, "to", "at the same time"},
		{budget(func(b *Budget) { b.Unit = "USD" }), "unit", "prices are in EUR"},
		{budget(func(b *Budget) { b.Unit = "" }), "unit", "prices are in EUR"},
		{PriceSettings{Budgets: []Budget{yearly("b", 1, ProjectKey, "p")}}, "unit", "no price list"},
		{budget(func(b *Budget) { b.Unit = HoursOf }), "component", "GPUs"},
		{budget(func(b *Budget) { b.Component = "GPUs" }), "component", "only a budget"},
		{budget(func(b *Budget) { b.Scope = nil }), "", "whose it is"},
		{budget(func(b *Budget) { b.Amount = Amount{} }), "amount", "more than 0"},
		{budget(func(b *Budget) { b.Zone = "Europe/Belin" }), "zone", "Europe/Berlin"},
		{budget(func(b *Budget) { b.Every = calendar.Hour }), "period", "too short"},
		{budget(func(b *Budget) { b.Every = calendar.None }), "period", "either"},
		{budget(func(b *Budget) { b.From, b.To = 1, 2 }), "period", "either"},
		{budget(func(b *Budget) { b.Pace.Duration = time.Hour }), "pace", "from a day"},
		{PriceSettings{Lists: []PriceList{always(rate("Cores", 1))}, Budgets: []Budget{yearly("b", 1, PIKey, "p"), yearly("b", 1, PIKey, "q")}}, "name", "another budget"},
	} {
		placeAll(&c.set)
		found := c.set.Check()
		if len(found) != 1 || !strings.Contains(found[0].Detail, c.want) || c.field != "" && found[0].Subject.Filename != c.field || c.field == "" && !strings.HasPrefix(found[0].Summary, "invalid ") {
			t.Errorf("want %s: %s, got %v", c.field, c.want, found)
		}
		if _, _, err := NewPricesAndBudgets(c.set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %s, got %v", c.want, err)
		}
	}
}

func TestPricesThatNeverMeetAreNoConflict(t *testing.T) {
	early, late := always(rate("Cores", 1)), always(rate("Cores", 2))
	early.To, late.From, late.Name = 100, 100, "late"
	free := always(rate("Cores", 0, GroupKey, "a"), rate("Cores", 0, GroupKey, "b"), rate("Cores", 0, GroupKey, "a", "qos", "x"), rate("Cores", 0, GroupKey, "b", "partition", "y"))
	free.Name = "free"
	totals := always(PriceRule{Component: "Cores", Kind: record.Total, Billionths: 1})
	totals.Name = "totals"
	if _, _, err := NewPricesAndBudgets(PriceSettings{Lists: []PriceList{early, late, free, totals}}); err != nil {
		t.Error(err)
	}
	if _, has := (&Prices{}).Weight(); has {
		t.Error("without prices there is a cost")
	}
}
