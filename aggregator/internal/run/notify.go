package run

import (
	"context"
)

// announce tells systemd that the daemon serves, gives it signs of life, and
// tells it, as soon as ctx ends, that the daemon stops.
func (d *Daemon) announce(ctx context.Context) {
	d.Notify.Ready()
	context.AfterFunc(ctx, d.Notify.Stopping)
	go d.Notify.Watch(ctx, d.agg.Alive)
}

// Alive returns nil when the parts answer without which the node can do nothing;
// that there is no leader is none of this, as a restart does not help there. It
// may hang where a part does.
func (a *Aggregator) Alive(context.Context) error {
	view, err := a.store.View()
	if err != nil {
		return err
	}
	return view.Close()
}
