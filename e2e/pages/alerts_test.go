//go:build e2e

package pages

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// ruleFiles are the alerts that the packages have.
var ruleFiles = []string{"../../aggregator/packaging/alerts.yaml", "../../agent/packaging/alerts.yaml"}

// promtool runs the tool of Debian's Prometheus.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("/usr/bin/promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

func TestAlerts_EachShippedRule_FiresAndRecovers(t *testing.T) {
	t.Parallel()
	promtool(t, append([]string{"check", "rules"}, ruleFiles...)...)
	cases, err := filepath.Glob("testdata/alerts_*.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatal(cases, err)
	}
	promtool(t, append([]string{"test", "rules"}, cases...)...)
}

// eagerRules copies the alerts without the time for which each must hold.
func (d *desk) eagerRules(t *testing.T) (files []any) {
	t.Helper()
	for i, path := range ruleFiles {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile(`(?m)^ +for: .*\n`).ReplaceAll(text, nil)
		files = append(files, d.lab.Write(fmt.Sprintf("alerts%d.yaml", i), string(text)))
	}
	return files
}

// nodeDown kills the aggregator and starts it again; the alert of a Prometheus follows.
func (d *desk) nodeDown(base string) {
	fires := func(want bool) func() (bool, string) {
		return func() (bool, string) {
			var got result
			err := ask(base+"query?query="+url.QueryEscape(`ALERTS{alertname="BursarNodeDown", alertstate="firing"}`), &got)
			return err == nil && len(got.Result) > 0 == want, fmt.Sprint(got, err)
		}
	}
	d.lab.Eventually("no alert of a node that answers", fires(false))
	d.lab.Agg.Kill()
	d.lab.Eventually("the alert of a node that is down", fires(true))
	d.lab.Agg.Start()
	d.lab.Eventually("the end of the alert", fires(false))
}
