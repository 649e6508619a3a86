package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	pki "github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// newTestTransport listens on loopback with the certificate of that name.
func newTestTransport(t *testing.T, keys *pki.Keys, id string, log *slog.Logger) *Transport {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := NewTransport(TransportConfig{
		Listener: l, Server: keys.Server(pki.Aggregator), Client: keys.Client(pki.Aggregator, ""), ID: id, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// record is a log that a test reads.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (r *record) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

func TestOnePortCarriesRaftAndThePeerProtocolAndKeepsThemApart(t *testing.T) {
	t.Parallel()
	ca := identitytest.New(t)
	a := newTestTransport(t, ca.Keys(pki.Aggregator, "agg1"), "a", nil)
	b := newTestTransport(t, ca.Keys(pki.Aggregator, "agg2"), "b", nil)

	peer, err := a.DialPeer(t.Context(), Server{Addr: b.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	got, err := b.Peers().Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if who := got.(*Conn).Peer; who.Name != "agg1" || who.Role != pki.Aggregator {
		t.Fatal(who)
	}

	for id, far := range map[string]*Transport{"b": b, "a": a} { // the other, and itself
		if _, err := a.Raft().Dial("", 0); err == nil {
			t.Fatal("no id, no error")
		}
		out, err := a.Raft().Dial(joinIDAndAddress(raft.ServerID(id), raft.ServerAddress(far.Addr())), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		in, err := far.Raft().Accept()
		if err != nil {
			t.Fatal(err)
		}
		go out.Write([]byte("hello"))
		text := make([]byte, 5)
		if _, err := io.ReadFull(in, text); err != nil || string(text) != "hello" {
			t.Fatal(string(text), err)
		}
		in.Close()
		out.Close()
	}
}

func TestAConnectionForAnotherNodeIsRefusedAndBothAreNamed(t *testing.T) {
	t.Parallel()
	ca := identitytest.New(t)
	var told record
	a := newTestTransport(t, ca.Keys(pki.Aggregator, "agg1"), "node-a", nil)
	b := newTestTransport(t, ca.Keys(pki.Aggregator, "agg2"), "node-b", told.logger())
	_, err := a.Raft().Dial(joinIDAndAddress("node-c", raft.ServerAddress(b.Addr())), 10*time.Second)
	if !errors.Is(err, ErrOtherNode) || !strings.Contains(err.Error(), "node-c") || !strings.Contains(err.Error(), "node-b") {
		t.Fatal(err)
	}
	eventually(t, "it is logged", func() bool { return strings.Contains(told.String(), "node-c") })
}

func TestWhoIsNoAggregatorIsRefusedByNameAndToldOnceAMinute(t *testing.T) {
	t.Parallel()
	ca, others := identitytest.New(t), identitytest.New(t)
	var told record
	b := newTestTransport(t, ca.Keys(pki.Aggregator, "agg2"), "b", told.logger())
	agent := ca.Keys(pki.Agent, "head1")
	for range 3 {
		if err := knock(b.Addr(), agent.Client(pki.Aggregator, "")); err == nil {
			t.Fatal("an agent was let in")
		}
	}
	stranger := others.Keys(pki.Aggregator, "agg1").Client(pki.Aggregator, "")
	stranger.VerifyConnection = func(tls.ConnectionState) error { return nil }
	if err := knock(b.Addr(), stranger); err == nil {
		t.Fatal("a stranger was let in")
	}
	old := ca.Keys(pki.Aggregator, "agg1").Client(pki.Aggregator, "")
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if err := knock(b.Addr(), old); err == nil {
		t.Fatal("TLS 1.2 was let in")
	}
	eventually(t, "it is logged", func() bool { return strings.Contains(told.String(), "agent/head1") })
	if n := strings.Count(told.String(), "was refused"); n != 1 {
		t.Fatalf("told %d times: %s", n, &told)
	}
}

// knock connects for raft and waits for the other end to close.
func knock(addr string, conf *tls.Config) error {
	conf.NextProtos = []string{raftProtocol}
	conf.ServerName = "127.0.0.1"
	c, err := tls.Dial("tcp", addr, conf)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(greeting{use: forRaft, meant: "b", from: "x"}.encodeGreeting()); err != nil {
		return err
	}
	_, err = readAnswer(c)
	return err
}

func TestADialledNodeMustBeAnAggregator(t *testing.T) {
	t.Parallel()
	ca := identitytest.New(t)
	a := newTestTransport(t, ca.Keys(pki.Aggregator, "agg1"), "a", nil)
	agent := ca.Keys(pki.Agent, "head1").Server(pki.Aggregator)
	agent.GetConfigForClient = nil
	agent.NextProtos = []string{raftProtocol, peerProtocol}
	l, err := tls.Listen("tcp", "127.0.0.1:0", agent)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	if _, err := a.DialPeer(t.Context(), Server{Addr: l.Addr().String()}); !errors.Is(err, pki.ErrIdentity) || !strings.Contains(err.Error(), "agent/head1") {
		t.Fatal(err)
	}
}

func TestSilentCallersKeepNoPeerOut(t *testing.T) {
	t.Parallel()
	d := newHandshakeLimiter()
	stranger := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}
	var leave []func()
	for range 2 * maxFromHost {
		if l, ok := d.enterHandshake(stranger); ok {
			leave = append(leave, l)
		}
	}
	if len(leave) != maxFromHost {
		t.Fatalf("%d of one host", len(leave))
	}
	if _, ok := d.enterHandshake(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 1}); !ok {
		t.Fatal("a peer is kept out")
	}
	leave[0]()
	if _, ok := d.enterHandshake(stranger); !ok {
		t.Fatal("nobody comes in again")
	}
}

func TestATransportThatTrustsEverybodyIsRefused(t *testing.T) {
	t.Parallel()
	keys := identitytest.New(t).Keys(pki.Aggregator, "agg1")
	good := TransportConfig{Server: keys.Server(pki.Aggregator), Client: keys.Client(pki.Aggregator, ""), ID: "a"}
	for what, spoil := range map[string]func(*TransportConfig){
		"no listener":       func(c *TransportConfig) { c.Listener = nil },
		"no server":         func(c *TransportConfig) { c.Server = nil },
		"open server":       func(c *TransportConfig) { c.Server = &tls.Config{} },
		"no client":         func(c *TransportConfig) { c.Client = nil },
		"trusting client":   func(c *TransportConfig) { c.Client = &tls.Config{InsecureSkipVerify: true} },
		"no id":             func(c *TransportConfig) { c.ID = "" },
		"an id of two ends": func(c *TransportConfig) { c.ID = "a@b" },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		bad := good
		bad.Listener = l
		spoil(&bad)
		if tr, err := NewTransport(bad); err == nil {
			tr.Close()
			t.Error(what)
		}
		l.Close()
	}
}

func TestAClosedTransportEndsWhatItCarried(t *testing.T) {
	t.Parallel()
	ca := identitytest.New(t)
	a := newTestTransport(t, ca.Keys(pki.Aggregator, "agg1"), "a", nil)
	b := newTestTransport(t, ca.Keys(pki.Aggregator, "agg2"), "b", nil)
	c, err := a.DialPeer(context.Background(), Server{Addr: b.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Peers().Accept(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("the connection lives on")
	}
	c.Close()
	if _, err := b.Peers().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

func FuzzGreeting(f *testing.F) {
	f.Add(greeting{use: forRaft, meant: "a", from: "b"}.encodeGreeting())
	f.Add(answer{what: answerOther, id: "c"}.encodeAnswer())
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		if g, err := readGreeting(r); err == nil && !bytes.Equal(g.encodeGreeting(), b[:len(b)-r.Len()]) {
			t.Errorf("%q became %q", b, g.encodeGreeting())
		}
		r = bytes.NewReader(b)
		if a, err := readAnswer(r); err == nil && !bytes.Equal(a.encodeAnswer(), b[:len(b)-r.Len()]) {
			t.Errorf("%q became %q", b, a.encodeAnswer())
		}
	})
}
