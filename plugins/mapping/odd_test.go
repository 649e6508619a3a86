package mapping_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestMap_StopBeforeStart_IsInvalid(t *testing.T) {
	m := must(t, "")
	imported, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: "auditor", Label: "nemo", Attributes: attributes, Default: fallback, Imported: true})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	rapid.Check(t, func(t *rapid.T) {
		j := job()
		start, stop := rapid.Int64Range(-1<<50, 1<<50).Draw(t, "start"), rapid.Int64Range(-1<<50, 1<<50).Draw(t, "stop")
		j.Values[1] = &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: start}}
		j.Values[2] = &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: stop}}
		_, _, err := m.Map(j)
		field, invalid := errors.AsType[*record.FieldError](err)
		if invalid != (stop < start) || invalid && field.Field != "stop_time" {
			t.Errorf("%d to %d: %v", start, stop, err)
		}
		if r, keep, err := imported.Map(j); err != nil || !keep || r.Negative() != (stop < start) {
			t.Errorf("imported, %d to %d: %v, %v", start, stop, keep, err)
		}
	})
}

func TestLacking_NamesResourcesWhoseAmountIsUnknown(t *testing.T) {
	m := must(t, `
component "Cores" {
  amount = job.cores
  when   = job.cores != null
}
component "Zero" {
  amount = 0
  when   = false
}
component "Computed" {
  amount = job.cores * 2
  when   = job.cores != null
}
component "Measured" {
  amount = job.cores
  kind   = "total"
  when   = job.cores != null
}
component "MemoryUsed" {
  amount = job.cores
  when   = job.cores != null
}
component "GPUMemory" {
  amount = job.cores
  when   = job.cores != null
}
component "GPUMemoryUsed" {
  amount = job.cores
  when   = job.cores != null
}`)
	for _, cores := range []*bursarv1.Value{num(4), nil} {
		j, want := job(), []string(nil)
		if cores == nil {
			want = []string{"Cores", "Computed"}
		}
		j.Values[4] = cores
		r, keep, err := m.Map(j)
		if err != nil || !keep {
			t.Fatal(err)
		}
		got := m.Lacking(j, &r)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("cores %v: %q, want %q", cores, got, want)
		}
	}
}

func TestWantedKeys_AreThoseOfColumnsOfTypeMap(t *testing.T) {
	m := must(t, `meta = { a = try(job.ad["x"], ""), b = try(job.ad.y, ""), c = job.user }`)
	if got := m.WantedKeys(); !slices.Equal(got, []string{"ad.x", "ad.y"}) {
		t.Errorf("%q", got)
	}
	if got := must(t, `meta = { a = length(job.ad) }`).WantedKeys(); !slices.Equal(got, []string{"ad.*"}) {
		t.Errorf("%q", got)
	}
}
