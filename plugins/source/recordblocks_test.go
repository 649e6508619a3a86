package source_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/programtest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// A record block that names one thing changes that thing, of every source.
func TestRecordBlock_NamesOneThing_KeepsAllOthers(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, d := range describeAll(t) {
		if d.GetPushed() {
			continue
		}
		mappers := map[string]*mapping.Mapper{}
		compiled := func(body string) *mapping.Mapper {
			if m := mappers[body]; m != nil {
				return m
			}
			opt := mapping.Options{Agent: "head1", Type: d.GetType(), Label: label, Attributes: d.GetAttributes(), Default: d.GetMapping()}
			if body != "" {
				file, diags := hcl.Parse("agent.hcl", []byte(body))
				if diags.HasErrors() {
					t.Fatal(diags)
				}
				opt.Record = file.Body
			}
			m, diags := mapping.Compile(opt)
			if diags.HasErrors() {
				t.Fatal(d.GetType(), diags)
			}
			mappers[body] = m
			return m
		}
		plain := compiled("")
		kept := 0
		for range 100 {
			job := randomJob(r, d.GetAttributes())
			want, _, err := plain.Map(job)
			if err != nil {
				continue // a job that no source sends
			}
			kept++
			for body, change := range blocksOver(want) {
				changed := clone(want)
				change(&changed)
				got, keep, err := compiled(body).Map(job)
				if diff := cmp.Diff(changed, sorted(got), cmpopts.EquateEmpty()); diff != "" || err != nil || !keep {
					t.Fatalf("seed %d: %s, %s: %v\n%s", seed, d.GetType(), body, err, diff)
				}
			}
		}
		if kept < 20 {
			t.Errorf("seed %d: %s: %d of 100 jobs became records", seed, d.GetType(), kept)
		}
	}
}

// gpusOf are the attributes of a job with GPUs of models, as its source has them; of the
// first model alone where runs of the source have one.
func gpusOf(typ string, models map[string]int64) map[string]*bursarv1.Value {
	number := func(n int64) *bursarv1.Value {
		return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: n}}
	}
	counts, sum := map[string]*bursarv1.Value{}, int64(0)
	for model, n := range models {
		counts[model], sum = number(n), sum+n
	}
	all := &bursarv1.Value{Kind: &bursarv1.Value_MapValue{MapValue: &bursarv1.MapValue{Values: counts}}}
	one := &bursarv1.Value{}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		one = &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: model}}
	}
	return map[string]map[string]*bursarv1.Value{
		"slurm": {"gpus": number(sum), "gpus_by_type": all}, "slurm-epilog": {"gpus": number(sum), "gpus_by_type": all},
		"nomad": {"gpus": number(sum), "gpus_by_model": all}, "kubernetes": {"gpus": number(sum), "gpu_model": one}, "gridengine": {"gpus": number(sum), "gpu_model": one}, "htcondor": {"gpus": number(sum), "gpu_device": one},
	}[typ]
}

// Reports ask for the model of GPUs by one meta key, whatever the source.
func TestDefaultMapping_ModelOfGPUs_HasTheSameKey(t *testing.T) {
	models := map[string]string{"slurm": "gpu_model", "slurm-epilog": "gpu_model", "nomad": "gpu_model", "kubernetes": "gpu_model", "gridengine": "gpu_model", "htcondor": "gpu_device"}
	for _, d := range describeAll(t) {
		attribute, known := models[d.GetType()]
		delete(models, d.GetType())
		want := regexp.MustCompile(`(?m)^\s*gpu_model\s*= job\.` + attribute + `$`)
		if found := want.MatchString(d.GetMapping()); known && !found || !known && strings.Contains(d.GetMapping(), "gpu_model") {
			t.Errorf("%s: the meta key gpu_model is not that of job.%s", d.GetType(), attribute)
		}
		if strings.Contains(d.GetMapping(), "gpu_type ") {
			t.Errorf("%s has another key for the model of GPUs", d.GetType())
		}
	}
	if len(models) > 0 {
		t.Errorf("no such sources: %v", models)
	}
}

func TestDefaultMapping_GPUsOfModels_HaveAComponentEach(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	known := 0
	for _, d := range describeAll(t) {
		if gpusOf(d.GetType(), nil) == nil {
			continue
		}
		known++
		m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: label, Attributes: d.GetAttributes(), Default: d.GetMapping()})
		if diags.HasErrors() {
			t.Fatal(d.GetType(), diags)
		}
		for range 200 {
			models, want, most := map[string]int64{}, map[string]int64{}, 3
			if slices.Contains([]string{"kubernetes", "htcondor", "gridengine"}, d.GetType()) {
				most = 1
			}
			for _, model := range []string{"a100", "NVIDIA H200", "Tesla V100"}[:r.IntN(most+1)] {
				models[model] = r.Int64N(4)
				if models[model] > 0 {
					want["GPUs:"+model], want["GPUs"] = models[model], want["GPUs"]+models[model]
				}
			}
			job := randomJob(r, d.GetAttributes())
			values := gpusOf(d.GetType(), models)
			for i, a := range d.GetAttributes() {
				if v, ok := values[a.GetName()]; ok {
					job.Values[i] = v
				}
			}
			got := map[string]int64{}
			record, keep, err := m.Map(job)
			if err != nil || !keep {
				continue // a job that no source sends
			}
			for _, c := range record.Components {
				if strings.HasPrefix(c.Name, "GPUs") {
					got[c.Name] += c.Amount
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: %s: %v: %s", seed, d.GetType(), models, diff)
			}
			if unread := m.Unread(job, &record); len(unread) > 0 {
				t.Fatalf("seed %d: %s: %+v", seed, d.GetType(), unread)
			}
		}
	}
	if known != 6 {
		t.Errorf("%d sources know models", known)
	}
}

// blocksOver are record blocks that name one thing, with what they change of a record.
func blocksOver(r record.Record) map[string]func(*record.Record) {
	blocks := map[string]func(*record.Record){
		`when = true`:                 func(*record.Record) {},
		`state = "SEEN"`:              func(r *record.Record) { r.State = "SEEN" },
		`id = "another"`:              func(r *record.Record) { r.ID = "another" },
		`meta = {}`:                   func(*record.Record) {},
		`meta = { new = "x" }`:        func(r *record.Record) { setMeta(r, "new", "x") },
		`meta = { new = null }`:       func(*record.Record) {},
		`meta = merge({}, {"new"=1})`: func(r *record.Record) { setMeta(r, "new", "1") },
		`component "GPUs:a100" { amount = 3 }`: func(r *record.Record) {
			r.Components = append(r.Components, record.Component{Name: "GPUs:a100", Amount: 3})
		},
		`components = [{ name = "Licences", amount = 2, scores = [] }]`: func(r *record.Record) {
			r.Components = append(r.Components, record.Component{Name: "Licences", Amount: 2})
		},
	}
	for _, e := range r.Meta {
		blocks[fmt.Sprintf("meta = { %q = %q }", e.Key, "mine")] = func(r *record.Record) { setMeta(r, e.Key, "mine") }
		blocks[fmt.Sprintf("meta = { %q = null }", e.Key)] = func(r *record.Record) { setMeta(r, e.Key) }
	}
	for _, c := range r.Components {
		blocks[fmt.Sprintf("component %q { amount = 77 }", c.Name)] = func(r *record.Record) {
			dropComponent(r, c.Name)
			r.Components = append(r.Components, record.Component{Name: c.Name, Amount: 77})
		}
		blocks[fmt.Sprintf("component %q {\n  amount = 1\n  when = false\n}", c.Name)] = func(r *record.Record) { dropComponent(r, c.Name) }
	}
	for body, change := range blocks {
		blocks[body] = func(r *record.Record) { change(r); *r = sorted(*r) }
	}
	return blocks
}

func setMeta(r *record.Record, key string, values ...string) {
	r.Meta = slices.DeleteFunc(r.Meta, func(e record.MetaEntry) bool { return e.Key == key })
	if len(values) > 0 {
		r.Meta = append(r.Meta, record.MetaEntry{Key: key, Values: values}).Sorted()
	}
}

func dropComponent(r *record.Record, name string) {
	r.Components = slices.DeleteFunc(r.Components, func(c record.Component) bool { return c.Name == name })
}

func clone(r record.Record) record.Record {
	r.Meta, r.Components = slices.Clone(r.Meta), slices.Clone(r.Components)
	return r
}

func sorted(r record.Record) record.Record {
	r = clone(r)
	slices.SortStableFunc(r.Components, func(a, b record.Component) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// describeAll asks every source plugin of the tree what it is.
func describeAll(t *testing.T) []*bursarv1.DescribeResponse {
	t.Helper()
	dirs, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	folder, build := t.TempDir(), map[string]string{}
	for _, main := range dirs {
		typ := filepath.Dir(main)
		build["bursar-source-"+typ] = "plugins/source/" + typ
	}
	if err := programtest.Build(folder, build); err != nil {
		t.Fatal(err)
	}
	var all []*bursarv1.DescribeResponse
	for name := range build {
		process, err := host.Launch(t.Context(), host.Spec{Kind: "source", Type: strings.TrimPrefix(name, "bursar-source-"), Path: filepath.Join(folder, name), Dev: true})
		if err != nil {
			t.Fatal(err)
		}
		d, err := process.Source().Describe(t.Context(), &bursarv1.DescribeRequest{})
		_ = process.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// randomJob has a value of its type for each attribute, or none.
func randomJob(r *rand.Rand, attributes []*bursarv1.Attribute) *bursarv1.Job {
	job := &bursarv1.Job{Run: "1", Ended: true}
	for _, a := range attributes {
		if r.IntN(8) == 0 {
			job.Values = append(job.Values, nil)
			continue
		}
		if a.GetName() == "components" { // the JSON of a list
			job.Values = append(job.Values, &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: `[{"name":"Cores","amount":8,"scores":[]},{"name":"Memory","amount":5,"scores":[]}]`}})
			continue
		}
		job.Values = append(job.Values, randomValue(r, a.GetType()))
	}
	return job
}

func randomValue(r *rand.Rand, typ bursarv1.Type) *bursarv1.Value {
	text := func() *bursarv1.Value {
		return &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: fmt.Sprintf("t%d", r.IntN(1000))}}
	}
	switch typ {
	case bursarv1.Type_TYPE_INT:
		return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: r.Int64N(1000)}}
	case bursarv1.Type_TYPE_FLOAT:
		return &bursarv1.Value{Kind: &bursarv1.Value_FloatValue{FloatValue: r.Float64() * 1000}}
	case bursarv1.Type_TYPE_BOOL:
		return &bursarv1.Value{Kind: &bursarv1.Value_BoolValue{BoolValue: r.IntN(2) == 0}}
	case bursarv1.Type_TYPE_TIME: // all the same: no stop is before its start
		return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: 1_700_000_000_000_000}}
	case bursarv1.Type_TYPE_LIST:
		return &bursarv1.Value{Kind: &bursarv1.Value_ListValue{ListValue: &bursarv1.ListValue{Values: []*bursarv1.Value{text(), text()}}}}
	case bursarv1.Type_TYPE_MAP:
		return &bursarv1.Value{Kind: &bursarv1.Value_MapValue{MapValue: &bursarv1.MapValue{Values: map[string]*bursarv1.Value{"a": text(), "user_id": text()}}}}
	}
	return text()
}
