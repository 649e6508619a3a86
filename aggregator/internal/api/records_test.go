package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/racetest"
)

// menu has records of every kind for queries:
//
//	id  start  stop   runtime  site  groups   components
//	a   01:00  03:00  7200     x     g1 g2    Cores 8, Memory 3 000 000 000
//	b   00:00  02:00  7200     y     g1       Memory 16, Cores 4
//	c   02:00  open            x              Cores 8
//	d   03:00  02:30  -1800    –              –
//	e   00:30  open            y     g2       GPUs 1
//	f   00:10  00:40  1800     –(null)        Cores 0
func menu(rg *rig) {
	const line = `{"record_id":"%s","meta":%s,"components":[%s],"start_time":"2024-01-01T%s:00Z","stop_time":%s}`
	stop := func(s string) string {
		if s == "" {
			return "null"
		}
		return `"2024-01-01T` + s + `:00Z"`
	}
	c := func(name string, n int64) string {
		return fmt.Sprintf(`{"name":"%s","amount":%d,"scores":[]}`, name, n)
	}
	rg.add(
		fmt.Sprintf(line, "a", `{"site":["x"],"group":["g1","g2"]}`, c("Cores", 8)+","+c("Memory", 3_000_000_000), "01:00", stop("03:00")),
		fmt.Sprintf(line, "b", `{"site":["y"],"group":["g1"]}`, c("Memory", 16)+","+c("Cores", 4), "00:00", stop("02:00")),
		fmt.Sprintf(line, "c", `{"site":["x"]}`, c("Cores", 8), "02:00", stop("")),
		fmt.Sprintf(line, "d", `{}`, "", "03:00", stop("02:30")),
		fmt.Sprintf(line, "e", `{"site":["y"],"group":["g2"]}`, c("GPUs", 1), "00:30", stop("")),
		fmt.Sprintf(line, "f", `null`, c("Cores", 0), "00:10", stop("00:40")),
	)
}

// asked is a query and the ids of the menu that it must give.
type asked struct{ query, want string }

func questions() []asked {
	return []asked{
		{"", "f b d a c e"}, // by stop, running ones last
		{"&", "f b d a c e"},
		{"sort_by[asc]=stop_time", "f b d a c e"},
		{"sort_by[desc]=stop_time", "c e a d b f"},
		{"sort_by[asc]=start_time", "b f e a c d"},
		{"sort_by[desc]=start_time", "d c a e f b"},
		{"sort_by[asc]=runtime", "d f a b c e"},
		{"sort_by[desc]=runtime", "c e a b f d"},
		{"sort_by[asc]=record_id", "a b c d e f"},
		{"sort_by[desc]=record_id", "f e d c b a"},
		{"sort_by[desc]=record_id&sort_by[asc]=start_time", "b f e a c d"},
		{"sort_by[desc]=start_time&limit=4", "d c a e"},
		{"limit=0", ""},
		{"limit=1", "f"},
		{"limit=100", "f b d a c e"},
		{"limit=", "f b d a c e"},

		{"record_id=c", "c"},
		{"record_id=nobody", ""},
		{"record_id=c&meta[site][c][0]=y", ""},
		{"record_id=&limit=2", "f b"},

		{"start_time[gt]=2024-01-01T01:00:00Z", "d c"},
		{"start_time[gte]=2024-01-01T01:00:00Z", "d a c"},
		{"start_time[lt]=2024-01-01T00:30:00Z", "f b"},
		{"start_time[lte]=2024-01-01T00:30:00Z", "f b e"},
		{"start_time[gte]=2024-01-01T02%3A00%3A00%2B01%3A00&start_time[lt]=2024-01-01T02:00:00Z", "a"},
		{"start_time[gt]=2024-01-01T00:10:00Z&start_time[gte]=2024-01-01T00:00:00Z&start_time[lte]=2024-01-01T00:30:00Z", "e"},
		{"start_time[equals]=2024-01-01T00:30:00Z", "e"},
		{"stop_time[gt]=2024-01-01T02:00:00Z", "d a"},
		{"stop_time[gte]=2024-01-01T02:00:00Z&stop_time[lt]=2024-01-01T03:00:00Z", "b d"},
		{"stop_time[lte]=2024-01-01T00:40:00Z", "f"},
		{"stop_time[gte]=2025-01-01T00:00:00Z", ""},

		{"runtime[equals]=7200", "b a"},
		{"runtime[gt]=1800", "b a"},
		{"runtime[gte]=1800", "f b a"},
		{"runtime[lt]=7200", "f d"},
		{"runtime[lte]=7200", "f b d a"},
		{"runtime[lt]=0", "d"},
		{"runtime[gt]=0&runtime[lt]=7200", "f"},

		{"meta[site][c][0]=x", "a c"},
		{"meta[group][c][0]=g1&meta[group][c][1]=g2", "a"},
		{"meta[group][c][]=g1&meta[group][c][]=g2", "a"},
		{"meta[group][c]=g2", "a e"},
		{"meta[group][dnc][0]=g1", "e"},
		{"meta[group][dnc][0]=g3", "b a e"}, // those without the key drop out
		{"meta[group][dnc][0]=g1&meta[group][dnc][1]=g2", ""},
		{"meta[group][c][0]=g2&meta[group][dnc][0]=g1", "e"},
		{"meta[group][c][0]=g1&meta[site][c][0]=x", "a"},
		{"meta[group][c][0]=nobody", ""},
		{"meta[nothing][dnc][0]=x", ""},
		{"meta%5Bsite%5D%5Bc%5D%5B0%5D=x", "a c"},

		{"component[Cores][equals]=8", "a c"},
		{"component[Cores][gte]=4", "b a c"}, // beyond the first component
		{"component[Cores][gt]=4", "a c"},
		{"component[Cores][lt]=4", "f"},
		{"component[Cores][lte]=4", "f b"},
		{"component[Memory][gt]=2147483647", "a"}, // beyond 32 bits
		{"component[Memory][gte]=16", "b a"},
		{"component[Cores][gte]=4&component[Memory][lt]=100", "b"},
		{"component[Cores][gte]=4&component[Cores][lt]=8", "b"},
		{"component[Nothing][gte]=0", ""},

		{"runtime[gt]=0&stop_time[gte]=2024-01-01T00:00:00Z&stop_time[lt]=2024-01-01T02:30:00Z&meta[site][c][0]=y", "b"},
		{"meta[site][c][0]=x&component[Cores][equals]=8&sort_by[desc]=start_time&limit=1", "c"},
	}
}

func TestQueriesOfRecordsAnswerWhatAuditorWould(t *testing.T) {
	rg := newRig(t)
	menu(rg)
	for _, c := range questions() {
		t.Run(c.query, func(t *testing.T) {
			if diff := cmp.Diff(strings.Fields(c.want), rg.ids(c.query)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestQueriesAnswerTheSameAmongManyRecords(t *testing.T) {
	rg := newRig(t)
	menu(rg)
	var others []string
	for i := range racetest.Few(5000) { // enough to be folded into blocks together with the menu
		others = append(others, fmt.Sprintf(`{"record_id":"other%d","meta":{"site":["x"],"group":["g%d"]},"components":[{"name":"Cores","amount":%d,"scores":[]}],"start_time":"2024-01-01T0%d:00:00Z","stop_time":"2024-01-01T0%d:30:00Z"}`, i, i%3, i%9, i%5, i%7))
	}
	rg.add(others...)
	for _, c := range questions() {
		if strings.Contains(c.query, "limit=") {
			continue
		}
		got := slices.DeleteFunc(rg.ids(c.query), func(id string) bool { return strings.HasPrefix(id, "other") })
		if diff := cmp.Diff(strings.Fields(c.want), got); diff != "" {
			t.Error(c.query, diff)
		}
	}
}

func TestQueriesThatMakeNoSenseAreRefusedAsJSON(t *testing.T) {
	rg := newRig(t)
	for _, query := range []string{
		"foo=1", "start_time=2022-10-03T00:00:00Z", "start_time[ge]=2022-10-03T00:00:00Z", "start_time[gte]=2022-10-03T09:47:00+00:00",
		"runtime[gt]=-1", "runtime[gt]=1.5", "limit=-1", "limit=1&limit=2", "meta[a][c][0]=x&meta[a][c][0]=y", "meta[a][c][0]=", "meta[a]=x",
		"component[a]=1", "component[a][gt]=x", "sort_by=start_time", "sort_by[asc]=updated_at", "record_id=%zz", "cursor=x", "limit=99999999999999999999", "wait[gte]=1",
	} {
		a := rg.do("GET", "/records?"+query, "")
		if a.status != 400 || !strings.HasPrefix(a.body, `{"error":"`) || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", query, a)
		}
	}
}

func TestATextThatEndsWithABackslashIsSpelledForAuditorsAsyncClient(t *testing.T) {
	rg := newRig(t)
	rg.add(`{"record_id":"\\","meta":{"k":["a\\","\"\\\\n","\nx"]},"components":[],"start_time":"2024-01-01T00:00:00Z"}`)
	rg.want("GET", "/records", "", 200, `{"record_id":"\u005c","meta":{"k":["a\u005c","\"\u005c\u005cn","\nx"]},"components":[],"start_time":"2024-01-01T00:00:00Z","stop_time":null,"runtime":null}`+"\n")
}

func TestEqualStopsComeInTheOrderOfArrival(t *testing.T) {
	rg := newRig(t)
	for _, id := range []string{"z", "m", "a"} {
		rg.add(strings.Replace(bob, "r2", id, 1))
	}
	if diff := cmp.Diff([]string{"z", "m", "a"}, rg.ids("")); diff != "" {
		t.Error(diff)
	}
}

// badDisk is a disk whose reads fail when it is broken.
type badDisk struct {
	broken atomic.Bool
	reads  atomic.Int64 // so many go well first
}

func (b *badDisk) inject(op errorfs.Op) error {
	if b.broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsRead && b.reads.Add(-1) < 0 {
		return errors.New("the disk is gone")
	}
	return nil
}

// manyOnDisk fills a store with records of which a view has to read from disk.
func manyOnDisk(t *testing.T, n int) (*rig, *badDisk) {
	t.Helper()
	disk := &badDisk{}
	var options store.Options
	rg := newRig(t, func(_ *api.Options, o *store.Options) {
		o.FS = errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(disk.inject))
		o.CacheBytes, o.MemTableBytes = 64<<10, 16<<10 // what opening has read does not stay
		options = *o
	})
	for from := 0; from < n; from += 4000 {
		var list []string
		for i := from; i < min(n, from+4000); i++ {
			list = append(list, fmt.Sprintf(`{"record_id":"%x-%d","meta":{"comment":["%x"]},"components":[{"name":"Cores","amount":%d,"scores":[]}],"start_time":"2023-02-24T00:00:00Z","stop_time":"2023-02-24T%02d:%02d:%02dZ"}`, i*7919, i, i*104729, i%128, 1+i/3600%22, i/60%60, i%60))
		}
		rg.add(list...)
	}
	rg.reopen(options)
	return rg, disk
}

// reopen closes the store and opens it again, so that nothing of it is in memory.
func (rg *rig) reopen(o store.Options) {
	rg.t.Helper()
	rg.node.mu.Lock()
	defer rg.node.mu.Unlock()
	if err := errors.Join(rg.node.store.Compact(), rg.node.store.Close()); err != nil {
		rg.t.Fatal(err)
	}
	s, err := store.Open(o)
	if err != nil {
		rg.t.Fatal(err)
	}
	rg.node.store = s
}

func TestADiskThatFailsIsAnErrorAndNeverAShortList(t *testing.T) {
	const n = 16_000
	rg, disk := manyOnDisk(t, n)
	broken, refused := 0, 0
	for _, path := range []string{"/records", "/records?sort_by[desc]=record_id", "/v1/records?format=ndjson", "/v1/records?format=csv"} {
		for reads := int64(0); ; reads += 1 + reads/2 {
			disk.reads.Store(reads)
			disk.broken.Store(true)
			a := rg.do("GET", path, "")
			disk.broken.Store(false)
			switch {
			case a.err != nil:
				broken++
				continue
			case a.status != 200:
				refused++
				if !strings.Contains(a.body, "the disk is gone") {
					t.Errorf("%s: %v", path, a)
				}
				continue
			}
			if got := strings.Count(a.body, "\n"); got < n {
				t.Errorf("%s: only %d lines after %d reads", path, got, reads)
			}
			break
		}
	}
	if broken == 0 || refused == 0 {
		t.Errorf("%d answers broken off, %d refused: want both to happen", broken, refused)
	}
}

// measuring is a response that measures the heap as it is written. The handler stands
// still meanwhile, so what is in the heap is what the answer holds.
type measuring struct {
	head  http.Header
	total int64
	next  int64
	most  uint64
}

func (m *measuring) Header() http.Header                { return m.head }
func (m *measuring) WriteHeader(int)                    {}
func (m *measuring) SetWriteDeadline(_ time.Time) error { return nil }

// Write implements http.ResponseWriter.
func (m *measuring) Write(p []byte) (int, error) {
	if m.total += int64(len(p)); m.total >= m.next {
		m.next = m.total + 2<<20
		m.most = max(m.most, liveHeap())
	}
	return len(p), nil
}

// liveHeap is what is in the heap and no garbage.
func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold goes with the second one
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestALongAnswerTakesLittleMemory(t *testing.T) {
	const n = 40_000
	rg, _ := manyOnDisk(t, n)
	for _, path := range []string{"/records", "/records?sort_by[asc]=runtime", "/v1/records?format=ndjson"} {
		answer := &measuring{head: http.Header{}}
		before := liveHeap()
		rg.server.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		if answer.total < n*150 {
			t.Errorf("%s: only %d bytes", path, answer.total)
		}
		grown := int64(answer.most) - int64(before)
		t.Logf("%s: %d bytes more in memory for an answer of %d", path, grown, answer.total)
		// A sort may keep its buffer; neither may keep the answer.
		if grown > answer.total/3 && !strings.Contains(path, "runtime") {
			t.Errorf("%s: %d bytes more in memory for an answer of %d", path, grown, answer.total)
		}
	}
}

func TestAClientThatGoesAwayEndsItsQuery(t *testing.T) {
	rg, _ := manyOnDisk(t, 8_000)
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rg.url+"/records", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, 1000); err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	if got := rg.ids("limit=1"); len(got) != 1 {
		t.Error(got)
	}
}

func TestABodyThatStopsOnItsWayIsNotAnswered(t *testing.T) {
	rg := newRig(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(rg.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /record HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(alice), alice[:20])
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("answered %q", got)
	}
}
