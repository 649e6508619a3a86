package source

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

func configure(nodes ...sdk.Node) error {
	for i := range nodes {
		nodes[i].Range.File = "agent.hcl"
		nodes[i].Range.Start.Line = i + 1
	}
	return New(slog.New(slog.DiscardHandler)).Configure(context.Background(), sdk.NewConfig("nemo", sdk.Node{IsBlock: true, Children: nodes}))
}

func TestAnEmptyConfigurationIsRight(t *testing.T) {
	if err := configure(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrongInTheConfigurationIsToldTogetherWithItsPlace(t *testing.T) {
	err := configure(
		text("sacct", "sacct"), text("slurm_conf", "etc/slurm.conf"), list("states", "COMPLETED", "RUNNING"), text("window", "1s"),
		text("timeout", "soon"), text("earliest", "yesterday"), list("users", "alice,bob"), list("ignore_stderr", ""),
		text("partition", "cpu"), text("lag", "-1s"), list("clusters", ""), text("args", "--state=CD"),
		text("scontrol", "scontrol"), text("capacity_interval", "2d"))
	var got sdk.Diagnostics
	if !errors.As(err, &got) {
		t.Fatal(err)
	}
	lines := map[int]string{}
	for _, d := range got {
		lines[d.Subject.Start.Line] += d.Summary + ": " + d.Detail
	}
	for line, want := range map[int]string{
		1: "absolute", 2: "absolute", 3: "RUNNING", 4: "must be between 1m and 366d", 5: "soon", 6: "yesterday", 7: "alice,bob", 8: "empty text",
		9: "partition", 10: "", 11: "not a name", 12: "args", 13: "absolute", 14: "must be at most 24h",
	} {
		if !strings.Contains(lines[line], want) || lines[line] == "" {
			t.Errorf("line %d: %q, want %q in it", line, lines[line], want)
		}
	}
}

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// table returns the first cells of the rows of a section's table.
func table(text, section string) []string {
	_, text, _ = strings.Cut(text, "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var out []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^|]+)` \\|").FindAllStringSubmatch(text, -1) {
		out = append(out, strings.Split(m[1], "`, `")...)
	}
	return out
}

func TestTheReadmeHasEveryAttributeWithTypeAndMeaning(t *testing.T) {
	text := readme(t)
	var want []string
	for _, a := range job.Attributes() {
		want = append(want, a.Name)
		if row := "| `" + a.Name + "` | " + a.Type.String() + " | " + a.Doc + " |"; !strings.Contains(text, row) {
			t.Errorf("README.md lacks the row\n%s", row)
		}
	}
	if diff := cmp.Diff(want, table(text, "Attributes")); diff != "" {
		t.Error(diff)
	}
}

func TestTheReadmeHasEveryKeyOfTheConfiguration(t *testing.T) {
	plugintest.Settings(t, new(settings))
}

func TestTheReadmeShowsTheDefaultMapping(t *testing.T) {
	if !strings.Contains(readme(t), job.Mapping) {
		t.Error("README.md does not show the default mapping as it is")
	}
}

func TestEveryAttributeHasAnIdentifierOfItsOwnAndAMeaning(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range job.Attributes() {
		if seen[a.Name] || !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`).MatchString(a.Name) || a.Doc == "" || a.Type == 0 {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
	}
	for _, m := range regexp.MustCompile(`job\.(\w+)`).FindAllStringSubmatch(job.Mapping, -1) {
		if !seen[m[1]] {
			t.Errorf("the default mapping names job.%s, which is none", m[1])
		}
	}
}

// The record block of the language's README is one of this source.
func TestRecordBlock_OfTheLanguagesReadme_Compiles(t *testing.T) {
	text, err := os.ReadFile("../../../../../hcl/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```hcl\nrecord {\n")
	body, _, found := strings.Cut(rest, "\n}\n```")
	file, diags := hcl.Parse("README.md", []byte(body))
	if !found || diags.HasErrors() {
		t.Fatal(found, diags)
	}
	d, err := plugintest.Serve(t, func() sdk.Source { return New(slog.New(slog.DiscardHandler)) }).Describe(t.Context(), &bursarv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, diags = mapping.Compile(mapping.Options{
		Agent: "head1", Type: d.GetType(), Label: "nemo", Attributes: d.GetAttributes(), Default: d.GetMapping(), Record: file.Body,
	})
	if len(diags) > 0 {
		t.Error(diags)
	}
}
