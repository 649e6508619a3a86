package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/alerts"
)

// addActionFacts is the source of what is to be known of actions.
func (d *healthMonitor) addActionFacts(_ context.Context, f *health.Facts) {
	found, err := store.With(d.agg.store, func(v *store.View) (out []health.Finding, err error) {
		list, err := d.agg.actions.List(v)
		if err != nil {
			return nil, err
		}
		for i := range list {
			s := &list[i]
			if !s.Configured {
				continue
			}
			out = append(out, actionFindings(s)...)
			retried, err := d.agg.actions.Retried(v, s)
			if err != nil {
				return nil, err
			}
			out = append(out, retryFindings(s.Name.String(), s.Current, retried)...)
			if s.Name.Type != alertType {
				continue
			}
			kept, err := d.agg.actions.Kept(v, s.Name)
			if err != nil {
				return nil, err
			}
			state, err := alerts.Read(kept)
			if err != nil {
				return nil, err
			}
			out = append(out, alertFindings(s.Name.String(), state)...)
		}
		return out, nil
	})
	if err != nil {
		f.Unknown = append(f.Unknown, "the actions cannot be read: "+err.Error())
	}
	f.Others = append(f.Others, found...)
}

// alertType is the type of the actions that watch rules.
const alertType = "alert"

// alertFindings are those of the state of an action that watches rules: which receivers take
// nothing, and which rules cannot be evaluated.
func alertFindings(name string, state *alerts.State) (out []health.Finding) {
	failing := slices.DeleteFunc(slices.Sorted(maps.Keys(state.Receivers)), func(r string) bool { return state.Receivers[r].Problem == "" })
	if n := len(failing); n > 0 {
		r := state.Receivers[failing[0]]
		out = append(out, health.Finding{
			Severity: health.Warning, ID: "alert-undelivered", About: name, Since: r.Failing, Do: "bursar alerts list",
			What:   fmt.Sprintf("%s cannot tell %d of %d receivers; %s: %s", name, n, len(state.Receivers), failing[0], r.Problem),
			Public: fmt.Sprintf("%s cannot tell %d of %d receivers", name, n, len(state.Receivers)),
		})
	}
	if n := len(state.Problems); n > 0 {
		p := &state.Problems[0]
		out = append(out, health.Finding{
			Severity: health.Warning, ID: "alert-rule", About: name, Since: p.Since, Do: "bursar alerts list",
			What:   fmt.Sprintf("%s cannot evaluate %d of its rules; %s: %s", name, n, p.Rule, p.Why),
			Public: fmt.Sprintf("%s cannot evaluate %d of its rules", name, n),
		})
	}
	return out
}

// retryFindings are those of the effects of a run that are tried again and again.
func retryFindings(name string, run *action.Run, retried []action.Effect) []health.Finding {
	if len(retried) == 0 {
		return nil
	}
	e := &retried[0]
	since := e.First
	for i := range retried {
		since = min(since, retried[i].First)
	}
	public := fmt.Sprintf("action %s retries %d of %d effects of run %d", name, len(retried), run.Effects, run.Number)
	return []health.Finding{{
		Severity: health.Warning, ID: "action-retrying", About: name, Since: action.Instant(since), Do: fmt.Sprintf("bursar actions history %s %d", name, run.Number),
		What: fmt.Sprintf("%s; %s: %s", public, e.Name, e.Answered()), Public: public,
	}}
}

// reasonSuffix is what follows a sentence that may have one.
func reasonSuffix(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// actionFindings are those of one action.
func actionFindings(s *action.Status) (out []health.Finding) {
	name, c := s.Name.String(), &s.Stored
	add := func(severity health.Severity, id string, since int64, what, do string) {
		out = append(out, health.Finding{Severity: severity, ID: id, About: name, What: what, Do: do, Since: action.Instant(since)})
	}
	fails := func(id string, m *action.Mark, public, do string) {
		add(health.Warning, id, m.At, public+reasonSuffix(m.Why), do)
		out[len(out)-1].Public = public
	}
	if m := c.Paused; m != nil {
		add(health.Warning, "action-paused", m.At, "action "+name+" was paused by "+m.By+reasonSuffix(m.Why), "bursar actions plan "+name+"   # then: bursar actions resume "+name)
	}
	if m := c.Disabled; m != nil {
		fails("action-disabled", m, "action "+name+" is disabled", "bursar actions resume "+name+"   # when its plugin is fixed")
	}
	if m := c.Problem; m != nil {
		fails("action-failing", m, "action "+name+" cannot be planned", "bursar actions plan "+name)
	}
	if n := len(c.Doubtful); n > 0 {
		run := c.Doubtful[n-1]
		add(health.Warning, "action-unknown", 0, fmt.Sprintf("action %s has effects with unknown outcome, in run %d", name, run), fmt.Sprintf("bursar actions history %s %d   # then: bursar actions retry or skip", name, run))
	}
	last := s.Last
	if last == nil || last.Ended == 0 || s.Name.Type == alertType { // whose state says more, and for longer
		return out
	}
	if last.Counts.Rejected > 0 {
		add(health.Warning, "action-rejected", last.Ended, fmt.Sprintf("effects of action %s were rejected in run %d, and trying again is of no use: %d", name, last.Number, last.Counts.Rejected), fmt.Sprintf("bursar actions history %s %d", name, last.Number))
	}
	if last.Partial {
		add(health.Notice, "action-partial", last.Planned, fmt.Sprintf("something was missing from run %d of action %s", last.Number, name), fmt.Sprintf("bursar actions history %s %d", name, last.Number))
	}
	return out
}
