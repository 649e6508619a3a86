package source_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/mapping"
)

// TestRecordBlock_OfTheReadme_NamesVOsOfIssuers maps ads as a CE leaves them.
func TestRecordBlock_OfTheReadme_NamesVOsOfIssuers(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```hcl\nrecord {\n")
	body, _, found := strings.Cut(rest, "\n}\n```")
	file, diags := hcl.Parse("README.md", []byte(body))
	if !found || diags.HasErrors() {
		t.Fatal(found, diags)
	}
	ads := []struct{ ad, vo string }{
		{`orig_AuthTokenIssuer = "https://atlas-auth.cern.ch/"`, "atlas"},
		{`AuthTokenIssuer = "https://cms-auth.cern.ch/"`, "cms"},
		{"orig_AuthTokenIssuer = \"https://cms-auth.cern.ch/\"\nAuthTokenIssuer = \"ce1.example.org\"", "cms"},
		{`orig_AuthTokenIssuer = "https://other.example.org/"`, ""},
		{"x509UserProxyVOName = \"lhcb\"\nAuthTokenIssuer = \"https://cms-auth.cern.ch/\"", "lhcb"},
		{`x509UserProxyFirstFQAN = "/ops/Role=NULL"`, "ops"},
		{"RequestCpus = 1", ""},
	}
	var history strings.Builder
	var want, got []string
	for i, a := range ads {
		begin := history.Len()
		fmt.Fprintf(&history, "GlobalJobId = \"ce1#%d.0#90\"\nClusterId = %d\nProcId = 0\nOwner = \"pilot\"\nQDate = 90\nJobUniverse = 5\nJobStatus = 4\nCpusProvisioned = 1\n"+
			"JobCurrentStartDate = 100\nCompletionDate = %d\nEnteredCurrentStatus = %d\nNumShadowStarts = 1\n%s\n", i+1, i+1, 200+i, 200+i, a.ad)
		fmt.Fprintf(&history, "*** Offset = %d ClusterId = %d ProcId = 0 Owner = \"pilot\" CompletionDate = %d\n", begin, i+1, 200+i)
		want = append(want, a.vo)
	}
	d, collected := look(t, history.String(), "")
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: "grid", Attributes: d.GetAttributes(), Default: d.GetMapping(), Record: file.Body})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, j := range collected.Jobs() {
		r, keep, err := m.Map(j)
		if err != nil || !keep {
			t.Fatal(keep, err)
		}
		got = append(got, strings.Join(r.Meta.Get("vo"), ","))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("VOs (-want +got):\n%s", diff)
	}
}
