package source

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// promised is a Prometheus that answers as a test says.
type promised struct {
	*httptest.Server

	mu      sync.Mutex
	status  int
	result  []any
	values  map[string]string // by a part of the query; before result
	queries []string
	tokens  map[string]bool
	before  func(r *http.Request, asked int) // is called before an answer; asked counts the questions so far
}

func newPrometheus(t *testing.T) *promised {
	p := &promised{status: http.StatusOK, tokens: map[string]bool{}}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.queries = append(p.queries, r.FormValue("query")+" at "+r.FormValue("time"))
		p.tokens[r.Header.Get("Authorization")] = true
		before, asked := p.before, len(p.queries)
		p.mu.Unlock()
		if before != nil {
			before(r, asked)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.status != http.StatusOK {
			http.Error(w, "no healthy upstream", p.status)
			return
		}
		result := p.result
		for part, value := range p.values {
			if strings.Contains(r.FormValue("query")+" at "+r.FormValue("time"), part) {
				result = series(value)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}}) // to a client that may be gone
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *promised) answer(status int, values ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.result = status, series(values...)
}

// meet has something done before each answer.
func (p *promised) meet(before func(r *http.Request, asked int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = before
}

// asked is how many questions there were.
func (p *promised) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queries)
}

// series are the time series of an answer.
func series(values ...string) []any {
	out := []any{}
	for _, v := range values {
		out = append(out, map[string]any{"metric": map[string]any{}, "value": []any{1778414400.781, v}})
	}
	return out
}

// block is the configuration of the source for it.
func (p *promised) block(t *testing.T, more ...sdk.Node) sdk.Node {
	t.Helper()
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	writePEM(t, ca, p.Certificate().Raw)
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return sdk.Node{Name: "prometheus", IsBlock: true, Children: append([]sdk.Node{
		text("address", p.URL), text("ca", ca), text("token_file", token), text("delay", "1s"), text("retry", "100ms"),
		{Name: "retries", Value: sdk.Int(2)}}, more...)}
}

func TestUsage_PrometheusAnswers_RecordIsSentPendingAndThenComplete(t *testing.T) {
	s, p := newSite(t), newPrometheus(t)
	p.answer(http.StatusOK, "1234.5")
	s.set(at(9))
	s.start(p.block(t))
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)))
	s.await("the record, pending", func() bool {
		j, some := s.jobs[runName("a", "main", 1)]
		return some && valueOf(j, "usage").Str() == "pending" && valueOf(j, "cpu_seconds").IsNull()
	})
	s.set(at(10))
	s.await("the record, complete", func() bool { return valueOf(s.jobs[runName("a", "main", 1)], "usage").Str() == "complete" })
	if got := s.value(runName("a", "main", 1), "cpu_seconds").Float(); got != 1234.5 {
		t.Errorf("CPU %v", got)
	}
	s.stopsAt(runName("a", "main", 1), 9, false)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queries) != 2 || !strings.Contains(p.queries[0], `container_cpu_usage_seconds_total{namespace="phys",pod="a",container="main"}[481s]`) || !p.tokens["Bearer secret"] {
		t.Errorf("queries %q, tokens %v", p.queries, p.tokens)
	}
}

func TestUsage_Prometheus503_RecordsGoOnAndAreCompletedLater(t *testing.T) {
	s, p := newSite(t), newPrometheus(t)
	p.answer(http.StatusServiceUnavailable)
	s.set(at(20))
	s.start(p.block(t))
	s.seen()
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)))
	s.server.Delete("phys", "a", at(9))
	s.await("a question", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.queries) > 0 })
	s.server.Put(pod("phys", "b", kube.Succeeded, over(0, 2, 9, 0)))
	s.await("both records", func() bool { return len(s.runs()) == 2 })
	s.kill() // what is still to be asked for is in the journal
	p.answer(http.StatusOK, "7")
	s.start(p.block(t))
	s.set(at(30))
	for _, name := range []string{"a", "b"} {
		minute := map[string]int{"a": 1, "b": 2}[name]
		s.await(name+" is complete", func() bool { return valueOf(s.jobs[runName(name, "main", minute)], "usage").Str() == "complete" })
	}
}

// complete counts the runs that Prometheus has told of. It is called with s locked.
func (s *site) complete() (n int) {
	for _, j := range s.jobs {
		if valueOf(j, "usage").Str() == "complete" {
			n++
		}
	}
	return n
}

// missing waits until a run stays without its usage, while time passes.
func (s *site) missing(run string) {
	s.t.Helper()
	s.await("it is given up", func() bool {
		s.time = s.time.Add(time.Minute)
		j, some := s.jobs[run]
		return some && valueOf(j, "usage").Str() == "missing"
	})
}

func TestUsage_PrometheusNeverAnswers_PodsGoOnAndAreCompletedLater(t *testing.T) {
	s, p, broken := newSite(t), newPrometheus(t), make(chan struct{})
	t.Cleanup(s.stop)
	p.answer(http.StatusOK, "7")
	p.meet(func(r *http.Request, _ int) {
		select {
		case <-r.Context().Done():
		case <-broken:
			panic(http.ErrAbortHandler)
		}
	})
	s.set(at(20))
	s.start(p.block(t, text("timeout", "10m")))
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)))
	s.await("a question", func() bool { return p.asked() > 0 })
	s.server.Put(pod("phys", "b", kube.Succeeded, over(0, 2, 9, 0)))
	s.server.Put(pod("phys", "c", kube.Running, running(0, 3)))
	s.await("the other pods", func() bool { return len(s.runs()) == 3 })
	for name, minute := range map[string]int{"a": 1, "b": 2} {
		if got := s.value(runName(name, "main", minute), "usage").Str(); got != "pending" {
			t.Errorf("usage of %s is %q", name, got)
		}
	}
	p.meet(nil)
	close(broken)
	s.await("both are complete", func() bool { s.time = s.time.Add(time.Minute); return s.complete() == 2 })
}

func TestUsage_OneQuestionFails_OthersAreNotWaitedFor(t *testing.T) {
	s, p, wait := newSite(t), newPrometheus(t), make(chan struct{})
	t.Cleanup(s.stop)
	p.answer(http.StatusOK, "7")
	p.meet(func(r *http.Request, asked int) {
		switch asked {
		case 1:
			<-wait
			panic(http.ErrAbortHandler)
		case 2:
			close(wait)
			<-r.Context().Done()
		}
	})
	for name, minute := range map[string]int{"a": 1, "b": 2} {
		s.server.Put(pod("phys", name, kube.Succeeded, over(0, minute, 9, 0)))
	}
	s.set(at(20))
	s.start(p.block(t, text("timeout", "10m")))
	s.await("both are complete", func() bool { s.time = s.time.Add(time.Minute); return s.complete() == 2 })
}

func TestUsage_FailureTakesLongerThanThePause_PrometheusIsLeftAloneAfterIt(t *testing.T) {
	s, p := newSite(t), newPrometheus(t)
	p.answer(http.StatusServiceUnavailable)
	p.meet(func(*http.Request, int) { s.set(at(40)) })
	s.set(at(20))
	s.start(p.block(t))
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)))
	s.await("a failure", func() bool {
		return slices.ContainsFunc(s.logged, func(line string) bool { return strings.Contains(line, "the usage is not complete") })
	})
	p.answer(http.StatusOK, "7")
	for i, name := range []string{"b", "c"} { // each is a look at what is due
		s.server.Put(pod("phys", name, kube.Succeeded, over(0, 2, 9, 0)))
		s.await("another pod", func() bool { return len(s.runs()) == i+2 })
	}
	if n := p.asked(); n != 1 {
		t.Errorf("%d questions before the pause was over", n)
	}
	s.set(at(41))
	s.await("all are complete", func() bool { return s.complete() == 3 })
}

func TestUsage_MoreRunsThanQuestionsOfARound_FirstAreSentBeforeTheLastAreAskedFor(t *testing.T) {
	s, p, more := newSite(t), newPrometheus(t), make(chan struct{})
	t.Cleanup(s.stop)
	p.answer(http.StatusOK, "7")
	p.meet(func(r *http.Request, asked int) {
		if asked > 64 {
			select {
			case <-r.Context().Done():
			case <-more:
			}
		}
	})
	for i := range 40 {
		s.server.Put(pod("phys", fmt.Sprintf("p%02d", i), kube.Succeeded, over(0, 1, 9, 0)))
	}
	s.set(at(20))
	s.start(p.block(t, text("timeout", "10m")))
	s.await("the first are complete", func() bool { return s.complete() == 32 })
	close(more)
	s.await("all are complete", func() bool { return s.complete() == 40 })
}

func TestUsage_PrometheusHasNothing_RecordStaysMissing(t *testing.T) {
	s, p := newSite(t), newPrometheus(t)
	p.answer(http.StatusOK)
	s.set(at(20))
	s.start(p.block(t))
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)))
	s.missing(runName("a", "main", 1))
	if n := p.asked(); n != 6 {
		t.Errorf("%d questions, want 6", n)
	}
}

// A counter begins at 0 with each start of a container, so that the greatest value of one is
// not what the pod used. Memory adds up only of what ran at the same time.
func TestUsage_PodAsOneRun_AddsUpTheStartsOfItsContainers(t *testing.T) {
	perPod := []sdk.Node{text("cpu", `sum(pod_cpu{pod="$pod"})`), text("memory", `max(pod_memory{pod="$pod"})`)}
	for name, c := range map[string]struct {
		queries []sdk.Node
		cpu     float64
		memory  int64
		asked   int
	}{
		"default":    {nil, 50 + 1000 + 10 + 300, (900 + 30) << 20, 8},
		"of the pod": {perPod, 7, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := newSite(t), newPrometheus(t)
			p.answer(http.StatusOK)
			p.values = map[string]string{"pod_cpu": "7", "pod_memory": "3"}
			for container, used := range map[string][2]int{ // CPU in s and memory in MB
				`container="init"}[61s]`: {50, 800}, `container="main"}[181s]`: {1000, 900}, `container="main"}[241s]`: {10, 100}, `container="side"}[481s]`: {300, 30},
			} {
				p.values[`cpu_usage_seconds_total{namespace="phys",pod="a",`+container] = fmt.Sprint(used[0])
				p.values[`memory_working_set_bytes{namespace="phys",pod="a",`+container] = fmt.Sprint(used[1] << 20)
			}
			s.set(at(20))
			s.start(text("runs", "pods"), p.block(t, c.queries...))
			a := pod("phys", "a", kube.Succeeded, over(1, 6, 10, 0, terminated(2, 5, 1)), over(0, 2, 10, 0))
			a.Status.ContainerStatuses[1].Name = "side"
			init := over(0, 1, 2, 0)
			init.Name = "init"
			a.Status.InitContainerStatuses = []kube.ContainerStatus{init}
			side, first := a.Spec.Containers[0], a.Spec.Containers[0]
			side.Name, first.Name = "side", "init"
			a.Spec.Containers, a.Spec.InitContainers = append(a.Spec.Containers, side), []kube.Container{first}
			s.server.Put(a)
			const run = "phys-a-uid-a"
			s.await("the record, complete", func() bool { j, some := s.jobs[run]; return some && valueOf(j, "usage").Str() == "complete" })
			if cpu, memory := s.value(run, "cpu_seconds").Float(), s.value(run, "memory_max_bytes").Int(); cpu != c.cpu || memory != c.memory {
				t.Errorf("CPU %v s and memory %d, want %v and %d", cpu, memory, c.cpu, c.memory)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.queries) != c.asked {
				t.Errorf("%d questions %q, want %d", len(p.queries), p.queries, c.asked)
			}
		})
	}
}

// A query that Prometheus refuses, or that gives several numbers, gives none at any other time
// either: the run is given up like one of which Prometheus has nothing.
func TestUsage_QueryWithoutANumber_RecordStaysMissing(t *testing.T) {
	for name, answer := range map[string]func(*promised){
		"refused":       func(p *promised) { p.answer(http.StatusBadRequest) },
		"unprocessable": func(p *promised) { p.answer(http.StatusUnprocessableEntity) },
		"two numbers":   func(p *promised) { p.answer(http.StatusOK, "1", "2") },
	} {
		t.Run(name, func(t *testing.T) {
			s, p := newSite(t), newPrometheus(t)
			answer(p)
			s.set(at(20))
			s.start(p.block(t))
			s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)))
			s.missing(runName("a", "main", 1))
			if n := p.asked(); n != 6 {
				t.Errorf("%d questions, want 6", n)
			}
		})
	}
}

// What Prometheus said once it may no longer have at the next question.
func TestUsage_OneOfTwoIsKnown_ItStaysWhileTheOtherIsAskedFor(t *testing.T) {
	s, p := newSite(t), newPrometheus(t)
	p.answer(http.StatusOK)
	p.meet(func(_ *http.Request, asked int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.values = map[string]string{}
		if asked <= 2 {
			p.values["cpu_usage"] = "7"
		}
	})
	s.set(at(20))
	s.start(p.block(t))
	s.server.Put(pod("phys", "a", kube.Succeeded, over(0, 1, 9, 0)))
	s.missing(runName("a", "main", 1))
	if got := s.value(runName("a", "main", 1), "cpu_seconds"); got.IsNull() || got.Float() != 7 {
		t.Errorf("CPU %v", got)
	}
}

func TestUsage_BothAreKnown_TriesCountNoMore(t *testing.T) {
	u, n := newUsage(&prometheus{Retries: 3}), &run.Usage{Tries: 2}
	if known := u.addAnswer(n, &question{cpu: []part{{amount: new(7.0)}}, memory: []part{{amount: new(8.0)}}}); !known || !n.Given || n.Tries != 0 {
		t.Errorf("known %t, %+v", known, n)
	}
}

// mapped is the record that the default mapping makes of a run of which only some is known.
func mapped(t *testing.T, known map[string]any) record.Record {
	t.Helper()
	d, err := plugintest.Serve(t, func() sdk.Source { return New(slog.New(slog.DiscardHandler)) }).Describe(t.Context(), &bursarv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	m, diags := mapping.Compile(mapping.Options{Agent: "head1", Type: d.GetType(), Label: "test", Attributes: d.GetAttributes(), Default: d.GetMapping()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	job := &bursarv1.Job{Run: "a", Ended: true}
	for _, a := range d.GetAttributes() {
		job.Values = append(job.Values, plugintest.Value(known[a.GetName()]))
	}
	r, keep, err := m.Map(job)
	if err != nil || !keep {
		t.Fatal(keep, err)
	}
	return r
}

// What reports and pages compare with the requested memory is the peak, a rate in its unit.
func TestMapping_PeakMemory_IsMemoryUsedInTheUnitOfMemory(t *testing.T) {
	r := mapped(t, map[string]any{"id": "a", "start": at(0).UnixMicro(), "stop": at(1).UnixMicro(), "estimated": false, "kind": run.Main, "memory_mb": int64(2048), "memory_max_mb": int64(512)})
	got := map[string]int64{}
	for _, c := range r.Components {
		if c.Kind == record.Rate {
			got[c.Name] = c.Amount
		}
	}
	if want := map[string]int64{"Memory": 2048, "MemoryUsed": 512}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMapping_Kinds_MainContainersAndPodsAreJobsAndTheOthersParts(t *testing.T) {
	for kind, want := range map[string]string{run.Main: "", "pod": "", run.Init: "init", run.Sidecar: "sidecar", run.Ephemeral: "ephemeral"} {
		r := mapped(t, map[string]any{"id": "a", "start": at(0).UnixMicro(), "stop": at(1).UnixMicro(), "estimated": false, "kind": kind})
		got := ""
		for _, m := range r.Meta {
			if m.Key == "run_part" {
				got = fmt.Sprint(m.Values)
			}
		}
		if want != "" {
			want = fmt.Sprint([]string{want})
		}
		if got != want {
			t.Errorf("%s: run_part %q, want %q", kind, got, want)
		}
	}
}
