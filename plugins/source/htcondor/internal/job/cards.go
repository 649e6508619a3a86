package job

import (
	"errors"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/internal/mig"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// gpuDevice is the kind of the run's GPUs; "" where it has none, or the pool does not say it.
func (j *Job) gpuDevice() string {
	if n, _, err := j.gpuCount(); n == 0 && err == nil {
		return ""
	}
	return j.columnText(gpuDeviceName)
}

// partialGPUs reports whether the run has slices of cards.
func (j *Job) partialGPUs() bool {
	_, _, slice := mig.Profile(j.gpuDevice())
	return slice || slices.ContainsFunc(j.gpuNames(), func(name string) bool { return strings.HasPrefix(name, "MIG-") })
}

// milliGPUs are the cards of the run in thousandths, rounded half up.
func (j *Job) milliGPUs() (int64, bool, error) {
	n, known, err := j.gpuCount()
	if n == 0 || !known || err != nil {
		return 0, known, err
	}
	device := j.gpuDevice()
	if _, _, slice := mig.Profile(device); !slice && j.partialGPUs() {
		return 0, false, errors.New("the profile of the slices in AssignedGPUs is not known: MachineAttrGPUs_DeviceName0 does not have it")
	}
	part, err := mig.Card(device)
	if err != nil {
		return 0, false, err
	}
	milli, err := mig.Thousandths(part.Mul(part, big.NewRat(n, 1)))
	return milli, err == nil, err
}

// gpuAttributes are the attributes of GPUs.
func gpuAttributes() []attribute {
	return []attribute{
		intAttribute("gpus", "GPUs of the run: GPUsProvisioned, the names in AssignedGPUs or RequestGPUs, times the machines of a parallel job; 0 without any", (*Job).gpuCount),
		{sdk.Attribute{Name: "gpu_names", Type: sdk.TypeList, Doc: "names of the GPUs of the run, as GPU-3b04f9a2"}, func(j *Job) (sdk.Value, error) { return sdk.Strings(j.gpuNames()...), nil }},
		stringAttribute("gpu_device", "kind of the GPUs, where the pool says it: MachineAttrGPUs_DeviceName0", (*Job).gpuDevice),
		intAttribute("milli_gpus", "thousandths of cards: 1000 for a whole GPU, less for slices (MIG) by the profile in gpu_device; null where it is not known", (*Job).milliGPUs),
		{sdk.Attribute{Name: "partial_gpus", Type: sdk.TypeBool, Doc: "whether the run has slices of cards (MIG)"}, func(j *Job) (sdk.Value, error) { return sdk.Bool(j.partialGPUs()), nil }},
	}
}
