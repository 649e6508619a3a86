package intake

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
)

// Intake serves listeners. Make it with New.
type Intake struct {
	take func(event.Event) error
	log  *slog.Logger

	room    chan struct{} // an element for each connection
	serving sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]bool
	conns     map[net.Conn]bool
	said      map[string]time.Time // refusals that were logged
}

const (
	maxConns = 512              // at once
	idle     = 10 * time.Second // without a line
	pause    = 50 * time.Millisecond
)

// New makes an intake that hands each event to take, which returns when it is on
// disk.
func New(take func(event.Event) error, log *slog.Logger) *Intake {
	return &Intake{take: take, log: log, room: make(chan struct{}, maxConns),
		listeners: map[net.Listener]bool{}, conns: map[net.Conn]bool{}, said: map[string]time.Time{}}
}

// Admitter lets connections in, or says why not.
type Admitter interface {
	// Admit returns the connection to speak on, which may be another one. It ends
	// before the deadline of conn.
	Admit(ctx context.Context, conn net.Conn) (net.Conn, error)
}

// Serve serves a listener, which it closes with itself, until Close.
func (in *Intake) Serve(l net.Listener, door Admitter) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		l.Close()
		return
	}
	in.listeners[l] = true
	in.serving.Go(func() { in.acceptConns(l, door) })
}

// Close ends all connections and waits until they have ended. Those who were not
// answered try again.
func (in *Intake) Close() {
	in.mu.Lock()
	in.closed = true
	for l := range in.listeners {
		l.Close()
	}
	for c := range in.conns {
		c.Close()
	}
	in.mu.Unlock()
	in.serving.Wait()
}

func (in *Intake) acceptConns(l net.Listener, door Admitter) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			in.logRefused("accept", err)
			time.Sleep(pause) // no more file descriptors, most likely
			continue
		}
		select {
		case in.room <- struct{}{}:
		default:
			conn.Close() // who knocks keeps the event and comes again
			continue
		}
		if !in.addConn(conn) {
			<-in.room
			return
		}
		in.serving.Go(func() {
			defer func() { <-in.room }()
			defer in.removeConn(conn)
			in.serveConn(conn, door)
		})
	}
}

func (in *Intake) addConn(conn net.Conn) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		conn.Close()
		return false
	}
	in.conns[conn] = true
	return true
}

func (in *Intake) removeConn(conn net.Conn) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.conns, conn)
	conn.Close()
}

// serveConn admits one connection and answers its lines.
func (in *Intake) serveConn(raw net.Conn, door Admitter) {
	ctx, cancel := context.WithTimeout(context.Background(), idle)
	defer cancel()
	_ = raw.SetDeadline(time.Now().Add(idle)) // a connection that is closed says so when it is read
	conn, err := door.Admit(ctx, raw)
	if err != nil {
		in.logRefused(remoteHost(raw), err)
		return
	}
	lines := bufio.NewReaderSize(conn, event.MaxLine)
	for {
		_ = raw.SetDeadline(time.Now().Add(idle))
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			in.logRefused(remoteHost(raw), errors.New("a line is too long"))
			writeAnswer(conn, event.Answer{Error: "the line is too long"})
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && len(line) > 0 {
				in.logRefused(remoteHost(raw), err)
			}
			return
		}
		_ = raw.SetDeadline(time.Time{}) // the disk may take its time
		if !writeAnswer(conn, in.handleLine(remoteHost(raw), bytes.TrimSpace(line))) {
			return
		}
	}
}

// handleLine takes one line.
func (in *Intake) handleLine(from string, line []byte) event.Answer {
	if len(line) == 0 {
		return event.Answer{}
	}
	e, err := event.Parse(line)
	if err != nil {
		in.logRefused(from, err)
		return event.Answer{Error: err.Error()}
	}
	if err := in.take(e); err != nil {
		in.logRefused("journal", err)
		return event.Answer{ID: e.ID, Error: err.Error()}
	}
	return event.Answer{ID: e.ID}
}

func writeAnswer(conn net.Conn, a event.Answer) bool {
	line, err := a.Line()
	if err != nil {
		return false
	}
	_ = conn.SetWriteDeadline(time.Now().Add(idle))
	_, err = conn.Write(line)
	return err == nil
}

// remoteHost is who is at the other end, without a port, which differs each time.
func remoteHost(conn net.Conn) string {
	h, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return "this machine"
	}
	return h
}

const (
	sayEvery = time.Minute
	maxSaid  = 10_000
)

// logRefused logs why something was not taken, the same from the same at most once a
// minute.
func (in *Intake) logRefused(from string, err error) {
	if in.shouldLog(from+" "+err.Error(), time.Now()) {
		in.log.Warn("an epilog was not taken", "from", from, "error", err)
	}
}

func (in *Intake) shouldLog(what string, now time.Time) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.said) > maxSaid {
		clear(in.said)
	}
	if at, said := in.said[what]; said && now.Sub(at) < sayEvery {
		return false
	}
	in.said[what] = now
	return true
}
