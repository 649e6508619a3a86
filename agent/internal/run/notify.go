package run

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"
)

// Notifier tells systemd how the daemon is doing; without systemd it tells
// nobody.
type Notifier struct {
	socket string
	every  time.Duration // of a sign of life; 0: none is wanted
}

// NewNotifier takes the socket and the watchdog's time from the environment.
func NewNotifier(getenv func(string) string) Notifier {
	n := Notifier{socket: getenv("NOTIFY_SOCKET")}
	if pid := getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
			n.every = time.Duration(usec) * time.Microsecond / 3
		}
	}
	return n
}

// Say sends a state, such as READY=1. Nobody listening is no error.
func (n Notifier) Say(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(state)) // nobody listening is no error
	_ = conn.Close()                 // as above
}

// Watch gives signs of life until ctx ends.
func (n Notifier) Watch(ctx context.Context) {
	if n.socket == "" || n.every <= 0 {
		return
	}
	tick := time.NewTicker(n.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.Say("WATCHDOG=1")
		}
	}
}
