package collect

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/mapping"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

func text(s string) *bursarv1.Value {
	return &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: s}}
}

func num(n int64) *bursarv1.Value {
	return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: n}}
}

// bench are jobs as slurm gives them, and a translator with ten expressions.
func bench(b *testing.B, n int) (*translator, *bursarv1.CollectResponse) {
	attributes := []*bursarv1.Attribute{
		{Name: "id", Type: bursarv1.Type_TYPE_STRING}, {Name: "start", Type: bursarv1.Type_TYPE_TIME}, {Name: "stop", Type: bursarv1.Type_TYPE_TIME},
		{Name: "user", Type: bursarv1.Type_TYPE_STRING}, {Name: "group", Type: bursarv1.Type_TYPE_STRING}, {Name: "partition", Type: bursarv1.Type_TYPE_STRING},
		{Name: "comment", Type: bursarv1.Type_TYPE_STRING}, {Name: "cores", Type: bursarv1.Type_TYPE_INT}, {Name: "memory", Type: bursarv1.Type_TYPE_INT},
	}
	file, diags := hcl.Parse("agent.hcl", []byte(`
id    = "${source.label}-${job.id}"
start = job.start
stop  = job.stop
meta = {
  site_id  = "nemo"
  user_id  = job.user
  group_id = lower(job.group)
  voms     = try(jsondecode(job.comment).voms, null)
}
component "Cores" {
  amount = job.cores
  score "HEPScore23" { value = job.partition == "gpu" ? 21.5 : 10.0 }
}
component "Memory" { amount = job.memory * 1024 }
`))
	if diags.HasErrors() {
		b.Fatal(diags.Error())
	}
	mapper, diags := mapping.Compile(mapping.Options{Agent: "a", Type: "slurm", Label: "nemo", Attributes: attributes, Record: file.Body})
	if diags.HasErrors() {
		b.Fatal(diags.Error())
	}
	resp := &bursarv1.CollectResponse{Checkpoint: []byte("here")}
	for i := range n {
		id := fmt.Sprint(1000000 + i)
		resp.Jobs = append(resp.Jobs, &bursarv1.Job{Run: id, Ended: true, Values: []*bursarv1.Value{
			text(id), num(1767225600000000 + int64(i)), num(1767229200000000 + int64(i)), text(fmt.Sprintf("user%d", i%1500)), text(fmt.Sprintf("Group%d", i%60)),
			text([]string{"compute", "gpu"}[i%2]), text(fmt.Sprintf(`{"voms":"/atlas/%d"}`, i%300)), num(int64(1 + i%128)), num(int64(i % 4096)),
		}})
	}
	clock := int64(1767225600000000)
	return &translator{
		source: buffer.Source{Type: "slurm", Label: "nemo"}, rank: record.RankScheduler, attributes: attributes, mapper: mapper,
		observe: func() int64 { clock++; return clock }, memory: newMemory(), open: map[string]buffer.OpenRun{}, again: true,
	}, resp
}

// BenchmarkJobsToFrames is the path of a job from the plugin's message to the
// bytes of its frame, without the disk.
func BenchmarkJobsToFrames(b *testing.B) {
	tr, resp := bench(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tr.translateBatch(resp); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkJobsToDisk is the same path with the buffer's transaction and fsync.
func BenchmarkJobsToDisk(b *testing.B) {
	tr, resp := bench(b, 1000)
	buf, err := buffer.Open(filepath.Join(b.TempDir(), "buffer.db"), buffer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer buf.Close()
	for b.Loop() {
		d, err := tr.translateBatch(resp)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := buf.Append(d.append); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "jobs/s")
}
