//go:build e2e

package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/rig"
)

// libraryFolders are the folders of scripts in the cache: the versions that are pinned in
// npm_packages of e2e/setup.sh, and no others that may be there.
func libraryFolders() map[string]string {
	return map[string]string{"axe": "axe-core-4.14.1", "jsonata": "jsonata-2.2.2"}
}

// Library is the text of a script that e2e/setup.sh has fetched: axe or jsonata.
func Library(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rig.Cache(), libraryFolders()[name], name+".min.js"))
	if err != nil {
		t.Fatalf("%s is missing: %v; run e2e/setup.sh browser", name, err)
	}
	return string(text)
}

// Violation is something that axe-core finds in a page.
type Violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// Serious reports whether it keeps someone from using the page.
func (v Violation) Serious() bool { return v.Impact == "serious" || v.Impact == "critical" }

func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s, %d times", v.ID, v.Impact, v.Help, len(v.Nodes))
	for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
		fmt.Fprintf(&b, "\n    %.300s\n      %s", n.HTML, strings.ReplaceAll(n.Summary, "\n", " "))
	}
	return b.String()
}

// axeRun asks for what is wrong, in the first rows of tables, for the others are like
// them. Something is selected meanwhile: a page that renews itself does not do so under
// the hands of someone who selects.
const axeRun = `(async () => {
  getSelection().selectAllChildren(document.querySelector("h1"));
  const found = await axe.run({ include: document, exclude: "tbody tr:nth-child(n+9)" }, { resultTypes: ["violations"], preload: false%s });
  getSelection().removeAllRanges();
  return found.violations;
})()`

// Violations returns what axe-core finds in the page: of its colours only, or all.
func (tab *Tab) Violations(axe string, colours bool) []Violation {
	tab.t.Helper()
	only := ""
	if colours {
		only = `, runOnly: ["color-contrast", "link-in-text-block"]`
	}
	if !Eval[bool](tab, `"axe" in window`) {
		Eval[bool](tab, axe+"\n;true")
	}
	return Eval[[]Violation](tab, fmt.Sprintf(axeRun, only))
}
