package membership

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// slowServer answers a Promise when it is told to, and a Hello at once.
type slowServer struct {
	bursarv1.UnimplementedPeerServer

	asked  chan struct{} // a Promise has come
	answer chan struct{}
}

func (s slowServer) Promise(context.Context, *bursarv1.PromiseRequest) (*bursarv1.PromiseResponse, error) {
	close(s.asked)
	<-s.answer
	return &bursarv1.PromiseResponse{}, nil
}

func (slowServer) Hello(context.Context, *bursarv1.HelloRequest) (*bursarv1.HelloResponse, error) {
	return &bursarv1.HelloResponse{}, nil
}

func newTransport(t *testing.T, keys *identity.Keys, id string) *cluster.Transport {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := cluster.NewTransport(cluster.TransportConfig{
		Listener: l, Server: keys.Server(identity.Aggregator), Client: keys.Client(identity.Aggregator, ""), ID: id, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func TestLinks_ConnectionReachesItsAge_IsMadeAgainAndNoCallFails(t *testing.T) {
	t.Parallel()
	ca := identitytest.New(t)
	a, b := newTransport(t, ca.Keys(identity.Aggregator, "agg1"), "a"), newTransport(t, ca.Keys(identity.Aggregator, "agg2"), "b")
	slow := slowServer{asked: make(chan struct{}), answer: make(chan struct{})}
	s := newServer(10 * time.Millisecond)
	bursarv1.RegisterPeerServer(s, slow)
	go func() { _ = s.Serve(b.Peers()) }() // until Stop
	t.Cleanup(s.Stop)

	var made atomic.Int64
	l := newLinks(func(ctx context.Context, to cluster.Server) (net.Conn, error) {
		made.Add(1)
		return a.DialPeer(ctx, to)
	})
	t.Cleanup(l.closeAll)
	client, err := l.clientOf(cluster.Server{ID: "b", Addr: b.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	underWay := make(chan error, 1)
	go func() {
		_, err := client.Promise(t.Context(), &bursarv1.PromiseRequest{})
		underWay <- err
	}()
	select {
	case <-slow.asked:
	case err := <-underWay:
		t.Fatal("a call on the first connection: ", err)
	}
	for made.Load() < 20 {
		if _, err := client.Hello(t.Context(), &bursarv1.HelloRequest{}); err != nil {
			t.Errorf("connection %d: %v", made.Load(), err)
			break
		}
	}
	close(slow.answer)
	if err := <-underWay; err != nil {
		t.Error("a call on the first connection: ", err)
	}
}
