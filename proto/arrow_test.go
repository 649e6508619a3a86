package proto_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/bursar-accounting/bursar/"

// allowed says which packages of the module a package may import, by prefix of
// its path; the longest prefix of the importer counts.
var allowed = map[string][]string{
	"proto/record":        {"proto/record"},
	"proto":               {"proto"},
	"hcl":                 {"hcl", "proto"},
	"plugins":             {"plugins", "hcl", "proto"},
	"agent":               {"agent", "plugins", "hcl", "proto"},
	"aggregator":          {"aggregator", "plugins", "hcl", "proto"},
	"e2e":                 {"e2e", "proto"},
	"plugins/sdk":         {"plugins/sdk", "hcl", "proto"},
	"aggregator/internal": {"aggregator/internal", "aggregator/packaging", "plugins", "hcl", "proto"},

	// Inside the aggregator only daemon and what starts it know all.
	"aggregator/internal/columns":       {"aggregator/internal/columns", "proto"},
	"aggregator/internal/archive":       {"aggregator/internal/archive", "aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/store":         {"aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/cluster":       {"aggregator/internal/cluster", "proto"},
	"aggregator/internal/calendar":      {"aggregator/internal/calendar", "hcl", "proto"},
	"aggregator/internal/ingest":        {"aggregator/internal/ingest", "proto", "aggregator/internal/calendar", "aggregator/internal/store", "aggregator/internal/columns"},
	"aggregator/internal/health":        {"aggregator/internal/health", "proto", "aggregator/internal/store", "aggregator/internal/columns"},
	"aggregator/internal/sums":          {"aggregator/internal/sums", "aggregator/internal/calendar", "aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/usage":         {"aggregator/internal/usage", "aggregator/internal/sums", "aggregator/internal/calendar", "aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/accounting":    {"aggregator/internal/accounting", "hcl", "aggregator/internal/usage", "aggregator/internal/sums", "aggregator/internal/store", "aggregator/internal/columns", "proto", "aggregator/internal/calendar"},
	"aggregator/internal/erasure":       {"aggregator/internal/erasure", "aggregator/internal/accounting", "aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/completeness":  {"aggregator/internal/completeness", "aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/action":        {"aggregator/internal/action", "aggregator/internal/calendar", "aggregator/internal/store", "aggregator/internal/columns", "plugins", "hcl", "proto"},
	"aggregator/internal/view":          {"proto"},
	"aggregator/internal/report":        {"aggregator/internal/view", "aggregator/internal/store", "aggregator/internal/calendar", "hcl", "proto"},
	"aggregator/internal/compat":        {"aggregator/internal/report", "aggregator/internal/view", "aggregator/internal/calendar", "proto"},
	"aggregator/internal/convert":       {"aggregator/internal/compat", "hcl"},
	"aggregator/internal/audit":         {"aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/access":        {"aggregator/internal/access", "aggregator/internal/enrol", "aggregator/internal/completeness", "aggregator/internal/usage", "aggregator/internal/sums", "aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/enrol":         {"aggregator/internal/enrol", "aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/api":           {"aggregator/internal/audit", "aggregator/internal/erasure", "aggregator/internal/action", "aggregator/internal/enrol", "aggregator/internal/report", "plugins/sdk", "aggregator/internal/archive", "aggregator/internal/api", "aggregator/internal/access", "aggregator/internal/completeness", "aggregator/internal/health", "aggregator/internal/calendar", "aggregator/internal/accounting", "aggregator/internal/usage", "aggregator/internal/sums", "aggregator/internal/store", "aggregator/internal/clusterconfig", "aggregator/internal/columns", "hcl", "proto"},
	"aggregator/internal/membership":    {"aggregator/internal/membership", "aggregator/internal/cluster", "aggregator/internal/store", "aggregator/internal/columns", "proto"},
	"aggregator/internal/clusterconfig": {"aggregator/internal/clusterconfig", "hcl", "aggregator/internal/store", "aggregator/internal/columns", "proto"},
}

func TestImportsFollowTheArrow(t *testing.T) {
	out, err := exec.Command("go", "list", "-tags", "e2e", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) < 15 {
		t.Fatalf("only %d packages were listed", len(lines))
	}
	for _, line := range lines {
		words := strings.Fields(strings.ReplaceAll(line, module, "bursar:"))
		importer, ours := strings.CutPrefix(words[0], "bursar:")
		if !ours {
			continue
		}
		for _, imported := range words[1:] {
			if path, ok := strings.CutPrefix(imported, "bursar:"); ok && !may(importer, path) {
				t.Errorf("%s imports %s, against the arrow", importer, path)
			}
		}
	}
}

func may(importer, imported string) bool {
	best := ""
	for prefix := range allowed {
		if within(importer, prefix) && len(prefix) > len(best) {
			best = prefix
		}
	}
	for _, prefix := range allowed[best] {
		if within(imported, prefix) {
			return true
		}
	}
	return false
}

func within(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
