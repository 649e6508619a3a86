package daemon

import (
	"context"
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// actions is the source of what is to be known of actions.
func (d *healthMonitor) actions(_ context.Context, f *health.Facts) {
	list, err := store.With(d.agg.store, func(v *store.View) ([]action.Status, error) { return d.agg.actions.List(v) })
	if err != nil {
		f.Unknown = append(f.Unknown, "the actions cannot be read: "+err.Error())
		return
	}
	for i := range list {
		if list[i].Configured {
			f.Others = append(f.Others, actionFindings(&list[i])...)
		}
	}
}

// reason is what follows a sentence that may have one.
func reason(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// actionFindings are those of one action.
func actionFindings(s *action.Status) (out []health.Finding) {
	name, c := s.Name.String(), &s.Card
	add := func(severity health.Severity, id string, since int64, what, do string) {
		out = append(out, health.Finding{Severity: severity, ID: id, About: name, What: what, Do: do, Since: action.Instant(since)})
	}
	if m := c.Paused; m != nil {
		add(health.Warning, "action-paused", m.At, "action "+name+" was paused by "+m.By+reason(m.Why), "bursar actions plan "+name+"   # then: bursar actions resume "+name)
	}
	if m := c.Disabled; m != nil {
		add(health.Warning, "action-disabled", m.At, fmt.Sprintf("action %s is disabled: %s", name, m.Why), "bursar actions resume "+name+"   # when its plugin is fixed")
	}
	if m := c.Problem; m != nil {
		add(health.Warning, "action-failing", m.At, fmt.Sprintf("action %s cannot be planned: %s", name, m.Why), "bursar actions plan "+name)
	}
	if n := len(c.Doubtful); n > 0 {
		run := c.Doubtful[n-1]
		add(health.Warning, "action-unknown", 0, fmt.Sprintf("action %s has effects with unknown outcome, in run %d", name, run), fmt.Sprintf("bursar actions history %s %d   # then: bursar actions retry or skip", name, run))
	}
	last := s.Last
	if last == nil || last.Ended == 0 {
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
