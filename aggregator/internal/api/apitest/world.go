// Package apitest gives tests of the programs that ask the interface a small cluster to
// ask: the real handlers over a real store with fixed content, at a fixed time. A test
// that decodes what it answers notices a field that is renamed.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Noon is the time of every world.
func Noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// World is a node of a cluster: a store, what is known beside it, and the interface.
type World struct {
	T          testing.TB
	Store      *store.Store
	Settings   accounting.Settings
	Accounting *accounting.Keeper
	Usages     *sums.Keeper
	// Options are those of the interface; a test may change them before it asks.
	Options api.Options
	// Facts are what the health of the cluster is judged by.
	Facts health.Facts
	// Down is why the store cannot be read; nil: it can.
	Down error

	mu       sync.Mutex
	index    uint64
	requests []string
	seq      map[string]uint64 // of the last frame, by agent
}

// New makes a world without records, prices, people, clusters or actions.
func New(t testing.TB) *World {
	t.Helper()
	st, err := store.Open(store.Options{Dir: t.TempDir(), MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &World{T: t, Store: st, Facts: Trio(), seq: map[string]uint64{}}
	quiet := slog.New(slog.DiscardHandler)
	if w.Accounting, err = accounting.NewKeeper(views{st}, quiet); err != nil {
		t.Fatal(err)
	}
	w.Usages = sums.NewKeeper(sums.Options{Views: views{st}}, quiet, nil)
	reader := access.Reader{Source: w, Usages: w.Usages}
	w.Options = api.Options{
		Reader: reader, Usage: reader, Writer: w, Health: w, Version: "1.2.3", Log: quiet, Now: Noon,
		Who:        func(*http.Request) access.Principal { return access.Daemon() },
		Derivation: w.Accounting.Derivation,
		Directory:  func() *accounting.Directory { return w.Accounting.Now().Directory },
		Capacity:   w.Accounting.Capacity,
		Common:     w.commonMeta,
		Money: func() api.Money {
			return api.Money{Prices: w.Accounting.Now().Prices, Budgets: w.Accounting.Now().Budgets}
		},
	}
	return w
}

// commonMeta is what the records of each source have in common now.
func (w *World) commonMeta() map[record.Origin]record.Meta {
	s := health.Survey{View: w.Store.View, Life: func(*store.View) (string, error) { return "", nil }, Log: slog.New(slog.DiscardHandler)}
	if err := s.Follow(w.T.Context()); err != nil {
		w.T.Error(err)
	}
	return s.Common()
}

// views are the pictures that usage is added up from.
type views struct{ store *store.Store }

func (v views) View() (*store.View, error) { return v.store.View() }

// Read implements [access.Source].
func (w *World) Read(context.Context) (*store.View, error) {
	if w.Down != nil {
		return nil, w.Down
	}
	return w.Store.View()
}

// Write implements [api.Writer].
func (w *World) Write(_ context.Context, c store.Command) (any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index++
	return w.Store.Apply(w.index, 1, store.Encode(c))
}

// Report implements [api.Health].
func (w *World) Report(context.Context) health.Report { return health.Judge(w.Facts) }

// Apply commits a command.
func (w *World) Apply(c store.Command) {
	w.T.Helper()
	if _, err := w.Write(w.T.Context(), c); err != nil {
		w.T.Fatal(err)
	}
}

// Post adds records as clients of AUDITOR do.
func (w *World) Post(list ...record.Record) {
	w.T.Helper()
	b := columns.NewBuilder()
	for i := range list {
		version := record.Version{Ended: !list[i].Open(), Observed: 1}
		b.Add(&columns.Row{Record: list[i], Rank: record.RankPush, Version: version, Stop: record.None})
	}
	w.Apply(&store.PostCommand{Rows: b.Bytes(), Now: record.FromStd(Noon())})
}

// Collect adds records as an agent does that collected them from a source; more says what
// comes with them, and may be nil.
func (w *World) Collect(source record.Origin, list []record.Record, more *store.IngestCommand) {
	w.T.Helper()
	c := &store.IngestCommand{}
	if more != nil {
		c = more
	}
	c.Agent, c.Epoch = source.Agent, store.Epoch{1}
	if c.Now == 0 {
		c.Now = record.FromStd(Noon())
	}
	if w.seq[source.Agent] == 0 {
		c.Begin = &store.Begin{}
	}
	rank := record.RankScheduler
	if source.Type == "" {
		rank = record.RankPush
	}
	for i := range list {
		c.Writes = append(c.Writes, record.Write{
			Op: record.OpPut, ID: list[i].ID, Origin: source, Rank: rank, Stop: record.None,
			Version: record.Version{Ended: !list[i].Open(), Observed: int64(c.Now)}, Record: &list[i],
		})
	}
	frames := len(c.Writes) + len(c.Facts) + len(c.Quarantine) + len(c.Gaps) + len(c.Watermarks)
	c.From = w.seq[source.Agent] + 1
	c.To = w.seq[source.Agent] + uint64(max(1, frames))
	w.seq[source.Agent] = c.To
	w.Apply(c)
}

// Keep takes over the settings, and what sources say.
func (w *World) Keep() {
	w.T.Helper()
	once, cancel := context.WithCancel(w.T.Context())
	cancel() // it looks before it waits
	if err := errors.Join(w.Accounting.Set(w.Settings), w.Accounting.Run(once)); err != nil {
		w.T.Fatal(err)
	}
	w.Usages.Set(sums.Settings{Classes: w.Accounting.Now().Directory.Classes()})
}

// Call implements [v1.Caller] with the rights of the context.
func (w *World) Call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	return api.New(w.Options).Call(ctx, method, path, query, in, out)
}

// Stream answers as Call.
func (w *World) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return api.New(w.Options).Stream(ctx, path, query)
}

// API asks the world with all rights.
func (w *World) API() v1.API { return v1.API{Caller: As{w, access.Daemon()}} }

// As asks a world with the rights of a principal. It implements [v1.Caller].
type As struct {
	World     *World
	Principal access.Principal
}

// Call implements [v1.Caller].
func (a As) Call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	return a.World.Call(access.With(ctx, a.Principal), method, path, query, in, out)
}

// Stream implements [v1.Caller].
func (a As) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return a.World.Stream(access.With(ctx, a.Principal), path, query)
}

// Serve lets the world answer over HTTP, and returns its address.
func (w *World) Serve() string { return Listen(w.T, w) }

// ServeHTTP implements http.Handler.
func (w *World) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	note, ok := requestLine(r)
	if !ok {
		http.Error(out, "the body broke off", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.requests = append(w.requests, note)
	w.mu.Unlock()
	api.New(w.Options).ServeHTTP(out, r)
}

// Asked are the requests of the server so far, each as "METHOD path?query body"; the next
// call begins anew.
func (w *World) Asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.requests
	w.requests = nil
	return list
}

// requestLine is what a request asks for.
func requestLine(r *http.Request) (string, bool) {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return strings.TrimSpace(r.Method + " " + r.URL.RequestURI() + " " + string(body)), err == nil
}

// Answers answers every request with a status and a value of package v1, for what no world
// says: a server of another release, a broken answer, a refusal.
type Answers struct {
	Status int // 0: 200
	Value  any // nil: no body

	mu       sync.Mutex
	requests []string
}

// ServeHTTP implements http.Handler.
func (a *Answers) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	note, _ := requestLine(r)
	a.mu.Lock()
	a.requests = append(a.requests, note)
	a.mu.Unlock()
	kind, status := "application/json", a.Status
	if status == 0 {
		status = http.StatusOK
	}
	if status >= http.StatusBadRequest {
		kind = "application/problem+json"
	}
	text, err := json.Marshal(a.Value)
	if err != nil {
		status = http.StatusInternalServerError
	}
	out.Header().Set("Content-Type", kind)
	out.WriteHeader(status)
	_, _ = out.Write(text) // the client's, which notices what is missing
}

// Asked are the requests so far.
func (a *Answers) Asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests
}

// Listen serves a handler until the test ends, and returns its address.
func Listen(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// Trio is a healthy cluster of three nodes.
func Trio() health.Facts {
	now := Noon()
	f := health.Facts{Now: now, Node: "agg1", Cluster: "CLUSTERID", Leader: "1"}
	for i, name := range []string{"agg1", "agg2", "agg3"} {
		f.Nodes = append(f.Nodes, health.Node{
			Name: name, ID: string('1' + rune(i)), Address: name + ".example.org:8701", Listed: name + ".example.org:8701", Voter: true, Leader: i == 0, Self: i == 0,
			Seen: now, LagKnown: true, Applied: 12345, ClockOffset: 20 * time.Millisecond, Local: health.Local{
				Version: "1.2.3", CertFrom: now.AddDate(-1, 0, 0), CertEnds: now.AddDate(1, 0, 0),
				Disk: health.Disk{Path: "/d", Free: 60 << 30, Size: 100 << 30, Level: health.LevelNormal, Ballast: 256 << 20},
			},
		})
	}
	return f
}
