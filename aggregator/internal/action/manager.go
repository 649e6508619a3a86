package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Options of a [Manager]. All are needed.
type Options struct {
	Node    string // this node's name
	Views   Views
	Writer  Writer
	Leader  Leader
	Plugins Plugins
	// Quiet is how long after the start of a leadership an old leader may still have
	// an effect happen: see [Quiet].
	Quiet func() time.Duration
	// Life is the space and key of the document that changes when the cluster is
	// restored.
	Life    store.Document
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Manager has the actions of a node.
type Manager struct {
	Options

	metrics *metrics

	mu       sync.Mutex
	settings []Setting
	changed  chan struct{} // closed and replaced when settings changes
}

// New makes a manager. It does nothing until Lead.
func New(opt Options) *Manager {
	m := &Manager{Options: opt, changed: make(chan struct{})}
	m.metrics = newMetrics(m)
	return m
}

// Set says which actions there are. Those whose setting is the same go on; what a
// changed one has begun is ended first.
func (m *Manager) Set(settings []Setting) {
	settings = slices.Clone(settings)
	slices.SortFunc(settings, func(a, b Setting) int { return cmp.Compare(a.Name.String(), b.Name.String()) })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settings = settings
	close(m.changed)
	m.changed = make(chan struct{})
}

// configuredSettings returns the settings and what is closed when there are others.
func (m *Manager) configuredSettings() ([]Setting, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings, m.changed
}

// settingOf returns the setting of an action; ErrNone when it is not configured.
func (m *Manager) settingOf(name Name) (Setting, error) {
	settings, _ := m.configuredSettings()
	var others []string
	for i := range settings {
		if settings[i].Name == name {
			return settings[i], nil
		}
		others = append(others, settings[i].Name.String())
	}
	near := hcl.Suggest(name.String(), others)
	if near != "" {
		near = "; did you mean " + near + "?"
	}
	return Setting{}, fmt.Errorf("%w: the configuration has no action %s%s", ErrNone, name, near)
}

// worker is a runner at work.
type worker struct {
	digest string
	until  context.Context //nolint:containedctx // of the worker, which is all of its life
	stop   context.CancelFunc
	done   chan struct{}
}

// Lead runs the actions for as long as this node leads, until ctx ends.
func (m *Manager) Lead(ctx context.Context) error {
	term := &term{Manager: m, term: m.Leader.Term(), quiet: m.Now().Add(m.Quiet()), workers: map[Name]*worker{}}
	m.metrics.noteLeader(true)
	defer m.metrics.noteLeader(false)
	defer term.stopWorkers()
	for told := ""; ctx.Err() == nil; {
		settings, changed := m.configuredSettings()
		err := term.settleRestore(ctx, settings)
		if text := fmt.Sprint(err); err != nil && ctx.Err() == nil && text != told && !errors.Is(err, ErrChanged) {
			m.Log.Warn("actions are interrupted", "error", err)
			told = text
		}
		if err == nil {
			told = ""
			term.employWorkers(ctx, settings)
		}
		timer := time.NewTimer(look)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// term is the time for which this node leads.
type term struct {
	*Manager

	term    uint64
	quiet   time.Time
	life    store.Document // of which the workers are
	workers map[Name]*worker
}

// settleRestore finds out whether the cluster was restored. Then it has forgotten effects
// that have happened: all actions are paused.
func (g *term) settleRestore(ctx context.Context, settings []Setting) error {
	now := g.Life
	noted, err := store.With(g.Views, func(view *store.View) (h held[life], err error) {
		if now.Value, _, err = view.Document(g.Life.Space, g.Life.Key); err != nil {
			return h, err
		}
		return readDocument[life](view, lifeSpace, "life")
	})
	if err != nil {
		return err
	}
	if g.life.Key == "" || string(g.life.Value) != string(now.Value) || (g.life.Value == nil) != (now.Value == nil) {
		g.stopWorkers()
		g.life = now
	}
	id := ""
	if now.Value != nil {
		id = digestOf(now.Value)
	}
	if noted.value == nil && id == "" || noted.value != nil && noted.value.Life == id {
		return nil
	}
	g.stopWorkers()
	if err := g.pauseAll(ctx, settings); err != nil {
		return err
	}
	return g.writeDocument(ctx, noted.unchangedCondition(), noted.changedTo(&life{version: version{Format}, Life: id}))
}

func (g *term) writeDocument(ctx context.Context, was, becomes store.Document) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	_, err := commitDocuments(ctx, g.Writer, &store.DocumentCommand{If: []store.Document{was, g.life}, Sets: []store.Document{becomes}})
	return err
}

const afterRestore = "the cluster was restored and may have forgotten effects that have happened: look at `bursar actions plan`, then `bursar actions resume`"

func (g *term) pauseAll(ctx context.Context, settings []Setting) error {
	for i := range settings {
		h, err := store.With(g.Views, func(view *store.View) (held[State], error) { return readActionState(view, settings[i].Name) })
		if err != nil {
			return err
		}
		state := State{version: version{Format}, Began: unixMicros(g.Now()), Next: 1, Oldest: 1}
		if h.value != nil {
			state = *h.value
		}
		state.Paused = &Mark{By: "bursar", At: unixMicros(g.Now()), Why: afterRestore}
		if err := g.writeDocument(ctx, h.unchangedCondition(), h.changedTo(&state)); err != nil {
			return err
		}
		g.Log.Warn("an action is paused", "action", settings[i].Name.String(), "reason", afterRestore)
	}
	return nil
}

// employWorkers has a worker for each setting. One that is not wanted any more may be in an
// effect for an hour: what comes in its place waits for it, and the others do not.
func (g *term) employWorkers(ctx context.Context, settings []Setting) {
	wanted := map[Name]string{}
	for i := range settings {
		wanted[settings[i].Name] = settings[i].Digest
	}
	for name, w := range g.workers {
		if digest, ok := wanted[name]; !ok || digest != w.digest || w.until.Err() != nil {
			w.stop()
			select {
			case <-w.done:
				delete(g.workers, name)
			default: // the next look finds it ended
			}
		}
	}
	for i := range settings {
		if s := settings[i]; g.workers[s.Name] == nil {
			g.workers[s.Name] = g.startWorker(ctx, s)
		}
	}
}

func (g *term) startWorker(ctx context.Context, s Setting) *worker {
	until, stop := context.WithCancel(ctx)
	r := &runner{Manager: g.Manager, set: s, term: g.term, quiet: g.quiet, life: g.life, log: g.Log.With("action", s.Name.String())}
	w := &worker{digest: s.Digest, until: until, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		r.workTerm(ctx, until)
	}()
	return w
}

// stopWorkers ends all workers, and waits for them.
func (g *term) stopWorkers() {
	for _, w := range g.workers {
		w.stop()
	}
	for _, w := range g.workers {
		<-w.done
	}
	clear(g.workers)
}

// Plan makes a plan of an action as a run now would, and does nothing. It works on
// any node.
func (m *Manager) Plan(ctx context.Context, name Name, arguments map[string]string) (*sdk.Plan, *Run, error) {
	set, err := m.settingOf(name)
	if err != nil {
		return nil, nil, err
	}
	r := &runner{Manager: m, set: set, log: m.Log.With("action", name.String())}
	defer r.closePlugin()
	p, err := r.readPicture()
	if err != nil {
		return nil, nil, err
	}
	if p.state.value == nil {
		p.state.value = &State{version: version{Format}, Next: 1}
	}
	run := Run{Why: WhyOrder, Arguments: arguments}
	made, err := r.makePlan(ctx, p, &run)
	if err != nil {
		return nil, nil, err
	}
	fillRun(&run, made)
	return made, &run, nil
}
