package systemd_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/systemd"
)

// system is what a daemon finds of systemd: a socket and an environment.
type system struct {
	t    *testing.T
	conn *net.UnixConn
	env  map[string]string
}

func start(t *testing.T, env ...string) *system {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // a short name: that of a socket is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &system{t, conn, map[string]string{"NOTIFY_SOCKET": path}}
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		s.env[k] = v
	}
	return s
}

func (s *system) getenv(name string) string { return s.env[name] }

// next is the next message.
func (s *system) next() string {
	s.t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	text := make([]byte, 4096)
	n, err := s.conn.Read(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text[:n])
}

func TestEveryStateIsAMessage(t *testing.T) {
	s := start(t)
	n := systemd.FromEnv(s.getenv)
	n.Ready()
	n.Status("two\nlines")
	n.Stopping()
	for _, want := range []string{"READY=1", "STATUS=two; lines", "STOPPING=1"} {
		if got := s.next(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	n.Reloading()
	state, stamp, _ := strings.Cut(s.next(), "\n")
	usec, err := strconv.ParseInt(strings.TrimPrefix(stamp, "MONOTONIC_USEC="), 10, 64)
	if state != "RELOADING=1" || err != nil || usec <= 0 {
		t.Errorf("got %q and %q: %v", state, stamp, err)
	}
}

func TestADaemonThatIsNotAliveGivesNoSignOfLife(t *testing.T) {
	s := start(t, "WATCHDOG_USEC=3000")
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		systemd.FromEnv(s.getenv).Watch(ctx, func(context.Context) error {
			if calls++; calls == 2 {
				return errors.New("the log hangs")
			}
			return nil
		})
	}()
	for _, want := range []string{"WATCHDOG=1", "STATUS=no sign of life: the log hangs", "STATUS=", "WATCHDOG=1"} {
		if got := s.next(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	cancel()
	<-done
}

func TestNobodyIsToldWhereNobodyAsks(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"no systemd":                nil,
		"no watchdog":               {"NOTIFY_SOCKET": "/nowhere/notify"},
		"a watchdog of another":     {"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},
		"a watchdog of nonsense":    {"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_USEC": "soon"},
		"a watchdog without socket": {"WATCHDOG_USEC": "1000"},
	} {
		n := systemd.FromEnv(func(key string) string { return env[key] })
		n.Ready()
		n.Watch(t.Context(), func(context.Context) error {
			t.Errorf("%s: somebody asks", name)
			return nil
		})
	}
}
