package source

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/prom"
	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/run"
)

// prometheus are the settings of a Prometheus.
type prometheus struct {
	Address   string        `hcl:"address" doc:"its address: http:// or https://"`
	Token     hcl.String    `hcl:"token,optional" unset:"none" doc:"bearer token; better from a file"`
	TokenFile string        `hcl:"token_file,optional" unset:"none" doc:"file with the token; it is read again when it changes"`
	CA        string        `hcl:"ca,optional" unset:"the machine's" doc:"authorities that it is trusted by (PEM)"`
	CPU       string        `hcl:"cpu,optional" unset:"container_cpu_usage_seconds_total" doc:"query of the CPU seconds of a run; $selector, $namespace, $pod, $container and $range stand for the run's"`
	Memory    string        `hcl:"memory,optional" unset:"container_memory_working_set_bytes" doc:"query of the most bytes in use at once"`
	Timeout   time.Duration `hcl:"timeout,optional" default:"30s" min:"1s" max:"10m" doc:"how long one answer may take"`
	Delay     time.Duration `hcl:"delay,optional" default:"2m" max:"24h" doc:"how long after its end a run is asked for first"`
	Retry     time.Duration `hcl:"retry,optional" default:"5m" min:"100ms" max:"24h" doc:"pause before a run of which it has nothing is asked for again"`
	Retries   int           `hcl:"retries,optional" default:"3" max:"1000" doc:"how often such a run is asked for again; then it stays without"`
}

// The default queries. A counter begins at 0 with each container, so that its greatest
// value is what the run used; where two endpoints of the kubelet are scraped, a container
// has two equal series.
const (
	cpuQuery    = `sum(max by (namespace, pod, container) (max_over_time(container_cpu_usage_seconds_total{$selector}[$range])))`
	memoryQuery = `sum(max by (namespace, pod, container) (max_over_time(container_memory_working_set_bytes{$selector}[$range])))`
)

const (
	maxQuestions = 64               // that Prometheus is asked in a round
	promPause    = 30 * time.Second // after Prometheus could not be asked
)

// usage asks a Prometheus what runs used. A nil usage asks nothing.
type usage struct {
	settings *prometheus
	client   *prom.Client         // of the round, while there is one
	due      map[string]time.Time // pods, by when they are asked for
	paused   time.Time            // until then Prometheus is left alone
	round    *round               // that is under way; nil: none is
}

// round is what Prometheus is asked beside the watch, which waits for none of its answers. What
// the goroutine writes may be read when done is closed.
type round struct {
	questions []*question
	err       error // Prometheus cannot be asked
	done      chan struct{}
}

// question is a run that is asked for.
type question struct {
	pod, run    string // its uid and its name
	stop        time.Time
	cpu, memory []part
	answered    bool
	refused     error // what Prometheus says about a query
}

// part is what a start of a container used.
type part struct {
	prom.Target
	amount *float64 // nil: Prometheus has nothing
}

func newUsage(s *prometheus) *usage { return &usage{settings: s, due: map[string]time.Time{}} }

// expectUsage marks an ended run as one of which more is to come.
func (u *usage) expectUsage(v *run.View) {
	if u != nil && !v.Open() && v.Usage == nil {
		v.SetUsage(&run.Usage{})
	}
}

// isComplete reports whether nothing more is expected of runs.
func (u *usage) isComplete(views []run.View) bool {
	return u == nil || !slices.ContainsFunc(views, lacksUsage)
}

func lacksUsage(v run.View) bool { return v.Usage == nil || !v.Usage.Given }

// schedulePod has a pod asked for, when the last of its ended runs that lacks it may be known.
func (u *usage) schedulePod(e *run.Entry, views []run.View) {
	if u == nil || u.isAsking(e.UID()) {
		return
	}
	for i := range views {
		if v := &views[i]; !v.Open() && lacksUsage(*v) {
			u.postpone(e.UID(), v.Stop.Add(u.settings.Delay))
		}
	}
}

// postpone has a pod asked for, not before then.
func (u *usage) postpone(pod string, at time.Time) {
	if at.After(u.due[pod]) {
		u.due[pod] = at
	}
}

// isAsking reports whether the round that is under way asks for a pod.
func (u *usage) isAsking(pod string) bool {
	return u.round != nil && slices.ContainsFunc(u.round.questions, func(q *question) bool { return q.pod == pod })
}

// roundDone is closed when the answers of a round are there; nil: none is under way.
func (u *usage) roundDone() <-chan struct{} {
	if u == nil || u.round == nil {
		return nil
	}
	return u.round.done
}

// askUsage sends what Prometheus has answered, and asks it for the runs that are due. What is
// wrong with it never holds up a record.
func (p *pass) askUsage(ctx context.Context) error {
	u := p.usage
	if u == nil {
		return nil
	}
	if u.round != nil {
		select {
		case <-u.round.done:
		default:
			return nil
		}
		if err := p.applyUsage(ctx); err != nil {
			return err
		}
	}
	now := p.now()
	if now.Before(u.paused) {
		return nil
	}
	if questions := p.dueQuestions(now); len(questions) > 0 {
		r := &round{questions: questions, done: make(chan struct{})}
		u.round = r
		go func() {
			defer close(r.done)
			r.err = u.queryRuns(ctx, questions)
		}()
	}
	return nil
}

// dueQuestions are those about the runs that are due, as many as go into a round. A run goes as a
// whole.
func (p *pass) dueQuestions(now time.Time) (out []*question) {
	u, n := p.usage, 0
	for uid, at := range u.due {
		if at.After(now) {
			continue
		}
		delete(u.due, uid)
		e := p.Open[uid]
		if e == nil {
			continue
		}
		for _, v := range p.runViews(e) {
			if v.Open() || v.Usage == nil || v.Usage.Given {
				continue
			}
			q := &question{pod: uid, run: v.Name(), stop: v.Stop, cpu: queryParts(u.cpuQuery(), &v), memory: queryParts(u.memoryQuery(), &v)}
			if n += len(q.cpu) + len(q.memory); n > maxQuestions && len(out) > 0 {
				u.due[uid] = at
				return out
			}
			out = append(out, q)
		}
	}
	return out
}

func (u *usage) cpuQuery() string    { return cmp.Or(u.settings.CPU, cpuQuery) }
func (u *usage) memoryQuery() string { return cmp.Or(u.settings.Memory, memoryQuery) }

// queryParts are what a query is asked for of a run. Of a pod as one run a query of containers is
// asked for each start of each of them, since their counters begin at 0.
func queryParts(query string, v *run.View) (out []part) {
	views := []run.View{*v}
	if v.Container == "" && prom.OfContainers(query) {
		views = v.Views(false)
	}
	for i := range views {
		w := &views[i]
		out = append(out, part{Target: prom.Target{Namespace: w.Pod.Metadata.Namespace, Pod: w.Pod.Metadata.Name, Container: w.Container, From: w.Start, To: w.Stop}})
	}
	return out
}

// queryRuns asks for the usage of runs, until Prometheus cannot be asked.
func (u *usage) queryRuns(ctx context.Context, questions []*question) (err error) {
	if u.client == nil {
		s := u.settings
		if u.client, err = prom.New(prom.Config{Address: s.Address, Token: s.Token.Value, TokenFile: s.TokenFile, CA: s.CA, Timeout: s.Timeout}); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	for _, q := range questions {
		group.Go(func() error { return u.askOfRun(ctx, q) })
	}
	return group.Wait()
}

// askOfRun asks for the usage of a run. That Prometheus refuses a query is an answer.
func (u *usage) askOfRun(ctx context.Context, q *question) error {
	ask := func(query string, parts []part) error {
		for i := range parts {
			n, err := u.client.Query(ctx, query, parts[i].Target)
			if refused, ok := errors.AsType[*prom.QueryError](err); ok {
				q.refused = cmp.Or(q.refused, error(refused))
			} else if err != nil {
				return err
			}
			parts[i].amount = n
		}
		return nil
	}
	if err := ask(u.cpuQuery(), q.cpu); err != nil {
		return err
	}
	err := ask(u.memoryQuery(), q.memory)
	q.answered = err == nil
	return err
}

// applyUsage notes what Prometheus has answered, and sends it. A run costs no try where
// Prometheus could not be asked.
func (p *pass) applyUsage(ctx context.Context) error {
	u := p.usage
	r, now := u.round, p.now()
	u.round = nil
	if r.err != nil {
		u.paused = now.Add(min(promPause, u.settings.Retry))
	}
	var refused error
	for _, q := range r.questions {
		refused = cmp.Or(refused, q.refused)
		v := p.runOfQuestion(q)
		switch {
		case v == nil || !q.answered:
			p.wantUsage(q)
			continue
		case !u.addAnswer(v.Usage, q):
			u.postpone(q.pod, now.Add(u.settings.Retry))
		}
		p.Touch(v.Entry)
	}
	p.facts.Judge(p.factSettings(), "usage", cmp.Or(r.err, refused))
	return p.finishTouched(ctx)
}

// leaveUsage waits for the end of a round whose context has ended. Its runs are asked for anew.
func (p *pass) leaveUsage() {
	if p.usage == nil || p.usage.round == nil {
		return
	}
	r := p.usage.round
	<-r.done
	p.usage.round = nil
	for _, q := range r.questions {
		p.wantUsage(q)
	}
}

// wantUsage has the pod of a question asked for again.
func (p *pass) wantUsage(q *question) {
	if e := p.Open[q.pod]; e != nil {
		p.usage.schedulePod(e, p.runViews(e))
	}
}

// runOfQuestion is the run of a question; nil where it has changed meanwhile.
func (p *pass) runOfQuestion(q *question) *run.View {
	e := p.Open[q.pod]
	if e == nil {
		return nil
	}
	for _, v := range p.runViews(e) {
		if v.Name() == q.run && v.Stop.Equal(q.stop) && v.Usage != nil && !v.Usage.Given {
			return &v
		}
	}
	return nil
}

// addAnswer notes an answer, and reports whether nothing more is to be asked for. What was known
// stays: Prometheus may no longer have it.
func (u *usage) addAnswer(n *run.Usage, q *question) bool {
	n.CPU = cmp.Or(sumParts(q.cpu), n.CPU)
	if most := peakOfParts(q.memory); most != nil {
		n.Memory = new(int64(*most))
	}
	if n.Tries++; n.CPU != nil && n.Memory != nil {
		n.Tries, n.Given = 0, true
	}
	n.Given = n.Given || n.Tries > u.settings.Retries
	return n.Given
}

// sumParts adds up what parts used; nil where nothing is known of any.
func sumParts(parts []part) (out *float64) {
	for _, p := range parts {
		if p.amount != nil && out == nil {
			out = new(0.0)
		}
		if p.amount != nil {
			*out += *p.amount
		}
	}
	return out
}

// peakOfParts is the greatest sum of the amounts of parts that were there at the same time; nil where
// nothing is known of any. It is at least what all of them had at once, since each may have
// had its own at another time.
func peakOfParts(parts []part) *float64 {
	known := slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.amount == nil })
	if len(known) == 0 {
		return nil
	}
	most := 0.0
	for i, p := range known {
		sum := *p.amount
		for j, other := range known {
			if j != i && !other.From.After(p.From) && other.To.After(p.From) {
				sum += *other.amount
			}
		}
		most = max(most, sum)
	}
	return &most
}

// checkSettings says what is wrong with the settings.
func (s *prometheus) checkSettings(b *sdk.Body) {
	if s == nil {
		return
	}
	if _, err := prom.New(prom.Config{Address: s.Address, Timeout: s.Timeout}); err != nil {
		b.Errorf("address", "%v", err)
	}
	if s.Token.Value != "" && s.TokenFile != "" {
		b.Errorf("token_file", "there is a token already; one of token and token_file is enough")
	}
	for name, query := range map[string]string{"cpu": s.CPU, "memory": s.Memory} {
		if err := prom.Check(query); err != nil {
			b.Errorf(name, "%v", err)
		}
	}
}
