package host

import (
	"cmp"
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Limits of how long a call may make no progress, where the configuration says none.
const (
	// StallLimit is for plugins that answer Progress.
	StallLimit = 2 * time.Minute
	// OlderLimit is for plugins that do not. Collect of a push source has none then: it
	// cannot be told from one to which nothing is pushed.
	OlderLimit = time.Hour

	lookEvery = 15 * time.Second // at a call that is silent
	askTime   = 5 * time.Second  // for an answer of Progress
)

// watch ends a call that makes no progress: no message, no step, and no end.
type watch struct {
	session *Session
	call    string
	end     context.CancelFunc

	mu    sync.Mutex
	last  time.Time // progress
	steps uint64
	older bool // the plugin does not know Progress
	ours  bool // it is the daemon's turn, which counts as progress
	stall *Stall
}

// watchCall begins to watch a call. The context ends with the call; release ends the watch.
func (s *Session) watchCall(ctx context.Context, call string) (_ context.Context, w *watch, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	w = &watch{session: s, call: call, end: cancel, last: time.Now()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.runWatch(ctx)
	}()
	return ctx, w, func() {
		cancel()
		<-ended
	}
}

// noteTurn says that there was progress, and whose turn it is.
func (w *watch) noteTurn(ours bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.ours = time.Now(), ours
}

// silentFor returns for how long there was no progress.
func (w *watch) silentFor() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ours {
		return 0
	}
	return time.Since(w.last)
}

// StallLimit returns for how long a call of a plugin that answers Progress may make none.
func (s *Session) StallLimit() time.Duration { return cmp.Or(s.stall, StallLimit) }

// stallLimit returns how long there may be none; 0: for ever.
func (w *watch) stallLimit() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.session.stall > 0 || !w.older:
		return w.session.StallLimit()
	case w.session.Description.GetPush() && w.call == sdk.CallCollect:
		return 0
	}
	return OlderLimit
}

func (w *watch) runWatch(ctx context.Context) {
	every := min(lookEvery, w.stallLimit()/4)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if w.silentFor() < every {
			continue
		}
		w.askProgress(ctx)
		silent, limit := w.silentFor(), w.stallLimit()
		if limit == 0 || silent < limit || ctx.Err() != nil {
			continue
		}
		why := &Stall{Call: w.call, Silent: limit}
		w.mu.Lock()
		w.stall = why
		w.mu.Unlock()
		w.session.Hang(why) // before the call is told to end: its goroutines show where it hangs
		w.end()
		return
	}
}

// askProgress asks the plugin how far the call has come.
func (w *watch) askProgress(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	resp, err := w.session.Client.Progress(ctx, &bursarv1.ProgressRequest{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.older = w.older || status.Code(err) == codes.Unimplemented
		return
	}
	if steps := resp.GetSteps()[w.call]; steps != w.steps {
		w.steps, w.last = steps, time.Now()
	}
}

// explainEnd returns why a call ended that err ended: the stall, where there was one.
func (w *watch) explainEnd(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stall != nil && err != nil {
		return w.stall
	}
	return err
}

// Count has the plugin count the runs that ended in a window by its second route.
func (s *Session) Count(ctx context.Context, req *bursarv1.CountRequest) (*bursarv1.CountResponse, error) {
	ctx, w, release := s.watchCall(ctx, sdk.CallCount)
	defer release()
	resp, err := s.Client.Count(ctx, req)
	if err != nil {
		return nil, w.explainEnd(Said(err))
	}
	return resp, nil
}
