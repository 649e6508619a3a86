//go:build e2e

package e2e_test

import (
	"encoding/csv"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// subscriptionOf are the lines of a report's first table, as the columns that are named.
func subscriptionOf(t *testing.T, s *site.Site, columns []string, args ...string) map[string]string {
	t.Helper()
	out, err := s.Run("bursar", append([]string{"report", "subscription", "-period", "2012-10", "-format", "csv"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(out, "\n\n")
	rows, err := csv.NewReader(strings.NewReader(first)).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatal(err, out)
	}
	lines := map[string]string{}
	for _, row := range rows[1:] {
		var cells []string
		for i, name := range rows[0] {
			if slices.Contains(columns, name) {
				cells = append(cells, cut(row[i]))
			}
		}
		lines[row[0]] = strings.Join(cells, " ")
	}
	return lines
}

// cut is a figure with up to seven characters, and without zeros at its end.
func cut(text string) string {
	if strings.Contains(text, ".") {
		return strings.TrimRight(strings.TrimRight(text[:min(len(text), 7)], "0"), ".")
	}
	return text
}

// A site that replaces ClusterAccountant sees its October as that program showed it, of
// its files, and what bursar says of the same jobs by its tables, converted: with the run of a number that came
// again and the line of 45 fields, both Sagan's, and with contributions from their dates
// on.
func TestClusterAccountant_OctoberFromItsFiles_IsItsReport(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	agg := s.Aggregator()
	files := filepath.Join(site.Top(), "aggregator/internal/accounting/testdata/gridengine")
	agg.Add(converted(t, s, filepath.Join(files, "tables.sql")))
	agg.Start()
	agg.AwaitReady()
	accounting := filepath.Join(files, "accounting")
	agg.Import("katana", "gridengine", accounting)
	want := map[string]string{
		"bell": "13.9997 1200", "phys": "30.9138 1489.35", "sagan": "20.2777 496.451", "guests": "5 800 exempt", "turing": "1 0 over", "darwin": "0 0",
	}
	got := subscriptionOf(t, s, []string{"used", "contributed", "state"}, "-address", agg.Admin(), "-credit", "stop")
	for pi := range got {
		got[pi] = strings.TrimSpace(got[pi])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exact, -want +got\n%s", diff)
	}
	want = map[string]string{
		"Bell": "13.9997 1200 89% 89% ✗", "Physics": "30.9138 1710 138% 138% ✗", "Sagan": "14.5 570 194% 194% ✗", "Guests": "5 800 N/A 48% ✓",
		"Turing": "1 0 Over Over ✗", "Darwin": "0 1520  Under ✗", "CAS": "0 0  N/A ✗",
	}
	got = subscriptionOf(t, s, []string{"used", "contributed", "page", "text", "exempt"}, "-compat", "clusteraccountant", "-accounting", accounting, "-tables", filepath.Join(files, "tables.sql"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("compatible, -want +got\n%s", diff)
	}
}
