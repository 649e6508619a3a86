package main

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// attributes are what the source of the measurement declares.
var attributes = []*bursarv1.Attribute{
	{Name: "id", Type: bursarv1.Type_TYPE_STRING},
	{Name: "start", Type: bursarv1.Type_TYPE_TIME},
	{Name: "stop", Type: bursarv1.Type_TYPE_TIME},
	{Name: "User", Type: bursarv1.Type_TYPE_STRING},
	{Name: "Group", Type: bursarv1.Type_TYPE_STRING},
	{Name: "Partition", Type: bursarv1.Type_TYPE_STRING},
	{Name: "Comment", Type: bursarv1.Type_TYPE_STRING},
	{Name: "NCPUS", Type: bursarv1.Type_TYPE_INT},
	{Name: "memory_mb", Type: bursarv1.Type_TYPE_INT},
	{Name: "cpu_seconds", Type: bursarv1.Type_TYPE_INT},
	{Name: "gpus", Type: bursarv1.Type_TYPE_INT},
}

// fallback is the source's default mapping.
const fallback = `
id    = "${source.label}-${job.id}"
start = job.start
stop  = job.stop
`

// mapped is a mapping of ten expressions beside id and times, as a site writes
// it; a fifth of the jobs has a comment.
const mapped = `
meta = {
  site_id  = "nemo"
  user_id  = job.User
  group_id = job.Group
  voms     = try(jsondecode(job.Comment).voms, null)
}
component "Cores" {
  amount = job.NCPUS
  score "HEPScore23" { value = job.Partition == "gpu" ? 21.5 : 10.0 }
}
component "Memory" { amount = job.memory_mb }
component "TotalCPU" {
  amount = job.cpu_seconds
  kind   = "total"
}
component "GPUs" {
  amount = job.gpus
  when   = try(job.gpus > 0, false)
}
`

// timeMapping maps jobs for about that long and reports how many a second.
func timeMapping(d time.Duration) error {
	file, diags := hcl.Parse("bench.hcl", []byte(mapped))
	if diags.HasErrors() {
		return diags.Err()
	}
	m, diags := mapping.Compile(mapping.Options{Agent: "bench", Type: "slurm", Label: "nemo", Attributes: attributes, Default: fallback, Record: file.Body})
	if diags.HasErrors() {
		return diags.Err()
	}
	list := makeJobs(1000)
	begun, done := time.Now(), 0
	for time.Since(begun) < d {
		for _, job := range list {
			if _, keep, err := m.Map(job); err != nil || !keep {
				return fmt.Errorf("job %s: kept %t, %w", job.GetRun(), keep, err)
			}
			done++
		}
	}
	seconds := time.Since(begun).Seconds()
	allocs := testing.AllocsPerRun(1, func() {
		for _, job := range list {
			_, _, _ = m.Map(job)
		}
	})
	return writeReport(Report{Done: true, Rate: float64(done) / seconds, Seconds: seconds, Allocs: int64(allocs) / int64(len(list))})
}

// makeJobs are n jobs of which a fifth has a comment.
func makeJobs(n int) []*bursarv1.Job {
	list := make([]*bursarv1.Job, n)
	for i := range list {
		comment, partition := "", "cpu"
		if i%5 == 0 {
			comment = fmt.Sprintf(`{"voms":"/atlas/Role=pilot%d"}`, i%300)
		}
		if i%7 == 0 {
			partition = "gpu"
		}
		stop := int64(1_700_000_000_000_000) + int64(i)*1_000_003
		list[i] = &bursarv1.Job{Run: strconv.Itoa(i), Ended: true, Values: []*bursarv1.Value{
			textValue(strconv.Itoa(1_000_000 + i)), intValue(stop - int64(i)*7_000_001), intValue(stop),
			textValue(fmt.Sprintf("user%d", i%150)), textValue(fmt.Sprintf("group%d", i%12)), textValue(partition), textValue(comment),
			intValue(int64(1 + i%64)), intValue(int64(2000 * (1 + i%64))), intValue(int64(i * 37)), intValue(int64(i % 3)),
		}}
	}
	return list
}

func textValue(s string) *bursarv1.Value {
	return &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: s}}
}

func intValue(n int64) *bursarv1.Value {
	return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: n}}
}
