package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// emptyAgent is an agent whose buffer is empty. It serves on connections that it dials.
type emptyAgent struct {
	bursarv1.UnimplementedAgentServer

	conns chan net.Conn
}

func (*emptyAgent) Pull(ctx context.Context, req *bursarv1.PullRequest) (*bursarv1.PullResponse, error) {
	epoch := append(make([]byte, 15), 1)
	if !bytes.Equal(req.GetEpoch(), epoch) {
		return &bursarv1.PullResponse{Epoch: epoch, Resume: true, Reason: "another epoch"}, nil
	}
	if req.GetWaitMs() > 0 {
		<-ctx.Done()
	}
	return &bursarv1.PullResponse{Epoch: epoch, Last: req.GetAfter(), Digest: req.GetDigest()}, ctx.Err()
}

func (*emptyAgent) Resume(context.Context, *bursarv1.ResumeRequest) (*bursarv1.ResumeResponse, error) {
	return &bursarv1.ResumeResponse{Epoch: append(make([]byte, 15), 1), Digest: make([]byte, 16)}, nil
}

func (a *emptyAgent) Accept() (net.Conn, error) {
	c, ok := <-a.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (*emptyAgent) Close() error   { return nil }
func (*emptyAgent) Addr() net.Addr { return &net.TCPAddr{} }

// spoken is a connection of which some was read already.
type spoken struct {
	net.Conn

	all io.Reader
}

func (s *spoken) Read(p []byte) (int, error) { return s.all.Read(p) }

// dialIn connects as an agent does, and returns the connection when it is welcome.
func dialIn(t *testing.T, host string, config *tls.Config) (net.Conn, error) {
	t.Helper()
	c, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", host)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	_, err = io.ReadFull(c, make([]byte, 1))
	return c, err
}

// serveDialled serves on connections to an aggregator until the test ends; one waits always.
func serveDialled(t *testing.T, host string, keys *identity.Keys) {
	t.Helper()
	a := &emptyAgent{conns: make(chan net.Conn)}
	server := grpc.NewServer(grpc.Creds(insecure.NewCredentials())) // the connections have proved their ends
	bursarv1.RegisterAgentServer(server, a)
	go func() { _ = server.Serve(a) }() // until Stop
	t.Cleanup(server.Stop)
	go func() {
		defer close(a.conns)
		for {
			c, err := dialIn(t, host, keys.DialIn())
			if err != nil {
				return // the node has ended
			}
			word := make([]byte, 1)
			if _, err := io.ReadFull(c, word); err != nil {
				return
			}
			a.conns <- &spoken{c, io.MultiReader(bytes.NewReader(word), c)}
		}
	}()
}

func TestJoin_AgentWithoutAnAddress_DialsInAndIsPulledFrom(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	c := g.admin()
	r := agentRequest("head1", newKey(t))
	r.Address = ""
	joined, err := join.Join(t.Context(), g.host(), g.token(c, identity.Agent, ""), r)
	_, port, _ := net.SplitHostPort(g.host())
	if err != nil || len(joined.Aggregators) != 1 || !strings.HasSuffix(joined.Aggregators[0], ":"+port) {
		t.Fatal(joined.Aggregators, err)
	}
	agent := func() (a v1.Agent) {
		agents, err := c.Agents(t.Context(), nil)
		if err != nil || len(agents.Agents) != 1 {
			return v1.Agent{}
		}
		return agents.Agents[0]
	}
	await(t, "it is shown that the agent is not here", func() bool {
		a := agent()
		return a.Joined && a.DialsIn && a.Connected != nil && !*a.Connected && strings.Contains(a.Error, "has not dialled in")
	})
	serveDialled(t, g.host(), g.ca.Keys(identity.Agent, "head1"))
	await(t, "it is pulled from", func() bool { a := agent(); return a.Connected != nil && *a.Connected && a.Error == "" })
}

func TestDialIn_OtherThanAnAgent_IsRefusedAndLoggedOnce(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	keys := g.ca.Keys(identity.Client, "alice")
	for range 5 {
		if _, err := dialIn(t, g.host(), keys.DialIn()); err == nil {
			t.Fatal("a client dials in")
		}
	}
	const line = "only agents with a certificate of the cluster's authority may dial in"
	await(t, "it is logged", func() bool { return strings.Contains(g.log.String(), line) })
	if n := strings.Count(g.log.String(), line); n != 1 {
		t.Errorf("logged %d times", n)
	}
}
