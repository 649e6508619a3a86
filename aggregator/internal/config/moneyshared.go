package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// ever stands for the begin of a list that has always held, among the labels.
const ever = "ever"

// priceBlocks gives the price lists. Their begin is a label, since lists of one name
// follow each other; so are the conditions of a price.
func priceBlocks(c *Config) (list []clusterconfig.Block) {
	set, _ := c.money()
	for i := range set.Lists {
		l, at := &set.Lists[i], place(c.Prices[i].Range)
		b := clusterconfig.Block{Type: "price", Labels: []string{l.Name, ever}, At: at}
		if l.From.Present() {
			b.Labels[1] = l.From.String()
		}
		b.Set("currency", l.Currency, place(c.Prices[i].Currency.Range))
		if l.To.Present() {
			b.Set("to", l.To.String(), place(c.Prices[i].To.Range))
		}
		for k := range l.Rules {
			b.Blocks = append(b.Blocks, ruleBlock(&l.Rules[k]))
		}
		list = append(list, b)
	}
	return list
}

func ruleBlock(r *accounting.PriceRule) clusterconfig.Block {
	b := clusterconfig.Block{Type: "per", Labels: []string{r.Component}, At: r.At}
	for _, c := range r.When {
		b.Labels = append(b.Labels, c.Key+"="+c.Value)
	}
	name := "hour"
	if r.Kind == record.Total {
		name = "unit"
	}
	b.Set(name, decimal(big.NewInt(r.Billionths)), r.At)
	setConditions(&b, r.When, r.At)
	return b
}

func setConditions(b *clusterconfig.Block, list []accounting.PriceCondition, at string) {
	if len(list) == 0 {
		return
	}
	when := map[string]string{}
	for _, c := range list {
		when[c.Key] = c.Value
	}
	b.Set("match", when, at)
}

func budgetBlocks(c *Config) (list []clusterconfig.Block) {
	set, _ := c.money()
	for i := range set.Budgets {
		m, at := &set.Budgets[i], place(c.Budgets[i].Range)
		b := clusterconfig.Block{Type: "budget", Labels: []string{m.Name}, At: at}
		setConditions(&b, m.Scope, at)
		texts := map[string]string{"amount": decimal(m.Billionths), "unit": m.Unit, "component": m.Component, "period": m.Every.String(), "zone": m.Zone}
		if m.From.Present() {
			texts["from"] = m.From.String()
		}
		if m.To.Present() {
			texts["to"] = m.To.String()
		}
		if m.Pace != 0 {
			texts["pace"] = (time.Duration(m.Pace) * time.Microsecond).String()
		}
		for name, text := range texts {
			if text != "" {
				b.Set(name, text, at)
			}
		}
		list = append(list, b)
	}
	return list
}

// readPrice reads a price list from the log.
func readPrice(s *Shared, b *clusterconfig.Block) error {
	plain := *b
	plain.Blocks = nil
	if err := only(&plain, 2, "currency", "to"); err != nil {
		return err
	}
	l := accounting.PriceList{Name: b.Labels[0], From: record.None}
	var err error
	if l.Currency, err = b.Text("currency"); err != nil {
		return err
	}
	if b.Labels[1] != ever {
		if l.From, err = record.ParseTime(b.Labels[1]); err != nil {
			return err
		}
	}
	if l.To, err = optionalTime(b, "to"); err != nil {
		return err
	}
	for i := range b.Blocks {
		r, err := readRule(&b.Blocks[i])
		if err != nil {
			return fmt.Errorf("%s: %w", b.Blocks[i].Name(), err)
		}
		l.Rules = append(l.Rules, r)
	}
	s.Money.Lists = append(s.Money.Lists, l)
	return nil
}

func readRule(b *clusterconfig.Block) (r accounting.PriceRule, err error) {
	if b.Type != "per" || len(b.Labels) == 0 {
		return r, fmt.Errorf("this program does not know such a block here")
	}
	if err := only(b, len(b.Labels), "hour", "unit", "match"); err != nil {
		return r, err
	}
	r.Component = b.Labels[0]
	_, hour := b.Values["hour"]
	_, unit := b.Values["unit"]
	name := "hour"
	if unit {
		name, r.Kind = "unit", record.Total
	}
	if hour == unit {
		return r, fmt.Errorf("want either hour or unit")
	}
	n, err := readDecimal(b, name)
	if err == nil && !n.IsInt64() {
		err = fmt.Errorf("%s: it is too much", name)
	}
	if err != nil {
		return r, err
	}
	r.Billionths = n.Int64()
	r.When, err = readConditions(b)
	return r, err
}

// readBudget reads a budget from the log.
func readBudget(s *Shared, b *clusterconfig.Block) error {
	if err := only(b, 1, "match", "amount", "unit", "component", "period", "from", "to", "zone", "pace"); err != nil {
		return err
	}
	m := accounting.Budget{Name: b.Labels[0]}
	texts := map[string]*string{"unit": &m.Unit, "component": &m.Component, "zone": &m.Zone}
	period, pace := "", ""
	texts["period"], texts["pace"] = &period, &pace
	for name, to := range texts {
		text, err := b.Text(name)
		if err != nil {
			return err
		}
		*to = text
	}
	var err error
	if m.Every, err = calendar.ParseUnit(period); err != nil {
		return fmt.Errorf("period: %w", err)
	}
	if pace != "" {
		d, err := hcl.ParseDuration(pace)
		if err != nil {
			return fmt.Errorf("pace: %w", err)
		}
		m.Pace = record.Time(d.Microseconds())
	}
	if m.Billionths, err = readDecimal(b, "amount"); err != nil {
		return err
	}
	if m.From, err = optionalTime(b, "from"); err != nil {
		return err
	}
	if m.To, err = optionalTime(b, "to"); err != nil {
		return err
	}
	m.Scope, err = readConditions(b)
	s.Money.Budgets = append(s.Money.Budgets, m)
	return err
}

func readDecimal(b *clusterconfig.Block, name string) (*big.Int, error) {
	text, err := b.Text(name)
	if err != nil {
		return nil, err
	}
	n, err := hcl.ParseDecimal(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func optionalTime(b *clusterconfig.Block, name string) (record.Time, error) {
	text, err := b.Text(name)
	if err != nil || text == "" {
		return record.None, err
	}
	t, err := record.ParseTime(text)
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

func readConditions(b *clusterconfig.Block) (list []accounting.PriceCondition, err error) {
	raw, ok := b.Values["match"]
	if !ok {
		return nil, nil
	}
	var match map[string]string
	if err := json.Unmarshal(raw, &match); err != nil {
		return nil, fmt.Errorf("match: %s is no map of keys to values: %w", raw, err)
	}
	for _, key := range slices.Sorted(maps.Keys(match)) {
		list = append(list, accounting.PriceCondition{Key: key, Value: match[key]})
	}
	return list, nil
}
