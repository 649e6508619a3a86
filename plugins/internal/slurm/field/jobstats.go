package field

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Jobstats is what Jobstats measured of a job, over its nodes or its GPUs.
type Jobstats struct {
	Nodes      int      // in the summary, also those without a value
	CPUSeconds Measured // of all processes in the job's cgroup, by node
	Memory     Measured // highest resident memory of the cgroup in bytes, by node
	GPUUse     Measured // mean utilization over the run in per cent, by GPU
	GPUMemory  Measured // highest used memory in bytes, by GPU
	GPUTotal   Measured // memory that it has in bytes, by GPU
}

// Measured is a sum of measured values.
type Measured struct {
	Sum   float64
	Count int   // how many nodes or GPUs have a value
	Err   error // a value, or the sum, is out of range
}

// jobstatsNode is a node of a summary. Jobstats has the values from Prometheus; what was
// not there is missing, of a GPU that is split (MIG) for example its utilization.
type jobstatsNode struct {
	CPUSeconds *float64            `json:"total_time"`
	Memory     *float64            `json:"used_memory"`
	GPUUse     map[string]*float64 `json:"gpu_utilization"`
	GPUMemory  map[string]*float64 `json:"gpu_used_memory"`
	GPUTotal   map[string]*float64 `json:"gpu_total_memory"`
}

// Bounds of a summary. AdminComment has up to 64 KiB, and large jobs have 5 KB of it.
const (
	maxSummary = 1 << 20 // bytes unpacked
	maxSeconds = 1e15    // a million cores for thirty years
	maxBytes   = 1 << 62
)

// ParseJobstats reads the summary of a job that Jobstats stores in AdminComment: "JS1:"
// and the base64 of gzipped JSON. Known is false for other text, and for JS1:None and
// JS1:Short, by which Jobstats says that it has no data, or too little of a short run.
//
// The keys, units and special values are those of report_job_json, get_job_stats and
// get_data_out in jobstats.py, and of docs/setup/summaries.md, of
// https://github.com/PrincetonUniversity/jobstats.
func ParseJobstats(s string) (j Jobstats, known bool, err error) {
	packed, found := strings.CutPrefix(strings.TrimSpace(s), "JS1:")
	if !found || packed == "None" || packed == "Short" {
		return Jobstats{}, false, nil
	}
	nodes, err := unpackJobstats(packed)
	if err != nil {
		return Jobstats{}, false, fmt.Errorf("invalid Jobstats summary %.24q: %w", s, err)
	}
	j.Nodes = len(nodes)
	for _, n := range nodes {
		if n == nil {
			continue
		}
		j.CPUSeconds.addValue(n.CPUSeconds, maxSeconds, maxSeconds)
		j.Memory.addValue(n.Memory, maxBytes, maxBytes)
		for _, v := range n.GPUUse {
			j.GPUUse.addValue(v, 100, maxBytes)
		}
		for _, v := range n.GPUMemory {
			j.GPUMemory.addValue(v, maxBytes, maxBytes)
		}
		for _, v := range n.GPUTotal {
			j.GPUTotal.addValue(v, maxBytes, maxBytes)
		}
	}
	return j, true, nil
}

func unpackJobstats(packed string) (map[string]*jobstatsNode, error) {
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxSummary+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSummary {
		return nil, fmt.Errorf("it unpacks to more than %d bytes", maxSummary)
	}
	var summary struct {
		Nodes map[string]*jobstatsNode `json:"nodes"`
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		return nil, err
	}
	if summary.Nodes == nil {
		return nil, errors.New("it has no nodes")
	}
	return summary.Nodes, nil
}

// addValue adds a value up to most; nil is unknown.
func (m *Measured) addValue(v *float64, most, mostSum float64) {
	switch {
	case v == nil || m.Err != nil:
	case !(*v >= 0 && *v <= most):
		*m = Measured{Err: fmt.Errorf("invalid value %v in Jobstats summary: use a number from 0 to %v", *v, most)}
	case m.Sum+*v > mostSum:
		*m = Measured{Err: fmt.Errorf("the sum of the Jobstats summary is more than %v", mostSum)}
	default:
		m.Sum, m.Count = m.Sum+*v, m.Count+1
	}
}

// Rounded is the sum, rounded half to even.
func (m *Measured) Rounded() int64 { return int64(math.RoundToEven(m.Sum)) }
