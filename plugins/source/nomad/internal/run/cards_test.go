package run

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// Names of devices as HashiCorp's plugin for NVIDIA tells them.
func TestMilliGPUs_Slices_CountByTheirProfile(t *testing.T) {
	gpu := func(name string, ids ...string) nomad.Device {
		return nomad.Device{Vendor: "nvidia", Type: "gpu", Name: name, DeviceIDs: ids}
	}
	for name, c := range map[string]struct {
		devices []nomad.Device
		want    int64 // -1: unknown
		partial bool
		problem string
	}{
		"whole cards":         {[]nomad.Device{gpu("NVIDIA A100-SXM4-40GB", "GPU-1", "GPU-2")}, 2000, false, ""},
		"slices":              {[]nomad.Device{gpu("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "MIG-1", "MIG-2")}, 857, true, ""},
		"a quarter":           {[]nomad.Device{gpu("NVIDIA A30 MIG 1g.6gb", "MIG-1")}, 250, true, ""},
		"a card and a slice":  {[]nomad.Device{gpu("Tesla T4", "GPU-1"), gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG-1")}, 1143, true, ""},
		"no GPUs":             {[]nomad.Device{{Vendor: "intel", Type: "fpga", Name: "F100", DeviceIDs: []string{"a"}}}, 0, false, ""},
		"an unknown profile":  {[]nomad.Device{gpu("NVIDIA A100-SXM4-40GB MIG 9g.20gb", "MIG-1")}, -1, true, `unknown profile "9g.20gb"`},
		"a slice of no name":  {[]nomad.Device{gpu("NVIDIA A100-SXM4-40GB", "MIG-1")}, -1, true, "no profile"},
		"a name of many ends": {[]nomad.Device{gpu("NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb", "MIG-1")}, 143, true, ""},
	} {
		e := New()
		e.Alloc.AllocatedResources = &nomad.Resources{Tasks: map[string]*nomad.TaskResources{"main": {Devices: c.devices}}}
		values, unread := (&View{Entry: e, Task: "main"}).Values(Owner{}, func(name string) bool { return strings.HasSuffix(name, "_gpus") })
		got := map[string]sdk.Value{}
		for i, a := range Attributes() {
			got[a.Name] = values[i]
		}
		switch milli := got["milli_gpus"]; {
		case c.want < 0:
			if !milli.IsNull() || len(unread) != 1 || unread[0].Attribute != "milli_gpus" || !strings.Contains(unread[0].Problem, c.problem) {
				t.Errorf("%s: %v, %+v; want null for %q", name, milli, unread, c.problem)
			}
		case milli.IsNull() || milli.Int() != c.want || len(unread) > 0:
			t.Errorf("%s: %v, %+v; want %d", name, milli, unread, c.want)
		}
		if partial := got["partial_gpus"]; partial.IsNull() || partial.Bool() != c.partial {
			t.Errorf("%s: partial %v, want %t", name, partial, c.partial)
		}
	}
	values, _ := (&View{Entry: New(), Task: "main"}).Values(Owner{}, func(name string) bool { return strings.HasSuffix(name, "_gpus") })
	for i, a := range Attributes() {
		if !values[i].IsNull() {
			t.Errorf("%s is %v where it is not known what the task was given", a.Name, values[i])
		}
	}
}

// With MPS the plugin for NVIDIA gives several tasks one card, by its id, and no part of it.
func TestGPUs_CardSharedByMPS_IsWholeForEachTask(t *testing.T) {
	e := New()
	shared := &nomad.TaskResources{Devices: []nomad.Device{{Vendor: "nvidia", Type: "gpu", Name: "Tesla T4", DeviceIDs: []string{"GPU-1"}}}}
	e.Alloc.AllocatedResources = &nomad.Resources{Tasks: map[string]*nomad.TaskResources{"a": shared, "b": shared}}
	for _, task := range []string{"a", "b"} {
		v := &View{Entry: e, Task: task}
		values, unread := v.Values(Owner{}, func(string) bool { return true })
		if len(unread) > 0 {
			t.Errorf("%s: %+v", task, unread)
		}
		for i, a := range Attributes() {
			want, has := map[string]sdk.Value{"gpus": sdk.Int(1), "milli_gpus": sdk.Int(1000), "partial_gpus": sdk.Bool(false)}[a.Name]
			if has && values[i] != want {
				t.Errorf("%s of %s is %v, want %v", a.Name, task, values[i], want)
			}
		}
	}
}
