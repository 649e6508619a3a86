package source

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/journal"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// told is a source whose journal holds events before it begins. It is the next
// process of the one that was configured before.
type told struct {
	*Source
	former *told
	events []event.Event
}

func (s *told) Configure(ctx context.Context, cfg *sdk.Config) error {
	if s.former.Source != nil {
		if err := s.former.Close(); err != nil {
			return err
		}
	}
	db := s.sacct
	if err := s.Source.Configure(ctx, cfg); err != nil {
		return err
	}
	s.sacct = db
	if s.former.Source == nil {
		if err := s.fill(ctx); err != nil {
			return err
		}
	}
	s.former.Source = s.Source
	return nil
}

func (s *told) fill(ctx context.Context) error {
	j, err := journal.Open(ctx, journal.Options{Dir: s.config.dir, Log: s.log})
	if err != nil {
		return err
	}
	for _, e := range s.events {
		if err := j.Append(e); err != nil {
			return err
		}
	}
	return j.Close()
}

// eventsOf are the epilogs of the runs of a recording that ended.
func eventsOf(t *testing.T, db *fakesacct.DB) []event.Event {
	var all []event.Event
	for _, r := range db.Rows {
		end, err := strconv.ParseInt(r["End"], 10, 64)
		if err != nil || r["Start"] == "" || strings.Contains(r["JobIDRaw"], ".") || r["AllocTRES"] == "" {
			continue
		}
		for range 3 { // nodes
			e, err := event.FromEnvironment(func(name string) string {
				return map[string]string{"SLURM_JOB_ID": r["JobIDRaw"], "SLURM_CLUSTER_NAME": r["Cluster"]}[name]
			}, "n1", time.Unix(end, 1e8))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
	}
	return all
}

func certificates(t *testing.T) []*bursarv1.Node {
	f := identitytest.New(t).Files(identity.Agent, "head1")
	return []*bursarv1.Node{plugintest.Attr("ca", f.CA), plugintest.Attr("cert", f.Cert), plugintest.Attr("key", f.Key)}
}

func recorded(t *testing.T, version string) *fakesacct.DB {
	return fakesacct.Recorded(t, filepath.Join("..", "..", "..", "..", "internal", "slurm", "job", "testdata", "sacct-"+version+".txt"))
}

func TestTheSourceKeepsThePromisesOfEverySource(t *testing.T) {
	for _, version := range []string{"22.05", "24.11"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			db := recorded(t, version)
			events := eventsOf(t, db)
			if len(events) < 10 {
				t.Fatalf("only %d epilogs", len(events))
			}
			former := new(told)
			plugintest.Run(t, plugintest.Options{
				Source: func() sdk.Source {
					s := New(slog.New(slog.DiscardHandler))
					s.sacct = &database{rows: db.Rows, names: db.Columns}
					return &told{s, former, events}
				},
				Config: plugintest.Block("config", plugintest.Attr("state_dir", t.TempDir()), plugintest.Attr("delay", "0s"),
					plugintest.Attr("socket", ""), plugintest.Attr("listen", "127.0.0.1:0"), plugintest.Block("tls", certificates(t)...)),
				Quiet: time.Second,
			})
		})
	}
}
