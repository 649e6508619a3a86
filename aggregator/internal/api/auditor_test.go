package api_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/racetest"
)

const (
	alice = `{"record_id":"r1","meta":{"site_id":["a"],"voms":["/atlas","/cms"]},"components":[{"name":"Cores","amount":8,"scores":[{"name":"HEPSPEC06","value":10.0}]},{"name":"Memory","amount":16000,"scores":[]}],"start_time":"2023-02-24T00:27:58Z","stop_time":"2023-02-24T03:41:35.079043Z"}`
	bob   = `{"record_id":"r2","components":[],"start_time":"2023-02-24T00:00:00Z"}`

	aliceShown = `{"record_id":"r1","meta":{"site_id":["a"],"voms":["/atlas","/cms"]},"components":[{"name":"Cores","amount":8,"scores":[{"name":"HEPSPEC06","value":10.0}]},{"name":"Memory","amount":16000,"scores":[]}],"start_time":"2023-02-24T00:27:58Z","stop_time":"2023-02-24T03:41:35.079043Z","runtime":11617}`
	bobShown   = `{"record_id":"r2","meta":null,"components":[],"start_time":"2023-02-24T00:00:00Z","stop_time":null,"runtime":null}`
	notFound   = "The requested resource was not found. 404 Not Found"
)

func ignoring(o *api.Options, _ *store.Options) { o.IgnoreExisting = true }

func limit(n int64) change { return func(o *api.Options, _ *store.Options) { o.MaxBody = n } }

func impatient(o *api.Options, _ *store.Options) { o.Patience = 200 * time.Millisecond }

// step is a request and what must come back.
type step struct {
	method, path, body string
	status             int
	want               string
	header             string // "Name: value" that must be there, "Name:" must not
}

func (rg *rig) steps(list []step) {
	rg.t.Helper()
	for _, s := range list {
		a := rg.do(s.method, s.path, s.body)
		if a.err != nil || a.status != s.status || a.body != s.want {
			rg.t.Errorf("%s %s %s: %v, want %d %q", s.method, s.path, s.body, a, s.status, s.want)
			continue
		}
		if name, value, _ := strings.Cut(s.header, ": "); s.header != "" {
			name = strings.TrimSuffix(name, ":")
			if got := strings.Join(a.header.Values(name), ","); got != value {
				rg.t.Errorf("%s %s: %s is %q, want %q", s.method, s.path, name, got, value)
			}
		}
	}
}

func TestAnswersAreAuditorsByteForByte(t *testing.T) {
	rg := newRig(t)
	rg.steps([]step{
		{"GET", "/health_check", "", 200, "", "Content-Length: 0"},
		{"GET", "/records", "", 200, "", "Content-Type: application/json"},
		{"POST", "/record", alice, 200, "", "Content-Length: 0"},
		{"POST", "/record", alice, 500, "RECORD_EXISTS", "Content-Type:"},
		{"GET", "/record/r1", "", 200, aliceShown, "Content-Type: application/json"},
		{"GET", "/records", "", 200, aliceShown + "\n", "Content-Type: application/json"},
		{"GET", "/record/r2", "", 404, `{"error":"there is no record r2"}`, "Content-Type: application/json"},
		{"PUT", "/record", `{"record_id":"r2","components":[],"stop_time":"2023-02-24T01:00:00Z"}`, 404, "Updating unknown record r2 not possible.", "Content-Type: text/plain; charset=utf-8"},
		{"POST", "/record", bob, 200, "", ""},
		{"GET", "/record/r2", "", 200, bobShown, ""},
		{"PUT", "/record", `{"record_id":"r2","components":[],"stop_time":"2023-02-24T01:00:00.5Z"}`, 200, "", "Content-Length: 0"},
		{"PUT", "/record", `{"record_id":"r2","meta":{"x":["y"]},"components":[],"start_time":"2020-02-24T01:00:00Z","stop_time":"2023-02-23T23:59:58.5+00:00"}`, 200, "", ""},
		{"GET", "/record/r2", "", 200, strings.Replace(bobShown, `null,"runtime":null`, `"2023-02-23T23:59:58.500Z","runtime":-1`, 1), ""},
		{"GET", "/records?limit=0", "", 200, "", "Content-Type: application/json"},

		{"GET", "/nowhere", "", 404, notFound, "Content-Type: text/plain; charset=utf-8"},
		{"GET", "/", "", 404, notFound, ""},
		{"GET", "/records/", "", 404, notFound, ""},
		{"POST", "/record/", alice, 404, notFound, ""},
		{"GET", "/record/", "", 404, notFound, ""},
		{"GET", "/health_check/", "", 404, notFound, ""},
		{"DELETE", "/record", "", 405, "", "Allow: POST, PUT"},
		{"GET", "/record", "", 405, "", "Allow: POST, PUT"},
		{"PUT", "/records", "", 405, "", "Allow: GET, POST"},
		{"HEAD", "/records", "", 405, "", "Allow: GET, POST"},
		{"HEAD", "/health_check", "", 405, "", "Allow: GET"},
		{"POST", "/metrics", "", 405, "", "Allow: GET"},
		{"POST", "/record/r1", "", 405, "", "Allow: GET"},
		{"GET", "/record/%20", "", 400, `{"error":"record_id: is blank"}`, ""},
	})
}

func TestABodyThatIsNotUnderstoodIsRefusedWithThePlace(t *testing.T) {
	rg := newRig(t)
	rg.steps([]step{
		{"POST", "/record", `{"meta":{},"components":[],"start_time":"2023-02-24T00:00:00Z"}`, 400, "Json deserialize error: missing field `record_id` at line 1 column 63", "Content-Type: text/plain; charset=utf-8"},
		{"POST", "/record", `{"record_id":"a","start_time":"2023-02-24T00:00:00Z"}`, 400, "Json deserialize error: missing field `components` at line 1 column 53", ""},
		{"POST", "/record", "{\n\"record_id\":\" \",\"components\":[],\"start_time\":\"2023-02-24T00:00:00Z\"}", 400, "Json deserialize error: Parsing ' ' failed (record_id) at line 2 column 15", ""},
		{"POST", "/record", `[`, 400, "Json deserialize error: invalid type: sequence, expected struct RecordAdd at line 1 column 0", ""},
		{"POST", "/record", `{"record_id":"a","components":[{"name":"Cores","amount":-1,"scores":[]}],"start_time":"2023-02-24T00:00:00Z"}`, 400, "Json deserialize error: Parsing '-1' failed. (components[0].amount) at line 1 column 58", ""},
		{"POST", "/records", "[" + bob + `,{"record_id":"b"}]`, 400, "Json deserialize error: missing field `components` ([1]) at line 1 column 89", ""},
		{"POST", "/records", alice, 400, "Json deserialize error: invalid type: map, expected a sequence at line 1 column 0", ""},
		{"PUT", "/record", `{"record_id":"a","stop_time":"2023-02-24T00:00:00Z"}`, 400, "Json deserialize error: missing field `components` at line 1 column 52", ""},
		{"PUT", "/record", `{"record_id":"a","components":[]}`, 400, "Json deserialize error: missing field `stop_time` at line 1 column 33", ""},
		{"GET", "/records", "", 200, "", ""},
	})
}

func TestABulkIsAllOrNothing(t *testing.T) {
	rg := newRig(t)
	rg.steps([]step{
		{"POST", "/records", "[]", 200, "", "Content-Length: 0"},
		{"POST", "/records", "[" + alice + "]", 200, "", "Content-Length: 0"},
		{"POST", "/records", "[" + bob + "," + alice + "]", 500, "RECORD_EXISTS", "Content-Type:"},
		{"POST", "/records", "[" + bob + "," + bob + "]", 500, "RECORD_EXISTS", ""},
		{"GET", "/records", "", 200, aliceShown + "\n", ""},
	})
}

func TestDuplicatesAreIgnoredByConfigurationAndTheOthersAreStored(t *testing.T) {
	rg := newRig(t, ignoring)
	const one = `{"warning":"Record already exists, but the error was ignored due to AUDITOR configuration."}`
	const some = `{"warning":"One or more records already exist, but the error was ignored due to AUDITOR configuration."}`
	rg.steps([]step{
		{"POST", "/record", alice, 200, "", ""},
		{"POST", "/record", alice, 200, one, "Content-Type: application/json"},
		{"POST", "/records", "[" + alice + "," + bob + "," + bob + "]", 200, some, "Content-Type: application/json"},
		{"GET", "/records", "", 200, aliceShown + "\n" + bobShown + "\n", ""},
	})
}

func TestABulkLargerThanAnEntryIsAllOrNothingToo(t *testing.T) {
	many := func(prefix string, n int) []string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"record_id":"%s-%d","meta":{"comment":["%d"]},"components":[{"name":"Cores","amount":%d,"scores":[]}],"start_time":"2023-02-24T00:00:00Z","stop_time":"2023-02-24T01:00:00Z"}`, prefix, i, i*7919, i))
		}
		return list
	}
	for _, ignore := range []bool{false, true} {
		rg := newRig(t, func(o *api.Options, _ *store.Options) { o.IgnoreExisting = ignore })
		first := many("a", 9000)
		rg.add(first...)
		a := rg.do("POST", "/records", "["+strings.Join(append(many("b", 9000), first[8999]), ",")+"]")
		want, status := 9000, 500
		if ignore {
			want, status = 18000, 200
		}
		if got := len(rg.ids("")); got != want || a.status != status {
			t.Errorf("ignore %v: %d records, %v", ignore, got, a)
		}
	}
}

func TestRecordsOfAnySizeThatIsAllowedFit(t *testing.T) {
	rg := newRig(t)
	var list []string
	for i := range 25 {
		list = append(list, fmt.Sprintf(`{"record_id":"w%d","meta":{"k":[%s"x"]},"components":[{"name":"Cores","amount":%d,"scores":[]}],"start_time":"%04d-02-24T00:00:00Z"}`, i, strings.Repeat(fmt.Sprintf(`"%0200d",`, i), 50*i), int64(1)<<i, 1000+i*200))
	}
	rg.add(list...)
	if got := rg.ids(""); len(got) != 25 {
		t.Error(got)
	}
}

func compressed(t *testing.T, encoding, body string) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "br":
		w = brotli.NewWriter(&out)
	case "zstd":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestCompressedBodiesAreRead(t *testing.T) {
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			rg := newRig(t, limit(1<<20))
			body := compressed(t, encoding, alice)
			if a := rg.do("POST", "/record", string(body), "Content-Encoding: "+encoding); a.status != 200 || a.body != "" {
				t.Fatal(a)
			}
			bomb := compressed(t, encoding, strings.Repeat(" ", racetest.Few(50<<20)))
			for name, in := range map[string]io.Reader{"known": bytes.NewReader(bomb), "chunked": io.MultiReader(bytes.NewReader(bomb))} {
				a := rg.call("POST", "/records", in, "Content-Encoding: "+encoding)
				if a.status != 413 || a.body != "JSON payload has exceeded limit (1048576 bytes)." {
					t.Errorf("bomb, %s: %v", name, a)
				}
			}
			for name, in := range map[string][]byte{"truncated": body[:len(body)-6], "wrong": []byte(bob), "empty": nil} {
				if a := rg.do("POST", "/record", string(in), "Content-Encoding: "+encoding, "Content-Type: application/json"); a.status != 400 {
					t.Errorf("%s: %v", name, a)
				}
			}
			if got := rg.ids(""); len(got) != 1 {
				t.Error(got)
			}
		})
	}
	rg := newRig(t)
	if a := rg.do("POST", "/record", alice, "Content-Encoding: identity"); a.status != 200 {
		t.Error(a)
	}
	if a := rg.do("POST", "/record", bob, "Content-Encoding: lzma"); a.status != 400 || !strings.Contains(a.body, `"lzma" is not supported`) {
		t.Error(a)
	}
}

func TestOnlyJSONIsTaken(t *testing.T) {
	rg := newRig(t)
	for typ, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "Application/JSON": true, "application/vnd.x+json": true, "text/json": true,
		"text/plain": false, "": false, "application/x-www-form-urlencoded": false, "application/jsonl": false, "nonsense": false,
	} {
		a := rg.call("POST", "/records", strings.NewReader("[]"), "Content-Type: "+typ)
		switch {
		case ok && (a.status != 200 || a.body != ""):
			t.Errorf("%q: %v", typ, a)
		case !ok && (a.status != 400 || a.body != "Content type error"):
			t.Errorf("%q: %v", typ, a)
		}
	}
}

func TestTheLimitOfABodyIsKeptAndNamed(t *testing.T) {
	rg := newRig(t, limit(1000))
	at := "[" + strings.Repeat(" ", 998) + "]"
	for _, c := range []struct {
		name   string
		in     io.Reader
		status int
		want   string
	}{
		{"at the limit", strings.NewReader(at), 200, ""},
		{"at the limit, chunked", io.MultiReader(strings.NewReader(at)), 200, ""},
		{"above", strings.NewReader(at + " "), 413, "JSON payload (1001 bytes) is larger than allowed (limit: 1000 bytes)."},
		{"above, chunked", io.MultiReader(strings.NewReader(at + " ")), 413, "JSON payload has exceeded limit (1000 bytes)."},
	} {
		if a := rg.call("POST", "/records", c.in); a.status != c.status || a.body != c.want {
			t.Errorf("%s: %v", c.name, a)
		}
	}
	big := newRig(t)
	body := "[" + strings.Repeat(" ", 20<<20) + bob + "]"
	for name, in := range map[string]io.Reader{"known": strings.NewReader(body), "chunked": io.MultiReader(strings.NewReader(strings.Replace(body, "r2", "r3", 1)))} {
		if a := big.call("POST", "/records", in); a.status != 200 {
			t.Errorf("20 MiB, %s: %v", name, a)
		}
	}
}

func TestAnyIDCanBeFetched(t *testing.T) {
	rg := newRig(t)
	for id, path := range map[string]string{
		`a/b`:                         "/record/a/b",
		`c//d/`:                       "/record/c%2F%2Fd%2F",
		`e//f`:                        "/record/e//f",
		`schedd#12.0#1700000000`:      "/record/schedd%2312.0%231700000000",
		`ёж`:                          "/record/%D1%91%D0%B6",
		`100% "sure"? {a}`:            "/record/100%25%20%22sure%22%3F%20%7Ba%7D",
		` blanks `:                    "/record/%20blanks%20",
		`a+b`:                         "/record/a+b",
		`..`:                          "/record/..",
		`x%2Fy`:                       "/record/x%252Fy",
		strings.Repeat("ё", 256):      "/record/" + strings.Repeat("%D1%91", 256),
		`<script>alert(1)</script>&x`: "/record/%3Cscript%3Ealert(1)%3C/script%3E&x",
	} {
		quoted := strings.ReplaceAll(id, `"`, `\"`)
		rg.want("POST", "/record", strings.Replace(bob, "r2", quoted, 1), 200, "")
		rg.want("GET", path, "", 200, strings.Replace(bobShown, "r2", quoted, 1))
		if a := rg.do("GET", strings.Replace(path, "/record/", "/v1/records/", 1), ""); a.status != 200 || !strings.Contains(a.body, `"deleted":false`) {
			t.Errorf("%s: %v", id, a)
		}
	}
}

func TestAWriteThatCannotBeDoneNowWaitsAndIsDone(t *testing.T) {
	rg := newRig(t)
	var tries atomic.Int64
	fault := func(store.Command) error {
		if tries.Add(1) < 4 {
			return fmt.Errorf("no leader: %w", api.ErrNotNow)
		}
		return nil
	}
	rg.node.change(func(n *node) { n.fault = fault })
	rg.want("POST", "/record", alice, 200, "")
	tries.Store(0)
	rg.want("PUT", "/record", `{"record_id":"r1","components":[],"stop_time":"2023-02-24T01:00:00Z"}`, 200, "")
	tries.Store(0)
	rg.want("POST", "/records", "["+bob+"]", 200, "")
}

func TestAWriteThatWasNotCommittedIsNeverAnswered(t *testing.T) {
	errLost := errors.New("leadership was lost")
	never := func(store.Command) error { return api.ErrNotNow }
	unknown := func(store.Command) error { return errLost }
	for name, break_ := range map[string]func(*node){
		"not now":           func(n *node) { n.fault = never },
		"unknown, not done": func(n *node) { n.fault = unknown },
		"unknown, done":     func(n *node) { n.lost = unknown },
	} {
		t.Run(name, func(t *testing.T) {
			rg := newRig(t, impatient)
			rg.add(bob)
			rg.node.change(break_)
			for _, s := range []step{
				{method: "POST", path: "/record", body: alice},
				{method: "POST", path: "/records", body: "[" + strings.Replace(alice, "r1", "r3", 1) + "]"},
				{method: "PUT", path: "/record", body: `{"record_id":"r2","components":[],"stop_time":"2023-02-24T01:00:00Z"}`},
			} {
				if a := rg.do(s.method, s.path, s.body); a.err == nil {
					t.Errorf("%s %s: answered %v", s.method, s.path, a)
				}
			}
			rg.node.change(func(n *node) { n.fault, n.lost = nil, nil })
			want := []string{"r2"}
			if name == "unknown, done" {
				want = []string{"r2", "r1", "r3"}
			}
			if diff := cmp.Diff(want, rg.ids("")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPostInPartsThatIsCutShortShowsNothing(t *testing.T) {
	rg := newRig(t, impatient)
	var parts atomic.Int64
	fault := func(c store.Command) error {
		if _, ok := c.(*store.StageCommand); ok {
			if parts.Add(1) == 2 {
				return errors.New("leadership was lost")
			}
		}
		return nil
	}
	rg.node.change(func(n *node) { n.fault = fault })
	var list []string
	for i := range 9000 {
		list = append(list, fmt.Sprintf(`{"record_id":"p%d","components":[],"start_time":"2023-02-24T00:00:00Z"}`, i))
	}
	body := "[" + strings.Join(list, ",") + "]"
	if a := rg.do("POST", "/records", body); a.err == nil || parts.Load() != 2 {
		t.Fatal(a, parts.Load())
	}
	if got := rg.ids(""); len(got) != 0 {
		t.Errorf("%d records", len(got))
	}
	rg.want("POST", "/records", body, 200, "")
	if got := rg.ids(""); len(got) != 9000 {
		t.Errorf("%d records", len(got))
	}
}

func TestReadsThatCannotBeDoneAreErrors(t *testing.T) {
	rg := newRig(t)
	rg.add(bob)
	rg.node.change(func(n *node) { n.deaf = errors.New("no quorum") })
	rg.steps([]step{
		{"GET", "/health_check", "", 503, "", "Retry-After: 1"},
		{"GET", "/records", "", 503, `{"error":"the cluster cannot answer now: no quorum"}`, "Content-Type: application/json"},
		{"GET", "/records?limit=0", "", 503, `{"error":"the cluster cannot answer now: no quorum"}`, "Retry-After: 1"},
		{"GET", "/record/r2", "", 503, `{"error":"the cluster cannot answer now: no quorum"}`, "Retry-After: 1"},
	})
	for _, path := range []string{"/v1/records", "/v1/usage?window=2026", "/v1/reports/usage?period=2026", "/v1/reports/usage?period=2026&format=csv"} {
		if a := rg.do("GET", path, ""); a.status != 503 || a.header.Get("Retry-After") != "1" || a.header.Get("Content-Type") != "application/problem+json" {
			t.Error(path, a)
		}
	}
}

func TestADefectInAHandlerBreaksItsConnectionAndNothingElse(t *testing.T) {
	rg := newRig(t)
	rg.node.change(func(n *node) { n.fault = func(store.Command) error { panic("index out of range") } })
	if a := rg.do("POST", "/record", alice); a.err == nil {
		t.Errorf("answered %v", a)
	}
	rg.node.change(func(n *node) { n.fault = nil })
	rg.want("POST", "/record", alice, 200, "")
	if text := rg.log.String(); !strings.Contains(text, "index out of range") || !strings.Contains(text, "auditor_test.go") {
		t.Errorf("the log has no stack: %s", text)
	}
}
