package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// emptyBuffer has nothing new before it is told so.
type emptyBuffer struct {
	Buffer

	asked chan struct{} // a pull waits
	comes chan struct{}
}

func (b emptyBuffer) SetVersion(string, uint32) error { return nil }

func (b emptyBuffer) Read(p buffer.Position, _ int) ([][]byte, buffer.Position, error) {
	return nil, p, nil
}

func (b emptyBuffer) Wait(context.Context, uint64) {
	close(b.asked)
	<-b.comes
}

func (b emptyBuffer) Stats() (buffer.Stats, error) { return buffer.Stats{}, nil }

// renewal is an agent whose connections end in order every 20 ms, and an aggregator.
type renewal struct {
	t      *testing.T
	files  identity.Files // of the agent
	agent  *identity.Keys
	agg    *identity.Keys
	server *Server
	buffer emptyBuffer
	made   atomic.Int64 // connections
	shown  atomic.Value // the serial number of the agent's certificate, of the newest connection
}

func newRenewal(t *testing.T) *renewal {
	t.Helper()
	ca := identitytest.New(t)
	r := &renewal{t: t, files: ca.Files(identity.Agent, "head1"), agg: ca.Keys(identity.Aggregator, "agg1")}
	var err error
	if r.agent, err = identity.Load(r.files); err != nil {
		t.Fatal(err)
	}
	r.buffer = emptyBuffer{asked: make(chan struct{}), comes: make(chan struct{})}
	r.server = &Server{Buffer: r.buffer, Keys: r.agent, Log: slog.New(slog.DiscardHandler), age: 20 * time.Millisecond}
	return r
}

// serve runs the server on l until the test ends, and returns a client over connections that
// connect makes.
func (r *renewal) serve(l net.Listener, connect func(context.Context) (*tls.Conn, error)) bursarv1.AgentClient {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.server.Run(ctx, l); err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(func() { cancel(); running.Wait() })
	conn, err := grpc.NewClient("passthrough:///head1", grpc.WithTransportCredentials(insecure.NewCredentials()), // TLS is below
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := connect(ctx)
			if err != nil {
				return nil, err
			}
			r.made.Add(1)
			r.shown.Store(c.ConnectionState().PeerCertificates[0].SerialNumber.String())
			return c, nil
		}))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return bursarv1.NewAgentClient(conn)
}

// outlive makes calls while connections end and the agent's certificate is renewed. None may fail.
func (r *renewal) outlive(c bursarv1.AgentClient) {
	r.t.Helper()
	pulled := make(chan error, 1)
	go func() {
		_, err := c.Pull(r.t.Context(), &bursarv1.PullRequest{Cluster: "c", WaitMs: 60_000})
		pulled <- err
	}()
	select {
	case <-r.buffer.asked:
	case err := <-pulled:
		r.t.Fatal("the pull that waits: ", err)
	}
	before := r.shown.Load()
	r.callUntil(c, "connections end", func() bool { return r.made.Load() >= 10 })
	if _, err := identity.Renew(filepath.Dir(r.files.CA), r.files, 0, time.Now()); err != nil {
		r.t.Fatal(err)
	}
	if err := r.agent.Reload(); err != nil {
		r.t.Fatal(err)
	}
	r.callUntil(c, "the new certificate is shown", func() bool { return r.shown.Load() != before })
	close(r.buffer.comes)
	if err := <-pulled; err != nil {
		r.t.Error("the pull that waited on the first connection: ", err)
	}
}

func (r *renewal) callUntil(c bursarv1.AgentClient, what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if _, err := c.Status(r.t.Context(), &bursarv1.StatusRequest{}); err != nil {
			r.t.Fatalf("%s: connection %d: %v", what, r.made.Load(), err)
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestServer_ConnectionReachesItsAge_NextShowsRenewedCertificateAndNoCallFails(t *testing.T) {
	r := newRenewal(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dialer := &tls.Dialer{Config: r.agg.Client(identity.Agent, "head1")}
	dialer.Config.NextProtos = []string{"h2"}
	r.outlive(r.serve(l, func(ctx context.Context) (*tls.Conn, error) {
		conn, err := dialer.DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		secure, _ := conn.(*tls.Conn) // it makes no others
		return secure, nil
	}))
}

func TestDialler_ConnectionReachesItsAge_NextIsWaitingAndNoCallFails(t *testing.T) {
	r := newRenewal(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	d := NewDialler([]string{l.Addr().String()}, r.agent, slog.New(slog.DiscardHandler))
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) }) // until ctx ends
	defer running.Wait()
	defer cancel()
	r.outlive(r.serve(d, func(ctx context.Context) (*tls.Conn, error) {
		for {
			raw, err := l.Accept()
			if err != nil {
				return nil, err
			}
			c := tls.Server(raw, r.agg.OpenToAgents())
			if err := c.HandshakeContext(ctx); err != nil {
				continue // the dialler has waited too long and dials again
			}
			_, err = c.Write([]byte{identity.AgentWelcome})
			return c, err
		}
	}))
}
