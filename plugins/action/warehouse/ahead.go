package main

import "context"

// readAhead is the next batch, which is read while the one before it is inserted. Until it has
// ended nothing else asks the cluster.
type readAhead struct {
	ask  position
	stop context.CancelFunc
	done chan struct{} // closed at the end; then what follows is set

	part  *part
	batch *batch // nil: what the part supersedes is still to be looked up
	err   error
}

// beginAhead begins to read the batch behind a position. What it supersedes may be a row of the batch
// before, so it is looked up when that is there.
func (f *follower) beginAhead(ctx context.Context, ask position) {
	ctx, stop := context.WithCancel(ctx)
	a := &readAhead{ask: ask, stop: stop, done: make(chan struct{})}
	f.ahead = a
	go func() {
		defer close(a.done)
		if a.part, a.err = f.readPart(ctx, ask); a.err == nil && len(a.part.formers) == 0 {
			a.batch, a.err = f.makeBatch(ctx, a.part)
		}
	}()
}

// endAhead breaks off what is being read.
func (f *follower) endAhead() {
	if f.ahead != nil {
		f.ahead.stop()
		<-f.ahead.done
		f.ahead = nil
	}
}

// nextBatch returns the batch behind a position: as it was read ahead, or read now.
func (f *follower) nextBatch(ctx context.Context, ask position) (*batch, error) {
	a := f.ahead
	if a == nil || a.ask != ask {
		f.endAhead()
		return f.readBatch(ctx, ask)
	}
	<-a.done
	f.endAhead()
	if a.err != nil || a.batch != nil {
		return a.batch, a.err
	}
	return f.makeBatch(ctx, a.part)
}
