package source

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// mapped are the attributes that the default mapping names.
func mapped() []string {
	var out []string
	for _, m := range regexp.MustCompile(`job\.(\w+)`).FindAllStringSubmatch(Mapping, -1) {
		out = append(out, m[1])
	}
	return out
}

// BenchmarkAds reads a history of real ads into jobs of the default mapping.
func BenchmarkAds(b *testing.B) {
	text, err := os.ReadFile("../../testdata/kinds-history-23.9.6")
	if err != nil {
		b.Fatal(err)
	}
	const copies = 1000
	ads := copies * strings.Count(string(text), "\n*** ")
	path := filepath.Join(b.TempDir(), "history")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	plain := regexp.MustCompile(`Offset = \d+ `).ReplaceAllString(string(text), "")
	for i := range copies {
		if _, err := f.WriteString(strings.ReplaceAll(plain, "rig#", "rig"+strconv.Itoa(i)+"#")); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	s := New(slog.New(slog.DiscardHandler))
	cfg := sdk.NewConfig("bench", sdk.Node{IsBlock: true, Children: []sdk.Node{
		{Name: "history", Value: sdk.String(path)}, {Name: "capacity", Value: sdk.Bool(false)}, {Name: "census", Value: sdk.Bool(false)},
	}})
	cfg.Wanted = mapped()
	if err := s.Configure(b.Context(), cfg); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(plain) * copies))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		out := sdk.NewStream(s.Describe().Attributes, func(_ context.Context, batch sdk.Batch) error {
			n += len(batch.Jobs)
			return nil
		})
		if err := s.Collect(b.Context(), sdk.Start{}, out); err != nil || n != ads {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(ads)*float64(b.N)/b.Elapsed().Seconds(), "ads/s")
}
