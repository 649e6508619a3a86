package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

func TestTheSourceKeepsThePromisesOfEverySource(t *testing.T) {
	plugintest.Run(t, plugintest.Options{
		Source: func() sdk.Source { return &source{} },
		Config: plugintest.Block("config", plugintest.Attr("import", []any{absolute(t, "testdata/snapshots")})),
		CheckMapping: func(d *bursarv1.DescribeResponse) error {
			_, diags := mapping.Compile(mapping.Options{Type: "ai4", Label: "x", Attributes: d.GetAttributes(), Default: d.GetMapping()})
			return diags.Err()
		},
	})
}

func TestConfigurationProblemsNameTheirPlace(t *testing.T) {
	for want, children := range map[string][]sdk.Node{
		"import must be set":      nil,
		"is not an absolute":      {{Name: "import", Value: sdk.Strings("/x", "y")}},
		"not the name of a time":  {{Name: "import", Value: sdk.String("/x")}, {Name: "timezone", Value: sdk.String("Nowhere")}},
		`value for "until"`:       {{Name: "import", Value: sdk.String("/x")}, {Name: "until", Value: sdk.String("soon")}},
		`did you mean "timezone"`: {{Name: "import", Value: sdk.String("/x")}, {Name: "timezon", Value: sdk.String("UTC")}},
	} {
		err := (&source{}).Configure(t.Context(), sdk.NewConfig("test", sdk.Node{Name: "config", IsBlock: true, Children: children}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestTheReadmeHasTheMappingAndTheAttributes(t *testing.T) {
	plugintest.Settings(t, new(settings))
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(readme)
	if !strings.Contains(text, "```hcl"+defaultMapping+"```") {
		t.Error("the default mapping is another one")
	}
	for _, a := range jobAttributes() {
		doc := strings.NewReplacer(`"`, "`", "|", `\|`).Replace(a.Doc)
		if line := fmt.Sprintf("| `%s` | %s | %s |", a.Name, a.Type, doc); !strings.Contains(text, line) {
			t.Errorf("no line %s", line)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(`{"ns":[` + one("running", "2025-06-01T01:00:00.5Z", "") + `,{}],"empty":[]}`))
	f.Add([]byte(`{"ns":[` + one("dead", "2025-06-01T01:00:00Z", "2025-06-01T02:00:00.000000001Z") + `]`))
	f.Add([]byte(`{"a":{"b":[]}} x`))
	at := time.Date(2025, 6, 1, 4, 0, 30, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text []byte) {
		h, n := newHistory(), 0
		err := readSnapshot(bytes.NewReader(text), time.UTC, func(s *sighting) { n++; h.addSighting(at, s) }, func(b bad) {
			if b.err == nil || b.where == "" {
				t.Errorf("refused without a place or a reason: %+v", b)
			}
		})
		if err != nil {
			t.Errorf("bytes in memory gave %v", err)
		}
		runs := h.sortedRuns()
		if len(runs) > n {
			t.Errorf("%d runs of %d sightings", len(runs), n)
		}
		for _, r := range runs {
			if job := r.toJob(h.createTime(r), false); job.Run == "" || len(job.Values) != len(jobAttributes()) || r.start.IsZero() {
				t.Error(fmt.Sprint("odd run ", job))
			}
		}
	})
}
