package config

import (
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/hcl"
)

// WaitingStops is the block waiting_stops { … }: stops that clients pushed and whose
// records have not come.
type WaitingStops struct {
	// ExpireAfter is how long they are kept; zero is for ever.
	ExpireAfter hcl.Duration `hcl:"expire_after"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// minExpire is longer than agents are usually away: the record of a stop that is
// dismissed too early stays open.
const minExpire = 24 * time.Hour

func checkExpire(d time.Duration) error {
	if d < minExpire {
		return fmt.Errorf("%s is less than a day: records that are on their way would stay open", d)
	}
	return nil
}

func (w *WaitingStops) validate() (diags hcl.Diagnostics) {
	if w == nil || w.ExpireAfter.Range == (hcl.Range{}) {
		return nil
	}
	if err := checkExpire(w.ExpireAfter.Duration); err != nil {
		diags.Add(hcl.Errorf(w.ExpireAfter.Range, `invalid value for "expire_after"`, "%v", err))
	}
	return diags
}

func waitingBlocks(c *Config) []clusterconfig.Block {
	w := c.Aggregator.WaitingStops
	if w == nil {
		return nil
	}
	b := clusterconfig.Block{Type: "waiting_stops", At: place(w.Range)}
	b.Set("expire_after", w.ExpireAfter.Duration.String(), place(w.ExpireAfter.Range))
	return []clusterconfig.Block{b}
}

func readWaiting(s *Shared, b *clusterconfig.Block) error {
	if err := only(b, 0, "expire_after"); err != nil {
		return err
	}
	text, err := b.Text("expire_after")
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err == nil {
		err = checkExpire(d)
	}
	if err != nil {
		return fmt.Errorf("expire_after: %w", err)
	}
	s.StopsExpire = d
	return nil
}
