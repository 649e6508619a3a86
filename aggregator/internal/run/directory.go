package run

import "github.com/bursar-accounting/bursar/aggregator/internal/directory"

// directory is who belongs where, as the books say now.
func (a *Aggregator) directory() *directory.Directory { return a.books.Now().Directory }
