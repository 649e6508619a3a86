package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/agent/internal/control"
)

// Forget implements control.Agent.
func (a *Agent) Forget(_ context.Context, f control.Forget) (control.Forgotten, error) {
	stats, err := a.buffer.Stats()
	if err != nil {
		return control.Forgotten{}, err
	}
	if _, known := stats.Clusters[f.Cluster]; !known {
		return control.Forgotten{}, noCluster(f.Cluster, slices.Sorted(maps.Keys(stats.Clusters)))
	}
	out := control.Forgotten{Cluster: clusterOf(f.Cluster, stats)}
	if err := a.buffer.Forget(f.Cluster); err != nil {
		return out, err
	}
	a.opt.Log.Warn("forgot a cluster, by order", "cluster", f.Cluster, "behind", out.Cluster.Behind, "last_heard", out.Cluster.At)
	if out.Dropped, err = a.buffer.Trim(); err != nil {
		return out, fmt.Errorf("the cluster is forgotten, and the buffer was not trimmed: %w", err)
	}
	a.nudgeSources() // sources that wait for room
	return out, nil
}

func noCluster(id string, known []string) error {
	if len(known) == 0 {
		return fmt.Errorf("there is no cluster %q; none is known", id)
	}
	return fmt.Errorf("there is no cluster %q; known are %s", id, strings.Join(known, ", "))
}
