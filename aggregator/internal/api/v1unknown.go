package api

import (
	"cmp"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/completeness"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// The reasons why the completeness of a source is unknown, from the least to the most
// that is known.
const (
	noSource    = "no_source"    // no source has sent anything, and no agent is configured
	noData      = "no_data"      // nothing was received from the agent
	noWatermark = "no_watermark" // the source does not report up to when it is complete
	notCounted  = "not_counted"  // the runs of days were not compared with the scheduler
)

// unknownSources lists the sources of which it is unknown how complete the window is.
func (s *Server) unknownSources(view *access.View, agents []store.Cursor, w calendar.Window, now record.Time) ([]v1.CompleteUnknown, error) {
	counters, err := view.Counters()
	if err != nil {
		return nil, err
	}
	complete, heard := map[record.Origin]bool{}, map[string]bool{} // by watermark; by what was received
	for i := range agents {
		a := &agents[i]
		for _, p := range a.Checkpoints {
			complete[p.Source], heard[a.Agent] = false, true
		}
		for _, m := range a.Watermarks {
			complete[m.Source], heard[a.Agent] = true, true
		}
		heard[a.Agent] = heard[a.Agent] || store.IsImport(a.Epoch)
	}
	for _, c := range counters {
		at := slices.IndexFunc(agents, func(a store.Cursor) bool { return a.Agent == c.Source.Agent })
		heard[c.Source.Agent] = true
		if _, known := complete[c.Source]; !known && c.Counts.Pulled > 0 && (at < 0 || !store.IsImport(agents[at].Epoch)) {
			complete[c.Source] = false
		}
	}
	list := []v1.CompleteUnknown{}
	for _, name := range s.expectedAgents(agents) {
		if !heard[name] {
			list = append(list, v1.CompleteUnknown{Source: name, Reason: noData})
		}
	}
	for source, known := range complete {
		if !known {
			list = append(list, v1.CompleteUnknown{Source: source.String(), Reason: noWatermark})
		} else if n := s.uncountedDays(source, w, now); n > 0 {
			list = append(list, v1.CompleteUnknown{Source: source.String(), Reason: notCounted, Days: n})
		}
	}
	slices.SortFunc(list, func(a, b v1.CompleteUnknown) int { return cmp.Compare(a.Source, b.Source) })
	if len(list)+len(complete) == 0 {
		list = append(list, v1.CompleteUnknown{Reason: noSource})
	}
	return list, nil
}

// expectedAgents are the names of the agents that are configured or were pulled from.
func (s *Server) expectedAgents(agents []store.Cursor) (names []string) {
	if s.opt.Configured != nil {
		names = s.opt.Configured()
	}
	for i := range agents {
		names = append(names, agents[i].Agent)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// uncountedDays is how many days of a window should have been counted and were not.
func (s *Server) uncountedDays(source record.Origin, w calendar.Window, now record.Time) (n int64) {
	if s.opt.Days == nil {
		return 0
	}
	due := completeness.Window{From: completeness.Begin(w.From), To: min(completeness.Begin(w.To-1)+aDay, completeness.Due(now))}
	if n = int64((due.To - due.From) / aDay); n <= 0 {
		return 0
	}
	days, _ := s.opt.Days(due)
	for i := range days {
		if days[i].Source == source && days[i].Count.At.Present() {
			n--
		}
	}
	return n
}
