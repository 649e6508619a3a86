package mapping_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

const frame = "id = job.id\nstart = job.start\n"

// withAd is a job whose attribute ad has these entries, and whose comment is their JSON.
func withAd(entries map[string]any) *bursarv1.Job {
	j := job()
	values := map[string]*bursarv1.Value{}
	for key, e := range entries {
		switch v := e.(type) {
		case int:
			values[key] = num(int64(v))
		case float64:
			values[key] = float(v)
		case string:
			values[key] = text(v)
		case bool:
			values[key] = &bursarv1.Value{Kind: &bursarv1.Value_BoolValue{BoolValue: v}}
		case []string:
			values[key] = &bursarv1.Value{Kind: &bursarv1.Value_ListValue{ListValue: &bursarv1.ListValue{}}}
		default:
			values[key] = &bursarv1.Value{}
		}
	}
	j.Values[8] = &bursarv1.Value{Kind: &bursarv1.Value_MapValue{MapValue: &bursarv1.MapValue{Values: values}}}
	list, _ := json.Marshal(entries)
	j.Values[6] = text(string(list))
	if entries == nil {
		j.Values[6], j.Values[8] = nil, nil
	}
	return j
}

// starred is a mapping as a test makes it up: a component of each entry, and components
// by their full names.
type starred struct {
	amounts string            // of GPUs:*; "": it has no such block
	named   map[string]string // bodies of components, by key
}

func randomStarred(r *rand.Rand) starred {
	s := starred{named: map[string]string{}}
	if r.IntN(3) > 0 {
		s.amounts = []string{"job.ad", "try(job.ad, null)", "jsondecode(coalesce(job.comment, \"null\"))", "try({ for k, v in job.ad : k => v }, null)"}[r.IntN(4)]
	}
	for _, key := range []string{"a100", "h100"} {
		if r.IntN(3) == 0 {
			s.named[key] = []string{"amount = 7", "amount = 7\n  when = false"}[r.IntN(2)]
		}
	}
	return s
}

func (s starred) body() string {
	var b strings.Builder
	if s.amounts != "" {
		fmt.Fprintf(&b, "component \"GPUs:*\" { amounts = %s }\n", s.amounts)
	}
	for _, key := range slices.Sorted(maps.Keys(s.named)) {
		fmt.Fprintf(&b, "component \"GPUs:%s\" {\n  %s\n}\n", key, s.named[key])
	}
	return b.String()
}

// randomEntries are keys with amounts: good and bad.
func randomEntries(r *rand.Rand) map[string]any {
	if r.IntN(10) == 0 {
		return nil
	}
	out := map[string]any{}
	for range r.IntN(6) {
		key := []string{"a100", "h100", "Tesla V100", "l40*", "ü", " ", "", strings.Repeat("x", 300)}[r.IntN(8)]
		out[key] = []any{0, 1, 2, 8.0, "3", 1 << 40, -1, 1.5, "many", "1.5", nil, true, []string{}}[r.IntN(13)]
	}
	return out
}

// The obvious slow way: what the full names say, and the map for all others.
func TestEntries_AnyMapUnderAnyBlocks_AreComponentsOnce(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	good := map[string]int64{"1": 1, "2": 2, "8": 8, "3": 3, fmt.Sprint(1 << 40): 1 << 40}
	for range 1500 {
		fallback, mine := randomStarred(r), randomStarred(r)
		m := over(t, frame+fallback.body(), mine.body())
		entries := randomEntries(r)
		want, unread, origin := map[string]int64{}, []string(nil), map[string]bool{}
		if fallback.amounts+mine.amounts != "" {
			for key, e := range entries {
				text := fmt.Sprint(e)
				switch n, ok := good[text]; {
				case strings.TrimSpace(key) == "" || len(key) > 256 || !ok && text != "0":
					unread = append(unread, "GPUs:"+key)
				case ok:
					want["GPUs:"+key] = n
				}
				origin["GPUs:"+key] = mine.amounts != ""
			}
		}
		for own, s := range map[bool]starred{false: fallback, true: mine} {
			for key, body := range s.named {
				name := "GPUs:" + key
				if !own && mine.named[key] != "" {
					continue
				}
				delete(want, name)
				unread = slices.DeleteFunc(unread, func(u string) bool { return u == name })
				if origin[name] = own; !strings.Contains(body, "when") {
					want[name] = 7
				}
			}
		}
		j := withAd(entries)
		got, keep, err := m.Map(j)
		if err != nil || !keep {
			t.Fatalf("seed %d: %v, %v\n%v", seed, keep, err, entries)
		}
		amounts := map[string]int64{}
		for _, c := range got.Components {
			if amounts[c.Name] > 0 {
				t.Errorf("component %q twice", c.Name)
			}
			amounts[c.Name] = c.Amount
			if from := m.FromBlock(j)[mapping.ComponentPart(c.Name)]; from != origin[c.Name] {
				t.Errorf("component %q is of the record block: %t", c.Name, from)
			}
		}
		var named []string
		for _, u := range m.Unread(j, &got) {
			named = append(named, u.Component)
		}
		slices.Sort(named)
		slices.Sort(unread)
		if diff := cmp.Diff(want, amounts) + cmp.Diff(unread, named, cmpopts.EquateEmpty()); diff != "" || t.Failed() {
			t.Fatalf("seed %d: %s\n%v\n%s\n-- record block\n%s", seed, diff, entries, fallback.body(), mine.body())
		}
		if lacking := m.Lacking(j, &got); len(lacking) > 0 {
			t.Errorf("lacking %q", lacking)
		}
	}
}

func TestEntries_ARecordBlock_RefinesThem(t *testing.T) {
	const fallback = frame + `
component "GPUs:*" {
  amounts = job.ad
  when    = job.cores > 4
  score "HEPScore23" { value = 3 }
}
`
	scored := func(name string, amount int64, scores ...record.Score) record.Component {
		return record.Component{Name: name, Amount: amount, Scores: scores}
	}
	base, own := record.Score{Name: "HEPScore23", Value: 3}, record.Score{Name: "own", Value: 5}
	for body, want := range map[string][]record.Component{
		`state = "x"`:                                                                                     {scored("GPUs:a", 1, base), scored("GPUs:b", 2, base)},
		`component "GPUs:*" {}`:                                                                           {scored("GPUs:a", 1, base), scored("GPUs:b", 2, base)},
		`component "GPUs:*" { when = false }`:                                                             nil,
		`component "GPUs:b" { when = false }`:                                                             {scored("GPUs:a", 1, base)},
		`component "GPUs:b" { amount = 9 }`:                                                               {scored("GPUs:b", 9), scored("GPUs:a", 1, base)},
		`component "GPUs:*" { kind = "total" }`:                                                           {{Name: "GPUs:a", Amount: 1, Kind: record.Total, Scores: []record.Score{base}}, {Name: "GPUs:b", Amount: 2, Kind: record.Total, Scores: []record.Score{base}}},
		"component \"GPUs:*\" {\n  score \"own\" { value = 5 }\n}":                                        {scored("GPUs:a", 1, own, base), scored("GPUs:b", 2, own, base)},
		"component \"GPUs:b\" {\n  score \"own\" { value = 5 }\n}":                                        {scored("GPUs:b", 2, own, base), scored("GPUs:a", 1, base)},
		"component \"GPUs:c\" {\n  score \"own\" { value = 5 }\n}":                                        {scored("GPUs:a", 1, base), scored("GPUs:b", 2, base)},
		`component "GPUs:*" { amounts = { for k, v in job.ad : upper(k) => 10 * v } }`:                    {scored("GPUs:A", 10), scored("GPUs:B", 20)},
		"component \"*s\" { amounts = { GPU = 5 } }\ncomponent \"*:b\" { amounts = { GPUs = 7 } }":        {scored("GPUs", 5), scored("GPUs:b", 7), scored("GPUs:a", 1, base)},
		`components = [{ name = "GPUs:a", amount = 4, scores = [] }]`:                                     {scored("GPUs:a", 4), scored("GPUs:b", 2, base)},
		"defaults = false\n" + frame + "component \"*\" { amounts = { a = 1, b = 0 } }":                   {scored("a", 1)},
		"component \"GPUs:*\" { amounts = null }":                                                         nil,
		"component \"x*\" { amounts = {} }\ncomponent \"GPUs:*\" { amounts = { \"*\" = 2, \"x*\" = 1 } }": {scored("GPUs:*", 2), scored("GPUs:x*", 1)},
	} {
		m := over(t, fallback, body)
		got, _, err := m.Map(withAd(map[string]any{"a": 1, "b": 2, "none": 0}))
		if diff := cmp.Diff(want, got.Components, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: %v %s", body, err, diff)
		}
	}
}

func TestEntries_OfAListsNames_ReplaceTheDefaultLists(t *testing.T) {
	const fallback = frame + `components = [{ name = "GPUs:a", amount = 4, scores = [] }, { name = "GPUs:b", amount = 4, scores = [] }]`
	got, _, err := over(t, fallback, `component "GPUs:*" { amounts = job.ad }`).Map(withAd(map[string]any{"a": 1}))
	if diff := cmp.Diff([]record.Component{{Name: "GPUs:b", Amount: 4}, {Name: "GPUs:a", Amount: 1}}, got.Components); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestEntries_MoreThanTheBound_AreNamedAsUnread(t *testing.T) {
	m := over(t, frame, `component "GPUs:*" { amounts = job.ad }`)
	for n, unread := range map[int]int{99: 0, 100: 0, 101: 1, 5000: 1} {
		entries := map[string]any{}
		for i := range n {
			entries[fmt.Sprint(i)] = 1
		}
		j := withAd(entries)
		r, keep, err := m.Map(j)
		named := m.Unread(j, &r)
		if want := n * (1 - unread); len(named) != unread || len(r.Components) != want || err != nil || !keep {
			t.Errorf("%d entries: %d components, unread %v, %v", n, len(r.Components), named, err)
		}
		if unread > 0 && (named[0].Component != "GPUs:*" || !strings.Contains(named[0].Problem, fmt.Sprint(n))) {
			t.Errorf("%+v", named)
		}
	}
}

func TestEntries_MistakesOfABlock_AreFoundWhenLoaded(t *testing.T) {
	for body, want := range map[string]string{
		`component "GPUs" { amounts = job.ad }`:                       "has no star",
		`component "GPUs:*" { amount = 1 }`:                           "use amounts = MAP",
		"component \"GPUs:*\" {\n  amount = 1\n  amounts = {}\n}":     "use amounts = MAP",
		`component "GPUs:*" { when = true }`:                          "amounts must be set",
		`component "*:*" { amounts = job.ad }`:                        "has 2 stars",
		`component "GPUs:*" { amounts = job.user }`:                   "expected a map, not a string",
		`component "GPUs:*" { amounts = 3 }`:                          "expected a map, not a number",
		`component "GPUs:*" { amounts = job.hosts }`:                  "expected a map, not a list",
		`component "GPUs:*" { amounts = { a = [1] } }`:                "number required",
		`component "GPUs:*" { amounts = job.da }`:                     `unknown attribute "job.da"`,
		"component \"GPUs:*\" {\n amounts = job.ad\n kind = \"x\"\n}": "invalid kind",
	} {
		if m, diags := compile(t, body); m != nil || !strings.Contains(diags.Error(), want) {
			t.Errorf("%s: %v, want %q", body, diags, want)
		}
	}
}

func TestEntries_WhatIsNoMap_FailsForThatJobAlone(t *testing.T) {
	for _, body := range []string{`component "GPUs:*" { amounts = job.ad }`, `component "GPUs:*" { amounts = jsondecode(job.comment) }`} {
		m := over(t, frame, body)
		bad := withAd(nil)
		bad.Values[6], bad.Values[8] = text(`[1]`), text("x")
		if _, _, err := m.Map(bad); err == nil || !strings.Contains(err.Error(), `component "GPUs:*" amounts`) || !strings.Contains(err.Error(), "want a map of numbers") {
			t.Errorf("%s: %v", body, err)
		}
		if r, _, err := m.Map(withAd(map[string]any{"a": 1})); err != nil || len(r.Components) != 1 {
			t.Errorf("%s: %v, %v", body, r, err)
		}
	}
}

func TestEntries_Fingerprint_CoversTheMap(t *testing.T) {
	m := over(t, frame, `component "GPUs:*" { amounts = job.ad }`)
	if got := m.WantedKeys(); !slices.Equal(got, []string{"ad.*"}) {
		t.Errorf("%q", got)
	}
	one, two := m.Fingerprint(withAd(map[string]any{"a": 1})), m.Fingerprint(withAd(map[string]any{"a": 2}))
	if one == two || one != m.Fingerprint(withAd(map[string]any{"a": 1})) {
		t.Error("the fingerprint does not depend on the amounts alone")
	}
}

func TestChanges_OfEntries_AreNamed(t *testing.T) {
	const fallback = frame + "meta = { \"a*\" = 1 }\ncomponent \"GPUs:*\" { amounts = job.ad }\n"
	for body, want := range map[string]mapping.Changes{
		`component "GPUs:*" { when = false }`:      {LeftOut: []string{`component "GPUs:*"`}},
		`component "GPUs:*" { amounts = {} }`:      {Replaced: []string{`component "GPUs:*"`}},
		`component "GPUs:a100" { amount = 3 }`:     {Replaced: []string{`component "GPUs:a100"`}},
		`component "GPUs:a100" { when = false }`:   {LeftOut: []string{`component "GPUs:a100"`}},
		`component "GPUs" { amount = 3 }`:          {Added: []string{`component "GPUs"`}},
		`component "Licences:*" { amounts = {} }`:  {Added: []string{`component "Licences:*"`}},
		`meta = { abc = 1 }`:                       {Added: []string{"meta.abc"}},
		"defaults = false\n" + frame + "meta = {}": {LeftOut: []string{"meta.a*", `component "GPUs:*"`}},
	} {
		if diff := cmp.Diff(want, over(t, fallback, body).Changes()); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}
