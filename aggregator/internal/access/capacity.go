package access

import "github.com/bursar-accounting/bursar/aggregator/internal/store"

// Census returns what sources said last of their jobs. The error is as that of
// Figures.
func (v *View) Census() ([]store.Fact, error) {
	if err := v.requireFigures(); err != nil {
		return nil, err
	}
	return v.view.Facts(store.FactCensus)
}

// SeesAll reports whether the principal reads all records, and so whatever is said of
// people.
func (v *View) SeesAll() bool { return v.who.SeesAll() }
