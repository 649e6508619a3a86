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
	maxQueries = 64               // runs that are asked for between two looks at the watch
	promPause  = 30 * time.Second // after Prometheus could not be asked
)

// usage asks a Prometheus what runs used. A nil usage asks nothing.
type usage struct {
	settings *prometheus
	client   *prom.Client
	due      map[string]time.Time // pods, by when they are asked for
	paused   time.Time            // until then Prometheus is left alone
}

func newUsage(s *prometheus) *usage { return &usage{settings: s, due: map[string]time.Time{}} }

// expect marks an ended run as one of which more is to come.
func (u *usage) expect(v *run.View) {
	if u != nil && !v.Open() && v.Usage == nil {
		v.SetUsage(&run.Usage{})
	}
}

// known reports whether nothing more is expected of runs.
func (u *usage) known(views []run.View) bool {
	return u == nil || !slices.ContainsFunc(views, lacks)
}

func lacks(v run.View) bool { return v.Usage == nil || !v.Usage.Given }

// want has a pod asked for, when the last of its ended runs that lacks it may be known.
func (u *usage) want(e *run.Entry, views []run.View) {
	if u == nil {
		return
	}
	for i := range views {
		if v := &views[i]; !v.Open() && lacks(*v) {
			if at := v.Stop.Add(u.settings.Delay); at.After(u.due[e.UID()]) {
				u.due[e.UID()] = at
			}
		}
	}
}

// askUsage asks Prometheus for the runs that are due, and sends what it knows. What is
// wrong with it never holds up a record.
func (p *pass) askUsage(ctx context.Context) error {
	u := p.usage
	now := p.now()
	if u == nil || len(u.due) == 0 || now.Before(u.paused) {
		return nil
	}
	var views []run.View
	for uid, at := range u.due {
		e := p.open[uid]
		if at.After(now) || len(views) >= maxQueries {
			continue
		}
		delete(u.due, uid)
		if e == nil {
			continue
		}
		for _, v := range p.views(e) {
			if !v.Open() && v.Usage != nil && !v.Usage.Given {
				views = append(views, v)
			}
		}
	}
	if len(views) == 0 {
		return nil
	}
	refused, err := u.ask(ctx, views)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.facts.Judge(p.factSettings(), "usage", cmp.Or(err, refused))
	if err != nil {
		u.paused = now.Add(min(promPause, u.settings.Retry))
	}
	for i := range views {
		v := &views[i]
		p.touch(v.Entry)
		if !v.Usage.Given {
			u.due[v.UID()] = now.Add(u.settings.Retry)
		}
	}
	return p.finishTouched(ctx)
}

// ask asks for the usage of runs. What Prometheus says about a query, refused, counts as a try
// of the run; that it cannot be asked counts as none.
func (u *usage) ask(ctx context.Context, views []run.View) (refused, err error) {
	defer sdk.Idle(ctx)()
	if u.client == nil {
		s := u.settings
		if u.client, err = prom.New(prom.Config{Address: s.Address, Token: s.Token.Value, TokenFile: s.TokenFile, CA: s.CA, Timeout: s.Timeout}); err != nil {
			return nil, err
		}
	}
	var group errgroup.Group
	group.SetLimit(lookups)
	problems := make([]error, len(views))
	for i := range views {
		group.Go(func() (err error) {
			problems[i], err = u.askOfRun(ctx, &views[i])
			return err
		})
	}
	err = group.Wait()
	return cmp.Or(problems...), err
}

// askOfRun asks for the usage of a run, and notes it in the run.
func (u *usage) askOfRun(ctx context.Context, v *run.View) (refused, err error) {
	cpu, refused, err := u.parts(ctx, or(u.settings.CPU, cpuQuery), v)
	if err != nil {
		return refused, err
	}
	memory, also, err := u.parts(ctx, or(u.settings.Memory, memoryQuery), v)
	if refused = cmp.Or(refused, also); err != nil {
		return refused, err
	}
	n := v.Usage
	n.CPU, n.Memory = nil, nil
	if len(cpu) > 0 {
		n.CPU = new(0.0)
		for _, p := range cpu {
			*n.CPU += p.amount
		}
	}
	if len(memory) > 0 {
		n.Memory = new(int64(peak(memory)))
	}
	if n.CPU == nil || n.Memory == nil {
		n.Tries++
	}
	n.Given = n.CPU != nil && n.Memory != nil || n.Tries > u.settings.Retries
	return refused, nil
}

// part is what a start of a container used.
type part struct {
	from, to time.Time
	amount   float64
}

// parts asks for a run. Of a pod as one run a query of containers is asked for each start of
// each of them, since their counters begin at 0; what Prometheus does not have is left out.
func (u *usage) parts(ctx context.Context, query string, v *run.View) (out []part, refused, err error) {
	views := []run.View{*v}
	if v.Container == "" && prom.OfContainers(query) {
		views = v.Views(false)
	}
	for i := range views {
		w := &views[i]
		n, err := u.client.Query(ctx, query, prom.Target{Namespace: w.Pod.Metadata.Namespace, Pod: w.Pod.Metadata.Name, Container: w.Container, From: w.Start, To: w.Stop})
		if q, ok := errors.AsType[*prom.QueryError](err); ok {
			refused = cmp.Or(refused, error(q))
			continue
		}
		if err != nil {
			return nil, refused, err
		}
		if n != nil {
			out = append(out, part{w.Start, w.Stop, *n})
		}
	}
	return out, refused, nil
}

// peak is the greatest sum of the amounts of parts that were there at the same time. It is
// no less than what all of them had at once, since each may have had its own at another time.
func peak(parts []part) (most float64) {
	for i, p := range parts {
		sum := p.amount
		for j, other := range parts {
			if j != i && !other.from.After(p.from) && other.to.After(p.from) {
				sum += other.amount
			}
		}
		most = max(most, sum)
	}
	return most
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// check says what is wrong with the settings.
func (s *prometheus) check(b *sdk.Body) {
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
