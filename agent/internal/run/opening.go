package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
)

// opening is a source whose plugin is being started and configured, by itself.
type opening struct {
	source *config.Source
	cancel context.CancelFunc
	done   chan struct{} // closed when the plugin has answered, or has not in its time

	// Of the answer:
	session *host.Session // nil when the plugin cannot be used
	diags   hcl.Diagnostics
	err     error // why it cannot
}

const (
	// atOnce is how many plugins are started at the same time.
	atOnce = 4
	// turnTime is how long one waits for others, which may hang.
	turnTime = time.Second
	// patience is how long a start and a reload of the agent wait for the plugins,
	// to refuse a configuration that they refuse.
	patience = 10 * time.Second
)

// openAll begins to start the plugins of the sources, and returns at once. The openings
// come in the order of the sources; the caller takes or closes each.
func (p Plugins) openAll(ctx context.Context, cfg *config.Config, sources []*config.Source) []*opening {
	turns := make(chan struct{}, atOnce)
	all := make([]*opening, len(sources))
	for i, s := range sources {
		ctx, cancel := context.WithCancel(ctx)
		o := &opening{source: s, cancel: cancel, done: make(chan struct{})}
		all[i] = o
		go func() {
			defer cancel()
			defer close(o.done)
			late := time.NewTimer(turnTime)
			defer late.Stop()
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
			case <-late.C:
			}
			o.session, o.diags, o.err = p.Open(ctx, cfg, s)
		}()
	}
	return all
}

// awaitSession returns the session when the plugin has answered. When ctx ends before, the
// plugin is closed.
func (o *opening) awaitSession(ctx context.Context) (*host.Session, error) {
	select {
	case <-o.done:
		return o.session, errors.Join(o.err, o.diags.Err())
	case <-ctx.Done():
		o.close()
		return nil, ctx.Err()
	}
}

// close ends the plugin, whether or not it has answered. Closing twice is a no-op.
func (o *opening) close() {
	o.cancel()
	<-o.done
	if o.session != nil {
		_ = o.session.Close() // a plugin that does not end by itself is killed
	}
}

func closeOpenings(openings []*opening) {
	var wg sync.WaitGroup
	for _, o := range openings {
		wg.Go(o.close)
	}
	wg.Wait()
}

// awaitAnswers waits until all plugins have answered, until patience is over (0: for as long as
// they take), or until ctx ends, and returns those that have answered. After a plugin
// refuses its configuration the others have a second to say the same.
func awaitAnswers(ctx context.Context, openings []*opening, patience time.Duration) (answered []*opening) {
	answers := make(chan *opening, len(openings))
	for _, o := range openings {
		go func() {
			<-o.done
			answers <- o
		}()
	}
	var late <-chan time.Time
	if patience > 0 {
		late = time.After(patience)
	}
	refused := false
	for range openings {
		select {
		case o := <-answers:
			if patience > turnTime && !refused && o.diags.HasErrors() {
				refused, late = true, time.After(turnTime)
			}
			continue
		case <-late:
		case <-ctx.Done():
		}
		break
	}
	for _, o := range openings {
		select {
		case <-o.done:
			answered = append(answered, o)
		default:
		}
	}
	return answered
}

// Looked is what became of the plugin of a source that was started to look at it.
type Looked struct {
	Source      *config.Source
	Version     string // of the plugin; "" when it cannot be used
	Diagnostics hcl.Diagnostics
	Err         error // why the plugin cannot be used, such as a [host.Stall]
}

// Look starts the plugins of the sources side by side, each with its own deadline, and
// ends them again. The answers are in the order of the sources.
func (p Plugins) Look(ctx context.Context, cfg *config.Config, sources []*config.Source) []Looked {
	p.Trial = true
	openings := p.openAll(ctx, cfg, sources)
	defer closeOpenings(openings)
	out := make([]Looked, len(openings))
	for i, o := range openings {
		<-o.done
		out[i] = Looked{Source: o.source, Diagnostics: o.diags, Err: o.err}
		if o.session != nil {
			out[i].Version = o.session.Description.GetVersion()
		}
	}
	return out
}

// answerDiagnostics are what plugins that have answered say about the configuration.
func answerDiagnostics(answered []*opening) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, o := range answered {
		diags.Extend(o.diags)
	}
	return diags
}

// brokenPlugins are the plugins that cannot be used, as diagnostics.
func brokenPlugins(answered []*opening) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, o := range answered {
		if o.err != nil {
			diags.Add(hcl.Errorf(o.source.Plugin.Range, fmt.Sprintf("the plugin of source %q cannot be used", o.source.Name()), "%v", o.err))
		}
	}
	return diags
}
