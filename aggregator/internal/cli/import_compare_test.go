package cli

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

// A run whose number another one has since is compared under the id that it got.
func TestShownRecords_NumberGivenAgain_ComparesTheRunThatWasRead(t *testing.T) {
	read := newImportSums()
	for n, cores := range map[int]int64{7: 2, 8: 4} {
		start := record.Time(n) * record.Hour
		read.addRecord(&record.Record{ID: fmt.Sprint("nemo-", n), Start: start, Stop: start + record.Hour, Submit: record.None, Components: []record.Component{{Name: "Cores", Amount: cores}}})
	}
	row := func(id, origin string, hour, cores int) []byte {
		return fmt.Appendf(nil, `{"record_id":%q,"origin":%q,"start_time":"1970-01-01T%02d:00:00Z","stop_time":"1970-01-01T%02d:00:00Z","meta":{},"components":[{"name":"Cores","amount":%d,"scores":[]}]}`, id, origin, hour, hour+1, cores)
	}
	rows := [][]byte{
		row("nemo-7", "head/slurm/nemo", 20, 64), row("nemo-8", "import/auditor/nemo", 8, 4),
		row("nemo-7-25200", "import/auditor/nemo", 7, 2), row("nemo-9-1", "import/auditor/nemo", 9, 8),
	}
	for range 2 {
		shown := shownRecords{wanted: read, own: "import/auditor/nemo", moved: map[uint64]bool{}}
		err := shown.readAnswers(func(query url.Values) iter.Seq2[json.RawMessage, error] {
			return func(yield func(json.RawMessage, error) bool) {
				for _, row := range rows {
					if query.Has("open") || !yield(row, nil) {
						return
					}
				}
			}
		})
		lines := compareSums(read, shown.sums)
		if err != nil || shown.others != 0 || slices.ContainsFunc(lines, func(l ComparisonLine) bool { return l.Read != l.Cluster }) {
			t.Errorf("%v, %d of others: %v", err, shown.others, lines)
		}
		slices.Reverse(rows)
	}
}
