package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Actions are what of a node's own files its actions need.
type Actions struct {
	// Local are the actions of the files, secrets included.
	Local []config.LocalAction
	// Plugins are those of which something is said, by their type.
	Plugins map[string]config.Plugin
	// Dirs are the folders of plugins; nil: the usual ones.
	Dirs []string
	// Dev accepts binaries below folders such as /tmp.
	Dev bool
}

// actionsOf are those of a configuration.
func actionsOf(c *config.Config) Actions {
	return Actions{Local: c.LocalActions(), Plugins: c.ActionPlugins()}
}

// pluginDirs are the folders in which plugins are looked for.
func (s *Actions) pluginDirs() []string {
	if s.Dirs != nil {
		return s.Dirs
	}
	executable, err := os.Executable()
	if err != nil {
		executable = "/usr/bin/bursar"
	}
	return config.PluginDirs(executable)
}

// pluginPath is where the plugin of a type is.
func (s *Actions) pluginPath(typ string) (string, error) {
	if p := s.Plugins[typ]; p.Path != "" {
		return p.Path, nil
	}
	return host.Find(s.pluginDirs(), "action", typ)
}

// actors is what the manager of actions needs of the daemon.
type actors struct {
	agg *Aggregator

	mu     sync.Mutex
	own    Actions
	shared []config.SharedAction
	agents []ingest.Agent
	sums   map[string]checksum // of binaries, by path

	readers chan struct{} // one for each answer that reads archives
}

// checksum is that of a file, as long as it has not changed.
type checksum struct {
	size  int64
	mod   time.Time
	value string
}

// makeActions makes the manager of actions.
func (a *Aggregator) makeActions() {
	a.actors = &actors{agg: a, own: a.set.Actions, sums: map[string]checksum{}, readers: make(chan struct{}, archiveReaders)}
	a.actions = action.New(action.Options{
		Node: a.set.Name, Views: a.store, Writer: a.replica, Leader: actionLeader{a.replica.node}, Plugins: a.actors,
		Quiet: func() time.Duration {
			if len(a.replica.node.Members()) <= 1 {
				return 0 // an old leader was this node, whose plugins died with it
			}
			return action.Quiet(a.replica.node.Lease())
		},
		Life: archive.IncarnationDocument(), Now: calendar.Now, Log: a.set.Log, Metrics: a.registry,
	})
}

// actionLeader implements action.Leader.
type actionLeader struct{ node *cluster.Node }

// Term implements action.Leader.
func (t actionLeader) Term() uint64 { return t.node.Stats().Term }

// Verify implements action.Leader.
func (t actionLeader) Verify(ctx context.Context, term uint64) error {
	if err := t.node.Linearizable(ctx); err != nil {
		return err
	}
	if now := t.Term(); now != term {
		return fmt.Errorf("%w in term %d any more, but in %d", cluster.ErrNotLeader, term, now)
	}
	return nil
}

// SetActions says what this node's own files say of actions now.
func (a *Aggregator) SetActions(own Actions) {
	a.actors.mu.Lock()
	own.Dirs, own.Dev = a.actors.own.Dirs, a.actors.own.Dev
	a.actors.own = own
	a.actors.mu.Unlock()
	a.actions.Set(a.actors.actionSettings())
}

// setShared takes the actions of the cluster, and its agents.
func (s *actors) setShared(shared []config.SharedAction, agents []ingest.Agent) {
	s.mu.Lock()
	s.shared, s.agents = shared, agents
	s.mu.Unlock()
	s.agg.actions.Set(s.actionSettings())
}

// actionSettings are the actions of the cluster, with the secrets of this node's files.
func (s *actors) actionSettings() []action.Setting {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []action.Setting
	for i := range s.shared {
		a := &s.shared[i]
		set := action.Setting{Name: a.Name, Schedule: a.Schedule, Zone: a.Zone, RunOn: a.RunOn, Config: a.Config, Digest: a.Digest}
		at := slices.IndexFunc(s.own.Local, func(l config.LocalAction) bool { return l.Name == a.Name && l.Digest == a.Digest })
		switch {
		case at >= 0:
			set.Config, set.Digest = s.own.Local[at].Config, a.Digest+s.own.Local[at].Full
		case a.Secrets:
			set.Lacks = fmt.Sprintf("the action has secrets, which only files have, and those of %s have another block action %q %q or none; give all nodes the same and reload them", s.agg.set.Name, a.Name.Type, a.Name.Label)
		}
		p := s.own.Plugins[a.Name.Type]
		set.Digest += fmt.Sprintf(" %s %s %v %s", p.Path, p.SHA256, p.Env, a.Zone) // which the site's may be
		out = append(out, set)
	}
	return out
}

func (s *actors) ownActions() Actions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own
}

// Identity implements action.Plugins.
func (s *actors) Identity(set *action.Setting) string {
	own := s.ownActions()
	path, err := own.pluginPath(set.Name.Type)
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.sums[path]; known.value != "" && known.size == info.Size() && known.mod.Equal(info.ModTime()) {
		return known.value
	}
	sum, err := sumOf(path)
	if err != nil {
		return ""
	}
	s.sums[path] = checksum{info.Size(), info.ModTime(), sum}
	return sum
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// Open implements action.Plugins.
func (s *actors) Open(ctx context.Context, set *action.Setting) (action.Plugin, error) {
	session, err := s.openSession(ctx, set, s.actionHandler(set.Name, identity.Read|identity.Operate))
	if err != nil {
		return nil, err
	}
	return session, nil
}

// openSession starts the plugin of an action. Archives answers what it changes of archives.
func (s *actors) openSession(ctx context.Context, set *action.Setting, archives http.Handler) (*action.Session, error) {
	own := s.ownActions()
	log := s.agg.set.Log.With("action", set.Name.String(), "component", "plugin")
	process, err := launchPlugin(ctx, &own, set.Name.Type, host.Spec{Logger: log})
	if err != nil {
		return nil, err
	}
	about, err := process.DescribeAction(ctx)
	var programs action.Programs
	if err == nil {
		programs, err = s.actionPrograms(set, about)
	}
	if err == nil {
		var session *action.Session
		session, err = action.NewSession(ctx, process, process.Action(), about, action.Spec{
			Node: s.agg.set.Name, Label: set.Name.Label, Config: set.Config, Programs: programs,
			Data: s.actionHandler(set.Name, identity.Read), Archives: archives,
		})
		if err == nil {
			return session, nil
		}
	}
	return nil, errors.Join(process.Blame(ctx, err), process.Close())
}

func launchPlugin(ctx context.Context, own *Actions, typ string, spec host.Spec) (*host.Process, error) {
	path, err := own.pluginPath(typ)
	if err != nil {
		return nil, err
	}
	p := own.Plugins[typ]
	spec.Kind, spec.Type, spec.Path, spec.SHA256, spec.Env, spec.Dev = "action", typ, path, p.SHA256, p.Env, own.Dev
	return host.Launch(ctx, spec)
}

// actionPrincipalKey is the key of the principal of a request that the daemon itself makes. No
// request of a listener has it.
type actionPrincipalKey struct{}

// actionHandler answers what an action asks, with the rights, of all records.
func (s *actors) actionHandler(name action.Name, rights identity.Rights) http.Handler {
	p := access.Principal{Name: "action " + name.String(), Rights: rights, Rows: access.AllRows()}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.agg.server.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actionPrincipalKey{}, p)))
	})
}

// principalFunc says who makes a request: an action of this daemon, or whom the gate knows.
func (a *Aggregator) principalFunc() func(*http.Request) access.Principal {
	gate := a.makeGate()
	return func(r *http.Request) access.Principal {
		if p, ok := r.Context().Value(actionPrincipalKey{}).(access.Principal); ok {
			return p
		}
		return gate.Who(r)
	}
}

// CheckActions asks the plugins of a configuration whether they take what it says of
// their actions, each by itself, and reports what is wrong with its place, until ctx ends. A
// plugin that is not there or has not answered by then is a warning: it may be added, or
// answer, while the daemon runs. dev accepts binaries below folders such as /tmp.
func CheckActions(ctx context.Context, c *config.Config, dev bool) hcl.Diagnostics {
	var diags hcl.Diagnostics
	own := actionsOf(c)
	own.Dev = dev
	errs, warnings := make([]error, len(own.Local)), make([]hcl.Diagnostics, len(own.Local))
	var checks sync.WaitGroup
	for i := range own.Local {
		checks.Go(func() { warnings[i], errs[i] = checkAction(ctx, &own, &own.Local[i]) })
	}
	checks.Wait()
	for i, err := range errs {
		a := &own.Local[i]
		diags.Extend(warnings[i])
		if problems, ok := errors.AsType[hcl.Diagnostics](err); ok {
			diags.Extend(problems)
		} else if err != nil {
			diags.Add(hcl.Warnf(a.Range, fmt.Sprintf("the plugin of action %q cannot be used", a.Name), "%v", err))
		}
	}
	return diags
}

// checkTime is how long a plugin may take to take its configuration.
const checkTime = 30 * time.Second

func checkAction(ctx context.Context, own *Actions, a *config.LocalAction) (warnings hcl.Diagnostics, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	process, err := launchPlugin(ctx, own, a.Name.Type, host.Spec{})
	if err != nil {
		return nil, err
	}
	defer process.Close()
	about, err := process.DescribeAction(ctx)
	if err != nil {
		return nil, process.Blame(ctx, err)
	}
	session, err := action.NewSession(ctx, process, process.Action(), about, action.Spec{Label: a.Name.Label, Config: a.Config})
	if err != nil {
		return nil, process.Blame(ctx, err)
	}
	return session.Warnings(), nil
}
