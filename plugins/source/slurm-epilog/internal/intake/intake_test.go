package intake_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/deliver"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/intake"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// desk is an intake whose events are kept in memory.
type desk struct {
	t   *testing.T
	in  *intake.Intake
	log syncBuffer

	mu     sync.Mutex
	events []event.Event
	err    error // of taking
}

type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t}
	d.in = intake.New(d.take, slog.New(slog.NewTextHandler(&d.log, nil)))
	t.Cleanup(d.in.Close)
	return d
}

func (d *desk) take(e event.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.events = append(d.events, e)
	}
	return d.err
}

func (d *desk) taken() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.events)
}

// socket serves a unix socket for users, in a folder with a short name.
func (d *desk) socket(uids ...int) string {
	d.t.Helper()
	dir, err := os.MkdirTemp("", "intake")
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := intake.Listen(path)
	if err != nil {
		d.t.Fatal(err)
	}
	d.in.Serve(l, intake.Local{UIDs: uids})
	return path
}

func eventOf(n int) event.Event {
	return event.Event{ID: fmt.Sprintf("%032x", n), At: 1795241600000000, Job: int64(n + 1)}
}

// give hands an event over.
func give(t *testing.T, target *deliver.Target, e event.Event) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	line, err := deliver.Dial(ctx, target)
	if err != nil {
		return err
	}
	defer line.Close()
	return line.Send(e)
}

func TestAnEventIsAnsweredWhenItIsTaken(t *testing.T) {
	d := newDesk(t)
	target := &deliver.Target{Socket: d.socket(os.Geteuid())}
	if err := give(t, target, eventOf(1)); err != nil || d.taken() != 1 {
		t.Errorf("%v, %d taken", err, d.taken())
	}
	d.err = errors.New("the disk is full")
	if err := give(t, target, eventOf(2)); !errors.Is(err, deliver.ErrRefused) || !strings.Contains(err.Error(), "the disk is full") {
		t.Error(err)
	}
}

func TestOneConnectionCarriesManyEvents(t *testing.T) {
	d := newDesk(t)
	line, err := deliver.Dial(t.Context(), &deliver.Target{Socket: d.socket(os.Geteuid())})
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	for n := range 100 {
		if err := line.Send(eventOf(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := line.Ping(); err != nil || d.taken() != 100 {
		t.Errorf("%v, %d taken", err, d.taken())
	}
}

func TestAProcessOfAnotherUserIsNotHeard(t *testing.T) {
	d := newDesk(t)
	err := give(t, &deliver.Target{Socket: d.socket(os.Geteuid() + 1)}, eventOf(1))
	if err == nil || d.taken() != 0 {
		t.Errorf("%v, %d taken", err, d.taken())
	}
	d.in.Close() // it has said what it has to say
	if want := fmt.Sprintf("uid %d is not permitted", os.Geteuid()); !strings.Contains(d.log.String(), want) {
		t.Errorf("the log: %s", d.log.String())
	}
}

func TestHostileInputHurtsNobody(t *testing.T) {
	d := newDesk(t)
	path := d.socket(os.Geteuid())
	for name, input := range map[string]string{
		"nothing": "", "half a line": `{"format":1`, "no JSON": "GET / HTTP/1.1\r\n", "zeros": strings.Repeat("\x00", 100_000),
		"no end": strings.Repeat("x", 1<<20), "a later format": "{\"format\":2}\n", "no job": "{\"format\":1}\n",
	} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(input)) // it may be closed before all is written
		if unix, ok := conn.(*net.UnixConn); ok {
			_ = unix.CloseWrite()
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		in := bufio.NewReader(conn)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				break
			}
			if a, err := event.ParseAnswer(line); err != nil || a.Error == "" {
				t.Errorf("%s is answered with %q", name, line)
			}
		}
		conn.Close()
	}
	if err := give(t, &deliver.Target{Socket: path}, eventOf(1)); err != nil || d.taken() != 1 {
		t.Errorf("%v, %d taken", err, d.taken())
	}
}

func TestTooManyAtOnceAreSentAwayAndComeAgain(t *testing.T) {
	d := newDesk(t)
	path := d.socket(os.Geteuid())
	var idle []net.Conn
	for range 600 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	// Those beyond the limit are closed.
	_ = idle[599].SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := idle[599].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the last of 600 idle connections: %v", err)
	}
	for _, conn := range idle {
		conn.Close()
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if err := give(t, &deliver.Target{Socket: path}, eventOf(1)); err == nil {
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func TestOtherMachinesNeedACertificateThatIsNamed(t *testing.T) {
	ca, other := identitytest.New(t), identitytest.New(t)
	d := newDesk(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.in.Serve(l, intake.Remote{Keys: ca.Keys(identity.Agent, "head1"), Names: []string{"bursar-epilog"}})
	at := l.Addr().String()
	good := ca.Files(identity.Client, "bursar-epilog")
	for name, target := range map[string]*deliver.Target{
		"another name":      {Address: at, Files: ca.Files(identity.Client, "alice")},
		"another role":      {Address: at, Files: ca.Files(identity.Agent, "bursar-epilog")},
		"another authority": {Address: at, Files: other.Files(identity.Client, "bursar-epilog")},
		"another agent":     {Address: at, Files: good, Agent: "head2"},
		"no certificate":    {Address: at, Files: identity.Files{CA: good.CA}},
	} {
		if err := give(t, target, eventOf(1)); err == nil {
			t.Errorf("with %s an event was taken", name)
		}
	}
	if d.taken() != 0 {
		t.Fatalf("%d events were taken", d.taken())
	}
	if err := give(t, &deliver.Target{Address: at, Files: good, Agent: "head1"}, eventOf(2)); err != nil || d.taken() != 1 {
		t.Errorf("%v, %d taken", err, d.taken())
	}
}

func TestASocketThatIsInUseIsNotTakenOver(t *testing.T) {
	d := newDesk(t)
	path := d.socket(os.Geteuid())
	if l, err := intake.Listen(path); err == nil || !strings.Contains(err.Error(), "a socket of its own") {
		t.Errorf("%v, %v", l, err)
	}
	d.in.Close() // as a process that was killed, it leaves the file
	l, err := intake.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestUsersAreFoundByNameAndNumber(t *testing.T) {
	uids, unknown := intake.LookupUIDs([]string{"root", "4711", "nobody of that name"})
	if len(uids) != 2 || uids[0] != 0 || uids[1] != 4711 || len(unknown) != 1 {
		t.Error(uids, unknown)
	}
}
