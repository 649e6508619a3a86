package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/queue"
	"github.com/bursar-accounting/bursar/proto/record"
)

// book is a queue that keeps what comes, or does not.
type book struct {
	mu     sync.Mutex
	pushes []queue.Push
	result queue.Result
	err    error
	ready  bool
}

func (b *book) Do(ctx context.Context, p queue.Push) (queue.Result, error) {
	if b.err != nil {
		<-ctx.Done()
		return 0, b.err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pushes = append(b.pushes, p)
	return b.result, nil
}

func (b *book) Ready() bool { return b.ready }

// last is what was pushed last, in a few words.
func (b *book) last() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pushes) == 0 {
		return "nothing"
	}
	p := b.pushes[len(b.pushes)-1]
	switch {
	case p.Stop != nil:
		return fmt.Sprintf("stop %s %s", p.Stop.ID, p.Stop.At)
	case p.Refused != nil:
		return fmt.Sprintf("refused %q", p.Refused.Raw)
	}
	var words []string
	for _, r := range p.Records {
		words = append(words, r.ID)
	}
	return "add " + strings.Join(words, " ")
}

const maxBody = 1 << 20

func serve(t testing.TB, b *book, may func(*http.Request) error) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(New(Options{Queue: b, May: may, MaxBody: maxBody, Patience: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(s.Close)
	return s
}

// ask sends a request and returns status, body and headers; status 0 when the
// connection was broken off.
func ask(t testing.TB, s *httptest.Server, method, path, body string, headers ...string) (status int, text string, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		return 0, "", nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header
}

func TestAdd_KindsOfComponents_AreWrittenOrByName(t *testing.T) {
	b := &book{}
	s := httptest.NewServer(New(Options{Queue: b, May: Anybody, Kinds: record.Kinds{"TotalCPU": record.Total}, MaxBody: maxBody, Patience: time.Minute, Log: slog.New(slog.DiscardHandler)}))
	defer s.Close()
	body := `{"record_id":"a","components":[{"name":"Cores","amount":8,"scores":[]},{"name":"TotalCPU","amount":7200,"scores":[]},{"name":"J","amount":1,"kind":"total","scores":[]}],"start_time":"2024-02-24T00:27:58Z"}`
	for path, body := range map[string]string{"/record": body, "/records": "[" + body + "]"} {
		if status, text, _ := ask(t, s, "POST", path, body); status != 200 {
			t.Fatal(status, text)
		}
		for i, c := range b.pushes[len(b.pushes)-1].Records[0].Components {
			if want := []record.Kind{record.Rate, record.Total, record.Total}[i]; c.Kind != want {
				t.Errorf("%s: %s is a %s", path, c.Name, c.Kind)
			}
		}
	}
}

const one = `{"record_id":"a","meta":{"k":["v"]},"components":[{"name":"Cores","amount":8,"scores":[]}],"start_time":"2024-02-24T00:27:58.043079Z"}`

func TestEveryAnswerIsThatOfAUDITOR(t *testing.T) {
	for _, c := range []struct {
		name, method, path, body string
		result                   queue.Result
		status                   int
		text, kept               string
	}{
		{"add", "POST", "/record", one, queue.Taken, 200, "", "add a"},
		{"add again", "POST", "/record", one, queue.Exists, 500, "RECORD_EXISTS", "add a"},
		{"add again, ignored", "POST", "/record", one, queue.Some, 200, `{"warning":"Record already exists, but the error was ignored due to AUDITOR configuration."}`, "add a"},
		{"bulk", "POST", "/records", "[" + one + "," + strings.Replace(one, `"a"`, `"b"`, 1) + "]", queue.Taken, 200, "", "add a b"},
		{"bulk again, ignored", "POST", "/records", "[" + one + "]", queue.Some, 200, `{"warning":"One or more records already exist, but the error was ignored due to AUDITOR configuration."}`, "add a"},
		{"empty bulk", "POST", "/records", "[]", queue.Taken, 200, "", "nothing"},
		{"update", "PUT", "/record", `{"record_id":"x/y","components":[],"stop_time":"2024-02-24T01:00:00Z"}`, queue.Taken, 200, "", "stop x/y 2024-02-24T01:00:00Z"},
		{"no JSON", "POST", "/record", "nonsense", queue.Taken, 400, "Json deserialize error", `refused "nonsense"`},
		{"no record", "POST", "/record", `{"record_id":"a"}`, queue.Taken, 400, "missing field `components`", `refused "{\"record_id\":\"a\"}"`},
		{"an odd one in a bulk", "POST", "/records", "[" + one + ",1]", queue.Taken, 400, "Json deserialize error", `refused "[` + strings.ReplaceAll(one, `"`, `\"`) + `,1]"`},
		{"update without a stop", "PUT", "/record", `{"record_id":"a","components":[]}`, queue.Taken, 400, "missing field `stop_time`", `refused "{\"record_id\":\"a\",\"components\":[]}"`},
		{"nothing at all", "POST", "/record", "", queue.Taken, 400, "Json deserialize error", `refused ""`},
		{"another method", "GET", "/records", "", queue.Taken, 405, "", "nothing"},
		{"another path", "GET", "/record/a", "", queue.Taken, 404, "The requested resource was not found. 404 Not Found", "nothing"},
		{"a slash more", "POST", "/record/", one, queue.Taken, 404, "The requested resource was not found", "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &book{result: c.result}
			status, text, _ := ask(t, serve(t, b, Anybody), c.method, c.path, c.body)
			if status != c.status || !strings.Contains(text, c.text) || c.text == "" && text != "" {
				t.Errorf("%d %q", status, text)
			}
			if got := b.last(); got != c.kept {
				t.Errorf("kept %s\nwant %s", got, c.kept)
			}
		})
	}
}

func TestAKnownPathNamesTheMethodsThatItTakes(t *testing.T) {
	_, _, header := ask(t, serve(t, &book{}, Anybody), "DELETE", "/record", "")
	if got := header.Get("Allow"); got != "POST, PUT" {
		t.Error(got)
	}
}

func TestABodyThatIsNotSaidToBeJSONIsRefusedAndKept(t *testing.T) {
	b := &book{}
	status, text, _ := ask(t, serve(t, b, Anybody), "POST", "/record", one, "Content-Type", "text/plain")
	if status != 400 || text != "Content type error" || !strings.Contains(b.last(), "record_id") {
		t.Error(status, text, b.last())
	}
}

func TestOfABodyThatIsTooLargeTheBeginIsKept(t *testing.T) {
	large := "[" + strings.Repeat(" ", maxBody) + "]"
	for name, headers := range map[string][]string{"announced": nil, "compressed": {"Content-Encoding", "gzip"}} {
		t.Run(name, func(t *testing.T) {
			b, body := &book{}, large
			if headers != nil {
				body = packed(t, large)
			}
			status, text, _ := ask(t, serve(t, b, Anybody), "POST", "/records", body, headers...)
			if status != 413 || !strings.Contains(text, "JSON payload") {
				t.Error(status, text)
			}
			if len(b.pushes) != 1 || len(b.pushes[0].Refused.Raw) != maxRefusedBody+1 {
				t.Errorf("%d pushes", len(b.pushes))
			}
		})
	}
}

func packed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestACompressedBodyIsTaken(t *testing.T) {
	b := &book{}
	if status, text, _ := ask(t, serve(t, b, Anybody), "POST", "/record", packed(t, one), "Content-Encoding", "gzip"); status != 200 || b.last() != "add a" {
		t.Error(status, text, b.last())
	}
	if status, _, _ := ask(t, serve(t, b, Anybody), "POST", "/record", "no gzip", "Content-Encoding", "gzip"); status != 400 || !strings.HasPrefix(b.last(), "refused") {
		t.Error(status, b.last())
	}
}

func TestWhatCannotBeKeptIsNeverAnswered(t *testing.T) {
	b := &book{err: queue.ErrNotNow}
	s := serve(t, b, Anybody)
	for _, body := range []string{one, "nonsense"} {
		if status, text, _ := ask(t, s, "POST", "/record", body); status != 0 {
			t.Error(status, text)
		}
	}
}

func TestWhoMayNotWriteIsNotAnswered(t *testing.T) {
	b := &book{ready: true}
	s := serve(t, b, func(*http.Request) error { return errors.New("no") })
	if status, _, _ := ask(t, s, "POST", "/record", one); status != 0 || len(b.pushes) > 0 {
		t.Error(status, b.last())
	}
	if status, _, _ := ask(t, s, "GET", "/health_check", ""); status != 200 {
		t.Error(status)
	}
}

func TestAPageOfAnotherSiteCannotPush(t *testing.T) {
	b := &book{}
	if status, _, _ := ask(t, serve(t, b, Anybody), "POST", "/record", one, "Origin", "https://elsewhere.example.org", "Sec-Fetch-Site", "cross-site"); status != 0 || len(b.pushes) > 0 {
		t.Error(status, b.last())
	}
}

func TestTheHealthCheckSaysWhetherAPushWouldBeTaken(t *testing.T) {
	for ready, want := range map[bool]int{true: 200, false: 500} {
		if status, text, _ := ask(t, serve(t, &book{ready: ready}, Anybody), "GET", "/health_check", ""); status != want || text != "" {
			t.Error(status, text)
		}
	}
}

// FuzzBody pushes any body, and checks that it is either refused and kept, or gives
// valid records.
func FuzzBody(f *testing.F) {
	f.Add("POST", "/record", one)
	f.Add("POST", "/records", "["+one+"]")
	f.Add("PUT", "/record", `{"record_id":"a","components":[],"stop_time":"2024-02-24T01:00:00Z"}`)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		if path != "/record" && path != "/records" {
			path = "/record"
		}
		if method != http.MethodPost && method != http.MethodPut {
			method = http.MethodPost
		}
		b := &book{}
		handler := New(Options{Queue: b, May: Anybody, Hosts: []string{"example.com"}, MaxBody: maxBody, Patience: time.Minute, Log: slog.New(slog.DiscardHandler)})
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		judge(t, b, w.Code, body)
	})
}

func judge(t *testing.T, b *book, status int, body string) {
	t.Helper()
	switch {
	case status == http.StatusMethodNotAllowed:
	case status == http.StatusOK && len(b.pushes) == 0:
		var list []any
		if json.Unmarshal([]byte(body), &list) != nil || len(list) > 0 {
			t.Errorf("%q was answered with 200 and not kept", body)
		}
	case len(b.pushes) != 1:
		t.Errorf("%q was answered with %d and kept %d times", body, status, len(b.pushes))
	case status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge:
		if b.pushes[0].Refused == nil || !strings.HasPrefix(body, string(b.pushes[0].Refused.Raw)) {
			t.Errorf("%q was refused and is not in quarantine", body)
		}
	case status == http.StatusOK:
		valid(t, &b.pushes[0])
	default:
		t.Errorf("%q was answered with %d", body, status)
	}
}

func valid(t *testing.T, p *queue.Push) {
	t.Helper()
	for i := range p.Records {
		if err := p.Records[i].Validate(); err != nil {
			t.Error(err)
		}
	}
	if p.Stop != nil {
		w := record.Write{ID: p.Stop.ID, Op: record.OpStop, Rank: record.RankPush, Version: record.Version{Ended: true, Observed: 1}, Stop: p.Stop.At}
		if err := w.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatHappensManyTimesIsSaidOnceAWhile(t *testing.T) {
	var q quiet
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	said := 0
	for range 100 {
		if _, due := q.shouldLog("x", now); due {
			said++
		}
		now = now.Add(time.Second)
	}
	if unsaid, due := q.shouldLog("x", now.Add(time.Hour)); said != 10 || !due || unsaid != 9 {
		t.Error(said, unsaid, due)
	}
}

func TestHost_UnknownOne_IsNotAnswered(t *testing.T) {
	b := &book{ready: true}
	s := httptest.NewServer(New(Options{Queue: b, May: Anybody, Hosts: []string{"head1.example.org"}, MaxBody: maxBody, Patience: time.Minute, Log: slog.New(slog.DiscardHandler)}))
	defer s.Close()
	for host, want := range map[string]int{"evil.example": 0, "evil.example:8000": 0, "localhost": 200, "HEAD1.example.org:8000": 200, "127.0.0.1": 200} {
		for _, c := range []struct{ method, path string }{{"GET", "/health_check"}, {"POST", "/record"}} {
			r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, strings.NewReader(one))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Host = host
			status := 0
			if resp, err := s.Client().Do(r); err == nil {
				status = resp.StatusCode
				resp.Body.Close()
			}
			if status != want {
				t.Errorf("%s %s for %s: %d", c.method, c.path, host, status)
			}
		}
	}
	if n := len(b.pushes); n != 3 {
		t.Errorf("%d pushes were taken", n)
	}
}
