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

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

func configure(nodes ...sdk.Node) error {
	for i := range nodes {
		nodes[i].Range.File = "agent.hcl"
		nodes[i].Range.Start.Line = i + 1
	}
	return New(slog.New(slog.DiscardHandler)).Configure(context.Background(), sdk.NewConfig("cloud", sdk.Node{IsBlock: true, Children: nodes}))
}

func TestAnEmptyConfigurationIsRight(t *testing.T) {
	if err := configure(); err != nil {
		t.Error(err)
	}
}

func TestTheEnvironmentOfNomadsOwnProgramsCounts(t *testing.T) {
	t.Setenv("NOMAD_ADDR", "http://10.0.0.1:4646")
	t.Setenv("NOMAD_TOKEN", "secret")
	c := readConfig(sdk.NewConfig("cloud", sdk.Node{IsBlock: true}))
	if c.server.Address != "http://10.0.0.1:4646" || c.server.Token != "secret" {
		t.Errorf("%+v", c.server)
	}
}

func TestWhatIsWrongInTheConfigurationIsToldTogetherWithItsPlace(t *testing.T) {
	err := configure(
		text("address", "nomad:4646"), text("token", "a"), text("token_file", "b"), text("cert", "c"), text("list_interval", "1ms"),
		text("lost", "never"), list("namespaces", "a", ""), text("namespace", "a"), text("per_page", "many"), text("queue", "pool"), text("earliest", "soon"))
	var got sdk.Diagnostics
	if !errors.As(err, &got) {
		t.Fatal(err)
	}
	lines := map[int]string{}
	for _, d := range got {
		lines[d.Subject.Start.Line] += d.Summary + ": " + d.Detail
	}
	for line, want := range map[int]string{
		1: "not an address", 3: "one of token", 4: "set both", 5: "must be between 100ms and 1h", 6: "never", 7: "cannot be empty", 8: "namespace", 9: "number", 10: "pool", 11: "soon",
	} {
		if !strings.Contains(lines[line], want) || lines[line] == "" {
			t.Errorf("line %d: %q, want %q in it", line, lines[line], want)
		}
	}
}

func TestPatternsMatchWholeNames(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{{"module-*", "module-a/dispatch-1", true}, {"module-*", "a-module-a", false}, {"a?c", "abc", true}, {"a.c", "abc", false}, {"*", "", true}, {"a", "ab", false}} {
		var p pattern
		if err := p.UnmarshalText([]byte(c.pattern)); err != nil || p.MatchString(c.name) != c.want {
			t.Errorf("%q on %q: %v, want %v", c.pattern, c.name, !c.want, c.want)
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
	for _, a := range run.Attributes() {
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
	if !strings.Contains(readme(t), Mapping) {
		t.Error("README.md does not show the default mapping as it is")
	}
}

func TestEveryAttributeHasAnIdentifierOfItsOwnAndAMeaning(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range run.Attributes() {
		if seen[a.Name] || !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`).MatchString(a.Name) || a.Doc == "" || a.Type == 0 {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
	}
	for _, m := range regexp.MustCompile(`job\.(\w+)`).FindAllStringSubmatch(Mapping, -1) {
		if !seen[m[1]] {
			t.Errorf("the default mapping names job.%s, which is none", m[1])
		}
	}
}

func TestACheckpointIsReadAsItWasWritten(t *testing.T) {
	for _, c := range []checkpoint{{}, {Index: 47, Reach: journal.Reach{Look: noon(), Journal: "9f86", Told: facts.Told{Capacity: "a", Directory: "b"}}}} {
		got, err := decodeCheckpoint(c.encodeWire())
		if err != nil || !cmp.Equal(c, got) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	const golden = `{"v":1,"index":47,"look":1778414400000000,"journal":"9f86","told":{"capacity":"a"}}`
	c := checkpoint{Index: 47, Reach: journal.Reach{Look: noon(), Journal: "9f86", Told: facts.Told{Capacity: "a"}}}
	if got := string(c.encodeWire()); got != golden {
		t.Errorf("%s, want %s", got, golden)
	}
	for _, bad := range []string{"x", "{}", `{"v":2}`, `{"v":1,"look":-1}`, strings.Repeat(" ", 4<<20+1)} {
		if _, err := decodeCheckpoint([]byte(bad)); err == nil {
			t.Errorf("%.20q was taken", bad)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(`{"v":1,"index":47,"look":1778414400000000,"journal":"9f86"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCheckpoint(b)
		if err != nil || len(b) == 0 {
			return
		}
		if again, err := decodeCheckpoint(c.encodeWire()); err != nil || !cmp.Equal(c, again) {
			t.Errorf("%+v: %+v, %v", c, again, err)
		}
	})
}
