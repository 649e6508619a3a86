package daemon

import (
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
)

// currentDirectory is who belongs where, as the books say now.
func (a *Aggregator) currentDirectory() *accounting.Directory { return a.books.Now().Directory }

// ownKeys are the meta keys of users and groups.
func (a *Aggregator) ownKeys() report.Keys {
	set := a.currentDirectory().Settings()
	return report.Keys{User: set.UserKey, Group: set.GroupKey}
}
