package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// fakePlugin lives until end is closed or it is closed.
type fakePlugin struct {
	done   chan struct{}
	err    error
	hangs  bool
	closed bool
}

func newFake() *fakePlugin { return &fakePlugin{done: make(chan struct{})} }

func (f *fakePlugin) Ping(ctx context.Context) error {
	if f.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (f *fakePlugin) Done() <-chan struct{} { return f.done }
func (f *fakePlugin) Err() error            { return f.err }
func (f *fakePlugin) Hang(why error)        { f.err = why; close(f.done) }
func (f *fakePlugin) Close() error          { f.closed = true; return nil }

func (f *fakePlugin) crash() {
	f.err = errors.New("crashed")
	close(f.done)
}

// supervised runs a supervisor over launch in a bubble of its own time.
func supervised(t *testing.T, launch func(int) (*fakePlugin, error), test func(t *testing.T, s *Supervisor[*fakePlugin])) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := Supervise(Options[*fakePlugin]{Launch: func(context.Context) (*fakePlugin, error) {
			n++
			return launch(n)
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		test(t, s)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := s.Plugin(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestSupervisorStartsAgainWhatCrashes(t *testing.T) {
	supervised(t, func(int) (*fakePlugin, error) { return newFake(), nil }, func(t *testing.T, s *Supervisor[*fakePlugin]) {
		first, err := s.Plugin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first.crash()
		synctest.Wait()
		if st := s.Status(); st.State != Waiting || st.Failures != 1 || st.Err == nil {
			t.Errorf("status: %+v", st)
		}
		second, err := s.Plugin(t.Context())
		if err != nil || second == first || !first.closed {
			t.Errorf("second: %v, first closed: %v", err, first.closed)
		}
	})
}

func TestSupervisorBacksOffAndRecovers(t *testing.T) {
	supervised(t, func(int) (*fakePlugin, error) { return nil, errors.New("no binary") }, func(t *testing.T, s *Supervisor[*fakePlugin]) {
		time.Sleep(10 * time.Minute)
		n := s.Status().Failures
		if n < 12 || n > 40 {
			t.Errorf("%d starts in ten minutes", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Plugin(ctx); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "context deadline exceeded\nno binary" {
			t.Errorf("error: %v", err)
		}
	})
}

func TestSupervisorKillsWhatHangs(t *testing.T) {
	var hung *fakePlugin // its channel belongs into the bubble
	launch := func(n int) (*fakePlugin, error) {
		p := newFake()
		if n == 1 {
			hung, p.hangs = p, true
		}
		return p, nil
	}
	supervised(t, launch, func(t *testing.T, s *Supervisor[*fakePlugin]) {
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := s.Status(); !hung.closed || st.State != Running || st.Starts != 2 {
			t.Errorf("closed %v, status %+v", hung.closed, st)
		}
	})
}

func TestBackoffBeginsAgainAfterAHealthyTime(t *testing.T) {
	launch := func(int) (*fakePlugin, error) { return newFake(), nil }
	crash := func(t *testing.T, s *Supervisor[*fakePlugin]) {
		p, err := s.Plugin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.crash()
		synctest.Wait()
	}
	supervised(t, launch, func(t *testing.T, s *Supervisor[*fakePlugin]) {
		for range 10 {
			crash(t, s)
		}
		if wait := time.Until(s.Status().Next); wait < 20*time.Second {
			t.Errorf("waits %s after ten crashes", wait)
		}
		time.Sleep(3 * time.Minute)
		crash(t, s)
		if wait := time.Until(s.Status().Next); wait > time.Second {
			t.Errorf("waits %s after a healthy time", wait)
		}
	})
}

func TestWantedRestartIsAtOnceAndNoFailure(t *testing.T) {
	var all []*fakePlugin
	launch := func(int) (*fakePlugin, error) {
		all = append(all, newFake())
		return all[len(all)-1], nil
	}
	supervised(t, launch, func(t *testing.T, s *Supervisor[*fakePlugin]) {
		synctest.Wait()
		s.Restart()
		synctest.Wait()
		if st := s.Status(); len(all) != 2 || !all[0].closed || st.State != Running || st.Failures != 0 {
			t.Errorf("%d starts, status %+v", len(all), st)
		}
	})
}
