package source_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/source"
)

func TestTheSourceKeepsThePromisesOfEverySource(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{"history-23.9.6": "history", "epochs-23.9.6": "epoch_history"} {
		text, err := os.ReadFile(filepath.Join("../../testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plugintest.Run(t, plugintest.Options{
		Source: func() sdk.Source { return source.New(slog.New(slog.DiscardHandler)) },
		Config: plugintest.Block("config", plugintest.Attr("history", filepath.Join(dir, "history")),
			plugintest.Attr("capacity", false), plugintest.Attr("census", false)),
	})
}
