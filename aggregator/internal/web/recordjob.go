package web

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// jobPart is what the page of a record says of the job: its figures, and the other runs of
// it and of its array.
type jobPart struct {
	Waited  string
	Figures []tile // values with what they are
	Runs    []sibling
	From    time.Time // of the timeline
	To      time.Time
	More    bool // there are more runs than are shown
	Looked  int  // how many runs of the user were looked at, where that was not all of the month
	Lacks   string
}

// sibling is a run in the timeline: where its waiting and its running begin and how long
// they are, in per cent of the timeline.
type sibling struct {
	ID, State           string
	This, Open          bool
	Waited, Ran         string
	WaitAt, WaitLong    string
	RunAt, RunLong      string
	submit, start, stop time.Time
}

// Bounds of the timeline.
const (
	siblingsShown   = 60
	siblingsScanned = 20_000
	siblingsReach   = 31 * 24 * time.Hour
)

// jobOf names the job that a run is of. Sources add to its name the task of an array and, of
// a later run, the ten digits of the time of its submission. It is "" where the name does
// not end so.
func jobOf(id string) string {
	digits := func(s string) bool {
		return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c < '0' || c > '9' })
	}
	ends := func(s string) bool { return s != "" && digits(s[len(s)-1:]) }
	if i := strings.LastIndexByte(id, '-'); i > 0 && len(id)-i == 11 && digits(id[i+1:]) && ends(id[:i]) {
		id = id[:i]
	}
	if i := strings.LastIndexAny(id, "_."); i > 0 && digits(id[i+1:]) && ends(id[:i]) {
		id = id[:i]
	}
	if !ends(id) {
		return ""
	}
	return id
}

// describeJob says of a record what /v1 says of its job.
func (p *Pages) describeJob(ctx context.Context, r *v1.FullRecord, user string) jobPart {
	var j jobPart
	start, stop := r.StartTime.Time, r.StopTime.Time
	if submit := r.SubmitTime; !submit.IsZero() && !submit.After(start) {
		j.Waited = view.Span(start.Sub(submit.Time))
	}
	if stop.IsZero() {
		stop = p.currentTime()
	}
	if stop.After(start) {
		j.Figures, j.Lacks = p.jobFigures(ctx, r.RecordID, start, stop)
	}
	if stem := jobOf(r.RecordID); stem != "" && user != "" {
		if err := p.findSiblings(ctx, &j, r.RecordID, stem, user, start); err != nil {
			j.Lacks = p.lackText(ctx, err)
		}
	}
	return j
}

// jobFigures are what a run used, and what that cost.
func (p *Pages) jobFigures(ctx context.Context, id string, start, stop time.Time) (list []tile, lacks string) {
	q := v1.UsageQuery{From: start.Format(time.RFC3339Nano), To: stop.Format(time.RFC3339Nano), RecordID: id, Unit: "hour"}
	used, err := p.askUsage(ctx, &q)
	if err != nil {
		return nil, p.lackText(ctx, err)
	}
	add := func(label, kind string, n *big.Rat, unit string) {
		if n != nil {
			value := v1.ShowIn(kind, unit, v1.Rat(n))
			if unit != "" {
				value += "\u202f" + unit
			}
			list = append(list, tile{Label: label, Value: value, Exact: v1.Rat(n).String(), Href: map[string]string{report.Money: "/ui/prices"}[kind]})
		}
	}
	sum := func(a *v1.Usage, name string) *big.Rat {
		if m := a.Find(name); m != nil {
			return v1.Figure(m.Total).Number()
		}
		return nil
	}
	part := func(label string, used, booked *big.Rat) {
		if used != nil && booked != nil && booked.Sign() > 0 {
			add(label, report.Ratio, new(big.Rat).Quo(used, booked), "")
		}
	}
	hours := func(seconds *big.Rat) *big.Rat {
		if seconds == nil {
			return nil
		}
		return new(big.Rat).Quo(seconds, big.NewRat(3600, 1))
	}
	cores, gpus := sum(used, "Cores"), sum(used, "GPUs")
	add("Used", report.Number, cores, "core-hours")
	add("GPUs used", report.Number, gpus, "GPU-hours")
	part("CPU efficiency", hours(sum(used, "TotalCPU")), cores)
	part("Memory efficiency", sum(used, "MemoryUsed"), sum(used, "Memory"))
	part("GPU efficiency", hours(sum(used, "TotalGPU")), gpus)
	part("GPU memory efficiency", sum(used, "GPUMemoryUsed"), sum(used, "GPUMemory"))
	for _, m := range []struct{ name, label, kind string }{{"cost", "Cost", report.Money}, {"energy", "Energy", report.Number}, {"co2", "CO2", report.Number}} {
		isEnergy := m.kind == report.Number
		if q.Measure = m.name; isEnergy {
			q.Measure = v1.JoinList(m.name, m.name+"_measured", m.name+"_modelled")
		}
		if a, err := p.askUsage(ctx, &q); err == nil {
			if known := a.Find(m.name); known != nil {
				if isEnergy {
					m.label += " (" + v1.EnergyWay(sum(a, m.name), sum(a, m.name+"_measured"), sum(a, m.name+"_modelled")) + ")"
				}
				add(m.label, m.kind, v1.Figure(known.Total).Number(), unitText(known))
				if isEnergy && known.Total == nil {
					list = append(list, tile{Label: m.label, Value: "–"})
				}
			}
		} else if !refusedAsBad(err) {
			lacks = p.lackText(ctx, err)
		}
	}
	return list, lacks
}

// findSiblings finds the other runs of the job and of its array among those of the user that
// began within a month of it, as far as the reader sees them; of very many the nearest.
func (p *Pages) findSiblings(ctx context.Context, j *jobPart, id, stem, user string, start time.Time) error {
	for _, q := range []v1.ListRecordsQuery{
		{SortBy: v1.SortBy{Desc: "start_time"}, StartTime: v1.TimeTest{Gte: v1.Time{Time: start.Add(-siblingsReach)}, Lt: v1.Time{Time: start}}},
		{SortBy: v1.SortBy{Asc: "start_time"}, StartTime: v1.TimeTest{Gte: v1.Time{Time: start}, Lt: v1.Time{Time: start.Add(siblingsReach)}}},
	} {
		q.Meta, q.Limit = map[string]v1.MetaTest{p.ownKeys().User: {C: []string{user}}}, siblingsScanned/2
		looked := 0
		for r, err := range p.V1.ListRecordsLines(ctx, &q) {
			if err != nil {
				return fmt.Errorf("the other runs of %s: %w", stem, err)
			}
			if looked++; jobOf(r.RecordID) == stem {
				j.Runs = append(j.Runs, p.siblingOf(&r, id))
			}
		}
		if looked == siblingsScanned/2 {
			j.Looked = siblingsScanned
		}
	}
	if len(j.Runs) < 2 && j.Looked == 0 {
		j.Runs = nil
		return nil
	}
	slices.SortStableFunc(j.Runs, func(a, b sibling) int { return a.start.Compare(b.start) })
	if at := slices.IndexFunc(j.Runs, func(s sibling) bool { return s.This }); len(j.Runs) > siblingsShown {
		from := min(max(at-siblingsShown/2, 0), len(j.Runs)-siblingsShown)
		j.Runs, j.More = j.Runs[from:from+siblingsShown], true
	}
	j.placeRuns()
	return nil
}

func (p *Pages) siblingOf(r *v1.FullRecord, this string) sibling {
	s := sibling{ID: r.RecordID, State: string(r.State), This: r.RecordID == this, submit: r.SubmitTime.Time, start: r.StartTime.Time, stop: r.StopTime.Time}
	if s.submit.IsZero() || s.submit.After(s.start) {
		s.submit = s.start
	}
	if s.Open = s.stop.IsZero(); s.Open {
		s.stop = p.currentTime()
	}
	return s
}

// placeRuns places the runs on the timeline.
func (j *jobPart) placeRuns() {
	for i, s := range j.Runs {
		if i == 0 || s.submit.Before(j.From) {
			j.From = s.submit
		}
		if s.stop.After(j.To) {
			j.To = s.stop
		}
	}
	long := max(j.To.Sub(j.From), time.Second)
	part := func(d time.Duration) string { return fmt.Sprintf("%.2f", 100*float64(max(d, 0))/float64(long)) }
	for i := range j.Runs {
		s := &j.Runs[i]
		s.WaitAt, s.WaitLong = part(s.submit.Sub(j.From)), part(s.start.Sub(s.submit))
		s.RunAt, s.RunLong = part(s.start.Sub(j.From)), part(max(s.stop.Sub(s.start), long/200))
		s.Waited, s.Ran = view.Span(s.start.Sub(s.submit)), view.Span(max(s.stop.Sub(s.start), 0))
	}
}
