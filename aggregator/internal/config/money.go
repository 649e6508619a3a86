package config

import (
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// resolvedMoney are prices and budgets with what they mean.
func (s *Settings) resolvedMoney() (accounting.PriceSettings, hcl.Diagnostics) {
	return accounting.PriceSettings{Lists: s.Prices, Budgets: s.Budgets, GroupKey: s.Directory.GroupKey.Value}.Resolved(s.siteZone())
}

// readMoney reads prices and budgets.
func (s *Settings) readMoney(to *Shared) (diags hcl.Diagnostics) {
	if to.Money, diags = s.resolvedMoney(); diags.HasErrors() {
		return diags
	}
	diags.Extend(s.warnOfEnergyPrices(to.Money.Lists))
	diags.Extend(to.Money.Check())
	return diags
}

// warnOfEnergyPrices says where a price of energy or CO2 is of no use.
func (s *Settings) warnOfEnergyPrices(lists []accounting.PriceList) (diags hcl.Diagnostics) {
	for i := range lists {
		for k := range lists[i].Rules {
			p := &lists[i].Rules[k]
			at, unit := p.Places[""], map[string]string{usage.PricedEnergy: accounting.KWh, usage.PricedCO2: accounting.CO2Unit}[p.Component]
			switch {
			case unit == "":
			case s.Energy == nil:
				diags.Add(hcl.Warnf(at, "price of a component", "without a block energy this is the price of a component of records that is called %q, and not of the measure", p.Component))
			case p.Kind == record.Rate:
				diags.Add(hcl.Warnf(at, "price that nothing has", "%s is counted in %s: write unit, the price of 1 %s, in place of hour", p.Component, unit, unit))
			}
		}
	}
	return diags
}
