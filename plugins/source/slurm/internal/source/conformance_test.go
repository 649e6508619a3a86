package source_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/source"
)

func TestTheSourceKeepsThePromisesOfEverySource(t *testing.T) {
	for _, version := range []string{"22.05", "24.11"} {
		t.Run(version, func(t *testing.T) {
			db := fakesacct.Recorded(t, filepath.Join("..", "..", "..", "..", "internal", "slurm", "job", "testdata", "sacct-"+version+".txt"))
			for _, r := range db.Rows { // long ago for any clock that this test meets
				for _, column := range []string{"Submit", "Eligible", "Start", "End"} {
					r.Shift(column, -400*86400)
				}
			}
			dir := t.TempDir()
			sacct := fakesacct.Install(t, dir, db)
			recorded := func(name string) string {
				return fakesacct.Recording(t, filepath.Join("..", "cluster", "testdata", name+"-"+version+".txt"))
			}
			fakesacct.InstallTool(t, dir, "scontrol", fakesacct.Tool{Output: recorded("nodes"), Last: map[string]string{"config": "ClusterName = rig\n"}})
			fakesacct.InstallTool(t, dir, "squeue", fakesacct.Tool{Output: recorded("queue")})
			fakesacct.InstallTool(t, dir, "sacctmgr", fakesacct.Tool{Output: recorded("associations")})
			plugintest.Run(t, plugintest.Options{
				Source: func() sdk.Source { return source.New(slog.New(slog.DiscardHandler)) },
				Config: plugintest.Block("config", plugintest.Attr("sacct", sacct), plugintest.Attr("earliest", "2025-10-01"),
					plugintest.Attr("window", "366d")),
			})
		})
	}
}
