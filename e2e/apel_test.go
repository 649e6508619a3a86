//go:build e2e

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

const apelAction = `
action "apel" "egi" {
  config {
    from = "2026-08"
    site "UNI" {
      ids = ["nemo"]
    }
    fields {
      VO         = lookupprefix({ "/atlas" = "atlas" }, record.meta.voms[0])
      SubmitHost = "ce1.example.org"
    }
    directory {
      path = %q
    }
  }
}
`

// post writes a record that ran for an hour on 8 cores.
func post(t *testing.T, agg *site.Aggregator, id, voms, day string) {
	t.Helper()
	body := fmt.Sprintf(`{"record_id":%q,"meta":{"site_id":["nemo"],"voms":[%q]},"components":[{"name":"Cores","amount":8,"scores":[{"name":"HEPscore23","value":10.5}]},{"name":"TotalCPU","amount":100,"scores":[]}],"start_time":"%sT00:00:00Z","stop_time":"%sT01:00:00Z"}`, id, voms, day, day)
	answer, err := http.Post(agg.URL+"/record", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
}

func TestAMonthReachesTheOutgoingDirectoryOfSSM(t *testing.T) {
	s := site.New(t)
	outgoing := t.TempDir()
	agg := s.Aggregator()
	s.Append(agg.Config, fmt.Sprintf(apelAction, outgoing))
	agg.Start()
	agg.AwaitReady()
	post(t, agg, "1", "/atlas/Role=pilot", "2026-08-01")
	post(t, agg, "2", "/atlas", "2026-08-31")
	post(t, agg, "3", "/ops", "2026-08-02")
	plan, err := s.Run("bursar", "actions", "plan", "-address", agg.URL, "apel/egi", "month=2026-08")
	if err == nil || !strings.Contains(plan, "site=UNI month=2026-08 summary") || !strings.Contains(err.Error(), "left out: 3: VO: ") {
		t.Fatalf("%s\n%v", plan, err)
	}
	if files := elements(t, outgoing); len(files) != 0 {
		t.Fatalf("a plan put %v there", files)
	}
	if _, err := s.Run("bursar", "actions", "run", "-address", agg.URL, "apel/egi", "month=2026-08"); err != nil {
		t.Fatal(err)
	}
	s.Eventually(time.Minute, "two messages", func() (bool, string) {
		files := elements(t, outgoing)
		return len(files) == 2, fmt.Sprint(files)
	})
	all := ""
	for _, file := range elements(t, outgoing) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	for _, want := range []string{
		"APEL-sync-message: v0.1\nSite: UNI\nSubmitHost: ce1.example.org\nNumberOfJobs: 2\nMonth: 8\nYear: 2026\n%%\n",
		"WallDuration: 7200\nCpuDuration: 200\nNormalisedWallDuration: {HEPscore23: 75600}\nNormalisedCpuDuration: {HEPscore23: 2100}\nNumberOfJobs: 2\n%%\n",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
	agg.Stop()
}

// elements are the files of a queue that are not being written.
func elements(t *testing.T, queue string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(queue, "????????", "??????????????"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}
