package run

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const mega = 1 << 20

// resourceColumns are the columns of what the run asked for and what it used.
func resourceColumns() []attribute {
	number := func(name, doc string, value func(*subject) int64) attribute {
		return newColumn(name, sdk.TypeInt, doc, func(s *subject) sdk.Value { return sdk.Int(value(s)) })
	}
	mb := func(n int64) int64 { return (n + mega - 1) / mega }
	return []attribute{
		number("cpu_millicores", "requested CPU in thousandths of a core", func(s *subject) int64 { return s.requestOf(cpu) }),
		number("cpu_limit_millicores", "limit of CPU in thousandths of a core; 0 for none", func(s *subject) int64 { return s.limitOf(cpu) }),
		number("memory_mb", "requested memory in MB of 2^20 bytes, rounded up", func(s *subject) int64 { return mb(s.requestOf(memory)) }),
		number("memory_limit_mb", "limit of memory in MB; 0 for none", func(s *subject) int64 { return mb(s.limitOf(memory)) }),
		number("disk_mb", "requested ephemeral storage in MB", func(s *subject) int64 { return mb(s.requestOf(storage)) }),
		number("gpus", "GPUs: resources that the setting gpus names, and whole cards of claims; null where a claim could not be read", func(s *subject) int64 {
			_, n := s.deviceCards()
			for name := range s.requests {
				if s.rules.isCountedGPU(name) {
					n += s.requestOf(name)
				}
			}
			return n
		}),
		newColumn("milli_gpus", sdk.TypeInt, "thousandths of cards: 1000 for a whole GPU, less for slices (MIG), replicas (time-slicing, MPS) and shares (HAMi); null where the node or the driver does not say how much", (*subject).milliGPUs),
		textColumn("gpu_model", "model of the GPUs of a run that has some or slices of some, by the node's label, else by the driver (DRA)", func(s *subject) string { return s.gpuModel() }),
		newColumn("extended", sdk.TypeMap, "extended resources by name, for example job.extended[\"nvidia.com/mig-1g.5gb\"]", func(s *subject) sdk.Value {
			return s.amountMap(s.requests, requests, Extended)
		}),
		newColumn("devices", sdk.TypeMap, "devices of resource claims (DRA) by their driver, for example job.devices[\"gpu.nvidia.com\"]; without those for administration", (*subject).countDevices),
		newColumn("requests", sdk.TypeMap, "all requests by name: cpu in thousandths of a core, others in their unit", func(s *subject) sdk.Value { return s.amountMap(s.requests, requests, anyResource) }),
		newColumn("limits", sdk.TypeMap, "all limits by name, as requests", func(s *subject) sdk.Value { return s.amountMap(s.limits, limits, anyResource) }),
		newColumn("cpu_limit_seconds", sdk.TypeFloat, "seconds of each main container times its limit of CPU in cores, added up; null while one runs and where one has no limit", func(s *subject) sdk.Value {
			return s.limitSeconds()
		}),
		newColumn("cpu_seconds", sdk.TypeFloat, "CPU time that Prometheus has; null when it has none", func(s *subject) sdk.Value {
			if s.Usage == nil || s.Usage.CPU == nil {
				return sdk.Null()
			}
			return sdk.Float(*s.Usage.CPU)
		}),
		newColumn("memory_max_mb", sdk.TypeInt, "most memory in use at once that Prometheus has, in MB; null when it has none", func(s *subject) sdk.Value {
			if s.Usage == nil || s.Usage.Memory == nil {
				return sdk.Null()
			}
			return sdk.Int(mb(*s.Usage.Memory))
		}),
		newColumn("memory_max_bytes", sdk.TypeInt, "the same in bytes", func(s *subject) sdk.Value {
			if s.Usage == nil || s.Usage.Memory == nil {
				return sdk.Null()
			}
			return sdk.Int(*s.Usage.Memory)
		}),
		textColumn("usage", "whether Prometheus has told what an ended run used: pending, complete or missing; null without Prometheus and while it runs", func(s *subject) string { return s.usageState() }),
	}
}

// limitSeconds is the most CPU time that the main containers might have used.
func (s *subject) limitSeconds() sdk.Value {
	parts := []View{*s.View}
	if s.Container == "" {
		parts = s.Views(false)
	}
	sum := 0.0
	for i := range parts {
		v := &parts[i]
		if s.Container == "" && v.Kind != Main {
			continue
		}
		limit := v.containerAmounts(v.Container, limits)[cpu]
		if limit == unreadable {
			s.unsure = s.amountProblem(limits, cpu)
		}
		if limit <= 0 || v.Open() {
			return sdk.Null()
		}
		sum += v.Stop.Sub(v.Start).Seconds() * float64(limit) / 1000
	}
	return sdk.Float(sum)
}

func (s *subject) usageState() string {
	switch u := s.Usage; {
	case u == nil || s.Open():
		return ""
	case !u.Given:
		return "pending"
	case u.CPU == nil || u.Memory == nil:
		return "missing"
	}
	return "complete"
}

// gpuModel is that of the node's GPUs, or of the devices where the node has no label with it and
// they are of one model.
func (s *subject) gpuModel() string {
	models := map[string]bool{}
	for i := range s.devices {
		if d := &s.devices[i]; s.rules.Driver(d.Driver) && d.Kind != nil {
			models[d.Kind.Model] = true
		}
	}
	some := len(models) > 0
	for name, n := range s.requests {
		some = some || n != 0 && s.ofCards(name)
	}
	if !some {
		return ""
	}
	model := Model(s.Node, s.rules.Model)
	if model == "" && len(models) == 1 {
		model = slices.Collect(maps.Keys(models))[0]
	}
	return model
}

// Model is the model of a node's GPUs: the first of some labels that it has.
func Model(labels map[string]string, keys []string) string {
	for _, key := range keys {
		if model := labels[key]; model != "" {
			return model
		}
	}
	return ""
}

func anyResource(string) bool { return true }

// amountMap are the amounts of some resources, without those that cannot be read.
func (s *subject) amountMap(all Amounts, of side, some func(string) bool) sdk.Value {
	out := make(map[string]sdk.Value, len(all))
	for name := range all {
		if !some(name) {
			continue
		}
		if n := s.amountOf(all, of, name); n != unreadable {
			out[name] = sdk.Int(n)
		}
	}
	return sdk.Map(out)
}

// endColumns are the columns about how it went.
func endColumns() []attribute {
	number := func(name, doc string, value func(*Exit) int) attribute {
		return newColumn(name, sdk.TypeInt, doc, func(s *subject) sdk.Value {
			if s.Exit == nil {
				return sdk.Null()
			}
			return sdk.Int(int64(value(s.Exit)))
		})
	}
	return []attribute{
		textColumn("state", "running, complete, failed, oom, evicted, preempted, timeout, deleted (its pod was), lost (its node was) or forgotten (its pod vanished)", func(s *subject) string { return s.state() }),
		number("exit_code", "exit code; null while it runs and when unknown", func(x *Exit) int { return x.Code }),
		number("exit_signal", "signal that ended it, 0 for none", func(x *Exit) int { return x.Signal }),
		textColumn("reason", "why the container ended, or why the pod is as it is, in Kubernetes' words", func(s *subject) string {
			if s.Exit != nil {
				return cmp.Or(s.Exit.Reason, s.Pod.Status.Reason)
			}
			return s.Pod.Status.Reason
		}),
		textColumn("phase", "phase of the pod: Pending, Running, Succeeded or Failed", func(s *subject) string { return s.Pod.Status.Phase }),
	}
}
