// Package reporttest has clusters of recorded records behind /v1, for tests of reports.
package reporttest

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
	"slices"
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

// Recorded are the records that the Nomad source makes of the recorded cluster of
// ai4-accounting; its own tests hold it to them.
const Recorded = "../../../plugins/source/nomad/internal/source/testdata/ai4-records.ndjson"

// Imported are those that bursar import makes of the snapshots that ai4-accounting took
// of the same cluster.
const Imported = "../../../plugins/source/ai4/testdata/records.ndjson"

// Cluster is the recorded cluster in a store, behind /v1 with the rights of its Principal.
type Cluster struct {
	Principal access.Principal

	store  *store.Store
	server *api.Server
}

// Read implements [access.Source].
func (c *Cluster) Read(context.Context) (*store.View, error) { return c.store.View() }

// View implements [usage.Views].
func (c *Cluster) View() (*store.View, error) { return c.store.View() }

// Write refuses every command.
func (c *Cluster) Write(context.Context, store.Command) (any, error) {
	return nil, fmt.Errorf("nothing is written here")
}

// Call implements [v1.Caller].
func (c *Cluster) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	return c.server.Call(access.With(ctx, c.Principal), method, path, query, in, into)
}

// Stream implements [v1.Caller].
func (c *Cluster) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return c.server.Stream(access.With(ctx, c.Principal), path, query)
}

// Open is the cluster at the time [Now] with the records of a file, but for those without.
// It sees everything.
func Open(t *testing.T, file string, without ...string) *Cluster {
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
		if !slices.Contains(without, r.ID) {
			rows.Add(&columns.Row{Record: r, Rank: record.RankPush, Stop: record.None})
		}
	}
	if _, err := s.Apply(1, 1, store.Encode(&store.PostCommand{Rows: rows.Bytes(), Now: record.FromStd(Now())})); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Principal: access.Daemon(), store: s}
	d := directory(t)
	reader := access.Reader{Source: c, Usages: usage.NewKeeper(usage.Options{Views: c}, slog.New(slog.DiscardHandler), nil)}
	c.server = api.New(api.Options{
		Reader: reader, Usage: reader, Writer: c, Version: "test", Log: slog.New(slog.DiscardHandler), Now: Now,
		Who:       func(*http.Request) access.Principal { return access.Daemon() },
		Directory: func() *accounting.Directory { return d },
		Book:      func() *usage.Derivation { return &usage.Derivation{Keys: d.Keys()} },
	})
	return c
}

// Now is when the cluster is looked at: the fifth of March, two days after its last record.
func Now() time.Time { return time.Date(2025, 3, 5, 0, 0, 0, 0, time.UTC) }

// directory has the people that the Nomad source knows, and one project.
func directory(t *testing.T) *accounting.Directory {
	t.Helper()
	told := accounting.SourcePeople{Source: record.Origin{Agent: "head1", Type: "nomad", Label: "cloud"}, At: record.FromStd(Now())}
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
