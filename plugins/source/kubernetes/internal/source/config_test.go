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
	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

func configure(nodes ...sdk.Node) error {
	for i := range nodes {
		nodes[i].Range.File = "agent.hcl"
		nodes[i].Range.Start.Line = i + 1
	}
	return New(slog.New(slog.DiscardHandler)).Configure(context.Background(), sdk.NewConfig("k8s", sdk.Node{IsBlock: true, Children: nodes}))
}

func TestConfig_WithoutKubeconfig_IsAWarning(t *testing.T) {
	var got sdk.Diagnostics
	if err := configure(); err != nil && (!errors.As(err, &got) || got.HasErrors()) {
		t.Error(err)
	}
}

func TestConfig_Mistakes_AreToldTogetherWithTheirPlaces(t *testing.T) {
	address := text("address", "prometheus:9090")
	address.Range = sdk.Range{File: "agent.hcl", Start: sdk.Pos{Line: 8}}
	err := configure(
		text("runs", "jobs"), text("labels", "a in b"), list("exclude_namespaces", "a", ""), text("namespace", "a"), text("page_size", "many"),
		text("list_interval", "1ms"), text("earliest", "soon"),
		sdk.Node{Name: "prometheus", IsBlock: true, Children: []sdk.Node{address}})
	var got sdk.Diagnostics
	if !errors.As(err, &got) {
		t.Fatal(err)
	}
	lines := map[int]string{}
	for _, d := range got {
		lines[d.Subject.Start.Line] += d.Summary + ": " + d.Detail
	}
	for line, want := range map[int]string{1: "jobs", 2: "unable to parse", 3: "cannot be empty", 4: "namespace", 5: "number", 6: "must be between", 7: "soon", 8: "invalid address"} {
		if !strings.Contains(lines[line], want) || lines[line] == "" {
			t.Errorf("line %d: %q, want %q in it", line, lines[line], want)
		}
	}
}

func TestConfig_Filters_AreAppliedTogether(t *testing.T) {
	cfg := sdk.NewConfig("k8s", sdk.Node{IsBlock: true, Children: []sdk.Node{list("exclude_namespaces", "kube-*"), text("labels", "tier=batch,!internal")}})
	c := readConfig(cfg)
	if err := cfg.Err(); err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct {
		namespace string
		labels    map[string]string
		want      bool
	}{
		{"phys", map[string]string{"tier": "batch"}, true}, {"kube-system", map[string]string{"tier": "batch"}, false},
		{"phys", nil, false}, {"phys", map[string]string{"tier": "batch", "internal": ""}, false},
	} {
		if got := c.wantsPod(&kube.Meta{Namespace: m.namespace, Labels: m.labels}); got != m.want {
			t.Errorf("%s %v: %t, want %t", m.namespace, m.labels, got, m.want)
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

func TestReadme_HasEveryAttribute(t *testing.T) {
	text, seen := readme(t), map[string]bool{}
	for _, a := range run.Attributes() {
		if row := "| `" + a.Name + "` | " + a.Type.String() + " | " + a.Doc + " |"; !strings.Contains(text, row) {
			t.Errorf("README.md lacks the row\n%s", row)
		}
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
	if !strings.Contains(text, Mapping) {
		t.Error("README.md does not show the default mapping as it is")
	}
}

func TestReadme_HasEverySetting(t *testing.T) {
	plugintest.Settings(t, new(settings))
}

func TestCheckpoint_Written_IsReadAgain(t *testing.T) {
	for _, c := range []checkpoint{{}, {Versions: map[string]string{"": "47", "phys": "48"}, Reach: journal.Reach{Look: noon(), Journal: "9f86", Told: facts.Told{Capacity: "a"}}, Granted: []string{"a", "b"}}} {
		got, err := decodeCheckpoint(c.encodeWire())
		if err != nil || !cmp.Equal(c, got) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	const golden = `{"v":1,"versions":{"":"47"},"look":1778414400000000,"journal":"9f86","told":{"capacity":"a"}}`
	c := checkpoint{Versions: map[string]string{"": "47"}, Reach: journal.Reach{Look: noon(), Journal: "9f86", Told: facts.Told{Capacity: "a"}}}
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
	f.Add([]byte(`{"v":1,"versions":{"":"47"},"look":1778414400000000,"journal":"9f86"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCheckpoint(b)
		if err != nil || len(b) == 0 {
			return
		}
		if again, err := decodeCheckpoint(c.encodeWire()); err != nil || string(again.encodeWire()) != string(c.encodeWire()) {
			t.Errorf("%+v: %+v, %v", c, again, err)
		}
	})
}

func TestReadme_ComponentsOfItsExamples_Compile(t *testing.T) {
	d, err := plugintest.Serve(t, func() sdk.Source { return New(slog.New(slog.DiscardHandler)) }).Describe(t.Context(), &bursarv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```hcl\n(component .*?)```").FindAllStringSubmatch(readme(t), -1)
	if len(examples) == 0 {
		t.Error("README.md has no example of a component")
	}
	for _, x := range examples {
		file, diags := hcl.Parse("README.md", []byte(x[1]))
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		_, diags = mapping.Compile(mapping.Options{Type: d.GetType(), Attributes: d.GetAttributes(), Default: d.GetMapping(), Record: file.Body})
		if len(diags) > 0 {
			t.Errorf("%s%v", x[1], diags)
		}
	}
}

// A site names by labels of namespaces what pods need not name, and cannot name for others.
func TestMapping_LabelOfNamespace_IsInTheRecordWhateverThePodSays(t *testing.T) {
	file, diags := hcl.Parse("agent.hcl", []byte(`
meta = {
  cost_center = job.namespace_labels["cost-center"]
  team        = try(job.labels["team"], job.namespace_labels["team"], null)
  stage       = try(job.namespace_labels["stage"], "none")
}`))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	a, b, elsewhere := pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)), pod("phys", "b", kube.Succeeded, over(0, 1, 9, 0)), pod("chem", "c", kube.Succeeded, over(0, 1, 9, 0))
	a.Metadata.Labels = map[string]string{"user": "alice", "cost-center": "mine", "team": "theory"}
	d, got := look(t, []kube.Pod{a, b, elsewhere},
		kube.Namespace{Metadata: kube.Meta{Name: "phys", Labels: map[string]string{"cost-center": "4711", "team": "physics"}}},
		kube.Namespace{Metadata: kube.Meta{Name: "chem", Labels: map[string]string{"cost-center": "4712", "stage": "test"}}})
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: "test", Attributes: d.GetAttributes(), Default: d.GetMapping(), Record: file.Body})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, job := range got.Jobs() {
		r, keep, err := m.Map(job)
		if err != nil || !keep {
			t.Fatal(keep, err)
		}
		pod := strings.Join(r.Meta.Get("pod"), ",")
		said := [3]string{strings.Join(r.Meta.Get("cost_center"), ","), strings.Join(r.Meta.Get("team"), ","), strings.Join(r.Meta.Get("stage"), ",")}
		if want := map[string][3]string{"a": {"4711", "theory", "none"}, "b": {"4711", "physics", "none"}, "c": {"4712", "", "test"}}[pod]; said != want {
			t.Errorf("pod %s: %q, want %q", pod, said, want)
		}
	}
	if len(got.Jobs()) != 3 {
		t.Errorf("%d jobs", len(got.Jobs()))
	}
}
