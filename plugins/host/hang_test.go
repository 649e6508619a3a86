package host

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/proto/logtest"
)

func TestHang_LogsGoroutinesAndEndsPlugin(t *testing.T) {
	t.Parallel()
	p, log := launchLogged(t, "hang")
	ended := make(chan error, 1)
	go func() { ended <- collect(t.Context(), p) }()
	log.Await(t, "it hangs now")
	p.Hang(&Stall{Call: "Collect", Silent: 2 * time.Minute})
	if err := <-ended; err == nil {
		t.Error("the call went on")
	}
	const want = "source plugin hostile: the plugin hangs: Collect made no progress for 2m0s"
	if err := p.Err(); err == nil || err.Error() != want || !errors.Is(err, ErrCrash) {
		t.Errorf("end: %v", err)
	}
	if text := log.String(); !strings.Contains(text, "main.(*source).Collect") || !strings.Contains(text, "level=WARN") {
		t.Errorf("the log lacks the goroutines:\n%s", text)
	}
	p.Hang(errors.New("again")) // it has ended: a no-op
	if err := p.Err(); err.Error() != want {
		t.Errorf("end: %v", err)
	}
}

// tardy is a context whose deadline has passed and whose timer has not fired.
type tardy struct{ context.Context }

// Deadline implements context.Context.
func (tardy) Deadline() (time.Time, bool) { return time.Now(), true }

// The plugin ends a call at the deadline by a timer of its own, which may be first.
func TestBlame_PluginEndsCallBeforeOurTimer_Hangs(t *testing.T) {
	t.Parallel()
	p, log := launchLogged(t, "hang")
	go collect(t.Context(), p)
	log.Await(t, "it hangs now")
	err := p.Blame(tardy{t.Context()}, status.Error(codes.DeadlineExceeded, "stream terminated by RST_STREAM"))
	if !errors.Is(err, ErrCrash) {
		t.Errorf("error: %v", err)
	}
	if text := log.String(); !strings.Contains(text, "main.(*source).Collect") {
		t.Errorf("the log lacks the goroutines:\n%s", text)
	}
}

func TestLate_AsksClockAndContext(t *testing.T) {
	canceled, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	passed, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		late bool
	}{
		{"no deadline", t.Context(), false},
		{"canceled before its deadline", canceled, false},
		{"ended by its deadline", passed, true},
		{"its timer has not fired", tardy{t.Context()}, true},
	} {
		if got := Late(c.ctx); got != c.late {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// slowWriter takes its time for each line, as a busy disk does.
type slowWriter struct{ logtest.Log }

// Write implements io.Writer.
func (w *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	return w.Log.Write(p)
}

func TestProcess_SlowLog_HasLastLinesOfOutput(t *testing.T) {
	t.Parallel()
	log := new(slowWriter)
	spec := hostile(t, "last-words")
	spec.Logger = slog.New(slog.NewTextHandler(log, nil))
	p := launch(t, spec)
	p.child.log.dumpNext() // or most of the lines are dropped
	_ = collect(t.Context(), p)
	<-p.Done()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "line 300") {
		t.Errorf("end: %v", err)
	}
	if text := log.String(); !strings.Contains(text, "line 300") {
		t.Error("the log lacks the last line")
	}
}

func TestHang_StoppedProcessIsKilled(t *testing.T) {
	t.Parallel()
	p, _ := launchLogged(t, "hang")
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.Hang(&Stall{Call: "ping", Silent: time.Second})
	select {
	case <-p.Done():
	default:
		t.Error("it has not ended")
	}
}

func TestSupervisor_PluginThatHangsIsRestartedWithBackoff(t *testing.T) {
	supervised(t, func(int) (*fakePlugin, error) { return newFake(), nil }, func(t *testing.T, s *Supervisor[*fakePlugin]) {
		var last time.Duration
		for n := 1; n <= 8; n++ {
			p, err := s.Plugin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			p.Hang(&Stall{Call: "Collect", Silent: 2 * time.Minute})
			synctest.Wait()
			began := time.Now()
			if _, err := s.Plugin(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st := s.Status(); st.Hangs != n || st.Failures != n {
				t.Fatalf("after %d hangs: %+v", n, st)
			}
			last = time.Since(began)
		}
		if last < 30*time.Second { // of at most a minute, shortened by up to a half
			t.Errorf("the last pause was %s", last)
		}
	})
}
