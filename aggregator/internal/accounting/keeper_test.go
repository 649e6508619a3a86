package accounting

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/logtest"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// bookSite is a store in which a source tells things.
type bookSite struct {
	*store.Store

	t     *testing.T
	index uint64
}

func newSite(t *testing.T) *bookSite {
	s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bookSite{Store: s, t: t}
}

// tell has the source tell who is in which group.
func (s *bookSite) tell(data []byte) {
	s.t.Helper()
	s.index++
	c := &store.IngestCommand{Agent: "a", Epoch: store.Epoch{1}, From: s.index, To: s.index, Now: 1, Facts: []store.Fact{
		{Kind: store.FactDirectory, Source: record.Origin{Agent: "a", Type: "slurm", Label: "nemo"}, At: record.Time(s.index), Data: data},
	}}
	if s.index == 1 {
		c.Begin = &store.Begin{}
	}
	if _, err := s.Apply(s.index, 1, store.Encode(c)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *bookSite) member(user, group string) {
	s.t.Helper()
	s.tell(wire.AppendFrame(nil, &wire.Frame{Kind: wire.KindDirectory, Directory: wire.Directory{Rows: []wire.DirectoryRow{{User: user, Groups: []string{group}}}}}))
}

func TestBooksFollowWhatSourcesTellAndWhatIsConfigured(t *testing.T) {
	s := newSite(t)
	log := &logtest.Log{}
	k, err := NewKeeper(s, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil || k.Derivation() == nil || len(k.Derivation().Keys) != 0 {
		t.Fatal(err, k.Now())
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	k.every = 10 * time.Millisecond
	go func() { done <- k.Run(ctx) }()
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	group := func(user string) string {
		g, _ := k.Now().Directory.Group(user, 1000)
		return g
	}
	s.member("alice", "physics")
	until("alice is in physics", func() bool { return group("alice") == "physics" })
	if err := k.Set(Settings{Directory: DirectorySettings{Projects: []Project{{ID: "p", From: record.None, To: record.None, States: []ProjectState{{From: record.None, Groups: []string{"physics"}, PI: "x"}}}}}}); err != nil {
		t.Fatal(err)
	}
	if p, ok := k.Now().Directory.Project("alice", "", 1000); !ok || p != "p" || len(k.Derivation().Keys) == 0 {
		t.Error(p, ok, k.Derivation())
	}
	before := k.Now()
	twice := Project{ID: "q", From: record.None, To: record.None, States: []ProjectState{{From: record.None, Groups: []string{"physics"}, PI: "y"}}}
	if err := k.Set(Settings{Directory: DirectorySettings{Projects: []Project{{ID: "p", From: record.None, To: record.None, States: twice.States}, twice}}}); err == nil || k.Now() != before {
		t.Error("two projects claim a group:", err)
	}
	s.tell([]byte{0xff})
	until("it is said that the rows do not read", func() bool { return bytes.Contains([]byte(log.String()), []byte("a/slurm/nemo")) })
	if group("alice") != "physics" {
		t.Error("what was known is forgotten")
	}
	s.member("alice", "chemistry")
	until("alice is in chemistry", func() bool { return group("alice") == "chemistry" })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
