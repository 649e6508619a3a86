package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/racetest"
)

// In the environment of a process that is an aggregator for a test: where its data
// are, and how much memory its answers may take.
const (
	aggregatorDir    = "BURSAR_TEST_AGGREGATOR"
	aggregatorMemory = "BURSAR_TEST_ANSWER_MEMORY"
	// memoryRecords sets how many records the test of memory has.
	memoryRecords = "BURSAR_TEST_RECORDS"
)

// TestAggregatorProcess is no test: it is the aggregator of another one, in a process
// of its own.
func TestAggregatorProcess(t *testing.T) {
	dir := os.Getenv(aggregatorDir)
	if dir == "" {
		t.Skip("this is a part of other tests")
	}
	most, err := strconv.ParseInt(os.Getenv(aggregatorMemory), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, stop := startWith(t, daemon.Settings{Name: "agg1", DataDir: dir, Plain: []net.Listener{l}, AnswerMemory: most, Patience: 10 * time.Minute, Log: slog.New(slog.DiscardHandler)})
	fmt.Println("serves", addr)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); { // until the test ends
		fmt.Println("holds", limitMemory(2*most))
	}
	stop()
}

// limitMemory collects the garbage, sets the memory limit of this process to what is
// left and more bytes, and returns what is left.
func limitMemory(more int64) int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	holds := int64(m.Sys - m.HeapReleased)
	debug.SetMemoryLimit(holds + more)
	return holds
}

// child is an aggregator in a process of its own.
type child struct {
	addr string
	pid  int

	in  io.Writer
	out *bufio.Scanner
}

// process starts an aggregator in a process of its own.
func process(t *testing.T, dir string, most int64) *child {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, plainTest(t), "-test.run=^TestAggregatorProcess$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), aggregatorDir+"="+dir, fmt.Sprint(aggregatorMemory, "=", most))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cancel()
		_ = cmd.Wait() // killed
	})
	c := &child{pid: cmd.Process.Pid, in: in, out: bufio.NewScanner(out)}
	c.addr = c.says(t, "serves ")
	return c
}

// says returns what follows the word in the next line that begins with it.
func (c *child) says(t *testing.T, word string) string {
	t.Helper()
	for c.out.Scan() {
		if rest, ok := strings.CutPrefix(c.out.Text(), word); ok {
			return rest
		}
	}
	t.Fatalf("the aggregator ended before it said %q: %v", word, c.out.Err())
	return ""
}

// limitMemory limits the memory of the process to what it holds without garbage and
// twice the memory for answers, and returns what it holds.
func (c *child) limitMemory(t *testing.T) int64 {
	t.Helper()
	if _, err := fmt.Fprintln(c.in); err != nil {
		t.Fatal(err)
	}
	holds, err := strconv.ParseInt(c.says(t, "holds "), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return holds
}

// plainTest is this test without the race detector, which takes a multiple of the memory
// that is measured.
func plainTest(t *testing.T) string {
	t.Helper()
	if !racetest.Enabled {
		return os.Args[0]
	}
	path := filepath.Join(t.TempDir(), "run.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// anonymous is what a process has in memory that is no file, in bytes.
func anonymous(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no RssAnon")
	return 0
}

// disorder posts n records whose times are in no order.
func disorder(t *testing.T, addr string, n int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	begin := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for from := 0; from < n; from += 4000 {
		var b strings.Builder
		for i := from; i < min(n, from+4000); i++ {
			start := begin.Add(time.Duration(rnd.IntN(60*86400)) * time.Second)
			fmt.Fprintf(&b, `,{"record_id":"job-%d","meta":{"site_id":["s%d"],"group_id":["g%d"],"user_id":["user%d"],"node":["n%d"]},"components":[{"name":"Cores","amount":%d,"scores":[{"name":"HEPscore23","value":%d.5}]},{"name":"Memory","amount":%d,"scores":[]}],"start_time":%q,"stop_time":%q}`,
				i, i%3, i%20, rnd.IntN(800), rnd.IntN(500), 1+rnd.IntN(64), 10+i%3, rnd.IntN(1<<20), start.Format(time.RFC3339), start.Add(time.Duration(rnd.IntN(200_000))*time.Second).Format(time.RFC3339))
		}
		if status, text := call(t, "POST", addr+"/records", "["+b.String()[1:]+"]"); status != 200 {
			t.Fatal(status, text)
		}
	}
}

// reading is what a reader found.
type reading struct {
	status int
	lines  int
	sum    uint64
}

// read asks for a path. Slow reads the beginning and then pauses.
func read(addr, path string, slow time.Duration) (r reading, err error) {
	resp, err := http.Get(addr + path)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	r.status = resp.StatusCode
	sum := fnv.New64a()
	in := bufio.NewReaderSize(resp.Body, 4<<10)
	for {
		line, err := in.ReadSlice('\n')
		sum.Write(line)
		if len(line) > 0 && line[len(line)-1] == '\n' {
			r.lines++
		}
		if r.lines == 1 && slow > 0 {
			time.Sleep(slow)
			slow = 0
		}
		switch {
		case errors.Is(err, io.EOF):
			r.sum = sum.Sum64()
			return r, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return r, err
		}
	}
}

// readers is how many ask for the same at once.
const readers = 40

// TestAnswersStayWithinTheirMemory lets forty readers of each kind ask a real process
// at once, fast ones and slow ones. They get all or a refusal. Before them, the process
// gets a memory limit, as it has under a control group: what it holds without garbage
// after one reader of each kind, and twice the memory for answers, once for the answers
// and once for garbage. The limit of the runtime is soft, so a third time that much is
// what the process may take beyond it for a moment. Where answers hold more than is
// counted, the runtime cannot keep the limit.
func TestAnswersStayWithinTheirMemory(t *testing.T) {
	most, records := int64(48<<20), 4_000
	if text := os.Getenv(memoryRecords); text != "" {
		var err error
		if records, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	c := process(t, dir, most)
	addr := c.addr
	disorder(t, addr, records)
	asks := map[string]struct {
		path string
		slow time.Duration
	}{
		"by runtime":       {"/records?sort_by[asc]=runtime", 0},
		"slowly":           {"/records", 300 * time.Millisecond},
		"slowly, sorted":   {"/v1/records?format=ndjson&sort_by[asc]=record_id", 300 * time.Millisecond},
		"pages by runtime": {"/v1/records?sort_by[asc]=runtime&limit=10000", 0},
		"pages":            {"/v1/records?limit=10000", 0},
		"usage":            {"/v1/usage?format=csv&by=user_id&bucket=day&from=2024-01-01T00:00:00Z&to=2024-03-01T00:00:00Z", 0},
		"usage by rows":    {"/v1/usage?format=csv&by=node&by=user_id&bucket=month&from=2024-01-01T00:00:00Z&to=2024-03-01T00:00:00Z", 0},
	}
	alone := map[string]reading{} // one reader, who also fills the caches
	for name, ask := range asks {
		one, err := read(addr, ask.path, 0)
		if err != nil || one.status != 200 && name != "usage by rows" {
			t.Fatal(name, one, err)
		}
		alone[name] = one
	}
	garbage := anonymous(t, c.pid)
	holds := c.limitMemory(t)
	t.Logf("%d records: %d MiB, of which %d MiB are garbage", records, garbage>>20, (garbage-holds)>>20)
	for name, ask := range asks {
		one := alone[name]
		var list sync.WaitGroup
		got := make([]reading, readers)
		for i := range got {
			list.Go(func() {
				var err error
				if got[i], err = read(addr, ask.path, ask.slow); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		done := make(chan struct{})
		go func() { list.Wait(); close(done) }()
		begun, peak := time.Now(), int64(0)
		for over := false; !over; {
			select {
			case <-done:
				over = true
			case <-time.After(5 * time.Millisecond):
			}
			peak = max(peak, anonymous(t, c.pid))
		}
		whole := 0
		for _, r := range got {
			switch {
			case r.status == 200 && r == one:
				whole++
			case r.status == http.StatusServiceUnavailable, r.status == http.StatusUnprocessableEntity && one.status == r.status:
			default:
				t.Errorf("%s: %+v, one reader got %+v", name, r, one)
			}
		}
		t.Logf("%s: %d whole of %d (%d), %s, %d MiB more", name, whole, readers, one.status, time.Since(begun).Round(time.Millisecond), (peak-holds)>>20)
		if more := peak - holds; more > 3*most {
			t.Errorf("%s: %d MiB more with %d MiB for answers", name, more>>20, most>>20)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "store", "spill", "*")); err != nil || len(left) != 0 {
		t.Error("left over:", left, err)
	}
}
