package run

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/agent/internal/programs"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// documented are the lines of the table of METRICS.md that the agent's metrics make.
func documented(t *testing.T) (lines []string) {
	t.Helper()
	a := &Agent{runner: programs.NewRunner(programs.Options{}), keys: identitytest.New(t).Keys(identity.Agent, "a1")}
	descs := make(chan *prometheus.Desc, 1000)
	for _, c := range a.newCollectors() {
		c.Describe(descs)
	}
	close(descs)
	form := regexp.MustCompile(`fqName: "(bursar_[^"]+)", help: "((?:[^"\\]|\\.)*)".*variableLabels: \{([^}]*)\}`)
	for d := range descs {
		if m := form.FindStringSubmatch(d.String()); m != nil {
			labels := strings.ReplaceAll(m[3], ",", ", ")
			if labels == "" {
				labels = "–"
			}
			lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", m[1], labels, m[2]))
		}
	}
	slices.Sort(lines)
	return lines
}

func TestMetricsDocHasEveryMetricOfAnAgent(t *testing.T) {
	text, err := os.ReadFile("../../METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	var has []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			has = append(has, strings.TrimSpace(line))
		}
	}
	want := documented(t)
	if !slices.Equal(has, want) {
		t.Errorf("METRICS.md has\n%s\nand not\n%s", strings.Join(has, "\n"), strings.Join(want, "\n"))
	}
}
