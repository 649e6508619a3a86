package daemon

import (
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// currentMoney is what usage costs and what may be used, as accounting says now.
func (a *Aggregator) currentMoney() api.Money {
	now := a.accounts.Now()
	classes := now.Directory.Classes()
	return api.Money{Prices: now.Prices, Budgets: now.Budgets, Value: func(m record.Meta, key string) (string, bool) {
		return valueOf(classes, m, key)
	}}
}

// valueOf is the first value of a key, or the class that follows for it.
func valueOf(classes []sums.Class, m record.Meta, key string) (string, bool) {
	from, of := key, func(value string) (string, bool) { return value, true }
	for i := range classes {
		if classes[i].Name == key {
			from, of = classes[i].From, classes[i].Of
		}
	}
	values := m.Get(from)
	if len(values) == 0 {
		return "", false
	}
	return of(values[0])
}

// currentDirectory is who belongs where, as accounting says now.
func (a *Aggregator) currentDirectory() *accounting.Directory { return a.accounts.Now().Directory }

// ownKeys are the meta keys of users and groups.
func (a *Aggregator) ownKeys() report.Keys {
	set := a.currentDirectory().Settings()
	return report.Keys{User: set.UserKey, Group: set.GroupKey}
}
