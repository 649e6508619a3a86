package membership

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// ends tells when a connection of a server has ended.
type ends struct {
	sentHandler

	ended chan struct{}
}

func (e ends) HandleRPC(context.Context, stats.RPCStats) {}

func (e ends) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnEnd); ok {
		e.ended <- struct{}{}
	}
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

func TestLinks_ConnectionWithoutCalls_Ends_AndIsMadeAgainByTheNext(t *testing.T) {
	t.Parallel()
	ca := identitytest.New(t)
	a, b := newTransport(t, ca.Keys(identity.Aggregator, "agg1"), "a"), newTransport(t, ca.Keys(identity.Aggregator, "agg2"), "b")
	told := ends{ended: make(chan struct{}, 9)}
	s := grpc.NewServer(grpc.Creds(proven{}), grpc.StatsHandler(told))
	bursarv1.RegisterPeerServer(s, bursarv1.UnimplementedPeerServer{})
	go func() { _ = s.Serve(b.Peers()) }() // until Stop
	t.Cleanup(s.Stop)

	l := newLinks(a.DialPeer, func() uint64 { return 0 })
	t.Cleanup(l.closeAll)
	l.idle = 20 * time.Millisecond
	for _, node := range []cluster.Server{{Addr: b.Addr()}, {ID: "b", Addr: b.Addr()}, {Addr: b.Addr()}} {
		client, err := l.clientOf(node)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Hello(t.Context(), &bursarv1.HelloRequest{}); status.Code(err) != codes.Unimplemented {
			t.Fatal(err)
		}
		select {
		case <-told.ended:
		case <-time.After(time.Minute):
			t.Fatalf("%v: a connection without calls stays", node)
		}
	}
}
