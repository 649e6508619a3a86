package api

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// The components that histograms are made of, in the order of listMeasuredComponents.
const (
	ofCores = iota
	ofTotalCPU
	ofMemory
	ofMemoryUsed
	ofGPUs
	ofTotalGPU
	ofGPUMemory
	ofGPUMemoryUsed
	measuredComponents
)

// measuredComponent is a component of a name and kind.
type measuredComponent struct {
	name string
	kind record.Kind
}

func listMeasuredComponents() []measuredComponent {
	return []measuredComponent{
		ofCores: {"Cores", record.Rate}, ofTotalCPU: {"TotalCPU", record.Total},
		ofMemory: {"Memory", record.Rate}, ofMemoryUsed: {"MemoryUsed", record.Rate},
		ofGPUs: {"GPUs", record.Rate}, ofTotalGPU: {"TotalGPU", record.Total},
		ofGPUMemory: {"GPUMemory", record.Rate}, ofGPUMemoryUsed: {"GPUMemoryUsed", record.Rate},
	}
}

// unsaid is an amount, or a time in microseconds, that a record does not say.
const unsaid = -1

// measuredRun is what histograms need of a run.
type measuredRun struct {
	submit, start, stop record.Time
	amounts             [measuredComponents]int64
}

// runFigures are the figures of a run that has ended; NaN is not known.
type runFigures struct {
	cores, waited, ran int64 // as they were stored, or unsaid

	size, wait, runtime, cpu, memory, gpus, gpuMemory float64
}

// leastRun is what a shorter run counts as in the expansion factor, in seconds.
const leastRun = 10

// figures returns the figures of the run.
func (r *measuredRun) figures() runFigures {
	nan := math.NaN()
	amount := func(component int) float64 {
		if r.amounts[component] == unsaid {
			return nan
		}
		return float64(r.amounts[component])
	}
	f := runFigures{cores: r.amounts[ofCores], waited: unsaid, ran: unsaid, size: amount(ofCores), wait: nan, runtime: nan}
	if r.submit.Present() && r.start.Present() && r.submit <= r.start {
		f.waited = int64(r.start - r.submit)
		f.wait = float64(f.waited) / float64(record.Second)
	}
	if r.start.Present() && r.start <= r.stop {
		f.ran = int64(r.stop - r.start)
		f.runtime = float64(f.ran) / float64(record.Second)
	}
	part := func(used, booked float64) float64 {
		if !(booked > 0) {
			return nan
		}
		return used / booked
	}
	f.cpu = part(amount(ofTotalCPU), f.size*f.runtime)
	f.memory = part(amount(ofMemoryUsed), amount(ofMemory))
	f.gpus = part(amount(ofTotalGPU), amount(ofGPUs)*f.runtime)
	f.gpuMemory = part(amount(ofGPUMemoryUsed), amount(ofGPUMemory))
	return f
}

// histogram counts runs by one figure. Its sums are whole numbers, so that they are the same in
// whatever order runs are added.
type histogram struct {
	name, title, unit string
	from              []float64
	of                func(*runFigures) float64
	whole             func(*runFigures) int64 // the figure as it was stored; nil: it is a quotient
	per               int64                   // how many of sum are 1
	records           []int
	used              []sums.Sum // cores × microseconds
	unknown           int
	sum               sums.Sum
}

func newHistograms() []histogram {
	var sizes []float64
	for size := 1.0; size <= 1<<16; size *= 2 {
		sizes = append(sizes, size)
	}
	const minute, hour, day = 60, 3600, 86400
	times := []float64{0, 10, minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 4 * hour, 8 * hour, 16 * hour, day, 2 * day, 4 * day, 8 * day}
	parts := []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}
	list := []histogram{
		{name: "size", title: "Job size", from: append([]float64{0}, sizes...), of: func(f *runFigures) float64 { return f.size }, whole: func(f *runFigures) int64 { return f.cores }, per: 1},
		{name: "wait", title: "Wait", unit: "second", from: times, of: func(f *runFigures) float64 { return f.wait }, whole: func(f *runFigures) int64 { return f.waited }, per: int64(record.Second)},
		{name: "runtime", title: "Run time", unit: "second", from: times, of: func(f *runFigures) float64 { return f.runtime }, whole: func(f *runFigures) int64 { return f.ran }, per: int64(record.Second)},
		{name: "expansion", title: "Expansion factor", from: []float64{1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100}, of: func(f *runFigures) float64 {
			run := max(f.runtime, leastRun)
			return (f.wait + run) / run
		}},
		{name: "cpu", title: "CPU efficiency", from: parts, of: func(f *runFigures) float64 { return f.cpu }},
		{name: "memory", title: "Memory efficiency", from: parts, of: func(f *runFigures) float64 { return f.memory }},
		{name: "gpus", title: "GPU efficiency", from: parts, of: func(f *runFigures) float64 { return f.gpus }},
		{name: "gpu_memory", title: "GPU memory efficiency", from: parts, of: func(f *runFigures) float64 { return f.gpuMemory }},
	}
	for i := range list {
		h := &list[i]
		h.records, h.used = make([]int, len(h.from)), make([]sums.Sum, len(h.from))
		if h.whole == nil {
			h.per = quotientUnit
		}
	}
	return list
}

// quotientUnit is how many of the units in which quotients are added up are 1, and mostQuotient
// what a greater one counts as.
const (
	quotientUnit = 1 << 40
	mostQuotient = 1 << 60
)

// quotientSum returns a quotient, which is not below 0, in quotientUnit.
func quotientSum(q float64) sums.Sum {
	whole, rest := math.Modf(min(q, mostQuotient))
	return sums.Product(int64(whole), quotientUnit).Add(sums.SumOf(int64(math.Round(rest * quotientUnit))))
}

func (h *histogram) addRun(f *runFigures) {
	value := h.of(f)
	if math.IsNaN(value) || value < h.from[0] {
		h.unknown++
		return
	}
	bin := 0
	for bin+1 < len(h.from) && h.from[bin+1] <= value {
		bin++
	}
	h.records[bin]++
	if h.whole != nil {
		h.sum = h.sum.Add(sums.SumOf(h.whole(f)))
	} else {
		h.sum = h.sum.Add(quotientSum(value))
	}
	if f.cores != unsaid && f.ran != unsaid {
		h.used[bin] = h.used[bin].Add(sums.Product(f.cores, f.ran))
	}
}

// addHistogram adds what another histogram of the same figure has counted.
func (h *histogram) addHistogram(o *histogram) {
	h.unknown += o.unknown
	h.sum = h.sum.Add(o.sum)
	for i := range h.records {
		h.records[i] += o.records[i]
		h.used[i] = h.used[i].Add(o.used[i])
	}
}

func (h *histogram) histogramJSON() v1.Histogram {
	quotient := func(sum sums.Sum, by *big.Int, digits int) json.Number {
		return json.Number(new(big.Rat).SetFrac(sum.Big(), by).FloatString(digits))
	}
	out := v1.Histogram{Name: h.name, Title: h.title, Unit: v1.Text(h.unit), Records: h.records, Unknown: h.unknown}
	known := int64(0)
	for i := range h.from {
		out.From = append(out.From, json.Number(strconv.FormatFloat(h.from[i], 'f', -1, 64)))
		out.CoreHours = append(out.CoreHours, quotient(h.used[i], big.NewInt(int64(record.Hour)), 3))
		known += int64(h.records[i])
	}
	if known > 0 {
		mean := quotient(h.sum, new(big.Int).Mul(big.NewInt(known), big.NewInt(h.per)), 6)
		out.Mean = &mean
	}
	return out
}
