package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

const (
	// srvEvery is how often agents are looked up in DNS, and srvPatience bounds one look.
	srvEvery    = time.Minute
	srvPatience = 10 * time.Second
)

// followSRV keeps the agents that DNS names among those to pull from until ctx ends. Where DNS
// does not answer, or names none, those of before stay.
func (a *Aggregator) followSRV(ctx context.Context) error {
	looked, last := "", time.Time{}
	repeat.Every(ctx, joinedEvery, func() bool {
		a.pulled.mu.Lock()
		name := a.pulled.srv
		a.pulled.mu.Unlock()
		if name == looked && (name == "" || time.Since(last) < srvEvery) {
			return true
		}
		looked, last = name, time.Now()
		list, err := a.findAgents(ctx, name)
		if ctx.Err() != nil {
			return false
		}
		a.pulled.mu.Lock()
		before := a.pulled.srvTrouble
		a.pulled.srvTrouble = err
		same := slices.Equal(list, a.pulled.found)
		a.pulled.mu.Unlock()
		switch {
		case err != nil && (before == nil || before.Error() != err.Error()):
			a.set.Log.Warn("agents cannot be found by DNS; those of before stay", "agent_srv", name, "error", err)
		case err == nil && !same:
			a.set.Log.Info("agents were found by DNS", "agent_srv", name, "agents", len(list))
			a.changePulled(func(p *pulled) { p.found = list })
		}
		return true
	})
	return nil
}

// findAgents looks up the agents that a name of DNS has as services; none for "". The name of
// an agent is the first label of its host, which its certificate must say.
func (a *Aggregator) findAgents(ctx context.Context, name string) ([]ingest.Agent, error) {
	if name == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, srvPatience)
	defer cancel()
	_, records, err := cmp.Or(a.set.Resolver, net.DefaultResolver).LookupSRV(ctx, "", "", name)
	if err != nil && len(records) == 0 {
		return nil, err
	}
	wrong := []error{err} // of records that cannot be used
	list := make([]ingest.Agent, 0, len(records))
	for _, r := range records {
		host := strings.TrimSuffix(r.Target, ".")
		agent, _, _ := strings.Cut(host, ".")
		switch i := slices.IndexFunc(list, func(l ingest.Agent) bool { return l.Name == agent }); {
		case identity.CheckName(agent) != nil || r.Port == 0:
			wrong = append(wrong, fmt.Errorf("%s: the service %q at port %d is not an agent", name, r.Target, r.Port))
		case i >= 0:
			wrong = append(wrong, fmt.Errorf("%s: %s and %s:%d are both named %s", name, list[i].Address, host, r.Port, agent))
		default:
			list = append(list, ingest.Agent{Name: agent, Address: net.JoinHostPort(host, strconv.Itoa(int(r.Port)))})
		}
	}
	slices.SortFunc(list, func(x, y ingest.Agent) int { return cmp.Compare(x.Name, y.Name) })
	return list, errors.Join(wrong...)
}

// addSRVTrouble says when agents cannot be found by DNS.
func (d *healthMonitor) addSRVTrouble(_ context.Context, f *health.Facts) {
	p := &d.agg.pulled
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.srvTrouble != nil {
		f.Others = append(f.Others, health.Finding{
			Severity: health.Warning, ID: "agent-srv", About: d.agg.set.Name, What: "agents cannot be found by DNS, those of before stay: " + p.srvTrouble.Error(),
			Do: "dig SRV " + p.srv + "   # on this node: each service must be HOST:PORT of an agent, with HOST's first label its name",
		})
	}
}
