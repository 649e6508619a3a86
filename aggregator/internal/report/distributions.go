package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// distributionsEntry is how jobs are distributed.
func distributionsEntry() Entry {
	period := periodParam()
	period.Most, period.Default = 1, []string{"30d"}
	period.About = "The time in which the jobs ended, such as 30d, last-month or 2026-03."
	return Entry{
		Report: v1.Report{
			Name: "distributions", Title: "Distributions", About: "Job size, wait, run time, expansion factor and efficiency as histograms; load and wait by weekday and hour; the queue.",
			Parameters: []Param{period, whereParam(), zoneParam()},
		},
		Long: `How the jobs that ended in a period are distributed: by size, wait, run time, expansion
factor, and by what they used of their cores, memory and GPUs, where records say so; the
mean load and the mean wait by weekday and hour; and how many jobs ran and waited.`,
		Example: "  bursar report distributions -o distributions.html\n  bursar report distributions -where group_id=atlas -period last-month",
		make:    reportDistributions,
	}
}

// DistributionsAsked is what the report of distributions asks of /v1 at a time; without a period of
// the usual one.
func DistributionsAsked(period string, now time.Time, zone *time.Location, where map[string]string) *v1.DistributionsQuery {
	q := &v1.DistributionsQuery{Zone: zone.String(), Where: where}
	q.Window, q.From, _ = wholeWindow(cmp.Or(period, "30d"), now, zone)
	return q
}

func reportDistributions(ctx context.Context, r v1.API, q Query) (*Document, error) {
	zoneName := q.One("zone")
	zone, err := clockOf(ctx, r, &zoneName)
	if err != nil {
		return nil, fmt.Errorf("report distributions: %w", err)
	}
	period, where := q.One("period"), q.Pairs("where")
	a, err := r.Distributions(ctx, DistributionsAsked(period, q.Now, zone, where))
	if err != nil {
		return nil, fmt.Errorf("report distributions of %s: %w", period, err)
	}
	d := &Document{Format: Format, Report: "distributions", Title: "Distributions", Subject: subjectText(where), Made: v1.Time{Time: q.Now.UTC()}, Zone: zone.String()}
	in := span{a.Window.From.Time, a.Window.To.Time}
	if a.Records == 0 {
		n := absent{of: "report distributions", where: where, zone: zoneName, periods: []string{period}, begin: in.From}
		return nil, n.explainAbsence(ctx, r)
	}
	d.Periods = []Period{in.namedPeriod(period, zone)}
	d.Notes = view.Of(d.Periods[0].Name, append(view.SpanNotes(a.Known, a.Window.From, a.Window.To, d.Zone), view.CompleteNotes(&a.Complete, d.Zone)...))
	for i := range a.Histograms {
		h := &a.Histograms[i]
		if t := histogramTable(h, a.Records); t != nil {
			d.Add(*t)
		}
		if h.Unknown > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: not known of %d of %d jobs, which are in no bar.", h.Title, h.Unknown, a.Records))
		}
	}
	d.Notes = append(d.Notes, "The jobs are those that ended in the period. The expansion factor is (wait + run time) ÷ run time; a run below 10 seconds counts as one of 10 seconds.")
	if err := byHour(ctx, r, d, v1.UsageQuery{Unit: "hour", Zone: zoneName, Where: where}, in, zone); err != nil {
		return nil, fmt.Errorf("report distributions: %w", err)
	}
	return d, d.Check()
}

// histogramTable is the table of a figure; nil where it is known of no job.
func histogramTable(h *v1.Histogram, records int) *Table {
	if h.Unknown == records {
		return nil
	}
	t := &Table{
		Name: h.Name, Title: h.Title,
		Columns: []Column{
			{Name: "bin", Title: h.Title, Kind: Text}, {Name: "jobs", Title: "Jobs", Kind: Number, Unit: "jobs"}, {Name: "share", Title: "Share", Kind: Share},
			{Name: "cumulative", Title: "Up to here", Kind: Share}, {Name: "core_hours", Title: "Used", Kind: Number, Unit: "core-hours"},
		},
		Chart: &Chart{Kind: Columns, Label: "bin", Values: []string{"jobs"}},
	}
	if h.Mean != nil {
		t.Title += ", mean " + binEdge(h, *h.Mean)
	}
	t.Title += ", " + percentileText(h, records-h.Unknown, 50, "half") + ", " + percentileText(h, records-h.Unknown, 90, "90\u202f%")
	first, last := shownBins(h)
	known, upTo := big.NewRat(int64(records-h.Unknown), 1), new(big.Rat)
	for i := first; i <= last; i++ {
		n := new(big.Rat).SetInt64(int64(h.Records[i]))
		upTo = new(big.Rat).Add(upTo, n)
		t.Rows = append(t.Rows, []Cell{v1.Words(binName(h, i)), v1.Rat(n), Quotient(n, known), Quotient(upTo, known), v1.Figure(&h.CoreHours[i])})
	}
	return t
}

// shownBins are the first and the last bin of a table: those without jobs at both ends say nothing.
func shownBins(h *v1.Histogram) (first, last int) {
	first = max(slices.IndexFunc(h.Records, func(n int) bool { return n > 0 }), 0)
	for i, n := range h.Records {
		if n > 0 {
			last = i
		}
	}
	return first, last
}

// ShownBins are the bounds of the bins that a table of the report has, with the end of the last one
// where it has one; nil without the table.
func ShownBins(a *v1.Distributions, name string) []json.Number {
	i := slices.IndexFunc(a.Histograms, func(h v1.Histogram) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	first, last := shownBins(&a.Histograms[i])
	return a.Histograms[i].From[first:min(last+2, len(a.Histograms[i].From))]
}

// percentileText says below which edge of a bin at least so many per cent of the known jobs are,
// which are called share; and where they reach into the last bin, which has no end, that fewer
// are below its beginning.
func percentileText(h *v1.Histogram, known, percent int, share string) string {
	upTo, last := 0, len(h.From)-1
	for i := range last {
		if upTo += h.Records[i]; upTo*100 >= known*percent {
			return share + " below " + binEdge(h, h.From[i+1])
		}
	}
	return "less than " + share + " below " + binEdge(h, h.From[last])
}

// binName is what a bin is called.
func binName(h *v1.Histogram, i int) string {
	from := binEdge(h, h.From[i])
	if h.Name == "size" && i+1 < len(h.From) {
		to := new(big.Rat).Sub(v1.Rational(h.From[i+1].String()), big.NewRat(1, 1))
		if last := to.RatString(); last != from {
			return from + "–" + last
		}
		return from
	}
	if i+1 == len(h.From) {
		return "from " + from
	}
	return from + "–" + binEdge(h, h.From[i+1])
}

// binEdge is a value of a histogram for the eye.
func binEdge(h *v1.Histogram, n json.Number) string {
	value := v1.Rational(n.String())
	f, _ := value.Float64()
	switch {
	case h.Name == "cpu" || h.Name == "memory" || h.Name == "gpus" || h.Name == "gpu_memory":
		return v1.Show(Number, v1.Rat(new(big.Rat).SetInt64(int64(f*100+0.5)))) + "\u202f%"
	case h.Unit != "second":
		return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64)
	case f < 60:
		return formatTenth(f) + "\u202fs"
	case f < 3600:
		return formatTenth(f/60) + "\u202fmin"
	case f < 48*3600 && f != 24*3600:
		return formatTenth(f/3600) + "\u202fh"
	}
	return formatTenth(f/86400) + "\u202fd"
}

// mostDays is how many days are asked for by hour at once, beside the last one.
const mostDays = 100

// byHour adds the tables by weekday and hour, and the queue.
func byHour(ctx context.Context, r v1.API, d *Document, q v1.UsageQuery, in span, zone *time.Location) error {
	from, to := intervalStart(in.From.In(zone), "hour"), intervalStart(in.To.In(zone), "hour")
	if first := intervalStart(to.AddDate(0, 0, -mostDays), "day"); from.Before(first) {
		from = first
		d.Notes = append(d.Notes, "Load and wait by weekday and hour, and the queue, are of the last 100 days of the period.")
	}
	if !to.After(from) {
		return nil
	}
	q.From, q.To, q.Bucket = from.Format(time.RFC3339), to.Format(time.RFC3339), "hour"
	q.Measure = "Cores,wait,started,queued,running" // one reading of the jobs
	a, err := askUsage(ctx, r, q)
	cores := err == nil
	if hasStatus(err, http.StatusBadRequest) { // what no job has is refused
		q.Measure = "wait,started,queued,running"
		a, err = askUsage(ctx, r, q)
	}
	if err != nil {
		return err
	}
	if cores {
		d.Add(weekHeatmap(a, "load", "Mean load by weekday and hour", "cores in use", zone, func(b int) (sum, n *big.Rat) {
			return v1.Figure(valueAt(a, "Cores", b)).Number(), big.NewRat(1, 1)
		}))
	}
	d.Add(weekHeatmap(a, "waits", "Mean wait by weekday and hour of start", "minutes", zone, func(b int) (sum, n *big.Rat) {
		mean, jobs := inMinutes(a.Find("wait"), v1.Figure(valueAt(a, "wait", b)).Number()), v1.Figure(valueAt(a, "started", b)).Number()
		if mean == nil || jobs == nil {
			return nil, nil
		}
		return new(big.Rat).Mul(mean, jobs), jobs
	}))
	d.Add(queueTable(a))
	d.Notes = append(d.Notes, "Queue: jobs that have not started yet are not known, so the last hours are too low.")
	return nil
}

// valueAt is the value of a measure in an interval; nil where it is not known.
func valueAt(a *v1.Usage, name string, b int) *json.Number {
	if m := a.Find(name); m != nil && b < len(m.Values) {
		return m.Values[b]
	}
	return nil
}

// weekHeatmap has a row for each day of the week and a column for each hour. An hour of which a part
// is unknown does not count.
func weekHeatmap(a *v1.Usage, name, title, unit string, zone *time.Location, of func(b int) (sum, n *big.Rat)) Table {
	var sums, counts [7][24]*big.Rat
	for b := range len(a.Edges) - 1 {
		at := a.Edges[b].In(zone)
		day, hour := (int(at.Weekday())+6)%7, at.Hour()
		sum, n := of(b)
		if sum == nil || n == nil || coveredLength(a, b) < a.Edges[b+1].Sub(a.Edges[b].Time) {
			continue
		}
		if sums[day][hour] == nil {
			sums[day][hour], counts[day][hour] = new(big.Rat), new(big.Rat)
		}
		sums[day][hour].Add(sums[day][hour], sum)
		counts[day][hour].Add(counts[day][hour], n)
	}
	t := Table{Name: name, Title: title, Columns: []Column{{Name: "day", Title: "Day", Kind: Text}}, Chart: &Chart{Kind: Heat, Label: "day"}}
	for hour := range 24 {
		column := fmt.Sprintf("%02d", hour)
		t.Columns = append(t.Columns, Column{Name: column, Title: column, Kind: Number, Unit: unit})
		t.Chart.Values = append(t.Chart.Values, column)
	}
	for day := range 7 {
		row := []Cell{v1.Words(time.Weekday((day + 1) % 7).String())}
		for hour := range 24 {
			row = append(row, Quotient(sums[day][hour], counts[day][hour]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// queueTable has how many jobs ran and waited, on average of each day.
func queueTable(a *v1.Usage) Table {
	t := Table{
		Name: "queue", Title: "Jobs that ran and waited, on average of each day", Columns: []Column{{Name: "day", Title: "Day", Kind: Text}},
		Chart: &Chart{Kind: Line, Label: "day"},
	}
	days, rows := map[string]int{}, [][2][2]*big.Rat{}
	for b := range len(a.Edges) - 1 {
		label, _, _ := strings.Cut(a.Labels[b], "T")
		if _, is := days[label]; !is {
			days[label] = len(rows)
			rows = append(rows, [2][2]*big.Rat{{new(big.Rat), new(big.Rat)}, {new(big.Rat), new(big.Rat)}})
			t.Rows = append(t.Rows, []Cell{v1.Words(label)})
		}
		for k, name := range []string{"running", "queued"} {
			if n := v1.Figure(valueAt(a, name, b)).Number(); n != nil {
				sum := &rows[days[label]][k]
				sum[0].Add(sum[0], n)
				sum[1].Add(sum[1], big.NewRat(1, 1))
			}
		}
	}
	for k, title := range []string{"Running", "Waiting"} {
		t.Columns = append(t.Columns, Column{Name: title, Title: title, Kind: Number, Unit: "jobs"})
		t.Chart.Values = append(t.Chart.Values, title)
		for i := range rows {
			t.Rows[i] = append(t.Rows[i], Quotient(rows[i][k][0], rows[i][k][1]))
		}
	}
	return t
}
