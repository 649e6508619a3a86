package api

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// v1Distributions is GET /v1/distributions: histograms of the runs that ended in a window.
// It reads each of them, and keeps no more than the bins.
func (s *Server) v1Distributions(w http.ResponseWriter, r *http.Request, view *access.View) error {
	now := s.currentTime()
	q, zone, having, err := s.parseDistributions(r, now)
	if err != nil {
		return err
	}
	known, err := s.completeness(view, *zone.window, now)
	if err != nil {
		return err
	}
	list, runs := newHistograms(), 0
	err = view.Query(r.Context(), q, func(row *columns.Row) error {
		if row.Record.Meta.IsPart() || !firstValues(having, &row.Record) {
			return nil
		}
		runs++
		run := figuresOfRun(&row.Record)
		for i := range list {
			list[i].addRun(&run)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if runs == 0 && !isLenient(r) {
		u := unmatched{s, view, s.derivation(), s.usageOf(view)}
		if err := u.checkFilters(r.Context(), &q, having); err != nil {
			return err
		}
	}
	out := v1.Distributions{Window: v1.Window{From: v1.Stamp(zone.window.From), To: v1.Stamp(zone.window.To)}, Zone: zone.zone.String(), Records: runs, Complete: known.Complete}
	if out.Known, err = s.knownPart(r.Context(), view, *zone.window, zone.zone, q.Meta, now); err != nil {
		return err
	}
	for i := range list {
		out.Histograms = append(out.Histograms, list[i].histogramJSON())
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// zonedWindow is a window by the clock of a zone.
type zonedWindow struct {
	zone   *time.Location
	window *calendar.Window
}

// parseDistributions reads the window, the filters of /v1/records, and conditions on the
// first values of meta keys.
func (s *Server) parseDistributions(r *http.Request, now record.Time) (q store.Query, in zonedWindow, having []sums.Filter, err error) {
	asked, err := decodeQuery[v1.DistributionsQuery](r)
	if err != nil {
		return q, in, nil, err
	}
	if having, err = parseConditions(asked.Where); err != nil {
		return q, in, nil, err
	}
	if in.zone, err = s.parseZone(asked.Zone); err != nil {
		return q, in, nil, err
	}
	if in.window, err = parseNeededWindow(asked.Window, asked.From, asked.To, now, in.zone); err != nil {
		return q, in, nil, err
	}
	filters := recordFilters{RecordID: asked.RecordID, StartTime: asked.StartTime, StopTime: asked.StopTime, Runtime: asked.Runtime, Wait: asked.Wait, Meta: asked.Meta, Component: asked.Component}
	q = filters.storeQuery()
	q.Order, q.Open, q.ReuseRows, q.Limit = store.BySeq, store.OnlyClosed, true, 0
	q.Stop.GTE(int64(in.window.From))
	q.Stop.LT(int64(in.window.To))
	for _, f := range having {
		if slices.ContainsFunc(s.derivation().Keys, func(k usage.Key) bool { return k.Name == f.Key }) {
			return q, in, nil, newRefusal(http.StatusBadRequest, "where[%s]: no record says its %s of itself; filter by a meta key, such as group_id or user_id", f.Key, f.Key)
		}
		if !slices.Contains(f.Values, "") {
			q.Meta = append(q.Meta, store.MetaTest{Key: f.Key, Any: f.Values})
		}
	}
	return q, in, having, nil
}

// firstValues reports whether the first value of each key is one of those that are wanted;
// "" is none.
func firstValues(having []sums.Filter, r *record.Record) bool {
	for _, f := range having {
		first := ""
		if values, _ := r.Values(f.Key); len(values) > 0 {
			first = values[0]
		}
		if !slices.Contains(f.Values, first) {
			return false
		}
	}
	return true
}

// measures of a run; NaN is not known.
type runFigures struct {
	size, wait, runtime, cpu, memory, gpus, gpuMemory float64
}

// leastRun is what a shorter run counts as in the expansion factor, in seconds.
const leastRun = 10

// figuresOfRun are the figures of a run that has ended.
func figuresOfRun(r *record.Record) runFigures {
	nan := math.NaN()
	amount := func(name string, kind record.Kind) float64 {
		for i := range r.Components {
			if c := &r.Components[i]; c.Name == name && c.Kind == kind {
				return float64(c.Amount)
			}
		}
		return nan
	}
	f := runFigures{size: amount("Cores", record.Rate), wait: nan, runtime: nan}
	if r.Submit.Present() && r.Start.Present() && r.Submit <= r.Start {
		f.wait = float64(r.Start-r.Submit) / float64(record.Second)
	}
	if r.Start.Present() && r.Start <= r.Stop {
		f.runtime = float64(r.Stop-r.Start) / float64(record.Second)
	}
	part := func(used, booked float64) float64 {
		if !(booked > 0) {
			return nan
		}
		return used / booked
	}
	f.cpu = part(amount("TotalCPU", record.Total), f.size*f.runtime)
	f.memory = part(amount("MemoryUsed", record.Rate), amount("Memory", record.Rate))
	f.gpus = part(amount("TotalGPU", record.Total), amount("GPUs", record.Rate)*f.runtime)
	f.gpuMemory = part(amount("GPUMemoryUsed", record.Rate), amount("GPUMemory", record.Rate))
	return f
}

// histogram counts runs by one figure.
type histogram struct {
	name, title, unit string
	from              []float64
	of                func(*runFigures) float64
	records           []int
	hours             []float64
	unknown           int
	sum               float64
}

func newHistograms() []histogram {
	var sizes []float64
	for size := 1.0; size <= 1<<16; size *= 2 {
		sizes = append(sizes, size)
	}
	const minute, hour, day = 60, 3600, 86400
	times := []float64{0, 10, minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 4 * hour, 8 * hour, 16 * hour, day, 2 * day, 4 * day, 8 * day}
	parts := []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}
	list := []histogram{
		{name: "size", title: "Job size", from: append([]float64{0}, sizes...), of: func(f *runFigures) float64 { return f.size }},
		{name: "wait", title: "Wait", unit: "second", from: times, of: func(f *runFigures) float64 { return f.wait }},
		{name: "runtime", title: "Run time", unit: "second", from: times, of: func(f *runFigures) float64 { return f.runtime }},
		{name: "expansion", title: "Expansion factor", from: []float64{1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100}, of: func(f *runFigures) float64 {
			run := max(f.runtime, leastRun)
			return (f.wait + run) / run
		}},
		{name: "cpu", title: "CPU efficiency", from: parts, of: func(f *runFigures) float64 { return f.cpu }},
		{name: "memory", title: "Memory efficiency", from: parts, of: func(f *runFigures) float64 { return f.memory }},
		{name: "gpus", title: "GPU efficiency", from: parts, of: func(f *runFigures) float64 { return f.gpus }},
		{name: "gpu_memory", title: "GPU memory efficiency", from: parts, of: func(f *runFigures) float64 { return f.gpuMemory }},
	}
	for i := range list {
		list[i].records, list[i].hours = make([]int, len(list[i].from)), make([]float64, len(list[i].from))
	}
	return list
}

func (h *histogram) addRun(f *runFigures) {
	value := h.of(f)
	if math.IsNaN(value) || value < h.from[0] {
		h.unknown++
		return
	}
	bin := sort.Search(len(h.from), func(i int) bool { return h.from[i] > value }) - 1
	h.records[bin]++
	h.sum += value
	if hours := f.size * f.runtime / 3600; !math.IsNaN(hours) {
		h.hours[bin] += hours
	}
}

func (h *histogram) histogramJSON() v1.Histogram {
	number := func(n float64, digits int) json.Number { return json.Number(strconv.FormatFloat(n, 'f', digits, 64)) }
	out := v1.Histogram{Name: h.name, Title: h.title, Unit: v1.Text(h.unit), Records: h.records, Unknown: h.unknown}
	known := 0
	for i := range h.from {
		out.From, out.CoreHours = append(out.From, number(h.from[i], -1)), append(out.CoreHours, number(h.hours[i], 3))
		known += h.records[i]
	}
	if known > 0 {
		mean := number(h.sum/float64(known), 6)
		out.Mean = &mean
	}
	return out
}
