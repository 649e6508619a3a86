package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// whole runs an aggregator of one node on disk and returns its address.
func whole(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	a, err := daemon.Open(daemon.Settings{Access: access.Rules{Plain: identity.Admin}, Name: "agg1", DataDir: b.TempDir(), Plain: []net.Listener{l}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// usual appends n records of a usual shape as a bulk.
func usual(buf *bytes.Buffer, first, n int) {
	rng := rand.New(rand.NewPCG(uint64(first), 1))
	buf.WriteByte('[')
	for i := range n {
		if i > 0 {
			buf.WriteByte(',')
		}
		day, second := (first+i)/40_000%28, (first+i)*2%86_400
		fmt.Fprintf(buf, `{"record_id":"nemo-slurm-%d","meta":{"site_id":["site%d"],"group_id":["group%d"],"user_id":["user%d"],"partition":["part%d"]},"components":[{"name":"Cores","amount":%d,"scores":[{"name":"HEPScore23","value":%d.5}]},{"name":"Memory","amount":%d,"scores":[]},{"name":"TotalCPU","amount":%d,"scores":[]},{"name":"MaxRSS","amount":%d,"scores":[]}],"start_time":"2024-01-%02dT00:00:%02d.%06dZ","stop_time":"2024-02-%02dT%02d:%02d:%02d.%06dZ"}`,
			first+i, rng.IntN(5), rng.IntN(60), rng.IntN(1500), rng.IntN(20), 1<<rng.IntN(7), 10+rng.IntN(10), rng.IntN(1<<20), rng.IntN(1<<24), rng.IntN(1<<20),
			1+day, rng.IntN(60), rng.IntN(1_000_000), 1+day, second/3600, second/60%60, second%60, rng.IntN(1_000_000))
	}
	buf.WriteByte(']')
}

// cpu is the time that this process has had, in nanoseconds.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func perRecord(b *testing.B, n int, used int64) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(used)/float64(n), "cpu-ns/record")
}

const bulkSize = 1000

// BenchmarkPostRecords posts bulks over four connections; an operation is a bulk.
func BenchmarkPostRecords(b *testing.B) {
	url := whole(b)
	bodies := make([][]byte, b.N)
	for i := range bodies {
		var buf bytes.Buffer
		usual(&buf, i*bulkSize, bulkSize)
		bodies[i] = buf.Bytes()
	}
	var next atomic.Int64
	b.SetParallelism(2)
	used := cpu(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			post(b, url, bodies[next.Add(1)-1])
		}
	})
	b.StopTimer()
	perRecord(b, b.N*bulkSize, cpu(b)-used)
}

func post(b *testing.B, url string, body []byte) {
	resp, err := http.Post(url+"/records", "application/json", bytes.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
		b.Error(resp.Status, string(text), err)
	}
}

// BenchmarkGetRecords streams 200 000 records; an operation is one answer.
func BenchmarkGetRecords(b *testing.B) {
	const n = 200_000
	url := whole(b)
	for first := 0; first < n; first += 20_000 {
		var buf bytes.Buffer
		usual(&buf, first, 20_000)
		post(b, url, buf.Bytes())
	}
	for name, path := range map[string]string{"all": "/records", "unindexed sort": "/records?sort_by[asc]=runtime", "ndjson": "/v1/records?format=ndjson", "csv": "/v1/records?format=csv"} {
		b.Run(name, func(b *testing.B) {
			used := cpu(b)
			for range b.N {
				resp, err := http.Get(url + path)
				if err != nil {
					b.Fatal(err)
				}
				size, err := io.Copy(io.Discard, resp.Body)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
				b.SetBytes(size)
			}
			perRecord(b, b.N*n, cpu(b)-used)
		})
	}
}
