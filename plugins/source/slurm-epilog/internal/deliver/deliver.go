// Package deliver hands events over to the plugin: over the unix socket on the agent's
// machine, over TCP with mutual TLS from others.
package deliver

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/local"
)

// Target is where the plugin listens: at Address where that is set, at Socket
// otherwise.
type Target struct {
	Socket string

	Address string // host:port
	Agent   string // whose certificate the other end must have; "": any agent's
	Files   identity.Files
}

// String names the target in messages.
func (t *Target) String() string {
	if t.Address != "" {
		return t.Address
	}
	return t.Socket
}

// ErrRefused is wrapped by the error of an event that the plugin did not take.
var ErrRefused = errors.New("not taken")

// Conn is a connection to the plugin. It is for one goroutine.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
}

// Dial connects. The connection ends at the deadline of ctx.
func Dial(ctx context.Context, t *Target) (*Conn, error) {
	conn, err := dialTarget(ctx, t)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end) // a connection that is closed says so when it is used
	}
	return &Conn{conn, bufio.NewReaderSize(conn, event.MaxLine)}, nil
}

func dialTarget(ctx context.Context, t *Target) (net.Conn, error) {
	if t.Address == "" {
		return local.Dial(ctx, t.Socket)
	}
	keys, err := identity.Load(t.Files)
	if err != nil {
		return nil, err
	}
	d := tls.Dialer{Config: keys.Client(identity.Agent, t.Agent)}
	return d.DialContext(ctx, "tcp", t.Address)
}

// Close ends the connection.
func (l *Conn) Close() error { return l.conn.Close() }

// Send hands an event over and returns nil when the plugin has it on disk. An error
// that wraps ErrRefused leaves the connection good.
func (l *Conn) Send(e event.Event) error {
	line, err := e.Line()
	if err != nil {
		return err
	}
	a, err := l.roundTrip(line)
	switch {
	case err != nil:
		return err
	case a.Error != "":
		return fmt.Errorf("%w: %s", ErrRefused, a.Error)
	case a.ID != e.ID:
		return fmt.Errorf("the answer is to the event %.40q instead of %s", a.ID, e.ID)
	}
	return nil
}

// Ping asks whether the plugin listens, and lets this process in.
func (l *Conn) Ping() error {
	a, err := l.roundTrip([]byte("\n"))
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return err
}

func (l *Conn) roundTrip(line []byte) (event.Answer, error) {
	if _, err := l.conn.Write(line); err != nil {
		return event.Answer{}, err
	}
	text, err := l.in.ReadSlice('\n')
	if err != nil {
		return event.Answer{}, fmt.Errorf("no answer: %w", err)
	}
	return event.ParseAnswer(text)
}
