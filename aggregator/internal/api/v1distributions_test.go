package api_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ended is a run as a test makes it; -1 is not said.
type ended struct {
	user          string
	cores, cpu    int
	gpus, gpuTime int
	gpuMemory     int // of 1000
	wait, runtime int
	begin, to     time.Time
}

// randomRuns makes runs that end in February or March.
func randomRuns(rng *rand.Rand, n int) (list []ended) {
	for range n {
		e := ended{user: string(rune('a' + rng.IntN(3))), cores: 1 << rng.IntN(9), cpu: -1, gpuTime: -1, wait: -1, runtime: int(math.Pow(10, 6*rng.Float64()))}
		e.to = time.Date(2026, 2, 1, 0, 0, rng.IntN(58*86400), 0, time.UTC)
		e.begin = e.to.Add(-time.Duration(e.runtime) * time.Second)
		if rng.IntN(4) > 0 {
			e.wait = rng.IntN(200_000)
		}
		if rng.IntN(4) > 0 {
			e.cpu = 1 + rng.IntN(e.cores*e.runtime)
		}
		if e.gpus = rng.IntN(4); e.gpus > 0 && rng.IntN(4) > 0 {
			e.gpuTime = 1 + rng.IntN(e.gpus*e.runtime)
			e.gpuMemory = rng.IntN(1001)
		}
		list = append(list, e)
	}
	return list
}

func (e *ended) record(id int) record.Record {
	j := apitest.Job{ID: fmt.Sprint("r", id), User: e.user, Start: e.begin.Format(time.RFC3339), Stop: e.to.Format(time.RFC3339), Cores: int64(e.cores), CPU: int64(e.cpu), GPUs: int64(e.gpus), GPUTime: int64(e.gpuTime), GPUMemory: 1000, GPUMemoryUsed: int64(e.gpuMemory)}
	if e.wait >= 0 {
		j.Submit = e.begin.Add(-time.Duration(e.wait) * time.Second).Format(time.RFC3339)
	}
	return j.Record()
}

// in is the bin of a value, found in another way than the server does.
func in(from []float64, value float64) (bin int) {
	for i := range from {
		if value >= from[i] {
			bin = i
		}
	}
	return bin
}

func TestDistributions_RandomRuns_CountEachOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w := apitest.New(t)
	runs := randomRuns(rng, 400)
	var records []record.Record
	for i := range runs {
		records = append(records, runs[i].record(i))
	}
	w.Collect(apitest.Nemo(), records, nil)
	for _, user := range []string{"", "a", "a,c"} {
		query := v1.DistributionsQuery{Window: "2026-02"}
		if user != "" {
			query.Where = map[string]string{"user_id": user}
		}
		got, err := w.API().Distributions(t.Context(), &query)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Histograms {
			h := &got.Histograms[i]
			from := make([]float64, len(h.From))
			for k := range from {
				from[k], _ = h.From[k].Float64()
			}
			want, unknown, all := make([]int, len(from)), 0, 0
			for k := range runs {
				e := &runs[k]
				if e.to.Month() != time.February || user != "" && !strings.Contains(user, e.user) {
					continue
				}
				all++
				value := map[string]float64{"size": float64(e.cores), "wait": float64(e.wait), "runtime": float64(e.runtime), "cpu": float64(e.cpu) / float64(e.cores*e.runtime), "expansion": -1, "memory": -1, "gpus": float64(e.gpuTime) / float64(max(e.gpus, 1)*e.runtime), "gpu_memory": float64(e.gpuMemory) / 1000}[h.Name]
				if h.Name == "gpu_memory" && e.gpuMemory == 0 {
					value = -1
				}
				if h.Name == "expansion" && e.wait >= 0 {
					value = float64(e.wait+max(e.runtime, 10)) / float64(max(e.runtime, 10))
				}
				if value < 0 {
					unknown++
				} else {
					want[in(from, value)]++
				}
			}
			if got.Records != all || h.Unknown != unknown || fmt.Sprint(h.Records) != fmt.Sprint(want) {
				t.Errorf("%s of %q: %d of %d, unknown %d, want %d of %d, unknown %d", h.Name, user, h.Records, got.Records, h.Unknown, want, all, unknown)
			}
		}
		if len(got.Histograms) != 8 {
			t.Errorf("%d histograms", len(got.Histograms))
		}
	}
}

func TestDistributions_SomeRecords_OnlyThese(t *testing.T) {
	some := access.Principal{Name: "a", Rights: identity.Write | identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"a"}})}
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Who = func(*http.Request) access.Principal { return some } })
	at := time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)
	for i, user := range []string{"a", "b", "b"} {
		rg.add(fmt.Sprintf(`{"record_id":"r%d","meta":{"user_id":[%q]},"components":[],"start_time":%q,"stop_time":%q}`, i, user, at.Add(-time.Hour).Format(time.RFC3339), at.Format(time.RFC3339)))
	}
	for query, want := range map[string]int{"": 1, "&where[user_id]=": 0} {
		var got v1.Distributions
		rg.get("/v1/distributions?window=2026-02"+query, &got)
		if got.Records != want || !got.Complete.Limited {
			t.Errorf("%s: %+v", query, got)
		}
	}
	for _, filter := range []string{"where[user_id]=%s", "meta[user_id][c][0]=%s"} { // of others as of none
		path := "/v1/distributions?window=2026-02&" + filter
		others, none := rg.do("GET", fmt.Sprintf(path, "b"), ""), rg.do("GET", fmt.Sprintf(path, "c"), "")
		if others.status != http.StatusBadRequest || others.status != none.status || strings.ReplaceAll(others.body, `"b\`, `"c\`) != none.body {
			t.Errorf("%s: %v, %v", filter, others, none)
		}
	}
}

func TestDistributions_UnknownQuestions_AreRefused(t *testing.T) {
	rg := newRig(t, pays(t))
	for query, want := range map[string]string{
		"":                                  "no time is given",
		"window=sometime":                   "window",
		"window=2026&by=user_id":            "unknown field `by`",
		"window=2026&format=csv":            "unknown field `format`",
		"window=2026&where[project]=higgs":  "no record says its project of itself",
		"window=2026&zone=Nowhere":          "Nowhere",
		"window=2026&start_time[gte]=never": "never",
	} {
		if a := rg.do("GET", "/v1/distributions?"+query, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %v", query, a)
		}
	}
}

// BenchmarkDistributions asks for the histograms of a million records.
func BenchmarkDistributions(b *testing.B) {
	url := whole(b)
	for i := range 1000 {
		var body bytes.Buffer
		usual(&body, i*bulkSize, bulkSize)
		answer, err := http.Post(url+"/records", "application/json", &body)
		if err != nil || answer.StatusCode != http.StatusOK {
			b.Fatal(err, answer)
		}
		_ = answer.Body.Close()
	}
	for b.Loop() {
		answer, err := http.Get(url + "/v1/distributions?window=2024-02")
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || !bytes.Contains(text, []byte(`"records":1000000`)) {
			b.Fatalf("%v %.300s", err, text)
		}
		_ = answer.Body.Close()
	}
}
