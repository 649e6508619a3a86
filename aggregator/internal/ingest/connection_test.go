package ingest_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// lineAgent answers a Pull when it is told to, and all else at once.
type lineAgent struct {
	bursarv1.UnimplementedAgentServer

	addr   string
	pulls  chan struct{} // a Pull has come
	answer chan struct{}
	conns  atomic.Int64
	open   atomic.Int64
	closed atomic.Bool // new connections are closed
}

func (a *lineAgent) Status(context.Context, *bursarv1.StatusRequest) (*bursarv1.StatusResponse, error) {
	return &bursarv1.StatusResponse{}, nil
}

func (a *lineAgent) Pull(context.Context, *bursarv1.PullRequest) (*bursarv1.PullResponse, error) {
	a.pulls <- struct{}{}
	<-a.answer
	return &bursarv1.PullResponse{}, nil
}

func (a *lineAgent) Order(_ *bursarv1.OrderRequest, stream grpc.ServerStreamingServer[bursarv1.OrderResponse]) error {
	a.pulls <- struct{}{}
	<-a.answer
	return stream.Send(&bursarv1.OrderResponse{Done: true})
}

// counted counts the connections that it accepts.
type counted struct {
	net.Listener

	of *lineAgent
}

func (c counted) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.of.closed.Load() {
			conn.Close()
			continue
		}
		c.of.conns.Add(1)
		c.of.open.Add(1)
		return &ending{Conn: conn, of: c.of}, nil
	}
}

type ending struct {
	net.Conn

	of   *lineAgent
	done atomic.Bool
}

func (e *ending) Close() error {
	if !e.done.Swap(true) {
		e.of.open.Add(-1)
	}
	return e.Conn.Close()
}

func serve(t *testing.T) *lineAgent {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &lineAgent{addr: l.Addr().String(), pulls: make(chan struct{}, 10), answer: make(chan struct{})}
	s := grpc.NewServer()
	bursarv1.RegisterAgentServer(s, a)
	done := make(chan error, 1)
	go func() { done <- s.Serve(counted{l, a}) }()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return a
}

// connect is a line to the agent, and its generation.
func (a *lineAgent) connect(t *testing.T) (bursarv1.AgentClient, *ingest.Connection, *atomic.Uint64) {
	t.Helper()
	generation := new(atomic.Uint64)
	l, err := ingest.NewConnection(func() (*grpc.ClientConn, error) {
		return grpc.NewClient("passthrough:///"+a.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}, generation.Load)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return bursarv1.NewAgentClient(l), l, generation
}

// status makes calls until ok; none of them may fail.
func statusOf(t *testing.T, c bursarv1.AgentClient, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := c.Status(t.Context(), &bursarv1.StatusRequest{}); err != nil {
			t.Fatalf("%s: a call failed: %v", what, err)
		}
		if ok() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestANewConnectionIsMadeInTheNextGenerationAndCallsOnTheOldOneAreAnswered(t *testing.T) {
	a := serve(t)
	c, _, generation := a.connect(t)
	statusOf(t, c, "the first one", func() bool { return a.conns.Load() == 1 })
	calls := make(chan error, 2)
	go func() {
		_, err := c.Pull(t.Context(), &bursarv1.PullRequest{})
		calls <- err
	}()
	go func() {
		stream, err := c.Order(t.Context(), &bursarv1.OrderRequest{})
		for err == nil {
			_, err = stream.Recv()
		}
		calls <- err
	}()
	<-a.pulls
	<-a.pulls
	for range 100 {
		statusOf(t, c, "the same generation", func() bool { return a.conns.Load() == 1 })
	}
	generation.Add(1)
	statusOf(t, c, "the second one stands", func() bool { return a.conns.Load() == 2 })
	for range 100 {
		statusOf(t, c, "calls are under way on the first one", func() bool { return a.open.Load() == 2 })
	}
	close(a.answer)
	for range 2 {
		if err := <-calls; err != nil && err.Error() != "EOF" {
			t.Errorf("a call that was under way: %v", err)
		}
	}
	statusOf(t, c, "the first one is closed", func() bool { return a.open.Load() == 1 })
	if n := a.conns.Load(); n != 2 {
		t.Errorf("%d connections were made", n)
	}
}

func TestWhereTheNewConnectionIsRefusedTheOldOneStaysInUse(t *testing.T) {
	a := serve(t)
	c, _, generation := a.connect(t)
	statusOf(t, c, "the first one", func() bool { return a.conns.Load() == 1 })
	a.closed.Store(true)
	generation.Add(1)
	for range 300 {
		statusOf(t, c, "the second one is refused", func() bool { return a.open.Load() == 1 })
	}
	a.closed.Store(false)
	statusOf(t, c, "the second one is let in", func() bool { return a.conns.Load() == 2 && a.open.Load() == 1 })
}

func TestALineThatIsClosedTakesNoCalls(t *testing.T) {
	a := serve(t)
	c, l, _ := a.connect(t)
	statusOf(t, c, "the first one", func() bool { return a.open.Load() == 1 })
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Status(t.Context(), &bursarv1.StatusRequest{}); err == nil {
		t.Error("a call was made")
	}
	if _, err := c.Order(t.Context(), &bursarv1.OrderRequest{}); err == nil {
		t.Error("a stream was made")
	}
}
