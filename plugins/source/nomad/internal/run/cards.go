package run

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/mig"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// gpu is the type of devices that are GPUs.
const gpu = "gpu"

// gpuColumns are the attributes of GPUs.
func gpuColumns() []attribute {
	return []attribute{
		newColumn("gpus", sdk.TypeInt, "GPUs: devices of the type gpu; a slice (MIG) counts as one", func(v *View, _ Owner) sdk.Value {
			if v.taskResources() == nil {
				return sdk.Null()
			}
			return sdk.Int(sumDevices(v.taskResources(), func(d nomad.Device) string { return d.Type })[gpu])
		}),
		textColumn("gpu_model", "model of the GPUs; several are joined by commas", func(v *View) string {
			return strings.Join(slices.Sorted(maps.Keys(v.gpusByModel())), ",")
		}),
		newColumn("gpus_by_model", sdk.TypeMap, "GPUs by model, for example job.gpus_by_model[\"Tesla V100\"]", func(v *View, _ Owner) sdk.Value { return countMap(v.gpusByModel()) }),
		{sdk.Attribute{Name: "milli_gpus", Type: sdk.TypeInt, Doc: "thousandths of cards: 1000 for a whole GPU, less for slices (MIG) by the profile in their model; null where it is not known"},
			func(v *View, _ Owner) (sdk.Value, error) { return v.milliGPUs() }},
		newColumn("partial_gpus", sdk.TypeBool, "whether the task has slices of cards (MIG)", func(v *View, _ Owner) sdk.Value {
			if v.taskResources() == nil {
				return sdk.Null()
			}
			return sdk.Bool(slices.ContainsFunc(v.taskResources().Devices, isSliced))
		}),
	}
}

func (v *View) gpusByModel() map[string]int64 {
	r := v.taskResources()
	if r == nil {
		return nil
	}
	return sumDevices(r, func(d nomad.Device) string {
		if d.Type == gpu {
			return d.Name
		}
		return ""
	})
}

// isSliced reports whether a device is slices of cards.
func isSliced(d nomad.Device) bool {
	_, _, slice := mig.Profile(d.Name)
	return d.Type == gpu && (slice || slices.ContainsFunc(d.DeviceIDs, func(id string) bool { return strings.HasPrefix(id, "MIG-") }))
}

// milliGPUs are the cards of the task in thousandths, rounded half up.
func (v *View) milliGPUs() (sdk.Value, error) {
	if v.taskResources() == nil {
		return sdk.Null(), nil
	}
	all := new(big.Rat)
	for _, d := range v.taskResources().Devices {
		if d.Type != gpu {
			continue
		}
		if _, _, slice := mig.Profile(d.Name); !slice && isSliced(d) {
			return sdk.Null(), fmt.Errorf("the name of the device %q has no profile, and its ids are those of slices", d.Name)
		}
		part, err := mig.Card(d.Name)
		if err != nil {
			return sdk.Null(), err
		}
		all.Add(all, part.Mul(part, big.NewRat(int64(len(d.DeviceIDs)), 1)))
	}
	n, err := mig.Thousandths(all)
	return sdk.Int(n), err
}
