package mapping_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

var attributes = []*bursarv1.Attribute{
	{Name: "id", Type: bursarv1.Type_TYPE_STRING},
	{Name: "start", Type: bursarv1.Type_TYPE_TIME},
	{Name: "stop", Type: bursarv1.Type_TYPE_TIME},
	{Name: "user", Type: bursarv1.Type_TYPE_STRING},
	{Name: "cores", Type: bursarv1.Type_TYPE_INT},
	{Name: "cpu", Type: bursarv1.Type_TYPE_FLOAT},
	{Name: "comment", Type: bursarv1.Type_TYPE_STRING},
	{Name: "hosts", Type: bursarv1.Type_TYPE_LIST},
	{Name: "ad", Type: bursarv1.Type_TYPE_MAP},
	{Name: "partition", Type: bursarv1.Type_TYPE_STRING},
}

const fallback = `
id    = "${source.label}-${job.id}"
start = job.start
stop  = job.stop
meta  = { user_id = job.user, site_id = source.label }
component "Cores" { amount = job.cores }
`

func text(s string) *bursarv1.Value {
	return &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: s}}
}
func num(n int64) *bursarv1.Value {
	return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: n}}
}
func float(f float64) *bursarv1.Value {
	return &bursarv1.Value{Kind: &bursarv1.Value_FloatValue{FloatValue: f}}
}

func job() *bursarv1.Job {
	return &bursarv1.Job{Run: "7", Ended: true, Values: []*bursarv1.Value{
		text("7"), num(1_000_000), num(61_500_000), text("alice"), num(8), float(2.5),
		text(`{"voms":"/atlas/Role=pilot"}`),
		{Kind: &bursarv1.Value_ListValue{ListValue: &bursarv1.ListValue{Values: []*bursarv1.Value{text("n1"), text("n2")}}}},
		{Kind: &bursarv1.Value_MapValue{MapValue: &bursarv1.MapValue{Values: map[string]*bursarv1.Value{"Machine Slots": num(3)}}}},
		text("gpu"),
	}}
}

func compile(t testing.TB, body string) (*mapping.Mapper, hcl.Diagnostics) {
	t.Helper()
	opt := mapping.Options{Agent: "head1", Type: "slurm", Label: "nemo", Attributes: attributes, Default: fallback}
	if body != "" {
		file, diags := hcl.Parse("agent.hcl", []byte(body))
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		opt.Record = file.Body
	}
	return mapping.Compile(opt)
}

func must(t testing.TB, body string) *mapping.Mapper {
	t.Helper()
	m, diags := compile(t, body)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return m
}

func TestTheDefaultMappingAloneGivesARecord(t *testing.T) {
	got, keep, err := must(t, "").Map(job())
	want := record.Record{ID: "nemo-7", Start: 1_000_000, Stop: 61_500_000, Submit: record.None,
		Meta:       record.Meta{{Key: "site_id", Values: []string{"nemo"}}, {Key: "user_id", Values: []string{"alice"}}},
		Components: []record.Component{{Name: "Cores", Amount: 8}}}
	if diff := cmp.Diff(want, got); diff != "" || !keep || err != nil {
		t.Fatal(diff, keep, err)
	}
}

func TestADefaultMappingThatIsTooLargeIsRefusedBeforeItIsParsed(t *testing.T) {
	opt := mapping.Options{Agent: "a", Type: "slurm", Label: "l", Attributes: attributes, Default: "id = " + strings.Repeat("[", 1<<20)}
	if _, diags := mapping.Compile(opt); !strings.Contains(diags.Error(), "default mapping is too large") {
		t.Errorf("%.300s", diags.Error())
	}
}

func TestAllProblemsOfAMappingAreReportedTogether(t *testing.T) {
	_, diags := compile(t, `
id = job.nothing
colour = "red"
meta = { user = job.nobody, "" = 1 }
component "Cores" {
  amont = job.cores
  kind  = "whole"
  score "s" { valeu = job.cpus }
}
component "Memory" { amount = job.memory }
component { amount = 1 }
`)
	var got []string
	for _, d := range diags {
		got = append(got, fmt.Sprintf("%d %s", d.Subject.Start.Line, d.Summary))
	}
	slices.Sort(got)
	want := []string{
		`10 unknown attribute "job.memory"`, `11 wrong number of labels on "component"`, `2 unknown attribute "job.nothing"`,
		`3 unknown attribute "colour"`, "4 invalid meta key", `4 unknown attribute "job.nobody"`, "5 invalid kind",
		`6 unknown attribute "amont"`, "8 missing attribute", `8 unknown attribute "valeu"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%v", diff, diags)
	}
}

func TestExpressionsBecomeTheRecord(t *testing.T) {
	m := must(t, `
meta = {
  "site id" = "nemo"
  voms      = try(jsondecode(job.comment).voms, null)
  vo        = try(regex("^/([a-z]+)", jsondecode(job.comment).voms)[0], null)
  gone      = null
  blank     = "  "
  hosts     = job.hosts
  both      = [job.user, job.partition]
  slots     = job.ad["Machine Slots"]
}
component "Cores" {
  amount = job.cores
  score "HEPScore23" { value = job.partition == "gpu" ? 21.5 : 10.0 }
  score "never" {
    value = 1
    when  = job.cores > 100
  }
}
component "TotalCPU" {
  amount = job.cpu
  kind   = "total"
}
component "GPUs" {
  amount = 1
  when   = job.cores > 100
}
`)
	got, _, err := m.Map(job())
	if err != nil {
		t.Fatal(err)
	}
	want := record.Record{ID: "nemo-7", Start: 1_000_000, Stop: 61_500_000, Submit: record.None,
		Meta: record.Meta{
			{Key: "both", Values: []string{"alice", "gpu"}},
			{Key: "hosts", Values: []string{"n1", "n2"}},
			{Key: "site id", Values: []string{"nemo"}},
			{Key: "site_id", Values: []string{"nemo"}}, // of the default mapping
			{Key: "slots", Values: []string{"3"}},
			{Key: "user_id", Values: []string{"alice"}},
			{Key: "vo", Values: []string{"atlas"}},
			{Key: "voms", Values: []string{"/atlas/Role=pilot"}},
		},
		Components: []record.Component{
			{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPScore23", Value: 21.5}}},
			{Name: "TotalCPU", Amount: 2, Kind: record.Total},
		}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestMetaCanBeOneExpression(t *testing.T) {
	got, _, err := must(t, `meta = merge({ user_id = job.user }, jsondecode(job.comment))`).Map(job())
	want := record.Meta{{Key: "site_id", Values: []string{"nemo"}}, {Key: "user_id", Values: []string{"alice"}}, {Key: "voms", Values: []string{"/atlas/Role=pilot"}}}
	if diff := cmp.Diff(want, got.Meta); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
}

func TestComponents_OneExpression_BecomeTheRecords(t *testing.T) {
	want := []record.Component{
		{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPscore23", Value: 0.1}}},
		{Name: "TotalCPU", Amount: 9007199254740993, Kind: record.Total},
		{Name: "Cores", Amount: 1},
	}
	const list = `[{"name":"Cores","amount":8,"scores":[{"name":"HEPscore23","value":0.1}]},{"name":"TotalCPU","kind":"total","amount":9007199254740993,"scores":[]},{"name":"Cores","amount":1,"scores":[]}]`
	j := job()
	j.Values[6] = text(list)
	for body, want := range map[string][]record.Component{
		"components = job.comment":             want,
		"components = jsondecode(job.comment)": want,
		`components = [for c in jsondecode(job.comment) : merge(c, { amount = floor(c.amount / 8) }) if c.name == "Cores"]`: {{Name: "Cores", Amount: 1, Scores: want[0].Scores}, {Name: "Cores"}},
		"components = job.comment\ncomponent \"GPUs\" { amount = 2 }":                                                       append(slices.Clone(want), record.Component{Name: "GPUs", Amount: 2}),
		"components = null": {{Name: "Cores", Amount: 8}},
		"defaults = false\nid = job.id\nstart = job.start\ncomponents = null": nil,
	} {
		m, diags := compile(t, body)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		r, _, err := m.Map(j)
		if diff := cmp.Diff(want, r.Components, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: %v %s", body, err, diff)
		}
	}
	for body, want := range map[string]string{
		"components = job.cores":                                  "want a list of components",
		`components = [{ name = "x" }]`:                           "missing field `amount`",
		`components = [{ name = "x", amount = -1, scores = [] }]`: "Parsing '-1' failed",
		`components = "["`:                                        "components",
	} {
		m, diags := compile(t, body)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if _, _, err := m.Map(j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestComponents_OneNumber_IsAnErrorOfTheConfiguration(t *testing.T) {
	for _, body := range []string{"components = 1", "components = true"} {
		if _, diags := compile(t, body); !diags.HasErrors() || !strings.Contains(diags.Error(), "want a list of components") {
			t.Errorf("%s: %v", body, diags)
		}
	}
}

func TestWhatTheConditionLeavesOutStillHasItsID(t *testing.T) {
	got, keep, err := must(t, `when = job.cores > 100`).Map(job())
	if keep || err != nil || got.ID != "nemo-7" {
		t.Fatal(got, keep, err)
	}
}

func TestMistakesAreFoundWhenLoaded(t *testing.T) {
	cases := []struct{ name, body, want string }{
		{"attribute", `meta = { u = job.usr }`, `unknown attribute "job.usr"`},
		{"variable", `id = jbo.id`, `unknown variable "jbo"`},
		{"function", `id = uper(job.id)`, "uper"},
		{"type", `component "Cores" { amount = job.hosts }`, "number"},
		{"kind", "component \"Cores\" {\namount = 1\nkind = \"rat\"\n}", `"rate"`},
		{"whole job", `id = jsonencode(job)`, "name the attribute"},
		{"unknown key", `mta = {}`, "mta"},
		{"blank component", `component " " { amount = 1 }`, "blank"},
		{"no amount", `component "GPUs" { when = job.cores > 1 }`, `no component "GPUs"`},
		{"no amount without defaults", "defaults = false\nid = job.id\nstart = job.start\ncomponent \"Cores\" { when = job.cores > 1 }", `amount must be set`},
		{"no id without defaults", `defaults = false`, "a record needs id and start"},
		{"twice", `meta = { a = "1", "a" = "2" }`, "more than once"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, diags := compile(t, c.body)
			if m != nil || !diags.HasErrors() || !strings.Contains(diags.Error(), c.want) || !strings.Contains(diags.Error(), "agent.hcl:") {
				t.Errorf("got %v, want %q with the place", diags, c.want)
			}
		})
	}
}

func TestAFailureForOneJobNamesThePartAndThePlaceAndLeavesTheOthersAlone(t *testing.T) {
	cases := []struct {
		name, body, want string
		spoil            func(*bursarv1.Job)
	}{
		{"function", "meta = {\n x = jsondecode(job.comment).x\n}", "agent.hcl:2", nil},
		{"null amount", `component "Cores" { amount = job.cores }`, `component "Cores" amount`, func(j *bursarv1.Job) { j.Values[4] = nil }},
		{"negative", `component "Cores" { amount = job.cores }`, "below zero", func(j *bursarv1.Job) { j.Values[4] = num(-1) }},
		{"no start", `state = "x"`, "start", func(j *bursarv1.Job) { j.Values[1] = nil }},
		{"null in a text", `state = "x"`, "id", func(j *bursarv1.Job) { j.Values[0] = nil }},
		{"start is no time", `start = job.user`, "RFC 3339", nil},
		{"long id", `id = job.user`, "longer", func(j *bursarv1.Job) { j.Values[3] = text(strings.Repeat("x", 257)) }},
		{"values missing", `state = "x"`, "id", func(j *bursarv1.Job) { j.Values = nil }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := must(t, c.body)
			bad := job()
			if c.spoil != nil {
				c.spoil(bad)
			}
			_, _, err := m.Map(bad)
			var e *mapping.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if c.spoil == nil {
				return
			}
			if _, _, err := m.Map(job()); err != nil {
				t.Errorf("the next job: %v", err)
			}
		})
	}
}

func TestTextThatIsNotUTF8IsMadeValid(t *testing.T) {
	j := job()
	j.Values[3] = &bursarv1.Value{Kind: &bursarv1.Value_BytesValue{BytesValue: []byte("al\xffice")}}
	for _, body := range []string{"", `meta = { user_id = lower(job.user) }`} {
		got, _, err := must(t, body).Map(j)
		if err != nil || got.Meta.Get("user_id")[0] != "al\uFFFDice" {
			t.Errorf("%v, %v", got.Meta, err)
		}
	}
}

func TestTheFingerprintCoversWhatTheMappingNamesAndNothingElse(t *testing.T) {
	m := must(t, "")
	base := m.Fingerprint(job())
	other := job()
	other.Values[6] = text("another comment")
	if m.Fingerprint(other) != base {
		t.Error("an attribute that the mapping does not name changes the fingerprint")
	}
	other.Values[4] = num(9)
	if m.Fingerprint(other) == base {
		t.Error("an attribute that the mapping names does not change it")
	}
	running := job()
	running.Ended = false
	if m.Fingerprint(running) == base {
		t.Error("the end does not change it")
	}
	if diff := cmp.Diff([]string{"cores", "id", "start", "stop", "user"}, m.Wanted()); diff != "" {
		t.Error(diff)
	}
}

func TestFingerprintsStayWhatTheyWereInOlderBuffers(t *testing.T) {
	const want uint64 = 0x69bfac7643c58999
	if got := must(t, "").Fingerprint(job()); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

func FuzzCompile(f *testing.F) {
	for _, body := range []string{
		ten, fallback, `id = job.ad["Machine Slots"]`, `meta = { "${job.id}" = 1 }`, `component { amount = 1 }`, `when = job`,
		`component "a" { amont = job.cores }`, `start = null`, `meta = { x = regex("(", job.user) }`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		file, diags := hcl.Parse("agent.hcl", []byte(body))
		if diags.HasErrors() {
			return
		}
		m, diags := mapping.Compile(mapping.Options{Agent: "a", Type: "slurm", Label: "l", Attributes: attributes, Default: fallback, Record: file.Body})
		if (m == nil) != diags.HasErrors() {
			t.Fatalf("mapper %v with %v", m, diags)
		}
		if m == nil {
			return
		}
		for _, j := range []*bursarv1.Job{job(), {Run: "1"}} {
			r, keep, err := m.Map(j)
			if err == nil && keep {
				err = r.Validate()
			} else {
				err = nil
			}
			if err != nil {
				t.Errorf("an invalid record was made: %v", err)
			}
		}
	})
}

const ten = `
meta = {
  site_id   = "nemo"
  user_id   = job.user
  group_id  = job.partition
  voms      = try(jsondecode(job.comment).voms, null)
}
component "Cores" {
  amount = job.cores
  score "HEPScore23" { value = job.partition == "gpu" ? 21.5 : 10.0 }
}
component "TotalCPU" {
  amount = job.cpu
  kind = "total"
}
component "GPUs" {
  amount = job.cores
  when = job.cores > 10
}
`

func BenchmarkMapTenExpressions(b *testing.B) {
	m := must(b, ten)
	jobs := make([]*bursarv1.Job, 1000)
	for i := range jobs {
		jobs[i] = job()
		jobs[i].Values[0] = text(fmt.Sprint(i))
		if i%5 != 0 {
			jobs[i].Values[6] = text("")
		}
	}
	i := 0
	for b.Loop() {
		if _, _, err := m.Map(jobs[i%len(jobs)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "jobs/s")
}

func TestAValueMayBeOfRunningJobsOnly(t *testing.T) {
	m := must(t, strings.Replace(fallback, "user_id = job.user,", "time_limit = job.stop == null ? job.cores : null,", 1))
	running := job()
	running.Ended, running.Values[2] = false, nil
	for want, j := range map[string]*bursarv1.Job{"[8]": running, "[]": job()} {
		if r, _, err := m.Map(j); err != nil || fmt.Sprint(r.Meta.Get("time_limit")) != want {
			t.Errorf("%v %v, want %s", r.Meta, err, want)
		}
	}
}
