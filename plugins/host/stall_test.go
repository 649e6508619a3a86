package host

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// act is what a plugin does after a pause.
type act struct {
	pause time.Duration
	what  string // batch, empty, step, end
}

// actor is a plugin that does one thing after the other, and then hangs.
type actor struct {
	bursarv1.SourcePluginClient

	acts  []act
	older bool // it does not know Progress
	deaf  bool // it does not answer Progress
	steps *atomic.Uint64
	hung  error
	dead  chan struct{}
}

func (a *actor) Ping(context.Context) error { return nil }
func (a *actor) Done() <-chan struct{}      { return a.dead }
func (a *actor) Err() error                 { return a.hung }
func (a *actor) Close() error               { return nil }
func (a *actor) Hang(why error) {
	a.hung = why
	close(a.dead)
}

func (a *actor) Progress(ctx context.Context, _ *bursarv1.ProgressRequest, _ ...grpc.CallOption) (*bursarv1.ProgressResponse, error) {
	switch {
	case a.older:
		return nil, status.Error(codes.Unimplemented, "what?")
	case a.deaf:
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return &bursarv1.ProgressResponse{Steps: map[string]uint64{"Collect": a.steps.Load(), "Count": a.steps.Load()}}, nil
}

// next does the next thing.
func (a *actor) next(ctx context.Context) (*bursarv1.CollectResponse, error) {
	for {
		if len(a.acts) == 0 {
			select {
			case <-a.dead:
				return nil, status.Error(codes.Unavailable, "the connection is gone")
			case <-ctx.Done():
				return nil, status.FromContextError(ctx.Err()).Err()
			}
		}
		do := a.acts[0]
		select {
		case <-a.dead:
			return nil, status.Error(codes.Unavailable, "the connection is gone")
		case <-time.After(do.pause):
		}
		a.acts = a.acts[1:]
		switch do.what {
		case "batch":
			return &bursarv1.CollectResponse{Checkpoint: []byte("x")}, nil
		case "empty":
			return &bursarv1.CollectResponse{}, nil
		case "step":
			a.steps.Add(1)
		case "end":
			return nil, io.EOF
		}
	}
}

func (a *actor) Count(ctx context.Context, _ *bursarv1.CountRequest, _ ...grpc.CallOption) (*bursarv1.CountResponse, error) {
	if _, err := a.next(ctx); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &bursarv1.CountResponse{Runs: 7}, nil
}

func (a *actor) Collect(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[bursarv1.CollectRequest, bursarv1.CollectResponse], error) {
	return &playing{actor: a, ctx: ctx}, nil
}

type playing struct {
	grpc.ClientStream
	*actor

	ctx context.Context //nolint:containedctx // of the stream
}

func (p *playing) Recv() (*bursarv1.CollectResponse, error) { return p.next(p.ctx) }
func (p *playing) Send(*bursarv1.CollectRequest) error      { return nil }

// play runs a call of a plugin and returns how it ended and when.
func play(t *testing.T, a actor, push bool, stall, take time.Duration, call string) (after time.Duration, err error, hung error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a.dead, a.steps = make(chan struct{}), new(atomic.Uint64)
		s := &Session{Plugin: &a, Client: &a, Description: &bursarv1.DescribeResponse{Push: push}, stall: stall}
		began := time.Now()
		if call == "Count" {
			_, err = s.Count(t.Context(), &bursarv1.CountRequest{})
		} else {
			err = s.Stream(t.Context(), &bursarv1.CollectRequest_Start{}, func(*bursarv1.CollectResponse) error {
				time.Sleep(take)
				return nil
			})
		}
		after, hung = time.Since(began), a.hung
	})
	return after, err, hung
}

func repeat(n int, a act) (out []act) {
	for range n {
		out = append(out, a)
	}
	return out
}

func TestStream_NoProgressEndsPlugin(t *testing.T) {
	end := act{time.Second, "end"}
	for name, c := range map[string]struct {
		actor actor
		push  bool
		stall time.Duration
		take  time.Duration
		call  string
		hangs bool
		least time.Duration
		err   error
	}{
		"it does nothing":                        {hangs: true, least: 2 * time.Minute},
		"it does nothing, pushed":                {push: true, hangs: true, least: 2 * time.Minute},
		"it does not even answer Progress":       {actor: actor{deaf: true}, hangs: true, least: 2 * time.Minute},
		"it hangs after batches":                 {actor: actor{acts: repeat(9, act{time.Minute, "batch"})}, hangs: true, least: 11 * time.Minute},
		"it hangs after steps":                   {actor: actor{acts: repeat(9, act{time.Minute, "step"})}, hangs: true, least: 11 * time.Minute},
		"it sends nothing for ever":              {actor: actor{acts: repeat(1e5, act{time.Second, "empty"})}, hangs: true, least: 2 * time.Minute},
		"it takes its time, with steps":          {actor: actor{acts: append(repeat(500, act{100 * time.Second, "step"}), end)}},
		"it takes its time, with batches":        {actor: actor{acts: append(repeat(500, act{100 * time.Second, "batch"}), end)}},
		"the daemon takes its time":              {actor: actor{acts: append(repeat(9, act{time.Second, "batch"}), end)}, take: 5 * time.Hour},
		"an older one takes most of an hour":     {actor: actor{older: true, acts: []act{{59 * time.Minute, "batch"}, {59 * time.Minute, "end"}}}},
		"an older one does nothing":              {actor: actor{older: true}, hangs: true, least: time.Hour},
		"an older one that is pushed to waits":   {actor: actor{older: true, acts: []act{{1000 * time.Hour, "batch"}, end}}, push: true, err: ErrEnded},
		"an older one, configured":               {actor: actor{older: true}, stall: 3 * time.Second, hangs: true, least: 3 * time.Second},
		"an older one, pushed to and configured": {actor: actor{older: true}, push: true, stall: 3 * time.Second, hangs: true, least: 3 * time.Second},
		"a pushed one ends without a word":       {push: true, actor: actor{acts: []act{end}}, err: ErrEnded},
		"Count does nothing":                     {call: "Count", hangs: true, least: 2 * time.Minute},
		"an older Count, pushed to":              {call: "Count", push: true, actor: actor{older: true}, hangs: true, least: time.Hour},
		"Count takes its time":                   {call: "Count", actor: actor{acts: append(repeat(500, act{100 * time.Second, "step"}), end)}},
	} {
		t.Run(name, func(t *testing.T) {
			after, err, hung := play(t, c.actor, c.push, c.stall, c.take, c.call)
			_, stalled := errors.AsType[*Stall](err)
			if stalled != c.hangs || (hung != nil) != c.hangs || !c.hangs && !errors.Is(err, c.err) {
				t.Errorf("after %s: %v; the plugin was ended for: %v", after, err, hung)
			}
			if c.hangs && (after < c.least || after > c.least+40*time.Second) {
				t.Errorf("it was noticed after %s, and not after %s", after, c.least)
			}
		})
	}
}

// A plugin is ended where no sign of it came for the limit, and never before.
func TestStream_AnyOrderOfSignsAndSilence(t *testing.T) {
	const limit, slack = 8 * time.Second, 4 * time.Second // at least two looks
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var acts []act
		hangs, silent := false, time.Duration(0)
		for range r.IntN(30) {
			a := act{time.Duration(r.Int64N(int64(limit - slack))), []string{"batch", "step", "empty"}[r.IntN(3)]}
			if r.IntN(20) == 0 {
				a.pause += 2 * limit
			}
			silent += a.pause
			if silent > limit-slack && silent < limit+slack { // a matter of the moment
				a.what, silent = "batch", silent-a.pause
				a.pause = 0
			}
			hangs = hangs || silent >= limit+slack
			if a.what != "empty" {
				silent = 0
			}
			acts = append(acts, a)
		}
		acts = append(acts, act{0, "end"})
		_, err, hung := play(t, actor{acts: acts}, false, limit, 0, "")
		if _, stalled := errors.AsType[*Stall](err); stalled != hangs || (hung != nil) != hangs {
			t.Fatalf("seed %d: %v; want it ended: %v", seed, err, hangs)
		}
	}
}
