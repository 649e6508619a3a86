package mapping_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/proto/record"
)

// spoken is a mapping, default or record block, as a test makes it up: what it says of
// each meta key and component. "" says that there is none.
type spoken struct {
	meta, components   map[string]string
	metaMade, listMade bool // by one expression instead of key by key
}

func randomMapping(r *rand.Rand, name string) spoken {
	s := spoken{map[string]string{}, map[string]string{}, r.IntN(3) == 0, r.IntN(3) == 0}
	for _, key := range []string{"a", "b", "c", "d"} {
		if r.IntN(2) == 0 {
			s.meta[key] = []string{name + "-" + key, ""}[r.IntN(4)/3]
		}
	}
	for _, component := range []string{"Cores", "Memory", "GPUs"} {
		if r.IntN(2) == 0 {
			s.components[component] = []string{fmt.Sprint(1 + r.IntN(9)), ""}[r.IntN(4)/3]
		}
	}
	return s
}

// body writes the mapping; of a list, what is left out is not in it.
func (s spoken) body() string {
	var b strings.Builder
	entries := ""
	for _, key := range slices.Sorted(maps.Keys(s.meta)) {
		value := "null"
		if s.meta[key] != "" {
			value = fmt.Sprintf("%q", s.meta[key])
		}
		entries += fmt.Sprintf("  %s = %s\n", key, value)
	}
	switch {
	case s.metaMade:
		fmt.Fprintf(&b, "meta = merge({}, {\n%s})\n", entries)
	case entries != "":
		fmt.Fprintf(&b, "meta = {\n%s}\n", entries)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.components)) {
		amount := s.components[name]
		switch {
		case s.listMade && amount != "":
			list = append(list, fmt.Sprintf("{ name = %q, amount = %s, scores = [] }", name, amount))
		case amount != "":
			fmt.Fprintf(&b, "component %q { amount = %s }\n", name, amount)
		case !s.listMade:
			fmt.Fprintf(&b, "component %q {\n  amount = 1\n  when = false\n}\n", name)
		}
	}
	if s.listMade {
		fmt.Fprintf(&b, "components = [%s]\n", strings.Join(list, ", "))
	}
	return b.String()
}

// says are the components that the mapping decides.
func (s spoken) says() map[string]string {
	out := maps.Clone(s.components)
	if s.listMade {
		maps.DeleteFunc(out, func(_, amount string) bool { return amount == "" })
	}
	return out
}

// The obvious slow way: one map laid over the other.
func TestRecordBlock_AnyOverAnyDefault_IsMergedKeyByKey(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	const frame = "id = job.id\nstart = job.start\n"
	for range 2000 {
		fallback, mine := randomMapping(r, "default"), randomMapping(r, "block")
		begins := r.IntN(4) > 0
		body := mine.body()
		meta, components := map[string]string{}, map[string]string{}
		if begins {
			maps.Copy(meta, fallback.meta)
			maps.Copy(components, fallback.says())
		} else {
			body = "defaults = false\n" + frame + body
		}
		maps.Copy(meta, mine.meta)
		maps.Copy(components, mine.says())

		m := over(t, frame+fallback.body(), body)
		got, keep, err := m.Map(job())
		if err != nil || !keep {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, fallback.body(), body)
		}
		parts, from := map[string]string{}, m.FromBlock(job())
		for _, e := range got.Meta {
			parts[mapping.MetaPart(e.Key)] = e.Values[0]
		}
		for _, c := range got.Components {
			parts[mapping.ComponentPart(c.Name)] = fmt.Sprint(c.Amount)
		}
		want := map[string]string{}
		for key, value := range meta {
			_, said := mine.meta[key]
			expect(t, want, from, mapping.MetaPart(key), value, said)
		}
		for name, amount := range components {
			_, said := mine.says()[name]
			expect(t, want, from, mapping.ComponentPart(name), amount, said)
		}
		if diff := cmp.Diff(want, parts); diff != "" || t.Failed() {
			t.Fatalf("seed %d: %s\n%s\n-- record block\n%s", seed, diff, fallback.body(), body)
		}
	}
}

// expect notes a part that is in the record, and that its origin is told right.
func expect(t *testing.T, want map[string]string, from map[string]bool, part, value string, said bool) {
	if value == "" {
		return
	}
	want[part] = value
	if from[part] != said {
		t.Errorf("%s comes from the block: %t", part, from[part])
	}
}

// over compiles a record block over a default mapping.
func over(t *testing.T, fallback, body string) *mapping.Mapper {
	t.Helper()
	file, diags := hcl.Parse("agent.hcl", []byte(body))
	if diags.HasErrors() {
		t.Fatal(diags, body)
	}
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: "slurm", Label: "nemo", Attributes: attributes, Default: fallback, Record: file.Body})
	if diags.HasErrors() {
		t.Fatal(diags, fallback, body)
	}
	return m
}

func TestComponent_WithoutAmount_RefinesTheDefaultsOne(t *testing.T) {
	const fallback = "id = job.id\nstart = job.start\n" + `
component "TotalCPU" {
  amount = job.cpu
  kind   = "total"
  when   = job.cpu != null
  score "HEPScore23" { value = 3 }
}
`
	for body, want := range map[string][]record.Component{
		`component "TotalCPU" {}`: {{Name: "TotalCPU", Amount: 2, Kind: record.Total, Scores: []record.Score{{Name: "HEPScore23", Value: 3}}}},
		`component "TotalCPU" {
  score "HEPScore23" { value = 5 }
}`: {{Name: "TotalCPU", Amount: 2, Kind: record.Total, Scores: []record.Score{{Name: "HEPScore23", Value: 5}}}},
		`component "TotalCPU" {
  score "own" { value = 7 }
}`: {{Name: "TotalCPU", Amount: 2, Kind: record.Total, Scores: []record.Score{{Name: "own", Value: 7}, {Name: "HEPScore23", Value: 3}}}},
		`component "TotalCPU" { when = job.cores > 100 }`: nil,
		`component "TotalCPU" { amount = 4 }`:             {{Name: "TotalCPU", Amount: 4}},
	} {
		got, _, err := over(t, fallback, body).Map(job())
		if diff := cmp.Diff(want, got.Components); diff != "" || err != nil {
			t.Errorf("%s: %v %s", body, err, diff)
		}
	}
}

func TestSubmit_LeftOutWhereIDsRecur_IsAWarning(t *testing.T) {
	const fallback = "id = job.id\nstart = job.start\nsubmit = job.stop\n"
	for body, want := range map[string]bool{
		`state = "x"`:   false,
		`submit = null`: true,
		"defaults = false\nid = job.id\nstart = job.start":                     true,
		"defaults = false\nid = job.id\nstart = job.start\nsubmit = job.start": false,
	} {
		file, _ := hcl.Parse("agent.hcl", []byte(body))
		_, diags := mapping.Compile(mapping.Options{Type: "slurm", Attributes: attributes, Default: fallback, Record: file.Body, ReusesIDs: true})
		if got := strings.Contains(diags.Warnings().Error(), "missing submit"); got != want || diags.HasErrors() {
			t.Errorf("%s: %v", body, diags)
		}
	}
}

func TestChanges_OfARecordBlock_AreNamed(t *testing.T) {
	const fallback = "id = job.id\nstart = job.start\nmeta = {\n  a = 1\n  b = 2\n}\ncomponent \"Cores\" { amount = 1 }\ncomponent \"GPUs\" { amount = 1 }\n"
	for body, want := range map[string]mapping.Changes{
		``:                   {},
		`when = job.cores>0`: {Added: []string{"when"}},
		`id = job.user`:      {Replaced: []string{"id"}},
		"meta = {\n  a = 2\n  b = null\n  c = 3\n}": {Replaced: []string{"meta.a"}, Added: []string{"meta.c"}, LeftOut: []string{"meta.b"}},
		`meta = merge({}, { x = 1 })`:               {Added: []string{"meta"}},
		`component "GPUs" { when = false }`:         {LeftOut: []string{`component "GPUs"`}},
		"component \"GPUs\" {\n  amount = 1\n  when = false\n}\ncomponent \"GPUs\" { amount = 2 }": {Replaced: []string{`component "GPUs"`}},
		"component \"GPUs:a100\" { amount = 2 }":                                                   {Added: []string{`component "GPUs:a100"`}},
		"components = []":                                                                          {Added: []string{"components"}},
		"defaults = false\nid = job.user\nstart = job.start\ncomponent \"Cores\" { amount = 2 }":   {Replaced: []string{"id", `component "Cores"`}, LeftOut: []string{"meta.a", "meta.b", `component "GPUs"`}},
		"defaults = true\ncomponent \"Cores\" {\n  score \"s\" { value = 1 }\n}":                   {Replaced: []string{`component "Cores"`}},
	} {
		if diff := cmp.Diff(want, over(t, fallback, body).Changes()); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

func TestChanges_OfWhatRepeatsTheDefault_AreNone(t *testing.T) {
	const fallback = `
id    = job.id
start = job.start
state = job.cores > 1 ? "a" : upper("${job.user}-x")
meta  = {
  a = [for x in [1, 2] : "${x}"]
  b = null
}
component "Cores" {
  amount = coalesce(job.cores, 1)
  when   = job.cores != null
  score "s" { value = 3 }
}
component "GPUs" {
  amount = 1
  kind   = "rate"
}
`
	for body, want := range map[string]mapping.Changes{
		fallback:                      {},
		"defaults = false" + fallback: {},
		`id = "${job.id}"`:            {Replaced: []string{"id"}},
		"state=job.cores>1?\"a\":upper( # in capitals\n \"${ job.user }-x\" )": {},
		`state = job.cores > 2 ? "a" : upper("${job.user}-x")`:                 {Replaced: []string{"state"}},
		`state = job.cores > 1 ? "a" : lower("${job.user}-x")`:                 {Replaced: []string{"state"}},
		`state = job.cores < 1 ? "a" : upper("${job.user}-x")`:                 {Replaced: []string{"state"}},
		`state = job.cores > 1 ? "a" : upper("${job.id}-x")`:                   {Replaced: []string{"state"}},
		`meta = { "a" = [ for x in [1,2]: "${x}" ], "b" = null }`:              {},
		`meta = { a = [for x in [1, 3] : "${x}"], b = "x" }`:                   {Replaced: []string{"meta.a", "meta.b"}},
		`component "Cores" {}`:                                                                    {},
		"component \"Cores\" {\n  score \"s\" { value = 3 }\n}":                                   {},
		"component \"Cores\" {\n  score \"s\" { value = 4 }\n}":                                   {Replaced: []string{`component "Cores"`}},
		"component \"Cores\" {\n  amount = coalesce(job.cores, 1)\n  when = job.cores != null\n}": {Replaced: []string{`component "Cores"`}},
		"component \"Cores\" {\n  amount = coalesce(job.cores,1)\n  when = job.cores!=null\n  kind = \"rate\"\n  score \"s\" { value = 3 }\n}": {},
		`component "GPUs" { amount = 1 }`:                                      {},
		"component \"GPUs\" {\n  amount = 1\n  kind = \"total\"\n}":            {Replaced: []string{`component "GPUs"`}},
		"component \"GPUs\" { amount = 1 }\ncomponent \"GPUs\" { amount = 1 }": {Replaced: []string{`component "GPUs"`}},
	} {
		if diff := cmp.Diff(want, over(t, fallback, body).Changes()); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

func TestFromBlock_WhatRepeatsTheDefault_IsOfTheBlock(t *testing.T) {
	m := over(t, "id = job.id\nstart = job.start\nmeta = { a = 1 }\n", "id = job.id\nmeta = { a = 1 }\n")
	if from := m.FromBlock(job()); !from["id"] || !from["meta.a"] || from["start"] {
		t.Error(from)
	}
}
