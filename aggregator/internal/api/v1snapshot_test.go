package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// archives makes real archives of the node's store, and restores what it is told.
type archives struct {
	node     *node
	archiver *archive.Archiver
	refuse   error
	unknown  error
}

func (a *archives) Checkpoint(dir string) error { return a.node.store.Checkpoint(dir) }

func (a *archives) Save(context.Context) (*archive.Image, error) {
	if a.refuse != nil {
		return nil, a.refuse
	}
	return a.archiver.Image()
}

func (a *archives) Install(_ context.Context, dir string) error {
	if a.unknown != nil {
		return a.unknown
	}
	return a.node.store.Restore(dir)
}

func (a *archives) Restore(ctx context.Context, r io.Reader, foreign bool) (*api.Restore, error) {
	if a.refuse != nil {
		return nil, a.refuse
	}
	own, _ := a.node.store.Cluster()
	if foreign {
		own = ""
	}
	done, err := a.archiver.Restore(ctx, r, own, a)
	if done == nil {
		return nil, err
	}
	return &api.Restore{Restored: *done}, err
}

func archiveRig(t *testing.T) (*rig, *archives) {
	a := &archives{}
	a.archiver = &archive.Archiver{Store: a, Scratch: t.TempDir(), Node: "agg1", Version: "test", Now: time.Now}
	rg := newRig(t, func(o *api.Options, s *store.Options) {
		o.Snapshots, o.Members = a, &group{}
		s.FS, s.Dir = nil, t.TempDir()
	})
	a.node = rg.node
	if _, err := rg.node.Write(t.Context(), &store.SetClusterCommand{ID: "CLUSTER"}); err != nil {
		t.Fatal(err)
	}
	return rg, a
}

const zstdBody = "Content-Type: application/zstd"

func TestASnapshotBringsBackWhatWasThere(t *testing.T) {
	rg, _ := archiveRig(t)
	post := func(id string) {
		body := `{"record_id":"` + id + `","meta":{},"components":[],"start_time":"2026-01-01T00:00:00Z","stop_time":"2026-01-01T01:00:00Z"}`
		if a := rg.call(http.MethodPost, "/record", strings.NewReader(body)); a.status != 200 {
			t.Fatal(a)
		}
	}
	post("before")
	saved := rg.call(http.MethodGet, "/v1/snapshot", nil)
	if saved.status != 200 || saved.header.Get("Content-Type") != "application/zstd" {
		t.Fatal(saved)
	}
	if meta, err := archive.Verify(strings.NewReader(saved.body)); err != nil || meta.Records != 1 || meta.Cluster != "CLUSTER" {
		t.Fatalf("%+v, %v", meta, err)
	}
	post("after")
	if a := rg.call(http.MethodPost, "/v1/snapshot:restore", strings.NewReader(saved.body), zstdBody); a.status != 200 || !strings.Contains(a.body, `"records":1`) {
		t.Fatal(a)
	}
	for id, want := range map[string]int{"before": 200, "after": 404} {
		if a := rg.call(http.MethodGet, "/v1/records/"+id, nil); a.status != want {
			t.Errorf("%s: %v", id, a)
		}
	}
}

func TestARestoreThatCannotBeSaysWhy(t *testing.T) {
	rg, a := archiveRig(t)
	saved := rg.call(http.MethodGet, "/v1/snapshot", nil).body
	foreign := func() string {
		other, _ := archiveRig(t)
		return other.call(http.MethodGet, "/v1/snapshot", nil).body
	}
	rg.node.store.Close()
	s, err := store.Open(store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	rg.node.store = s
	if _, err := rg.node.Write(t.Context(), &store.SetClusterCommand{ID: "ANOTHER"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, body, query string
		set               func()
		status            int
		says              string
	}{
		{"cut", saved[:len(saved)-5], "", nil, 422, "damaged archive: near byte"},
		{"another cluster's", foreign(), "", nil, 422, "of another cluster"},
		{"no room", saved, "?foreign=true", func() { a.archiver.Free = func() (int64, error) { return 1, nil } }, 507, "too little space"},
		{"unknown", saved, "?foreign=true", func() { a.archiver.Free, a.unknown = nil, errors.New("it is not known") }, 503, "may or may not"},
		{"elsewhere", saved, "", func() { a.refuse = fmt.Errorf("%w; agg2 does", api.ErrElsewhere) }, 421, "agg2"},
		{"not now", saved, "", func() { a.refuse = errors.New("no leader") }, 503, "nothing was restored"},
	} {
		if c.set != nil {
			c.set()
		}
		got := rg.call(http.MethodPost, "/v1/snapshot:restore"+c.query, strings.NewReader(c.body), zstdBody)
		if got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := rg.call(http.MethodGet, "/v1/snapshot", nil); got.status != 503 {
		t.Error(got)
	}
}

// group is a cluster that notes what it is asked for.
type group struct {
	calls []string
	err   error
}

func (g *group) Members() []api.Member {
	return []api.Member{{ID: "a", Name: "agg1", Address: "h:1", Voter: true, Leader: true, Match: 7, LastContact: time.Unix(1, 0)}, {ID: "b/c"}}
}

func (g *group) Add(_ context.Context, id, address string) error {
	g.calls = append(g.calls, "add "+id+" "+address)
	return g.err
}

func (g *group) Remove(_ context.Context, id string) error {
	g.calls = append(g.calls, "remove "+id)
	return g.err
}

func (g *group) Transfer(context.Context) error {
	g.calls = append(g.calls, "transfer")
	return g.err
}

func TestMembersAreListedAndChanged(t *testing.T) {
	g := &group{}
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Members, o.Snapshots = g, &archives{} })
	if got := rg.call(http.MethodGet, "/v1/cluster/members", nil); got.status != 200 || !strings.Contains(got.body, `"name":"agg1"`) || !strings.Contains(got.body, `"last_contact":null`) {
		t.Error(got)
	}
	for _, c := range []struct {
		method, path, body string
		err                error
		status             int
		call               string
	}{
		{"POST", "/v1/cluster/members", `{"id":"x","address":"h:2"}`, nil, 200, "add x h:2"},
		{"POST", "/v1/cluster/members", `{"id":"x"}`, nil, 400, ""},
		{"POST", "/v1/cluster/members", `{"id":"x","address":"h:2","voter":true}`, nil, 400, ""},
		{"DELETE", "/v1/cluster/members/b%2Fc", "", nil, 200, "remove b/c"},
		{"DELETE", "/v1/cluster/members/none", "", nil, 404, ""},
		{"DELETE", "/v1/cluster/members/a", "", fmt.Errorf("%w: no majority", api.ErrRefused), 409, "remove a"},
		{"POST", "/v1/cluster/leader:transfer", "", nil, 200, "transfer"},
		{"POST", "/v1/cluster/leader:transfer", "", fmt.Errorf("%w: no leader", api.ErrNotNow), 503, "transfer"},
		{"POST", "/v1/cluster/leader:transfer", "", errors.New("who knows"), 503, "transfer"},
	} {
		g.calls, g.err = nil, c.err
		got := rg.call(c.method, c.path, strings.NewReader(c.body))
		if got.status != c.status || strings.Join(g.calls, ",") != c.call {
			t.Errorf("%s %s: %v, calls %v", c.method, c.path, got, g.calls)
		}
	}
}
