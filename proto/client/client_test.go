package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// auditor is a server that behaves like AUDITOR: it keeps records and answers
// with the same words.
type auditor struct {
	mu      sync.Mutex
	records map[string]record.Record
	order   []string
	queries []string
}

func (a *auditor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health_check", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /record", func(w http.ResponseWriter, r *http.Request) {
		one, err := wire.DecodeAdd(body(r), nil)
		a.add(w, []record.Record{one}, err)
	})
	mux.HandleFunc("POST /records", func(w http.ResponseWriter, r *http.Request) {
		var list []record.Record
		err := wire.DecodeAdds(body(r), nil, func(r record.Record) error { list = append(list, r); return nil })
		a.add(w, list, err)
	})
	mux.HandleFunc("PUT /record", a.update)
	mux.HandleFunc("GET /record/{id}", func(w http.ResponseWriter, r *http.Request) { a.one(w, r.PathValue("id")) })
	mux.HandleFunc("GET /records", a.query)
	return mux
}

func body(r *http.Request) []byte {
	b, _ := io.ReadAll(r.Body)
	return b
}

func (a *auditor) add(w http.ResponseWriter, list []record.Record, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range list {
		if _, ok := a.records[list[i].ID]; ok {
			err = errors.Join(err, ErrExists)
		}
	}
	switch {
	case errors.Is(err, ErrExists):
		w.WriteHeader(500)
		_, _ = io.WriteString(w, "RECORD_EXISTS")
		return
	case err != nil:
		http.Error(w, err.Error(), 400)
		return
	}
	for _, r := range list {
		a.records[r.ID] = r
		a.order = append(a.order, r.ID)
	}
}

func (a *auditor) update(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, stop, err := wire.DecodeUpdate(body(r))
	held, ok := a.records[id]
	switch {
	case err != nil:
		http.Error(w, err.Error(), 400)
	case !ok:
		http.Error(w, fmt.Sprintf("Updating unknown record %s not possible.", id), 404)
	default:
		held.Stop = stop
		a.records[id] = held
	}
}

func (a *auditor) one(w http.ResponseWriter, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.records[id]
	if !ok {
		w.WriteHeader(404)
		_, _ = io.WriteString(w, `{"error":"no such record"}`)
		return
	}
	_, _ = w.Write(wire.AppendJSON(nil, &r))
}

func (a *auditor) query(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queries = append(a.queries, r.URL.RawQuery)
	want := r.URL.Query().Get("record_id")
	for _, id := range a.order {
		if held := a.records[id]; want == "" || want == id {
			_, _ = w.Write(append(wire.AppendJSON(nil, &held), '\n'))
		}
	}
}

func serve(t *testing.T, h http.Handler) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := New(Options{Address: server.URL, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func sample(id string) record.Record {
	return record.Record{ID: id, Meta: record.Meta{{Key: "site_id", Values: []string{"nemo"}}},
		Components: []record.Component{{Name: "Cores", Amount: 8, Scores: []record.Score{{Name: "HEPScore23", Value: 10}}}},
		Start:      1_700_000_000_123456, Stop: record.None, Submit: record.None}
}

func collect(t *testing.T, c *Client, query url.Values) (ids []string) {
	t.Helper()
	for r, err := range c.Query(t.Context(), query) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

func TestWhatIsAddedIsReadBack(t *testing.T) {
	a := &auditor{records: map[string]record.Record{}}
	c, ctx := serve(t, a.handler()), t.Context()
	awkward := []string{"plain", "a/b", "schedd#12.0#17", "50%", "a?b&c=d+e", "..", ".", "ё ü", `"\`}
	var list []record.Record
	for _, id := range awkward[1:] {
		list = append(list, sample(id))
	}
	first := sample(awkward[0])
	if err := errors.Join(c.Health(ctx), c.Add(ctx, &first), c.BulkInsert(ctx, list)); err != nil {
		t.Fatal(err)
	}
	for _, id := range awkward {
		got, err := c.Get(ctx, id)
		if diff := cmp.Diff(sample(id), got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", id, err, diff)
		}
	}
	if diff := cmp.Diff(awkward, collect(t, c, nil)); diff != "" {
		t.Error(diff)
	}
	if err := c.Update(ctx, "a/b", 1_700_000_100_000000); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(ctx, "a/b"); err != nil || got.Stop != 1_700_000_100_000000 {
		t.Errorf("stop %s, %v", got.Stop, err)
	}
}

func TestRefusalsAreTold(t *testing.T) {
	a := &auditor{records: map[string]record.Record{}}
	c, ctx := serve(t, a.handler()), t.Context()
	r, bad := sample("x"), record.Record{ID: "", Stop: record.None}
	if err := c.Add(ctx, &r); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		err  error
		want error
		text string
	}{
		{"add again", c.Add(ctx, &r), ErrExists, "POST /record: RECORD_EXISTS (500 Internal Server Error)"},
		{"bulk again", c.BulkInsert(ctx, []record.Record{sample("y"), r}), ErrExists, "POST /records: RECORD_EXISTS (500 Internal Server Error)"},
		{"update of nothing", c.Update(ctx, "z", 0), ErrNotFound, "PUT /record: Updating unknown record z not possible. (404 Not Found)"},
		{"a bad record", c.Add(ctx, &bad), nil, "POST /record: Json deserialize error: Parsing '' failed (record_id) at line 1 column 15 (400 Bad Request)"},
	}
	for _, id := range []string{"none", "no/ne", "", strings.Repeat("x", 300)} {
		_, err := c.Get(ctx, id)
		cases = append(cases, struct {
			name string
			err  error
			want error
			text string
		}{"get " + id, err, ErrNotFound, ""})
	}
	for _, c := range cases {
		if c.err == nil || c.want != nil && !errors.Is(c.err, c.want) || c.text != "" && c.err.Error() != c.text {
			t.Errorf("%s: got %v, want %q", c.name, c.err, c.text)
		}
	}
	if ids := collect(t, c, nil); !slices.Equal(ids, []string{"x"}) {
		t.Errorf("stored %v", ids)
	}
}

func TestExistsIsToldWhateverTheStatus(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "RECORD_EXISTS") }))
	r := sample("x")
	if err := c.Add(t.Context(), &r); !errors.Is(err, ErrExists) {
		t.Errorf("got %v", err)
	}
}

func TestQueriesKeepTheBracketsOfKeysPlain(t *testing.T) {
	a := &auditor{records: map[string]record.Record{}}
	c := serve(t, a.handler())
	collect(t, c, url.Values{"stop_time[gte]": {"2023-02-24T00:27:58+00:00"}, "meta[site id][c][0]": {"a[b]&c"}})
	want := []string{"meta[site+id][c][0]=a%5Bb%5D%26c&stop_time[gte]=2023-02-24T00%3A27%3A58%2B00%3A00"}
	if diff := cmp.Diff(want, a.queries); diff != "" {
		t.Error(diff)
	}
}

// cut answers with some bytes and then does what end does.
func cut(text string, end func(http.ResponseWriter)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text)
		w.(http.Flusher).Flush()
		end(w)
	})
}

func TestACutAnswerIsAnError(t *testing.T) {
	one := sample("one")
	whole := string(wire.AppendJSON(nil, &one))
	abort := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	ends := func(http.ResponseWriter) {}
	cases := []struct {
		name    string
		handler http.Handler
		records int
		bad     bool
	}{
		{"whole", cut(whole+whole, ends), 2, false},
		{"with lines and blanks between", cut(whole+"\n \n"+whole+"\n", ends), 2, false},
		{"nothing", cut("", ends), 0, false},
		{"the connection breaks between records", cut(whole+"\n", abort), 1, true},
		{"the connection breaks within a record", cut(whole+whole[:20], abort), 1, true},
		{"the answer ends within a record", cut(whole+whole[:20], ends), 1, true},
		{"the connection breaks before anything", cut("", abort), 0, true},
		{"no JSON", cut(whole+"oops", ends), 1, true},
		{"no record", cut(whole+`{"record_id":1}`, ends), 1, true},
		{"a list", cut("["+whole+"]", ends), 0, true},
		{"a refusal", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":"unknown field"}`, 400) }), 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client := serve(t, c.handler)
			records, failures := 0, 0
			for _, err := range client.Query(t.Context(), nil) {
				if err != nil {
					failures++
				} else {
					records++
				}
			}
			if records != c.records || (failures == 1) != c.bad || failures > 1 {
				t.Errorf("%d records and %d errors", records, failures)
			}
		})
	}
}

// impatient is a client with a short timeout, of a server whose handler may wait
// for hold until the test ends.
func impatient(t *testing.T, handler func(hold <-chan struct{}) http.Handler) *Client {
	t.Helper()
	hold := make(chan struct{})
	server := httptest.NewServer(handler(hold))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hold) })
	c, err := New(Options{Address: server.URL, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestASilentStreamTimesOut(t *testing.T) {
	one := sample("one")
	c := impatient(t, func(hold <-chan struct{}) http.Handler {
		return cut(string(wire.AppendJSON(nil, &one)), func(http.ResponseWriter) { <-hold })
	})
	var last error
	for _, err := range c.Query(t.Context(), nil) {
		last = err
	}
	if !errors.Is(last, ErrTimeout) {
		t.Errorf("got %v", last)
	}
}

func TestACallThatHangsTimesOut(t *testing.T) {
	c := impatient(t, func(hold <-chan struct{}) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold })
	})
	if err := c.Health(t.Context()); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v", err)
	}
}

func TestArchivedQuestions_OutlastTheTimeout(t *testing.T) {
	given := make(chan struct{})
	c := impatient(t, func(hold <-chan struct{}) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("archived") != "true" {
				<-hold
				return
			}
			<-given // up by those that read no archive
			_, _ = io.WriteString(w, "{}")
		})
	})
	ask := func(query url.Values) (errs []error) {
		stream := func(answer iter.Seq2[json.RawMessage, error]) (last error) {
			for _, err := range answer {
				last = err
			}
			return last
		}
		var out any
		for _, one := range []func() error{
			func() error { return c.Call(t.Context(), http.MethodGet, "/v1/records", query, nil, &out) },
			func() error { return stream(c.Stream(t.Context(), "/v1/records", query)) },
			func() error { return stream(c.Raw(t.Context(), "/v1/records", query)) },
			func() error { return c.Download(t.Context(), "/v1/records", query, "text/csv", io.Discard) },
		} {
			errs = append(errs, one())
		}
		return errs
	}
	answers := make(chan []error)
	go func() { answers <- ask(url.Values{"archived": {"true"}}) }()
	for i, err := range ask(nil) {
		if !errors.Is(err, ErrTimeout) {
			t.Errorf("question %d: %v", i, err)
		}
	}
	close(given)
	for i, err := range <-answers {
		if err != nil {
			t.Errorf("archived question %d: %v", i, err)
		}
	}
}

func TestLeavingAQueryEndsIt(t *testing.T) {
	one := sample("one")
	done := make(chan struct{})
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		for r.Context().Err() == nil {
			_, _ = w.Write(append(wire.AppendJSON(nil, &one), '\n'))
		}
	}))
	for _, err := range c.Query(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	<-done
}

func TestACanceledContextEndsACall(t *testing.T) {
	c := serve(t, http.NotFoundHandler())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Health(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, err := range c.Query(ctx, nil) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

func TestV1(t *testing.T) {
	type note struct{ Text string }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/echo/{name}", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(note{r.PathValue("name") + r.URL.Query().Get("q") + r.Header.Get("Authorization") + r.UserAgent()})
	})
	mux.HandleFunc("POST /v1/echo", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(body(r)) })
	mux.HandleFunc("DELETE /v1/echo", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	mux.HandleFunc("GET /v1/lines", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "1\n\"two\"\n{}\n") })
	mux.HandleFunc("GET /v1/csv", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Accept")+"\n") })
	mux.HandleFunc("POST /v1/refused", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
		w.WriteHeader(409)
		_, _ = io.WriteString(w, `{"type":"about:blank","title":"Conflict","status":409,"detail":"no quorum","nodes":["a"]}`)
	})
	mux.HandleFunc("GET /v1/secret", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) })
	server := httptest.NewServer(mux)
	defer server.Close()
	c, err := New(Options{Address: strings.TrimPrefix(server.URL, "http://"), Token: "t0", UserAgent: "test", Timeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()

	var got note
	if err := c.Call(ctx, http.MethodGet, "/v1/echo/"+url.PathEscape("a/b"), url.Values{"q": {"&"}}, nil, &got); err != nil || got.Text != "a/b&Bearer t0test" {
		t.Errorf("Call: %v, %v", got, err)
	}
	if err := c.Call(ctx, http.MethodPost, "/v1/echo", nil, note{"x"}, &got); err != nil || got.Text != "x" {
		t.Errorf("Call with a body: %v, %v", got, err)
	}
	if err := c.Call(ctx, http.MethodDelete, "/v1/echo", nil, nil, nil); err != nil {
		t.Errorf("Call without an answer: %v", err)
	}
	if err := c.Upload(ctx, http.MethodPost, "/v1/echo", nil, "text/plain", strings.NewReader(`{"Text":"up"}`), &got); err != nil || got.Text != "up" {
		t.Errorf("Upload: %v, %v", got, err)
	}
	var lines []string
	for raw, err := range c.Stream(ctx, "/v1/lines", nil) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(raw))
	}
	if diff := cmp.Diff([]string{"1", `"two"`, "{}"}, lines); diff != "" {
		t.Error(diff)
	}
	var csv bytes.Buffer
	if err := c.Download(ctx, "/v1/csv", nil, "text/csv", &csv); err != nil || csv.String() != "text/csv\n" {
		t.Errorf("Download: %q, %v", csv.String(), err)
	}
	err = c.Call(ctx, http.MethodPost, "/v1/refused", nil, nil, nil)
	var p *Problem
	if !errors.As(err, &p) || p.Status != 409 || p.Detail != "no quorum" || string(p.Extra["nodes"]) != `["a"]` || err.Error() != "POST /v1/refused: no quorum (409 Conflict)" {
		t.Errorf("a refusal: %v, %+v", err, p)
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/secret", nil, nil, &got); !errors.Is(err, ErrForbidden) || err.Error() != "GET /v1/secret: 403 Forbidden" {
		t.Errorf("a secret: %v", err)
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/nowhere", nil, nil, &got); !errors.Is(err, ErrNotFound) {
		t.Errorf("nowhere: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	cases := []struct {
		address string
		tls     bool
		want    string
	}{
		{"127.0.0.1:8000", false, "http://127.0.0.1:8000"},
		{"[::1]:8000", false, "http://[::1]:8000"},
		{"bursar.example.org:8443", true, "https://bursar.example.org:8443"},
		{"https://bursar.example.org/", false, "https://bursar.example.org"},
		{"https://example.org/bursar/", true, "https://example.org/bursar"},
		{"", false, ""},
		{"ftp://example.org", false, ""},
		{"http://", false, ""},
		{"http://a?b", false, ""},
		{"http://user:secret@a", false, ""},
		{"http://a b", false, ""},
	}
	for _, c := range cases {
		got, err := baseURL(c.address, c.tls)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: got %q, %v", c.address, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells the password", c.address)
		}
	}
}

func TestTLSTrustsTheGivenAuthority(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := LoadTLS(ca, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct {
		cfg  *tls.Config
		good bool
	}{{cfg, true}, {&tls.Config{}, false}} {
		c, err := New(Options{Address: strings.TrimPrefix(server.URL, "https://"), TLS: try.cfg})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Health(t.Context()); (err == nil) != try.good {
			t.Errorf("trusted %v: %v", try.good, err)
		}
		c.Close()
	}
}

func TestBadCertificatesAreNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, files := range [][3]string{{"/nowhere", "", ""}, {empty, "", ""}, {"", empty, empty}, {"", empty, ""}} {
		if _, err := LoadTLS(files[0], files[1], files[2]); err == nil {
			t.Errorf("%v: accepted", files)
		}
	}
}

func TestNew_TokenThatOthersCouldRead_IsRefusedWithoutNamingIt(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://agg1.example.org:8443": true, "http://127.0.0.1:8000": true, "http://[::1]:8000": true, "http://localhost:8000": true, "unix:/run/x.sock": true,
		"http://agg1.example.org:8000": false, "agg1.example.org:8000": false, "https://agg1.example.org:8443,http://192.0.2.7": false,
	} {
		_, err := New(Options{Address: address, Token: "bt1_secret"})
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
