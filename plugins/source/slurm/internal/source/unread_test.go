package source_test

import (
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/source"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// needed are the columns without which the name, the start or the stop of a run is not
// known, by which sacct finds it, or that are texts.
func needed() []string {
	out := []string{"JobIDRaw", "JobID", "State", "Submit", "Start", "End", "Cluster", "Eligible"}
	for _, a := range job.Attributes() {
		if a.Type == sdk.TypeString && !slices.Contains([]string{"AllocTRES", "ReqTRES", "ReqMem", "ExitCode", "Timelimit"}, a.Name) {
			out = append(out, a.Name)
		}
	}
	return out
}

// look is what a fresh source collects of a database.
func look(t *testing.T, db *fakesacct.DB) (*bursarv1.DescribeResponse, *plugintest.Collected) {
	t.Helper()
	config := plugintest.Block("config", plugintest.Attr("sacct", fakesacct.Install(t, t.TempDir(), db)), plugintest.Attr("earliest", "2025-10-01"),
		plugintest.Attr("window", "366d"), plugintest.Attr("capacity", false), plugintest.Attr("census", false), plugintest.Attr("directory", false))
	return plugintest.CollectFresh(t, func() sdk.Source { return source.New(slog.New(slog.DiscardHandler)) }, &bursarv1.ConfigureRequest{Label: "test", Config: config})
}

func TestCollect_UnreadableColumn_RunCountsWithoutIt(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for _, version := range []string{"22.05", "24.11"} {
		db := fakesacct.Recorded(t, filepath.Join("..", "..", "..", "..", "internal", "slurm", "job", "testdata", "sacct-"+version+".txt"))
		_, sound := look(t, db)
		var columns []string
		for _, c := range db.Columns {
			if !slices.Contains(needed(), c) {
				columns = append(columns, c)
			}
		}
		named := 0
		for range 8 {
			broken := *db
			broken.Rows = nil
			for _, row := range db.Rows {
				row = maps.Clone(row)
				row[columns[r.IntN(len(columns))]] = plugintest.Garbage(r)
				broken.Rows = append(broken.Rows, row)
			}
			d, got := look(t, &broken)
			named += plugintest.CheckUnread(t, d, sound, got)
			if t.Failed() {
				t.Fatalf("seed %d: Slurm %s", seed, version)
			}
		}
		if named < len(db.Rows) {
			t.Errorf("seed %d: %d values are named as unread", seed, named)
		}
	}
}
