package apitest

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// RecordedByNomad are the records that the Nomad source makes of the recorded cluster of
// ai4-accounting; its own tests hold it to them. The path is that from a package beside
// api.
const RecordedByNomad = "../../../plugins/source/nomad/internal/source/testdata/ai4-records.ndjson"

// RecordedByImport are those that bursar import makes of the snapshots that ai4-accounting
// took of the same cluster.
const RecordedByImport = "../../../plugins/source/ai4/testdata/records.ndjson"

// Recorded is the cluster at the time [RecordedNow] with the records of a file, but for
// those without.
func Recorded(t *testing.T, file string, without ...string) As {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []record.Record
	for line := range bytes.Lines(text) {
		r, err := wire.DecodeRecordJSON(line)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(without, r.ID) {
			list = append(list, r)
		}
	}
	w := New(t)
	w.Options.Now = RecordedNow
	source := record.Origin{Agent: "cloud", Type: "nomad", Label: "ai4"}
	w.Collect(source, list, &store.IngestCommand{
		Facts:      []store.Fact{{Kind: store.FactBegin, Source: source, At: At("2025-01-01")}},
		Watermarks: []store.Watermark{{Source: source, CompleteTo: record.FromStd(RecordedNow())}},
	})
	w.Settings.Directory.Projects = []accounting.Project{{
		ID: "imaging", From: record.None, To: record.None, States: []accounting.ProjectState{{From: record.None, PI: "u3", Groups: []string{"imagine"}}},
	}}
	for i, group := range []string{"ai4eosc", "ai4eosc", "imagine", "ai4life", "imagine", "imagine", "tutorials"} {
		w.Settings.Directory.People = append(w.Settings.Directory.People, accounting.Person{
			ID: fmt.Sprintf("u%d", i+1), Name: fmt.Sprintf("U%d", i+1), Address: fmt.Sprintf("u%d@x", i+1),
			Groups: []accounting.Groups{{From: record.None, Names: []string{group}}},
		})
	}
	w.Keep()
	return As{w, access.Daemon()}
}

// RecordedNow is when the cluster is looked at: the fifth of March, two days after its last
// record.
func RecordedNow() time.Time { return time.Date(2025, 3, 5, 0, 0, 0, 0, time.UTC) }
