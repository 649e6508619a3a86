package serve_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/agent/internal/serve"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/identity"
)

type rig struct {
	buffer *buffer.Buffer
	keys   map[identity.Role]*identity.Keys
	addr   string
	log    *lines
}

// lines is a log that a test can read while others write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T) *rig {
	t.Helper()
	return startWith(t, func(b *buffer.Buffer) serve.Buffer { return b })
}

func startWith(t *testing.T, as func(*buffer.Buffer) serve.Buffer) *rig {
	t.Helper()
	r := &rig{keys: pki(t), log: &lines{}}
	var err error
	if r.buffer, err = buffer.Open(filepath.Join(t.TempDir(), "b.db"), buffer.Options{}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s := &serve.Server{Buffer: as(r.buffer), Keys: r.keys[identity.Agent], Log: slog.New(slog.NewTextHandler(r.log, nil))}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		r.buffer.Close()
	})
	return r
}

func pki(t *testing.T) map[identity.Role]*identity.Keys {
	t.Helper()
	dir := t.TempDir()
	if _, err := identity.CreateCA(dir, "test", identity.LifetimeCA, time.Now()); err != nil {
		t.Fatal(err)
	}
	keys := map[identity.Role]*identity.Keys{}
	for _, role := range identity.Roles() {
		files, err := identity.CreateCert(dir, dir, identity.Request{Identity: identity.Identity{Role: role, Name: string(role) + "1"}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if keys[role], err = identity.Load(files); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func (r *rig) dial(t *testing.T, as identity.Role) bursarv1.AgentClient {
	t.Helper()
	return r.connect(t, r.keys[as].Client(identity.Agent, "agent1"))
}

func (r *rig) connect(t *testing.T, config *tls.Config) bursarv1.AgentClient {
	t.Helper()
	c, err := grpc.NewClient(r.addr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return bursarv1.NewAgentClient(c)
}

func TestAnAggregatorPullsAcknowledgesAndWaitsForMore(t *testing.T) {
	r := start(t)
	ctx := t.Context()
	client := r.dial(t, identity.Aggregator)
	resp, err := client.Pull(ctx, &bursarv1.PullRequest{Cluster: "c"})
	if err != nil || !resp.GetResume() {
		t.Fatal(resp, err)
	}
	from, err := client.Resume(ctx, &bursarv1.ResumeRequest{Cluster: "c", Epoch: resp.GetEpoch()})
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		resp *bursarv1.PullResponse
		err  error
	}
	answers := make(chan answer)
	go func() {
		resp, err := client.Pull(ctx, &bursarv1.PullRequest{Cluster: "c", Epoch: from.GetEpoch(), After: from.GetAfter(), Digest: from.GetDigest(), WaitMs: 60_000})
		answers <- answer{resp, err}
	}()
	if _, err := r.buffer.Append(buffer.Append{Frames: [][]byte{[]byte("one"), []byte("two")}}); err != nil {
		t.Fatal(err)
	}
	a := <-answers
	if a.err != nil || len(a.resp.GetChunks()) != 1 || a.resp.GetLast() != 2 {
		t.Fatal(a.resp, a.err)
	}
	if chunk, err := frame.Parse(a.resp.GetChunks()[0]); err != nil || string(chunk.Frame(2)) != "two" {
		t.Fatal(err)
	}
	if _, err := client.Ack(ctx, &bursarv1.AckRequest{Cluster: "c", Epoch: a.resp.GetEpoch(), Through: 2, Digest: a.resp.GetDigest()}); err != nil {
		t.Fatal(err)
	}
	if st, _ := r.buffer.Stats(); st.Clusters["c"].Through != 2 {
		t.Fatal(st)
	}
	if _, err := client.Ack(ctx, &bursarv1.AckRequest{Cluster: "d", Epoch: a.resp.GetEpoch(), Through: 3}); err == nil {
		t.Fatal("an acknowledgement of what was never sent was taken")
	}
}

// rotten is a buffer whose frames behind the fourth cannot be read.
type rotten struct{ *buffer.Buffer }

func (rotten) Read(buffer.Position, int) ([][]byte, buffer.Position, error) {
	return nil, buffer.Position{}, &buffer.DamageError{Path: "/data/buffer.db", After: 4, Cause: frame.ErrCorrupt}
}

func TestAnAggregatorIsToldWhichFileIsDamagedAndTheLogWhatToDo(t *testing.T) {
	r := startWith(t, func(b *buffer.Buffer) serve.Buffer { return rotten{b} })
	var trailer metadata.MD
	for range 3 {
		_, err := r.dial(t, identity.Aggregator).Pull(t.Context(), &bursarv1.PullRequest{Cluster: "c"}, grpc.Trailer(&trailer))
		if status.Code(err) != codes.DataLoss || !strings.Contains(err.Error(), "the frames behind 4 in /data/buffer.db cannot be read") {
			t.Fatal(err)
		}
		if got := trailer.Get(frame.DamagedTrailer); len(got) != 1 || got[0] != "/data/buffer.db" {
			t.Errorf("the file is %q", got)
		}
	}
	if n := strings.Count(r.log.String(), "mv /data/buffer.db /data/buffer.db.damaged"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, r.log)
	}
}

func TestOnlyAggregatorsMayPullAndARefusalIsLoggedOnce(t *testing.T) {
	r := start(t)
	for range 3 {
		if _, err := r.dial(t, identity.Client).Pull(t.Context(), &bursarv1.PullRequest{Cluster: "c"}); err == nil {
			t.Fatal("a client could pull")
		}
	}
	r.untilLogged(t, "refused a connection")
	if n := strings.Count(r.log.String(), "refused a connection"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, r.log)
	}
	if !strings.Contains(r.log.String(), "client/client1") {
		t.Errorf("the log does not name the peer:\n%s", r.log)
	}
}

func TestTheCertificateOfAForeignCAIsNamedAndHidesNoOtherPeerOfTheSameAddress(t *testing.T) {
	r := start(t)
	foreign := pki(t)
	for range 2 {
		for _, as := range []identity.Role{identity.Aggregator, identity.Client} {
			config := foreign[as].Client(identity.Agent, "agent1")
			config.VerifyConnection = nil // the foreign peer takes the agent for its own
			if _, err := r.connect(t, config).Pull(t.Context(), &bursarv1.PullRequest{Cluster: "c"}); err == nil {
				t.Fatal("a peer of another CA could pull")
			}
		}
		if _, err := r.dial(t, identity.Client).Pull(t.Context(), &bursarv1.PullRequest{Cluster: "c"}); err == nil {
			t.Fatal("a client could pull")
		}
	}
	names := []string{foreignURI(identity.Aggregator), foreignURI(identity.Client), "is for client/client1"}
	for _, name := range names {
		r.untilLogged(t, name)
	}
	log := r.log.String()
	for _, name := range names {
		if n := strings.Count(log, name); n != 1 {
			t.Errorf("%s is logged %d times:\n%s", name, n, log)
		}
	}
}

// untilLogged waits for a text in the log: who is refused may know it before the agent has written it.
func (r *rig) untilLogged(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(r.log.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log does not have %q:\n%s", text, r.log)
		}
	}
}

func foreignURI(role identity.Role) string {
	return "certificate=" + identity.Identity{Role: role, Name: string(role) + "1"}.URI().String()
}
