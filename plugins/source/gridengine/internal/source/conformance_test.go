package source_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/source"
)

func TestTheSourceKeepsThePromisesOfEverySource(t *testing.T) {
	for _, name := range []string{"accounting-6.1", "accounting-uge"} { // long ago for any clock
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "accounting", "testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "accounting")
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			plugintest.Run(t, plugintest.Options{
				Source: func() sdk.Source { return source.New(slog.New(slog.DiscardHandler)) },
				Config: plugintest.Block("config", plugintest.Attr("path", path), plugintest.Attr("capacity", false), plugintest.Attr("census", false)),
			})
		})
	}
}
