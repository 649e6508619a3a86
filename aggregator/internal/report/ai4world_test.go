package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// recorded are the records that the Nomad source makes of the recorded cluster of
// ai4-accounting; its own tests hold it to them.
const recorded = "../../../plugins/source/nomad/internal/source/testdata/ai4-records.ndjson"

// imported are those that bursar import makes of the snapshots that ai4-accounting took
// of the same cluster.
const imported = "../../../plugins/source/ai4/testdata/records.ndjson"

// cluster is the recorded cluster in a store, behind /v1.
type cluster struct {
	store  *store.Store
	server *api.Server
}

func (c *cluster) Read(context.Context) (*store.View, error) { return c.store.View() }
func (c *cluster) View() (*store.View, error)                { return c.store.View() }
func (c *cluster) Write(context.Context, store.Command) (any, error) {
	return nil, fmt.Errorf("nothing is written here")
}

// GetJSON implements v1.Caller with all rights.
func (c *cluster) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	return c.server.Call(access.With(ctx, access.Daemon()), method, path, query, in, into)
}

// Stream implements v1.Caller with all rights.
func (c *cluster) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return c.server.Stream(access.With(ctx, access.Daemon()), path, query)
}

// newCluster is the recorded cluster at the fifth of March without the records that a
// test leaves out.
func newCluster(t *testing.T, without ...string) *cluster {
	t.Helper()
	return clusterOf(t, recorded, without...)
}

// clusterOf is the cluster of which a file has the records.
func clusterOf(t *testing.T, file string, without ...string) *cluster {
	t.Helper()
	s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := columns.NewBuilder()
	for line := range bytes.Lines(text) {
		r, err := wire.DecodeRecordJSON(line)
		if err != nil {
			t.Fatal(err)
		}
		left := false
		for _, id := range without {
			left = left || id == r.ID
		}
		if !left {
			rows.Add(&columns.Row{Record: r, Rank: record.RankPush, Stop: record.None})
		}
	}
	if _, err := s.Apply(1, 1, store.Encode(&store.PostCommand{Rows: rows.Bytes(), Now: record.FromStd(fifth())})); err != nil {
		t.Fatal(err)
	}
	c := &cluster{store: s}
	d := owners(t)
	reader := access.Reader{Source: c, Usages: usage.NewKeeper(usage.Options{Views: c}, slog.New(slog.DiscardHandler), nil)}
	c.server = api.New(api.Options{
		Reader: reader, Usage: reader, Writer: c, Version: "test", Log: slog.New(slog.DiscardHandler), Now: fifth,
		Who:       func(*http.Request) access.Principal { return access.Daemon() },
		Directory: func() *accounting.Directory { return d },
		Book:      func() *usage.Derivation { return &usage.Derivation{Keys: d.Keys()} },
	})
	return c
}

func fifth() time.Time { return time.Date(2025, 3, 5, 0, 0, 0, 0, time.UTC) }

// owners is what the Nomad source tells of people, and one project.
func owners(t *testing.T) *accounting.Directory {
	t.Helper()
	told := accounting.SourcePeople{Source: record.Origin{Agent: "head1", Type: "nomad", Label: "cloud"}, At: record.FromStd(fifth())}
	for i, group := range []string{"ai4eosc", "ai4eosc", "imagine", "ai4life", "imagine", "imagine", "tutorials"} {
		told.People = append(told.People, accounting.Person{
			ID: fmt.Sprintf("u%d", i+1), Name: fmt.Sprintf("U%d", i+1), Address: fmt.Sprintf("u%d@x", i+1),
			Groups: []accounting.Groups{{From: record.None, Names: []string{group}}},
		})
	}
	d, err := accounting.NewDirectory(accounting.DirectorySettings{Projects: []accounting.Project{{
		ID: "imaging", From: record.None, To: record.None, States: []accounting.ProjectState{{From: record.None, PI: "u3", Groups: []string{"imagine"}}},
	}}}, []accounting.SourcePeople{told})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
