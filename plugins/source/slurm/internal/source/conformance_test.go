package source_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/source"
)

func TestTheSourceKeepsThePromisesOfEverySource(t *testing.T) {
	for _, version := range []string{"22.05", "24.11"} {
		t.Run(version, func(t *testing.T) {
			db := fakesacct.Recorded(t, filepath.Join("..", "job", "testdata", "sacct-"+version+".txt"))
			for _, r := range db.Rows { // long ago for any clock that this test meets
				for _, column := range []string{"Submit", "Eligible", "Start", "End"} {
					r.Shift(column, -400*86400)
				}
			}
			sacct := fakesacct.Install(t, t.TempDir(), db)
			plugintest.Run(t, plugintest.Options{
				Source: func() sdk.Source { return source.New(slog.New(slog.DiscardHandler)) },
				Config: plugintest.Block("config", plugintest.Attr("sacct", sacct), plugintest.Attr("earliest", "2025-10-01"),
					plugintest.Attr("window", "366d")),
			})
		})
	}
}
