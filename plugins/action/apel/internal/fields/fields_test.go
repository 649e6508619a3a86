package fields_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/fields"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
	"github.com/bursar-accounting/bursar/proto/record"
)

func expr(text string) fields.Source {
	at := hcl.Pos{Line: 7, Column: 12, Byte: 100}
	return fields.Source{Text: text, At: hcl.Range{Filename: "aggregator.hcl", Start: at, End: at}}
}

func constant(v cty.Value) fields.Source { return fields.Source{Value: v} }

func compile(t *testing.T, c fields.Config) *fields.Set {
	t.Helper()
	set, diags := fields.Compile(c)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return set
}

var stop = record.FromStd(time.Date(2026, 8, 24, 3, 41, 35, 600e6, time.UTC))

func sample() *record.Record {
	return &record.Record{
		ID: "nemo-1", Start: stop - 11617*record.Second, Stop: stop,
		Meta: record.Meta{
			{Key: "headnode", Values: []string{"ce1.example.org"}}, {Key: "partition", Values: []string{"gpu"}},
			{Key: "user_id", Values: []string{"alice"}}, {Key: "voms", Values: []string{"/atlas/Role=production", "/atlas"}},
		},
		Components: []record.Component{
			{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPScore23", Value: 10.5}, {Name: "hepspec", Value: 9}}},
			{Name: "TotalCPU", Amount: 50_500, Kind: record.Total},
		},
	}
}

func base() fields.Config {
	return fields.Config{
		Fields:     map[string]fields.Source{"VO": constant(cty.StringVal("atlas")), "SubmitHost": expr(`record.meta.headnode[0]`)},
		Benchmarks: []fields.Benchmark{{Name: "HEPscore23"}},
	}
}

func with(name, text string) fields.Config {
	c := base()
	c.Fields[name] = expr(text)
	return c
}

func TestDefaultsGiveAWholeJob(t *testing.T) {
	j, err := compile(t, base()).Job("UNI", sample())
	if err != nil {
		t.Fatal(err)
	}
	if j.Site != "UNI" || j.VO != "atlas" || j.SubmitHost != "ce1.example.org" || j.Processors != 8 || j.WallDuration != 11617 ||
		j.CPUDuration != 50_500 || j.LocalJobID != "nemo-1" || j.EndTime != 1787542895 || j.StartTime != 1787542895-11617 {
		t.Errorf("%+v", j)
	}
	if j.NormalisedWall[0] != (message.Amount{Benchmark: "HEPscore23", Value: 121978}) || j.NormalisedCPU[0].Value != 530250 {
		t.Errorf("%+v", j) // 11617 × 10.5 = 121978.5, half to even
	}
	if len(j.ServiceLevels) != 1 || j.ServiceLevels[0].Value != 10.5 {
		t.Errorf("%+v", j.ServiceLevels)
	}
	if err := month.New("UNI", month.Of(stop.Std())).Add(j); err != nil {
		t.Error(err)
	}
}

// Each of AUDITOR's field types, as the README translates it.
func TestAUDITORsFieldTypesCanAllBeWritten(t *testing.T) {
	for _, c := range []struct{ what, field, text, want string }{
		{"ComponentField", "CpuDuration", `record.components.TotalCPU.amount`, "50500"},
		{"ComponentField with divide_by", "CpuDuration", `round(record.components.TotalCPU.amount / 1000)`, "50"}, // 50.5, half to even
		{"MetaField", "VO", `try(record.meta.voms[0], "None")`, "/atlas/Role=production"},
		{"MetaField without the key", "VO", `try(record.meta.none[0], "None")`, "None"},
		{"MetaField with regex", "VO", `try(regex("[a-z]+", record.meta.voms[0]), "None")`, "atlas"},
		{"MetaField whose regex does not match", "VO", `try(regex("[0-9]+", record.meta.voms[0]), "None")`, "None"},
		{"MetaField with vo_mapping", "VO", `lookupprefix({ "/atlas" = "atlas", "/atlas/Role=production" = "prod", "/cms" = "cms" }, record.meta.voms[0], "None")`, "prod"},
		{"MetaField with vo_mapping of another", "VO", `lookupprefix({ "/cms" = "cms" }, try(record.meta.voms[0], ""), "None")`, "None"},
		{"ScoreField", "NodeCount", `record.components.Cores.scores.hepspec`, "9"},
		{"RecordField", "WallDuration", `record.runtime`, "11617"},
		{"NormalisedField", "NodeCount", `round(record.runtime * record.components.Cores.scores.HEPScore23)`, "121978"},
		{"NormalisedField of a component", "NodeCount", `round(round(record.components.TotalCPU.amount / 1000) * record.components.Cores.scores.HEPScore23)`, "525"},
		{"MetaField with a group in its regex", "VO", `try(regex("/(?:atlas|cms)", record.meta.voms[0]), "None")`, "/atlas"},
		{"MetaField that looks behind and ahead for the VO", "VO", `try(regex("/([^/]*)", record.meta.voms[0])[0], "None")`, "atlas"},
		{"MetaField that looks behind and ahead for the group", "VO", `try(regex("/(.*?)(?:/Role|$)", record.meta.voms[0])[0], "None")`, "atlas"},
		{"MetaField that looks ahead for the role", "VO", `try(regex("Role[^/]*", record.meta.voms[0]), "None")`, "Role=production"},
		{"TotalCPU of two releases", "CpuDuration", `unix(record.stop_time) < unix("2026-10-01T12:00:00Z") ? round(record.components.TotalCPU.amount / 1000) : record.components.TotalCPU.amount`, "50"},
		{"RecordField of a time", "NodeCount", `unix(record.stop_time)`, "1787542896"}, // 0.6 s are rounded
		{"ConstantField", "Infrastructure", `"grid"`, "grid"},
	} {
		t.Run(c.what, func(t *testing.T) {
			j, err := compile(t, with(c.field, c.text)).Job("UNI", sample())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{"CpuDuration": j.CPUDuration, "VO": j.VO, "NodeCount": j.NodeCount, "WallDuration": j.WallDuration, "Infrastructure": j.InfrastructureType}[c.field]
			if text := fmt.Sprint(got); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}

func TestScoresOfClassesOfNodes(t *testing.T) {
	c := base()
	c.Benchmarks = []fields.Benchmark{
		{Name: "HEPscore23", Score: expr(`lookup({ gpu = 21.5, cpu = 10 }, record.meta.partition[0], 8)`)},
		{Name: "hepspec", Wall: constant(cty.NumberIntVal(5)), CPU: expr(`record.runtime * 2`)},
	}
	j, err := compile(t, c).Job("UNI", sample())
	if err != nil || j.NormalisedWall[0].Value != 249766 || j.NormalisedWall[1].Value != 5 || j.NormalisedCPU[1].Value != 23234 {
		t.Errorf("%+v, %v", j, err) // 11617 × 21.5 = 249765.5
	}
	if len(j.ServiceLevels) != 1 {
		t.Errorf("%+v", j.ServiceLevels)
	}
}

func TestAMissingFieldIsNamedWithTheReason(t *testing.T) {
	for what, c := range map[string]struct {
		config fields.Config
		spoil  func(*record.Record)
		want   string
	}{
		"no key":        {with("VO", "record.meta.vo[0]"), nil, "VO: "},
		"null":          {with("VO", "record.state"), nil, "VO: it is null"},
		"empty":         {with("VO", `trimprefix("a", record.meta.user_id[0] == "alice" ? "a" : "")`), nil, "VO: it is empty"},
		"no component":  {base(), func(r *record.Record) { r.Components = r.Components[:1] }, "CpuDuration: there is no component TotalCPU"},
		"no score":      {base(), func(r *record.Record) { r.Components[0].Scores = nil }, "HEPscore23: score: component Cores has no score HEPscore23"},
		"no number":     {with("Processors", "record.meta.user_id[0]"), nil, "Processors: "},
		"still running": {base(), func(r *record.Record) { r.Stop = record.None }, "WallDuration: it is null"},
	} {
		r := sample()
		if c.spoil != nil {
			c.spoil(r)
		}
		if _, err := compile(t, c.config).Job("UNI", r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

func TestAnOptionalFieldThatFailsIsLeftOut(t *testing.T) {
	j, err := compile(t, with("VORole", `regex("Role=(.*)", record.meta.none[0])[0]`)).Job("UNI", sample())
	if err != nil || j.VORole != "" {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestProblemsAreFoundAtLoadWithTheirPlace(t *testing.T) {
	for what, c := range map[string]struct{ text, want string }{
		"an unknown variable":  {"job.user", "aggregator.hcl:7:12: unknown variable \"job\""},
		"an unknown attribute": {"record.mata.user_id[0]", "did you mean \"meta\"?"},
		"a wrong attribute":    {"record.components.Cores.amont", "aggregator.hcl:7:"},
		"a wrong type":         {"record.meta", "expected a string"},
		"an unknown function":  {"foo(record.id)", "foo"},
		"no expression":        {"record.id +", "aggregator.hcl:7:"},
		"a bad pattern":        {`regex("(", record.id)`, "pattern"},
	} {
		_, diags := fields.Compile(with("VO", c.text))
		if err := diags.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// What is remembered and what is looked up without HCL gives what HCL gives.
func TestShortWaysGiveWhatHCLGives(t *testing.T) {
	texts := []string{
		`try(record.meta.voms[0], "none")`, `join(",", try(record.meta.voms, []))`, `try(record.components.Cores.scores["HEPScore23"], 0) * try(record.components.Cores.amount, 1)`,
		`record.id`, `record.site`, `try(record.state, "")`, `record.start_time`, `"${record.site}-${try(record.meta.user_id[0], "x")}"`,
	}
	sets := make([]*fields.Set, len(texts)) // they remember; those with the record's id in them do not
	slow := make([]*fields.Set, len(texts))
	for i, text := range texts {
		sets[i] = compile(t, with("GlobalUserName", text))
		slow[i] = compile(t, with("GlobalUserName", `record.id == "" ? "" : tostring(`+text+`)`))
	}
	rapid.Check(t, func(t *rapid.T) {
		r := sample()
		word := rapid.SampledFrom([]string{"", "a", "b", "a,b", "\x00", "é"})
		r.ID, r.State = "id"+word.Draw(t, "id"), word.Draw(t, "state")
		r.Meta = record.Meta{{Key: "user_id", Values: rapid.SliceOfN(word, 0, 2).Draw(t, "users")}, {Key: "voms", Values: rapid.SliceOfN(word, 0, 3).Draw(t, "voms")}}
		r.Components = r.Components[:rapid.IntRange(0, 2).Draw(t, "components")]
		for i := range r.Components {
			r.Components[i].Amount = rapid.Int64Range(0, 3).Draw(t, "amount")
		}
		for i := range texts {
			a, _ := sets[i].Job("UNI", r)
			b, _ := slow[i].Job("UNI", r)
			if a.GlobalUserName != b.GlobalUserName {
				t.Fatalf("%s: %q, want %q", texts[i], a.GlobalUserName, b.GlobalUserName)
			}
		}
	})
}

func TestAllNamesAreOnesOfMessages(t *testing.T) {
	if !fields.Known("VO") || fields.Known("Vo") || len(fields.Names()) < 18 {
		t.Error(fields.Names())
	}
}

func FuzzExpressions(f *testing.F) {
	f.Add("")
	f.Add(`record.meta.voms[0]`)
	f.Add(`lookupprefix({a = 1}, record.id, null)`)
	f.Add("<<E\n${record.id}\nE\n")
	f.Fuzz(func(_ *testing.T, text string) {
		if set, diags := fields.Compile(with("VO", text)); !diags.HasErrors() {
			_, _ = set.Job("UNI", sample())
		}
	})
}
