package source_test

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/source"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// look is what a fresh source collects of an accounting file.
func look(t *testing.T, text string, more ...*bursarv1.Node) (*bursarv1.DescribeResponse, *plugintest.Collected) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "accounting")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := []*bursarv1.Node{plugintest.Attr("path", path), plugintest.Attr("capacity", false), plugintest.Attr("census", false)}
	config := plugintest.Block("config", append(settings, more...)...)
	return plugintest.CollectFresh(t, func() sdk.Source { return source.New(slog.New(slog.DiscardHandler)) }, &bursarv1.ConfigureRequest{Label: "test", Config: config, DataDir: t.TempDir()})
}

// The columns that are no texts and that neither the name nor the times of a run need, as
// accounting(5) counts them from 0.
func optional() []int {
	out := []int{8, 11, 12, 34, 36, 37, 38, 40, 42, 43, 44, 48, 49, 53, 54}
	for column := 13; column < 31; column++ {
		out = append(out, column)
	}
	return out
}

func TestCollect_UnreadableColumn_RunCountsWithoutIt(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for _, name := range []string{"accounting-6.1", "accounting-8.1.9", "accounting-uge"} {
		text, err := os.ReadFile(filepath.Join("..", "accounting", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		_, sound := look(t, string(text))
		named := 0
		for range 20 {
			var broken strings.Builder
			for line := range strings.Lines(string(text)) {
				fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
				if column := optional()[r.IntN(len(optional()))]; column < len(fields) && len(fields) >= 43 {
					fields[column] = plugintest.Garbage(r)
				}
				broken.WriteString(strings.Join(fields, ":") + "\n")
			}
			d, got := look(t, broken.String())
			named += plugintest.CheckUnread(t, d, sound, got)
			if t.Failed() {
				t.Fatalf("seed %d: %s", seed, name)
			}
		}
		if named < len(sound.Jobs()) {
			t.Errorf("seed %d: %s: %d values are named as unread", seed, name, named)
		}
	}
}
