package sdk

import (
	"fmt"
	"strings"
	"testing"
)

func TestFindings_MoreThanAJobMayHave_AreNamedByTheLast(t *testing.T) {
	for _, n := range []int{0, 1, MaxFindings, MaxFindings + 1, 40} {
		var all []Finding
		for i := range n {
			all = append(all, Finding{Kind: "column-unread", About: fmt.Sprintf("key%02d", i), What: "it is not read", Do: "rename it"})
		}
		out := encodeJob(&Job{Findings: all}).GetFindings()
		if len(out) != min(n, MaxFindings) {
			t.Fatalf("%d of %d", len(out), n)
		}
		var said strings.Builder
		for _, f := range out {
			said.WriteString(f.GetAbout() + " " + f.GetWhat() + "\n")
		}
		for _, f := range all {
			if !strings.Contains(said.String(), f.About) {
				t.Errorf("of %d: %s is not named in\n%s", n, f.About, said.String())
			}
		}
		if len(all) != n {
			t.Error("the job was changed")
		}
	}
}
