package access

import (
	"context"

	"github.com/bursar-accounting/bursar/aggregator/internal/tally"
)

// Days compares the days of a window with what schedulers have, by source. The
// error is as that of Figures.
func (v *View) Days(ctx context.Context, w tally.Window) ([]tally.Day, error) {
	if err := v.figures(); err != nil {
		return nil, err
	}
	return tally.Look(ctx, v.view, w)
}
