package job

import (
	"fmt"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// jobstatsAttributes are the attributes that Jobstats measured, which AdminComment has; null while
// the run goes on, and where a node or a GPU of the run was not measured.
func jobstatsAttributes() []attribute {
	const null = "; null while it runs, and where AdminComment has no Jobstats summary of all "
	nodes, gpus := []string{"AdminComment", "AllocNodes"}, []string{"AdminComment", "AllocTRES"}
	return []attribute{
		{sdk.Attribute{Name: "jobstats_cpu_seconds", Type: sdk.TypeInt, Doc: "CPU time of all processes of the job, in seconds, rounded half to even" + null + "nodes"}, nodes,
			func(r *Run) (sdk.Value, error) {
				m, known, err := r.ofNodes(func(j *field.Jobstats) *field.Measured { return &j.CPUSeconds })
				return numberValue(m.Rounded(), known, err)
			}},
		{sdk.Attribute{Name: "jobstats_memory_mb", Type: sdk.TypeInt, Doc: "peak resident memory of the job in MB of 2^20 bytes, summed over its nodes" + null + "nodes"}, nodes,
			func(r *Run) (sdk.Value, error) {
				m, known, err := r.ofNodes(func(j *field.Jobstats) *field.Measured { return &j.Memory })
				return numberValue(field.MB(m.Rounded()), wasMeasured(m.Rounded(), known), err)
			}},
		{sdk.Attribute{Name: "jobstats_gpu_seconds", Type: sdk.TypeInt, Doc: "GPU time that the job used, in seconds, rounded half to even: mean utilization × run time, summed over its GPUs" + null + "GPUs"}, gpus,
			func(r *Run) (sdk.Value, error) {
				m, known, err := r.ofGPUs(func(j *field.Jobstats) *field.Measured { return &j.GPUUse })
				seconds := r.End.Unix() - r.Start.Unix()
				m.Sum *= float64(seconds) / 100
				return numberValue(m.Rounded(), known && seconds >= 0, err)
			}},
		{sdk.Attribute{Name: "jobstats_gpu_memory_mb", Type: sdk.TypeInt, Doc: "peak GPU memory of the job in MB of 2^20 bytes, summed over its GPUs" + null + "GPUs"}, gpus,
			func(r *Run) (sdk.Value, error) {
				m, known, err := r.ofGPUs(func(j *field.Jobstats) *field.Measured { return &j.GPUMemory })
				return numberValue(field.MB(m.Rounded()), known, err)
			}},
		{sdk.Attribute{Name: "jobstats_gpu_total_memory_mb", Type: sdk.TypeInt, Doc: "memory of the job's GPUs in MB of 2^20 bytes" + null + "GPUs"}, gpus,
			func(r *Run) (sdk.Value, error) {
				m, known, err := r.ofGPUs(func(j *field.Jobstats) *field.Measured { return &j.GPUTotal })
				return numberValue(field.MB(m.Rounded()), known, err)
			}},
	}
}

// ofNodes is what was measured on the nodes of the run; known when it was on all of them.
func (r *Run) ofNodes(of func(*field.Jobstats) *field.Measured) (m field.Measured, known bool, err error) {
	return r.sumMeasured(of, func(j *field.Jobstats) (int64, error) {
		nodes, _, err := r.countOf("AllocNodes")
		return max(nodes, int64(j.Nodes)), err
	})
}

// ofGPUs is what was measured of the GPUs of the run; known when it was of all of them.
func (r *Run) ofGPUs(of func(*field.Jobstats) *field.Measured) (m field.Measured, known bool, err error) {
	return r.sumMeasured(of, func(*field.Jobstats) (int64, error) {
		gpus, _, err := r.gpusOf()
		return gpus, err
	})
}

// sumMeasured is a sum of the run's summary; known when as many nodes or GPUs were measured as
// wanted says.
func (r *Run) sumMeasured(of func(*field.Jobstats) *field.Measured, wanted func(*field.Jobstats) (int64, error)) (field.Measured, bool, error) {
	if !r.Ended() {
		return field.Measured{}, false, nil
	}
	if r.summary == nil {
		s := &summary{}
		s.Jobstats, _, s.err = field.ParseJobstats(r.Text("AdminComment"))
		r.summary = s
	}
	m, err := *of(&r.summary.Jobstats), r.summary.err
	if err == nil {
		err = m.Err
	}
	if err != nil {
		return field.Measured{}, false, fmt.Errorf("AdminComment: %w", err)
	}
	if m.Count == 0 {
		return field.Measured{}, false, nil
	}
	n, err := wanted(&r.summary.Jobstats)
	return m, int64(m.Count) >= n, err
}

// summary is what AdminComment has of a run; it is read once.
type summary struct {
	field.Jobstats
	err error
}
