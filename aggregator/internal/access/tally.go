package access

import (
	"context"

	"github.com/bursar-accounting/bursar/aggregator/internal/completeness"
)

// Days compares the days of a window with what schedulers have, by source. The
// error is as that of Figures.
func (v *View) Days(ctx context.Context, w completeness.Window) ([]completeness.Day, error) {
	if err := v.requireFigures(); err != nil {
		return nil, err
	}
	return completeness.Look(ctx, v.view, w)
}
