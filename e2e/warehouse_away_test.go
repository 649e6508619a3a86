//go:build e2e

package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// While ClickHouse is away, status says so with what to look at; when it is back after what the
// changes name was dropped, the copy is replaced, and the history says why.
func TestWarehouse_AwayLongerThanTheFeedIsKept_IsNamedAndWrittenAnew(t *testing.T) {
	t.Parallel()
	w := makeWarehouse(t, 11)
	w.agg.Settings = "compaction {\n every = \"1s\"\n keep = \"5s\"\n whole = \"1s\"\n}"
	w.begin(w.ch.URL(), `timeout = "5s"`)
	w.fill(300)
	w.shake(100)
	w.arrive()
	cursor := w.ch.MustQuery("SELECT cursor FROM bursar.cursors ORDER BY number DESC LIMIT 1")
	w.ch.Kill()
	w.shake(100)
	w.site.Eventually("status names the action that is away", func() (bool, string) {
		var status v1.Status
		if err := w.agg.Get("/v1/status", &status); err != nil || status.Verdict == nil {
			return false, fmt.Sprint(err)
		}
		for _, f := range status.Findings {
			if f.ID == "action-retrying" && f.About == "warehouse/national" && strings.Contains(f.What, "connection refused") && strings.HasPrefix(f.Do, "bursar actions history warehouse/national ") {
				return true, ""
			}
		}
		return false, fmt.Sprint(status.Findings)
	})
	w.site.Eventually("what the changes name was dropped", func() (bool, string) {
		status, text := w.ask("GET", "/v1/changes?cursor="+url.QueryEscape(cursor), "")
		return status == http.StatusGone, text
	})
	w.ch.Start()
	_, _ = w.agg.Bursar("actions", "run", "warehouse/national") // it waits after failures
	w.says("all rows of the cluster are written anew: the ledger cannot be continued: ")
	w.rest()
	w.agree()
	w.order("check=all", "agree at change")
}
