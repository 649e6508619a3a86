package source

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/fakekube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// site is a Kubernetes, and a source with the daemon that listens to it.
type site struct {
	t       *testing.T
	server  *fakekube.Server
	config  string // the kubeconfig; "": there is none, and account has a service account
	account string
	dir     string
	end     func()

	mu     sync.Mutex
	time   time.Time
	logged []string
	told
	deaf bool                 // batches are lost, as when the daemon is killed
	lose func(sdk.Batch) bool // the first batch that is lost like that; nil: none
	last func(sdk.Batch) bool // the batch that is the last to count, without the source being told; nil: none
}

// told is what the daemon knows by the source.
type told struct {
	checkpoint []byte
	watermark  time.Time
	jobs       map[string]sdk.Job // the last word on each run
	sent       []string           // names in order
	refused    []sdk.Refused
	gaps       []sdk.Gap
	skipped    int64
	capacity   []sdk.Capacity
	census     []sdk.Census
	collected  []error
}

// soFar is what the daemon knows now; the source may go on.
func (s *site) soFar() told {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.told
	t.jobs = maps.Clone(t.jobs)
	return t
}

func noon() time.Time { return time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC) }

func newSite(t *testing.T) *site {
	s := &site{t: t, server: fakekube.New(), dir: t.TempDir(), time: noon(), told: told{jobs: map[string]sdk.Job{}}, end: func() {}}
	s.config = s.server.Kubeconfig(t, "t")
	t.Cleanup(func() {
		s.stop()
		s.server.Close()
	})
	return s
}

func (s *site) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time
}

func (s *site) set(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = t
}

// Write takes a line of the source's log.
func (s *site) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logged = append(s.logged, string(line))
	return len(line), nil
}

func text(name, value string) sdk.Node { return sdk.Node{Name: name, Value: sdk.String(value)} }

func list(name string, values ...string) sdk.Node {
	return sdk.Node{Name: name, Value: sdk.Strings(values...)}
}

// configured is a new plugin process.
func (s *site) configured(keys ...sdk.Node) *Source {
	s.t.Helper()
	source := New(slog.New(slog.NewTextHandler(s, nil)))
	source.now, source.account = s.now, s.account
	if s.config != "" {
		keys = append(keys, text("kubeconfig", s.config))
	}
	cfg := sdk.NewConfig("test", sdk.Node{IsBlock: true, Children: keys})
	cfg.DataDir = s.dir
	if err := source.Configure(context.Background(), cfg); err != nil {
		s.t.Fatal(err)
	}
	return source
}

// start starts a source, which collects until stop.
func (s *site) start(keys ...sdk.Node) {
	s.t.Helper()
	source := s.configured(keys...)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	s.mu.Lock()
	s.deaf = false
	s.mu.Unlock()
	running.Go(func() {
		for ctx.Err() == nil {
			s.mu.Lock()
			from := sdk.Start{Checkpoint: s.checkpoint}
			s.mu.Unlock()
			err := source.Collect(ctx, from, sdk.NewStream(run.Attributes(), s.take))
			s.mu.Lock()
			s.collected = append(s.collected, err)
			s.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	s.end = func() {
		cancel()
		running.Wait()
	}
}

func (s *site) stop() {
	s.end()
	s.end = func() {}
}

// kill is a stop after which nothing that was sent meanwhile counts.
func (s *site) kill() {
	s.mu.Lock()
	s.deaf = true
	s.mu.Unlock()
	s.stop()
}

// loseBatchOf has the batch with a run lost, and all that come after it.
func (s *site) loseBatchOf(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = func(b sdk.Batch) bool {
		return slices.ContainsFunc(b.Jobs, func(j sdk.Job) bool { return j.Run == run })
	}
}

func (s *site) take(ctx context.Context, b sdk.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lose != nil && s.lose(b) {
		s.deaf, s.lose = true, nil
	}
	if s.deaf {
		return context.Canceled
	}
	for _, j := range b.Jobs {
		s.jobs[j.Run] = j
		s.sent = append(s.sent, j.Run)
	}
	if b.Checkpoint != nil {
		s.checkpoint = b.Checkpoint
	}
	if !b.Watermark.IsZero() {
		s.watermark = b.Watermark
	}
	s.gaps = append(s.gaps, b.Gaps...)
	s.refused = append(s.refused, b.Refused...)
	s.skipped += b.Skipped
	if s.last != nil && s.last(b) {
		s.deaf, s.last = true, nil
	}
	if b.Capacity != nil {
		s.capacity = append(s.capacity, *b.Capacity)
	}
	if b.Census != nil {
		s.census = append(s.census, *b.Census)
	}
	if s.deaf {
		return context.Canceled
	}
	return ctx.Err()
}

// await waits until ok, which is called with s locked.
func (s *site) await(what string, ok func() bool) {
	s.t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		s.mu.Lock()
		good := ok()
		s.mu.Unlock()
		if good {
			return
		}
		if time.Now().After(end) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("not after a minute: %s; runs %v, gaps %v, refused %v, last of %d errors %v", what, s.runs(), s.gaps, s.refused, len(s.collected), s.collected[max(0, len(s.collected)-2):])
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// seen waits until the source has sent all changes.
func (s *site) seen() {
	s.t.Helper()
	version := versionNumber(s.server.Version())
	s.await("all changes", func() bool {
		c, err := decodeCheckpoint(s.checkpoint)
		return err == nil && versionNumber(c.Versions[""]) >= version
	})
}

// runs are those that the daemon would keep.
func (t *told) runs() []string {
	var got []string
	for run, j := range t.jobs {
		if j.Excluded {
			continue
		}
		if !j.Ended {
			run += " open"
		}
		got = append(got, run)
	}
	slices.Sort(got)
	return got
}

func (s *site) wantRuns(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(want)
	if diff := cmp.Diff(want, s.runs()); diff != "" {
		s.t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func (s *site) value(run, attribute string) sdk.Value {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.jobs[run]
	if !ok {
		s.t.Fatalf("there is no run %s among %v", run, slices.Collect(maps.Keys(s.jobs)))
	}
	return valueOf(j, attribute)
}

func valueOf(j sdk.Job, attribute string) sdk.Value {
	at := slices.IndexFunc(run.Attributes(), func(a sdk.Attribute) bool { return a.Name == attribute })
	if at < 0 {
		panic(fmt.Sprintf("there is no attribute %s", attribute))
	}
	return j.Values[at]
}
