package daemon_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// chunksOf are n chunks of an import with 50 records each.
func chunksOf(t *testing.T, n int) []string {
	t.Helper()
	b, chunks := frame.NewBuilder(1, frame.Digest{}), []string{}
	for i := range n * 50 {
		id := fmt.Sprint("old-", i)
		f := &wire.Frame{SourceType: "gridengine", SourceLabel: "katana", Rank: record.RankImport, Kind: wire.KindRecord, ID: id, Version: record.Version{Ended: true, Observed: int64(i + 1)}}
		f.Record = record.Record{ID: id, Meta: record.Meta{}, Start: record.Second, Stop: 2 * record.Second, Submit: record.None}
		if err := b.Append(wire.AppendFrame(nil, f)); err != nil {
			t.Fatal(err)
		}
		if i%50 == 49 {
			chunks = append(chunks, string(b.Finish()))
		}
	}
	return chunks
}

func TestAnImportGoesOnAtAnyNodeWhenOneIsLost(t *testing.T) {
	t.Parallel()
	names := []string{"agg1", "agg2", "agg3"}
	s := newSite(t, names...)
	s.start(names...)
	var begun struct{ Epoch string }
	s.until("an import begins", func() error {
		status, _, body, err := s.request("agg2", "POST", "/v1/imports/import", "")
		if err != nil || status != 200 {
			return fmt.Errorf("%d %s %w", status, body, err)
		}
		return json.Unmarshal([]byte(body), &begun)
	})
	chunks := chunksOf(t, 12)
	for i, chunk := range chunks {
		if i == len(chunks)/2 {
			s.stop("agg1")
			names = names[1:]
		}
		try := i
		s.until("a chunk is taken", func() error {
			try++
			status, _, body, err := s.request(names[try%len(names)], "POST", "/v1/imports/import/"+begun.Epoch, chunk)
			if err != nil || status != 200 {
				return fmt.Errorf("%d %s %w", status, body, err)
			}
			return nil
		})
	}
	for _, name := range names {
		s.has(name, 12*50)
	}
	s.start("agg1")
	s.has("agg1", 12*50)
}
