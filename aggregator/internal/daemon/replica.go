package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// replica is the replicated state as the rest of the daemon uses it: the node of
// the cluster with its store.
type replica struct {
	node   *cluster.Node
	peer   *membership.Peer
	store  *store.Store
	guard  *health.DiskGuard
	guards *guards
}

// readPatience is how long a read waits for a leader, who may just be elected.
const readPatience = 5 * time.Second

// Read implements access.Source: a linearizable picture, on any node.
func (r *replica) Read(ctx context.Context) (*store.View, error) {
	if stale := api.StaleOf(ctx); stale != nil {
		return r.readStale(ctx, stale)
	}
	if err := r.waitLinearizable(ctx); err != nil {
		return nil, err
	}
	return r.openView()
}

// readStale is a picture of what this node has, if it is new enough.
func (r *replica) readStale(ctx context.Context, stale *api.Stale) (*store.View, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	age, err := r.peer.Within(ctx, stale.MaxAge)
	if err != nil {
		return nil, err
	}
	stale.Age, stale.Never = age.Age, age.Never
	return r.openView()
}

// openView is a picture of what this node has, unless it is fenced.
func (r *replica) openView() (*store.View, error) {
	if err := r.checkReadable(); err != nil {
		return nil, err
	}
	return r.store.View()
}

// checkReadable returns why nothing of this node's state may be shown.
func (r *replica) checkReadable() error {
	return errors.Join(r.guards.watch.Readable(), r.node.Forked())
}

// waitLinearizable waits until this node has all that was acknowledged anywhere.
func (r *replica) waitLinearizable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	for {
		err := r.peer.Linearizable(ctx)
		if err == nil || !errors.Is(err, membership.ErrNotNow) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Write implements api.Writer: the leader commits the command. While its disk is
// nearly full nothing is written, nor what not all nodes can apply.
func (r *replica) Write(ctx context.Context, c store.Command) (any, error) {
	if err := r.guards.gate.Check(store.VersionOf(c)); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrNotNow, err)
	}
	result, err := r.peer.Write(ctx, c)
	switch {
	case errors.Is(err, membership.ErrNotNow):
		return nil, fmt.Errorf("%w: %w", api.ErrNotNow, err)
	case errors.Is(err, cluster.ErrUnknownOutcome):
		return nil, unknown{err}
	}
	return result, err
}

// unknown is an error that is api.ErrUnknown.
type unknown struct{ error }

// Is makes it api.ErrUnknown.
func (unknown) Is(target error) bool { return target == api.ErrUnknown }

// Unwrap returns the error.
func (u unknown) Unwrap() error { return u.error }

// Submit implements pull.Committer. While the disk is nearly full nothing is
// committed, so nothing is acknowledged: the agents keep what they have.
func (r *replica) Submit(ctx context.Context, c *store.IngestCommand) (ingest.Pending, error) {
	if err := errors.Join(r.guard.CheckPull(), r.guards.checkGuards(), r.guards.gate.Check(store.VersionOf(c))); err != nil {
		return nil, err
	}
	p, err := r.node.Submit(ctx, store.Encode(c))
	if err != nil {
		return nil, err
	}
	return pending{p}, nil
}

// pending implements pull.Pending.
type pending struct{ proposal *cluster.Proposal }

// Wait implements pull.Pending.
func (p pending) Wait(ctx context.Context) (store.IngestResult, error) {
	result, err := p.proposal.Wait(ctx)
	if err != nil {
		return store.IngestResult{}, err
	}
	ingest, ok := result.Value.(store.IngestResult)
	if !ok {
		return ingest, fmt.Errorf("the store answered an ingest with %T", result.Value)
	}
	return ingest, nil
}

// Cursor implements pull.Cursors.
func (r *replica) Cursor(agent string) (store.Cursor, error) {
	return store.With(r.store, func(v *store.View) (store.Cursor, error) { return v.Cursor(agent) })
}

// checkWritable returns why this node, as the leader, must not write now.
func (r *replica) checkWritable() error { return errors.Join(r.guard.Check(), r.guards.checkGuards()) }

// establishCluster makes the state of a new leader complete: all that was committed is
// applied, and a new cluster has an id, which is returned.
func (r *replica) establishCluster(ctx context.Context) (string, error) {
	if err := r.node.Barrier(ctx); err != nil {
		return "", err
	}
	if id, _ := r.store.Cluster(); id != "" {
		return id, nil
	}
	result, err := r.Write(ctx, &store.SetClusterCommand{ID: rand.Text()})
	if err != nil {
		return "", fmt.Errorf("give the new cluster an id: %w", err)
	}
	id, _ := result.(string)
	return id, nil
}
