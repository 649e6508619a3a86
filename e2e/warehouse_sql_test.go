//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// TestWarehouse_CurrentEngine_AnswersAsDebians has one aggregator write to Debian's release and
// to the engine of a current one.
func TestWarehouse_CurrentEngine_AnswersAsDebians(t *testing.T) {
	t.Parallel()
	debian, current := newTwins(t, 7)
	for _, state := range []string{"with corrections", "replaced"} {
		for _, w := range []*warehouse{debian, current} {
			if state == "replaced" {
				w.order("replace=all", "agree at change")
			}
			w.agree()
			w.order("check=all", "agree at change")
		}
		for _, statement := range readmeQueries(t) {
			want := debian.figures(statement)
			if len(want) < 2 {
				t.Errorf("%s: no rows", statement)
			}
			current.same(statement, want, current.figures(statement))
		}
	}
	everything := "SELECT cluster, site, month, start_us, stop_us, stop, record_id, seq, sign, state, group_id, user_id, Cores, TotalCPU FROM bursar.ledger ORDER BY month, stop_us, record_id, seq, sign"
	current.same("the ledger", debian.figures(everything), current.figures(everything))
}

// newTwins starts an aggregator with two actions, one for each release, and gives it records
// with corrections and deletions.
func newTwins(t *testing.T, seed uint64) (debian, current *warehouse) {
	t.Helper()
	debian = makeWarehouse(t, seed)
	twin := *debian
	current = &twin
	current.label = "current"
	current.ch = rig.NewCurrentClickHouse(t, debian.site.Address())
	current.ch.Start()
	debian.agg.Add(fmt.Sprintf(warehouseAction, current.label, current.ch.URL(), debian.ch.PasswordFile(), "batch = 500"))
	debian.begin(debian.ch.URL(), "batch = 500")
	debian.fill(1000)
	debian.shake(150)
	debian.rest()
	debian.arrive()
	current.arrive()
	return debian, current
}

// readmeQueries are those that the README of the warehouse shows.
func readmeQueries(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Top(), "plugins/action/warehouse/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllSubmatch(text, -1) {
		list = append(list, string(block[1]))
	}
	if len(list) == 0 {
		t.Fatal("the README has no queries")
	}
	return list
}

// figures are the rows of an answer and the names of its columns, each with its number and
// without zeros behind the point. Rows that end with a zero are left out: of records that were
// deleted one copy may never have had any.
func (w *warehouse) figures(statement string) map[string]string {
	w.Helper()
	out := map[string]string{}
	for line := range strings.SplitSeq(w.ch.MustQuery(statement+" FORMAT TabSeparatedWithNames"), "\n") {
		cells := strings.Split(line, "\t")
		for i := range cells {
			cells[i] = withoutZeros(cells[i])
		}
		if cells[len(cells)-1] != "0" {
			out[fmt.Sprint("row ", len(out))] = strings.Join(cells, "\t")
		}
	}
	return out
}
