package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Limits of a message: a command is at most an entry of the log, a result may
// name a thousand ids.
const (
	maxRequest  = cluster.MaxEntry + 128<<10
	maxResponse = 8 << 20
)

// links are the connections to other nodes. They are made at the first call, and again at the first
// one after the other node has ended them for their age.
type links struct {
	dial func(ctx context.Context, to cluster.Server) (net.Conn, error)

	mu     sync.Mutex
	open   map[cluster.Server]*grpc.ClientConn
	closed bool
}

func newLinks(dial func(context.Context, cluster.Server) (net.Conn, error)) *links {
	return &links{dial: dial, open: map[cluster.Server]*grpc.ClientConn{}}
}

var errLinksClosed = errors.New("this node stops")

// clientOf returns the client of a node; without an id, of whoever answers at its address.
func (l *links) clientOf(node cluster.Server) (bursarv1.PeerClient, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errLinksClosed
	}
	if l.dial == nil {
		return nil, fmt.Errorf("this node has no raft listener and cannot reach %s", node.Addr)
	}
	conn := l.open[node]
	if conn == nil {
		var err error
		if conn, err = l.connectTo(node); err != nil {
			return nil, fmt.Errorf("connect to %s: %w", node.Addr, err)
		}
		l.open[node] = conn
	}
	return bursarv1.NewPeerClient(conn), nil
}

func (l *links) connectTo(node cluster.Server) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+node.Addr,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.dial(ctx, node) }),
		grpc.WithTransportCredentials(proven{}),
		grpc.WithStatsHandler(sentHandler{}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse), grpc.MaxCallSendMsgSize(maxRequest)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}),
		grpc.WithDisableServiceConfig(),
	)
}

// closeAll ends all connections; calls under way fail.
func (l *links) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, conn := range l.open {
		_ = conn.Close() // nothing is lost with a connection
	}
	l.open = nil
}

// keepWanted closes the connections that are not wanted.
func (l *links) keepWanted(wanted map[cluster.Server]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for node, conn := range l.open {
		if !wanted[node] {
			_ = conn.Close()
			delete(l.open, node)
		}
	}
}

// proven are the credentials of connections whose ends have proved who they are
// before gRPC gets them, as those of cluster.Transport.
type proven struct{}

// provenInfo is what gRPC keeps of such a connection.
type provenInfo struct {
	credentials.CommonAuthInfo

	name string // of the other end, from its certificate
}

// AuthType implements credentials.AuthInfo.
func (provenInfo) AuthType() string { return "bursar-peer" }

var errUnproven = errors.New("a connection whose other end has not proved who it is")

func (proven) takeConnection(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := conn.(*cluster.Conn)
	if !ok {
		return nil, nil, errUnproven
	}
	return conn, provenInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, c.Peer.Name}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (p proven) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return p.takeConnection(conn)
}

// ServerHandshake implements credentials.TransportCredentials.
func (p proven) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return p.takeConnection(conn)
}

// Info implements credentials.TransportCredentials.
func (proven) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls", SecurityVersion: "1.3"} //nolint:staticcheck // the field is deprecated, the struct is not without it
}

// Clone implements credentials.TransportCredentials.
func (p proven) Clone() credentials.TransportCredentials { return p }

// OverrideServerName implements credentials.TransportCredentials.
func (proven) OverrideServerName(string) error { return nil }

// nameOf returns the name in the certificate of the other end.
func nameOf(info credentials.AuthInfo) string {
	p, _ := info.(provenInfo)
	return p.name
}

// callerName returns the name in the caller's certificate.
func callerName(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	return nameOf(p.AuthInfo)
}

// sent is true once a request has left this node, or may have. It is read in the
// goroutine of the call, after the call.
type sent struct{ yes bool }

type sentKey struct{}

// withSent returns a context whose call notes whether its request has left.
func withSent(ctx context.Context) (context.Context, *sent) {
	s := new(sent)
	return context.WithValue(ctx, sentKey{}, s), s
}

// sentHandler notes that requests leave. gRPC tells it in the goroutine that
// calls, after it has handed the request to the connection.
type sentHandler struct{}

// HandleRPC implements stats.Handler.
func (sentHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutPayload); !ok {
		return
	}
	if note, ok := ctx.Value(sentKey{}).(*sent); ok {
		note.yes = true
	}
}

// TagRPC implements stats.Handler.
func (sentHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (sentHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (sentHandler) HandleConn(context.Context, stats.ConnStats) {}
