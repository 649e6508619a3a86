package api

import (
	"encoding/json"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	v1 "github.com/bursar-accounting/bursar/proto/v1"

	"github.com/bursar-accounting/bursar/proto/record"
)

// openRunsHead is the first line of /v1/changes/open.
type openRunsHead struct {
	Cluster string  `json:"cluster"`
	Epoch   string  `json:"epoch"`
	Last    uint64  `json:"last"`
	Now     v1.Time `json:"now"`
}

// openRunsEnd is the last line.
type openRunsEnd struct {
	Records uint64          `json:"records"`
	Digests []v1.OpenDigest `json:"digests"`
}

// v1OpenRuns is GET /v1/changes/open: the records that go on, of one state, with the time up to
// which usage counts each.
func (s *Server) v1OpenRuns(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if _, err := decodeQuery[struct {
		v1.Reading
		Format string `query:"format" enum:"ndjson"`
	}](r); err != nil {
		return err
	}
	epoch, err := view.Epoch(archive.Epoch)
	if err != nil {
		return err
	}
	cluster, _ := view.Cluster()
	now := s.currentTime()
	out := newStream(w, r, "application/x-ndjson")
	out.lease.Also(streamBytes)
	out.buf = appendJSONLine(out.buf, openRunsHead{cluster, epoch, view.Seq(), v1.Stamp(now)})
	end := openRunsEnd{Digests: []v1.OpenDigest{}}
	digests, err := view.OpenRuns(r.Context(), now, func(row *columns.Row, until record.Time) error {
		out.buf = append(append(append(out.buf, `{"counted_to":"`...), until.String()...), `","record":`...)
		if out.buf = append(row.AppendV1(out.buf), "}\n"...); len(out.buf) < pieceSize {
			return nil
		}
		return out.flush()
	})
	if err == nil {
		for i := range digests {
			d := &digests[i]
			end.Records += d.Records
			end.Digests = append(end.Digests, v1.OpenDigest{Site: v1.Text(d.Site), Records: d.Records, CoreSeconds: string(d.CoreSeconds.AppendDecimal(nil))})
		}
		out.buf = appendJSONLine(out.buf, end)
		err = out.flush()
	}
	return s.endStream(r, out, err)
}

// appendJSONLine appends a value that has a JSON text.
func appendJSONLine(b []byte, value any) []byte {
	text, _ := json.Marshal(value) // of texts, numbers and times
	return append(append(b, text...), '\n')
}
