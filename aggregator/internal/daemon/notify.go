package daemon

import (
	"context"
	"fmt"
	"time"
)

// describeEvery is the pause between two looks at who leads.
const describeEvery = 2 * time.Second

// updateStatus keeps the line of `systemctl status` up to date.
func (d *Daemon) updateStatus(ctx context.Context) {
	tick := time.NewTicker(describeEvery)
	defer tick.Stop()
	for last := ""; ; {
		if now := d.agg.statusLine(); now != last {
			d.Notify.Status(now)
			last = now
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// statusLine says in a line what this node does.
func (a *Aggregator) statusLine() string {
	members := a.replica.node.Members()
	if a.replica.node.IsLeader() {
		return fmt.Sprintf("leads a cluster of %d", len(members))
	}
	for _, m := range members {
		if m.Leader {
			return fmt.Sprintf("follows %s in a cluster of %d", m.Addr, len(members))
		}
	}
	return "waits for a leader"
}

// Alive returns nil when the parts answer without which the node can do nothing;
// that there is no leader is none of this, as a restart does not help there. It
// may hang where a part does.
func (a *Aggregator) Alive(context.Context) error {
	view, err := a.store.View()
	if err != nil {
		return err
	}
	if err := view.Close(); err != nil {
		return err
	}
	return a.replica.node.Alive()
}
