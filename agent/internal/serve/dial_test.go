package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/logtest"
)

// hall is a network in memory with aggregators, at which an agent dials in.
type hall struct {
	t     *testing.T
	ca    *identitytest.CA
	at    map[string]chan net.Conn // by address
	agent *identity.Keys
	log   logtest.Log
	*Dialler
}

// newHall makes a dialler of addresses at which no one listens.
func newHall(t *testing.T, addresses ...string) *hall {
	t.Helper()
	ca := identitytest.New(t)
	h := &hall{t: t, ca: ca, at: map[string]chan net.Conn{}, agent: ca.Keys(identity.Agent, "head1")}
	h.Dialler = NewDialler(addresses, h.agent, h.log.Logger())
	for _, a := range addresses {
		h.at[a] = make(chan net.Conn)
	}
	h.dial = func(ctx context.Context, address string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case h.at[address] <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return h
}

// run runs the dialler until the test ends.
func (h *hall) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := h.Run(ctx); err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(func() { cancel(); running.Wait() })
}

// welcome accepts the next agent at an address as the aggregator with the keys.
func (h *hall) welcome(address string, keys *identity.Keys) *tls.Conn {
	h.t.Helper()
	c := tls.Server(<-h.at[address], keys.OpenToAgents())
	if err := c.HandshakeContext(h.t.Context()); err != nil {
		synctest.Wait()
		h.t.Fatal(err, h.Ways())
	}
	if p := c.ConnectionState().NegotiatedProtocol; p != identity.AgentProtocol {
		h.t.Fatalf("the protocol is %q", p)
	}
	if _, err := c.Write([]byte{identity.AgentWelcome}); err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *hall) state(i int) string {
	synctest.Wait()
	w := h.Ways()[i]
	return strings.TrimSpace(w.State + " " + w.Aggregator + w.Problem)
}

func (h *hall) want(i int, state string) {
	h.t.Helper()
	if got := h.state(i); !strings.Contains(got, state) {
		h.t.Errorf("%s is %q, want %q\n%s", h.Ways()[i].Address, got, state, &h.log)
	}
}

// gone reads until the other end has closed a connection.
func gone(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func TestDialler_FirstWord_HandsTheConnectionOutAndDialsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, "agg1:1")
		agg1 := h.ca.Keys(identity.Aggregator, "agg1")
		h.run()
		for range 3 {
			c := h.welcome("agg1:1", agg1)
			h.want(0, "connected agg1")
			go func() { _, _ = c.Write([]byte("hello")) }() // Accept tells
			got, err := h.Accept()
			if err != nil {
				t.Fatal(err)
			}
			text := make([]byte, 5)
			if _, err := io.ReadFull(got, text); err != nil || string(text) != "hello" {
				t.Errorf("%q, %v", text, err)
			}
			go gone(c)
			got.Close()
		}
		if n := strings.Count(h.log.String(), "dialled in"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &h.log)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if _, err := h.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestDialler_AggregatorThatNeverAnswers_IsShownAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, "agg1:1", "agg2:1")
		h.run()
		go gone(<-h.at["agg1:1"]) // half open: reads and never answers
		h.want(0, Dialling)
		time.Sleep(dialTime + time.Second)
		h.want(0, "not reachable it does not answer within 10s")
		h.want(1, "not reachable it does not answer within 10s")
		c := h.welcome("agg1:1", h.ca.Keys(identity.Aggregator, "agg1"))
		h.want(0, "connected agg1")
		go gone(c)
		for range 5 { // agg2 fails in the same way each time
			time.Sleep(time.Minute)
		}
		if n := strings.Count(h.log.String(), "address=agg2:1"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &h.log)
		}
	})
}

func TestDialler_WaitingConnection_IsReplacedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, "agg1:1")
		agg1 := h.ca.Keys(identity.Aggregator, "agg1")
		h.run()
		for range 3 {
			begin := time.Now()
			gone(h.welcome("agg1:1", agg1))
			if took := time.Since(begin); took < idleTime/2 || took > idleTime {
				t.Error("it waited for", took)
			}
		}
		go gone(h.welcome("agg1:1", agg1))
		h.want(0, "connected")
	})
}

func TestDialler_ConnectionsThatAreEndedAtOnce_ComeMoreAndMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, "agg1:1")
		agg1 := h.ca.Keys(identity.Aggregator, "agg1")
		h.run()
		var last time.Duration
		for range 9 {
			begin := time.Now()
			c := h.welcome("agg1:1", agg1)
			last = time.Since(begin)
			synctest.Wait()
			c.Close()
			h.want(0, "another agent with the same name")
			if name := h.Ways()[0].Aggregator; name != "agg1" {
				t.Errorf("ended by %q", name)
			}
		}
		if last < maxPause/2 || last > maxPause {
			t.Error("the last pause was", last)
		}
	})
}

func TestDialler_TwoAddressesOfOneAggregator_OneIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, "agg1:1", "alias:1")
		agg1 := h.ca.Keys(identity.Aggregator, "agg1")
		h.run()
		first := h.welcome("agg1:1", agg1)
		h.want(0, "connected agg1")
		gone(h.welcome("alias:1", agg1))
		h.want(1, "duplicate another address leads to the same aggregator")
		h.want(0, "connected agg1")
		first.Close()
		h.want(0, "not reachable")
		go gone(h.welcome("alias:1", agg1))
		h.want(1, "connected agg1") // the other address is not reachable by now
	})
}

func TestDialler_WhatIsNoAggregatorOfTheCluster_IsRefusedWithAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, "agg1:1", "agg2:1", "old:1")
		stranger := identitytest.New(t).Keys(identity.Aggregator, "agg1")
		agent := h.ca.Keys(identity.Agent, "head2")
		old := h.ca.Keys(identity.Aggregator, "old")
		h.run()
		for address, config := range map[string]*tls.Config{"agg1:1": stranger.OpenToAgents(), "agg2:1": agent.OpenToAgents(), "old:1": old.Open()} {
			c := tls.Server(<-h.at[address], config)
			if c.HandshakeContext(t.Context()) == nil {
				gone(c)
			}
			c.Close()
		}
		h.want(0, "certificate signed by unknown authority")
		h.want(1, "this end accepts aggregator only")
		h.want(2, "not an aggregator")
	})
}

func TestDialler_OthersThatAnswer_AreNamedAndAggregatorsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, "agg1:1", "agg2:1", "proxy:1")
		agg1, agg2 := h.ca.Keys(identity.Aggregator, "agg1"), h.ca.Keys(identity.Aggregator, "agg2")
		silent := agg2.Open() // chooses no protocol where it knows none of those offered
		hello := silent.GetConfigForClient
		silent.GetConfigForClient = func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			c, err := hello(info)
			if err == nil {
				c = c.Clone()
				c.NextProtos = nil
			}
			return c, err
		}
		h.run()
		for address, config := range map[string]*tls.Config{"agg2:1": agg2.Open(), "proxy:1": silent} {
			go func() {
				for {
					select {
					case raw := <-h.at[address]:
						c := tls.Server(raw, config)
						if c.HandshakeContext(t.Context()) == nil {
							gone(c)
						}
						raw.Close()
					case <-t.Context().Done():
						return
					}
				}
			}()
		}
		go gone(h.welcome("agg1:1", agg1))
		for range 5 {
			time.Sleep(2 * time.Second)
			h.want(0, "connected agg1")
			h.want(1, "not reachable what answers is not an aggregator")
			h.want(2, "not reachable what answers is not an aggregator")
		}
		if n := strings.Count(h.log.String(), "what answers is not an aggregator"); n != 2 {
			t.Errorf("logged %d times:\n%s", n, &h.log)
		}
	})
}

func TestServer_OverADialledConnection_AnswersTheAggregator(t *testing.T) {
	ca := identitytest.New(t)
	keys, agg1 := ca.Keys(identity.Agent, "head1"), ca.Keys(identity.Aggregator, "agg1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	d := NewDialler([]string{l.Addr().String()}, keys, slog.New(slog.DiscardHandler))
	office := make(callers, 1)
	s := &Server{Programs: office, Keys: keys, Log: slog.New(slog.DiscardHandler)}
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	running.Go(func() {
		if err := s.Run(ctx, d); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///head1", grpc.WithTransportCredentials(insecure.NewCredentials()), // TLS is below
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			raw, err := l.Accept()
			if err != nil {
				return nil, err
			}
			c := tls.Server(raw, agg1.OpenToAgents())
			if err := c.HandshakeContext(ctx); err != nil {
				return nil, err
			}
			_, err = c.Write([]byte{identity.AgentWelcome})
			return c, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := bursarv1.NewAgentClient(conn).RunProgram(t.Context(), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&bursarv1.RunProgramRequest{Message: &bursarv1.RunProgramRequest_Errand{Errand: &bursarv1.Errand{Action: "exec/a"}}}); err != nil {
		t.Fatal(err)
	}
	if m, err := stream.Recv(); err != nil || !m.GetEnded().GetNotRun() {
		t.Error(m, err)
	}
	if by := <-office; by != "agg1" {
		t.Errorf("asked by %q", by)
	}
}

// callers refuse to run programs, and note who asked.
type callers chan string

func (c callers) Admit(_ *bursarv1.Errand, by string) (Permit, error) {
	c <- by
	return nil, errors.New("not allowed")
}
