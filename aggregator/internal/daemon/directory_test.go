package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/racetest"
)

// people are files with a directory of a large site; the classes of hosts have a
// factor.
func people(t *testing.T, users int, factor string) *clusterconfig.Document {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("user,group,project,pi,name,email\n")
	for i := range users {
		fmt.Fprintf(&rows, "u%05d,g%03d,p%02d,pi%02d,User %d of the site,u%05d@example.org\n", i, i%400, i%40, i%40, i, i)
	}
	dir := t.TempDir()
	text := `aggregator {
  name     = "x"
  data_dir = "/d"
  usage { dimensions = ["group_id", "host_class"] }
}
directory { files = ["people.csv"] }
host_class "node" {
  pattern   = "^node-"
  su_factor = ` + factor + `
}
`
	for name, text := range map[string]string{"people.csv": rows.String(), "a.hcl": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, _, diags := config.Load(filepath.Join(dir, "a.hcl"))
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return c.Shared()
}

// valued waits until a node answers what was used by project and class.
func (s *site) valued(name, want string) {
	s.t.Helper()
	s.until(name+" values what was used", func() error {
		_, _, text, err := s.request(name, "GET", "/v1/usage?window=2023-02&by=project,pi,host_class&measure=su", "")
		if err != nil {
			return err
		}
		var a struct {
			Groups   []struct{ Values []string }
			Measures []struct{ Total json.Number }
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil || len(a.Groups) != 1 || len(a.Measures) != 1 {
			return errors.Join(err, errors.New(text))
		}
		if got := fmt.Sprintf("%v %s", a.Groups[0].Values, a.Measures[0].Total); got != want {
			return errors.New(got)
		}
		return nil
	})
}

func TestAllNodesHaveADirectoryOfTwentyThousandUsers(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	files := people(t, racetest.Few(20_000), "1.5")
	s.tune = func(set *daemon.Settings) { set.Files = files }
	s.start("agg1", "agg2", "agg3")
	record := `{"record_id":"r","meta":{"group_id":["g041"],"host":["node-7"]},"components":[{"name":"Cores","amount":8,"scores":[]}],"start_time":"2023-02-24T00:00:00Z","stop_time":"2023-02-24T01:00:00Z"}`
	s.until("a record is posted", func() error {
		status, _, answer, err := s.request("agg2", "POST", "/record", record)
		if err == nil && status != 200 && answer != "RECORD_EXISTS" {
			err = errors.New(answer)
		}
		return err
	})
	for name := range s.nodes {
		s.valued(name, "[p01 pi01 node] 12")
	}
	first := s.config("agg1", 3)

	// Another factor, committed through any node, changes what is reported and no record.
	left := racetest.Few(19_000)
	next := people(t, left, "2.5")
	s.until("the other factor is committed", func() error {
		status, _, answer, err := s.request("agg3", "PUT", "/v1/config?replaces="+first.Digest, string(next.Encode()))
		if err == nil && status >= http.StatusInternalServerError { // the leader changed: whether it was committed is unknown
			err = errors.New(answer)
		}
		return err // a refusal of the second try says that the first one was committed, and the figures below whether it was
	})
	for name := range s.nodes {
		s.valued(name, "[p01 pi01 node] 20")
	}
	_, _, answer, err := s.request("agg2", "GET", "/v1/directory", "")
	if n := strings.Count(answer, `@example.org"`); err != nil || n != left {
		t.Error(n, err)
	}
}
