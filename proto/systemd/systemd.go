// Package systemd tells systemd how a daemon is doing (sd_notify(3)), and has
// the exit codes that a unit acts on. Without systemd it tells no one, and that
// is no error.
//
// The protocol is one datagram with a few lines, so there is no module for it.
package systemd

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The exit codes after which a restart mends nothing: the units name them in
// RestartPreventExitStatus.
const (
	// ExitFenced is of a node that must not go on, as its state is not that of
	// the others, or is of a newer version than the program. The log says what
	// to do.
	ExitFenced = 77
	// ExitConfig is of a configuration that is refused (EX_CONFIG of sysexits.h).
	ExitConfig = 78
)

// Notifier tells systemd. The zero value tells no one. It may be used by several
// goroutines.
type Notifier struct {
	socket string
	every  time.Duration // of a sign of life; 0: none is wanted
}

// FromEnv takes the socket and the watchdog's time from the environment.
func FromEnv(getenv func(string) string) Notifier {
	n := Notifier{socket: getenv("NOTIFY_SOCKET")}
	if pid := getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
			n.every = time.Duration(usec) * time.Microsecond / 3
		}
	}
	return n
}

// Ready says that the daemon serves, also after a reload.
func (n Notifier) Ready() { n.sendLines("READY=1") }

// Reloading says that the configuration is read again; Ready ends it.
func (n Notifier) Reloading() {
	now := unix.Timespec{}
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		n.sendLines("RELOADING=1")
		return
	}
	n.sendLines("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/int64(time.Microsecond)))
}

// Stopping says that the daemon ends.
func (n Notifier) Stopping() { n.sendLines("STOPPING=1") }

// Status is a line for `systemctl status`.
func (n Notifier) Status(text string) { n.sendLines("STATUS=" + strings.ReplaceAll(text, "\n", "; ")) }

// Watch gives signs of life until ctx ends, three in the time after which systemd
// takes the daemon for dead. It asks alive before each: after an error, which
// systemd shows, there is no sign, and none while alive does not return. So a
// daemon that hangs is ended and started again.
func (n Notifier) Watch(ctx context.Context, alive func(context.Context) error) {
	if n.socket == "" || n.every <= 0 {
		return
	}
	tick := time.NewTicker(n.every)
	defer tick.Stop()
	ill := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := alive(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.Status("no sign of life: " + err.Error())
			ill = true
			continue
		case ill:
			n.Status("")
			ill = false
		}
		n.sendLines("WATCHDOG=1")
	}
}

// sendLines sends assignments. A missing listener is ignored.
func (n Notifier) sendLines(lines ...string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(strings.Join(lines, "\n"))) // a missing listener is ignored
	_ = conn.Close()                                     // as above
}
