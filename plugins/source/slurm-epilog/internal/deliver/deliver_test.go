package deliver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/deliver"
	"github.com/bursar-accounting/bursar/proto/local"
)

// The plugin listens at a path of any length, and so is it reached.
func TestDial_LongPath_Connects(t *testing.T) {
	for _, name := range []string{"s", strings.Repeat("long", 40)} {
		folder := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, "epilog.sock")
		l, err := local.Listen(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		line, err := deliver.Dial(t.Context(), &deliver.Target{Socket: path})
		if err != nil {
			t.Fatalf("%d bytes: %v", len(path), err)
		}
		if err := line.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
