package field_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/fakesacct"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/field"
)

// The summary in Jobstats' own documentation, docs/setup/summaries.md.
const documented = `{"gpus":1,"nodes":{"della-k1g1":{"cpus":12,"gpu_total_memory":{"1":85899345920},"gpu_used_memory":{"1":83314868224},` +
	`"gpu_utilization":{"1":98.6},"total_memory":137438953472,"total_time":57620.8,"used_memory":84683702272}},"total_time":50944}`

func TestParseJobstats_SummaryOfItsDocumentation_IsRead(t *testing.T) {
	got, known, err := field.ParseJobstats(fakesacct.Jobstats(t, strings.NewReader(documented)))
	want := field.Jobstats{Nodes: 1, CPUSeconds: field.Measured{Sum: 57620.8, Count: 1}, Memory: field.Measured{Sum: 84683702272, Count: 1},
		GPUUse: field.Measured{Sum: 98.6, Count: 1}, GPUMemory: field.Measured{Sum: 83314868224, Count: 1}, GPUTotal: field.Measured{Sum: 85899345920, Count: 1}}
	if err != nil || !known || got != want {
		t.Errorf("%+v, %v, %v; want %+v", got, known, err, want)
	}
	// A summary as Jobstats' epilog stored it in 2022.
	const stored = "JS1:H4sIACj7KWIC/1XNQQrCMBCF4bvMOkonIzNpLyOhGUVIGmnSRSm5u1FEcPt/PN4BSw5aYDogaIz+tNoZF+R3qLn6eE2a8rrDxE5wvAgLsYGtaPiJFbRCxCMP5juqj6QdHJE79zg/t37hWvt34gEN3D9487FoewEKn+eojwAAAA=="
	if got, known, err := field.ParseJobstats(stored); err != nil || !known || got.CPUSeconds.Count != 1 || got.Memory.Count != 1 || got.GPUUse.Count != 0 {
		t.Errorf("%+v, %v, %v", got, known, err)
	}
}

func TestParseJobstats_TextWithoutData_IsUnknown(t *testing.T) {
	for _, text := range []string{"", "JS1:None", "JS1:Short", " JS1:None\n", "JS", "JS2:", "a comment", "no JS1:None", fakesacct.Jobstats(t, strings.NewReader(documented))[4:]} {
		if got, known, err := field.ParseJobstats(text); known || err != nil || got != (field.Jobstats{}) {
			t.Errorf("%q: %+v, %v, %v", text, got, known, err)
		}
	}
}

func TestParseJobstats_MissingValues_AreNotCounted(t *testing.T) {
	for _, c := range []struct {
		text      string
		cpu, gpus int
	}{
		{`{"nodes":{"a":{"total_time":1},"b":{}}}`, 1, 0},
		{`{"nodes":{"a":{"total_time":1},"b":null}}`, 1, 0},
		{`{"nodes":{"a":{"total_time":1},"b":{"total_time":null}}}`, 1, 0},
		{`{"nodes":{"a":{"total_time":0,"gpu_utilization":{"0":null,"1":0}},"b":{"gpu_utilization":null}},"gpus":true}`, 1, 1},
	} {
		got, known, err := field.ParseJobstats(fakesacct.Jobstats(t, strings.NewReader(c.text)))
		if err != nil || !known || got.Nodes != 2 || got.CPUSeconds.Count != c.cpu || got.GPUUse.Count != c.gpus {
			t.Errorf("%s: %+v, %v, %v", c.text, got, known, err)
		}
	}
}

func TestParseJobstats_InvalidText_IsAnError(t *testing.T) {
	whole := fakesacct.Jobstats(t, strings.NewReader(documented))
	for n := len("JS1:"); n < len(whole); n++ {
		if got, known, err := field.ParseJobstats(whole[:n]); err == nil || known {
			t.Errorf("%d of %d bytes: %+v", n, len(whole), got)
		}
	}
	for name, text := range map[string]string{
		"no base64":   "JS1:not-base64!!",
		"no gzip":     "JS1:" + base64.StdEncoding.EncodeToString([]byte(documented)),
		"more behind": whole + "AAAA",
	} {
		if got, known, err := field.ParseJobstats(text); err == nil || known || !strings.Contains(err.Error(), "invalid Jobstats summary") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, text := range []string{
		"", "null", "{}", "[]", "7", `"nodes"`, `{"nodes":null}`, `{"nodes":[]}`, `{"nodes":{"a":1}}`, `{"nodes":{"a":{"total_time":"1"}}}`,
		`{"nodes":{"a":{"used_memory":[1]}}}`, `{"nodes":{"a":{"gpu_utilization":87.5}}}`, `{"nodes":{"a":{"gpu_used_memory":{"0":"12"}}}}`,
		`{"nodes":{"a":{"total_time":NaN}}}`, `{"nodes":{"a":{"total_time":1e999}}}`, documented + documented, documented[:len(documented)-1],
		strings.Repeat(`{"nodes":`, 50_000), `{"nodes":{"a":{"total_time":1}}}` + "\x00",
	} {
		if got, known, err := field.ParseJobstats(fakesacct.Jobstats(t, strings.NewReader(text))); err == nil || known {
			t.Errorf("%.60q: %+v", text, got)
		}
	}
}

func TestParseJobstats_AbsurdNumbers_SpoilOnlyTheirSum(t *testing.T) {
	for _, bad := range []string{"-1", "-0.1", "1e300", "-1e300"} {
		for i, text := range []string{
			`"total_time":%s,"used_memory":1,"gpu_utilization":{"0":1},"gpu_used_memory":{"0":1},"gpu_total_memory":{"0":1}`,
			`"total_time":1,"used_memory":%s,"gpu_utilization":{"0":1},"gpu_used_memory":{"0":1},"gpu_total_memory":{"0":1}`,
			`"total_time":1,"used_memory":1,"gpu_utilization":{"0":1,"1":%s},"gpu_used_memory":{"0":1},"gpu_total_memory":{"0":1}`,
			`"total_time":1,"used_memory":1,"gpu_utilization":{"0":1},"gpu_used_memory":{"0":1,"1":%s},"gpu_total_memory":{"0":1}`,
			`"total_time":1,"used_memory":1,"gpu_utilization":{"0":1},"gpu_used_memory":{"0":1},"gpu_total_memory":{"0":1,"1":%s}`,
		} {
			text = fmt.Sprintf(`{"nodes":{"a":{`+text+`}}}`, bad)
			got, known, err := field.ParseJobstats(fakesacct.Jobstats(t, strings.NewReader(text)))
			if err != nil || !known {
				t.Fatalf("%s: %v", text, err)
			}
			for j, m := range []field.Measured{got.CPUSeconds, got.Memory, got.GPUUse, got.GPUMemory, got.GPUTotal} {
				if (m.Err != nil) != (i == j) || m.Err == nil && (m.Sum != 1 || m.Count != 1) {
					t.Errorf("%s: sum %d is %+v", text, j, m)
				}
			}
		}
	}
	for _, text := range []string{`{"nodes":{"a":{"gpu_utilization":{"0":100.1}}}}`, `{"nodes":{"a":{"gpu_used_memory":{"0":4e18,"1":4e18}}}}`} {
		got, _, err := field.ParseJobstats(fakesacct.Jobstats(t, strings.NewReader(text)))
		if err != nil || got.GPUUse.Err == nil && got.GPUMemory.Err == nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// endless is a text of spaces.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestParseJobstats_Bomb_CostsNoMemory(t *testing.T) {
	const members = 16 // a gzip file may be several behind each other
	member, err := base64.StdEncoding.DecodeString(fakesacct.Jobstats(t, io.LimitReader(endless{}, 1<<30/members))[len("JS1:"):])
	if err != nil {
		t.Fatal(err)
	}
	bomb := "JS1:" + base64.StdEncoding.EncodeToString(bytes.Repeat(member, members))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, known, err := field.ParseJobstats(bomb)
	runtime.ReadMemStats(&after)
	if known || err == nil || !strings.Contains(err.Error(), "unpacks to more than") {
		t.Errorf("%v, %v", known, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("a text of %d bytes took %d bytes", len(bomb), took)
	}
}

func TestParseJobstats_AnySummary_AddsUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := map[string]any{}
		var want [5]float64
		for i := range rapid.IntRange(1, 20).Draw(rt, "nodes") {
			cpu, memory := rapid.Float64Range(0, 1e7).Draw(rt, "cpu"), rapid.Int64Range(0, 1<<42).Draw(rt, "memory")
			want[0], want[1] = want[0]+cpu, want[1]+float64(memory)
			use, gpuMemory, gpuTotal := map[string]float64{}, map[string]int64{}, map[string]int64{}
			for g := range rapid.IntRange(0, 8).Draw(rt, "GPUs") {
				name := fmt.Sprint(g)
				use[name], gpuMemory[name] = rapid.Float64Range(0, 100).Draw(rt, "use"), rapid.Int64Range(0, 1<<38).Draw(rt, "GPU memory")
				gpuTotal[name] = gpuMemory[name] + rapid.Int64Range(0, 1<<38).Draw(rt, "free GPU memory")
				want[2], want[3], want[4] = want[2]+use[name], want[3]+float64(gpuMemory[name]), want[4]+float64(gpuTotal[name])
			}
			nodes[fmt.Sprintf("n%d", i)] = map[string]any{"total_time": cpu, "used_memory": memory, "cpus": 4, "total_memory": 1 << 40, "gpu_utilization": use, "gpu_used_memory": gpuMemory, "gpu_total_memory": gpuTotal}
		}
		text, err := json.Marshal(map[string]any{"nodes": nodes, "total_time": 3600, "gpus": 8})
		if err != nil {
			rt.Fatal(err)
		}
		got, known, err := field.ParseJobstats(fakesacct.Jobstats(t, bytes.NewReader(text)))
		if err != nil || !known || got.Nodes != len(nodes) || got.CPUSeconds.Count != len(nodes) || got.GPUUse.Count != got.GPUMemory.Count {
			rt.Fatalf("%+v, %v, %v", got, known, err)
		}
		for i, m := range []field.Measured{got.CPUSeconds, got.Memory, got.GPUUse, got.GPUMemory, got.GPUTotal} {
			if math.Abs(m.Sum-want[i]) > 1e-9*want[i] {
				rt.Errorf("sum %d is %v, want %v", i, m.Sum, want[i])
			}
		}
	})
}

func FuzzJobstats(f *testing.F) {
	f.Add("JS1:None", false)
	f.Add(fakesacct.Jobstats(f, strings.NewReader(documented)), false)
	f.Add(documented, true)
	f.Add(`{"nodes":{"a":{"total_time":-1,"gpu_utilization":{"0":1e99,"1":null}},"b":null}}`, true)
	f.Fuzz(func(t *testing.T, text string, pack bool) {
		if pack {
			text = fakesacct.Jobstats(t, strings.NewReader(text))
		}
		got, known, err := field.ParseJobstats(text)
		if known && err != nil || !known && got != (field.Jobstats{}) {
			t.Fatalf("%+v, %v, %v", got, known, err)
		}
		for _, m := range []field.Measured{got.CPUSeconds, got.Memory, got.GPUUse, got.GPUMemory, got.GPUTotal} {
			if !(m.Sum >= 0 && m.Sum <= 1<<62) || m.Count == 0 && m.Sum != 0 {
				t.Errorf("%+v", m)
			}
		}
	})
}
