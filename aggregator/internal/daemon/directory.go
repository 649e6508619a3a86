package daemon

import "github.com/bursar-accounting/bursar/aggregator/internal/accounting"

// directory is who belongs where, as the books say now.
func (a *Aggregator) directory() *accounting.Directory { return a.books.Now().Directory }
