package report

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// SummaryOptions say what a summary is of.
type SummaryOptions struct {
	Periods []string          // as in UsageOptions
	Zone    string            // of days and months; "": the site's
	By      []string          // keys of which each tuple is a line; none: groups and users
	Measure []string          // none: all components
	Where   map[string]string // of whom it is; empty: of all
	Bucket  string            // of the course: day, week or month; "": day
	Top     int               // the lines at most, and one of the others; 0: all
	Keys    Keys
	Now     time.Time
}

// summaryEntry is the report summary in the catalogue.
func summaryEntry() Entry {
	by := listParam("by", "Group by", "The keys whose tuples are the lines.", "group_id", "user_id", "namespace", "project", "job")
	by.Default = []string{"group_id", "user_id"}
	return Entry{
		Report: v1.Report{Name: "summary", Title: "Daily summary", About: "Resources of each group and user day by day, jobs running and waiting, with names from the directory.", Parameters: []Param{
			periodParam(), by,
			listParam("measure", "Measures", "The measures and components; without them the records and all components.", "Cores", "Memory", "GPUs", "cost"),
			choiceParam("bucket", "Course by", "How fine the course of the first period is.", "day", "week", "month"),
			whereParam(), topParam(100), zoneParam(),
		}},
		Long: `Resources of each group and user in two periods side by side, and day by day in the
first one: cores, GPUs by model, memory, disk and other components as time-weighted
averages of each day, and how many jobs ran and waited. Names, addresses and projects
of users come from the directory.`,
		Example: "  bursar report summary\n  bursar report summary -period 2026-10-01..2026-10-07 -by namespace,user_id -o week.html\n" +
			"  bursar report summary -period last-month -where group_id=imagine -format csv",
		whole: true,
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			return Summary(ctx, r, SummaryOptions{
				Periods: q.All("period"), Zone: q.One("zone"), By: q.All("by"), Measure: q.All("measure"),
				Bucket: q.One("bucket"), Where: q.Pairs("where"), Top: q.Number("top"), Now: q.Now, Keys: q.Keys,
			})
		},
	}
}

// The measures and keys that a summary has of its own.
const (
	levelRunning = "running"
	levelQueued  = "queued"
	allGPUs      = "GPUs"
	modelKey     = "gpu_model"
)

// Summary says what each group and user had, day by day: in hours over each period,
// and for the first period what was in use in the mean of each day, with how many runs
// went on and waited. Who the users are comes from the directory. It is what
// ai4-accounting's summaries are, weighted with time and exact.
func Summary(ctx context.Context, r v1.API, o SummaryOptions) (*Document, error) {
	o.setDefaults()
	zone, err := clockOf(ctx, r, &o.Zone)
	if err != nil {
		return nil, fmt.Errorf("report summary: %w", err)
	}
	s := &summary{o: o, r: r}
	if s.people, err = askDirectory(ctx, r); err != nil {
		return nil, fmt.Errorf("report summary: %w", err)
	}
	d := &Document{Format: Format, Report: "summary", Title: "Summary by " + strings.Join(o.By, " and "), Subject: subjectText(o.Where), Made: v1.Time{Time: o.Now.UTC()}, Zone: zone.String()}
	for i, window := range o.Periods {
		a, err := s.queryPeriod(ctx, window, i == 0)
		if err != nil {
			return nil, err
		}
		s.answers = append(s.answers, a)
		p := windowOf(a).namedPeriod(window, zone)
		d.Periods = append(d.Periods, p)
		d.Notes = append(d.Notes, usageNotes(a, p.Name, "second")...)
	}
	n := absent{of: "report summary", where: o.Where, zone: o.Zone, periods: o.Periods}
	if err := n.checkAnswers(ctx, r, s.answers); err != nil {
		return nil, err
	}
	s.periods = d.Periods
	tables, err := s.buildTables(ctx)
	if err != nil {
		return nil, err
	}
	d.Add(tables...)
	d.Notes = append(d.Notes, s.notes...)
	if s.people.note != "" {
		d.Notes = append(d.Notes, s.people.note)
	}
	d.Notes = append(d.Notes, "By "+o.Bucket+" is what was in use, was running and was waiting in the mean of the "+o.Bucket+", by the time that it took; what is waiting and has never started is not known.")
	return d, d.Check()
}

func (o *SummaryOptions) setDefaults() {
	o.Periods, o.Keys = DefaultPeriods(o.Periods), o.Keys.Whole()
	if len(o.By) == 0 {
		o.By = []string{o.Keys.Group, o.Keys.User}
	}
	if o.Bucket == "" {
		o.Bucket = "day"
	}
}

// summary is a summary in the making.
type summary struct {
	o       SummaryOptions
	r       v1.API
	people  *directory
	periods []Period
	answers []*v1.Usage
	notes   []string
}

func (s *summary) queryWindow(ctx context.Context, window string, q v1.UsageQuery) (*v1.Usage, error) {
	q.Window, q.Zone, q.Where = window, s.o.Zone, s.o.Where
	a, err := askUsage(ctx, s.r, q)
	if err != nil {
		return nil, fmt.Errorf("report summary of %s: %w", window, err)
	}
	return a, nil
}

// queryPeriod asks for all that a period needs; of the first one also its course.
func (s *summary) queryPeriod(ctx context.Context, window string, course bool) (*v1.Usage, error) {
	measure := slices.Clone(s.o.Measure)
	if len(measure) == 0 {
		all, err := s.queryWindow(ctx, window, v1.UsageQuery{})
		if err != nil {
			return nil, err
		}
		for i := range all.Measures {
			if name := all.Measures[i].Name; all.Measures[i].Kind != "weighted" {
				measure = append(measure, name)
			}
		}
	}
	for _, level := range []string{levelRunning, levelQueued} {
		if !slices.Contains(measure, level) {
			measure = append(measure, level)
		}
	}
	q := v1.UsageQuery{By: v1.JoinList(s.o.By...), Measure: v1.JoinList(measure...)}
	if course {
		q.Bucket = s.o.Bucket
	}
	if s.o.Top > 0 {
		q.Top, q.Order = s.o.Top, orderMeasure(measure)
	}
	return s.queryWindow(ctx, window, q)
}

// orderMeasure is the measure by which lines are the largest: Cores, or the first that is no
// count.
func orderMeasure(measure []string) string {
	if slices.Contains(measure, "Cores") {
		return "Cores"
	}
	for _, m := range measure {
		if m != "records" && m != "jobs" && m != levelRunning && m != levelQueued {
			return m
		}
	}
	return measure[0]
}

// buildTables makes those of the periods side by side, of the models of GPUs, and of the course of
// the first period, whole and line by line.
func (s *summary) buildTables(ctx context.Context) ([]Table, error) {
	list := []Table{s.sideBySide("summary", "By "+strings.Join(s.o.By, " and "), s.answers)}
	models, err := s.gpuModels(ctx)
	if err != nil {
		return nil, err
	}
	if models != nil {
		list = append(list, *models)
	}
	course, err := s.buildCourse(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range []Table{course, s.dailyTable(mostDaily)} {
		if len(t.Rows) > 0 {
			list = append(list, t)
		}
	}
	return list, nil
}

// sideBySide puts the answers side by side: a line for each tuple of values.
func (s *summary) sideBySide(name, title string, answers []*v1.Usage) Table {
	keys := answers[0].By
	t := Table{Name: name, Title: title, Columns: keyColumns(keys)}
	who := s.newPersonColumns(keys, answers)
	t.Columns = append(t.Columns, who.columns...)
	first := len(t.Columns)
	lines, totals := map[string][]Cell{}, make([]Cell, first)
	var order []string
	for p, a := range answers {
		for i := range a.Measures {
			m := &a.Measures[i]
			c := Column{Name: m.Name, Title: m.Name, Kind: view.MeasureKind(m), Unit: hourlyUnit(m), Period: p + 1}
			if len(answers) > 1 {
				c.Name = m.Name + " " + s.periods[p].Name
			}
			if t.columnIndex(c.Name) >= 0 { // both periods are the same, or a key is called so
				c.Name += " again"
			}
			t.Columns = append(t.Columns, c)
			totals = append(totals, inHours(m, m.Total))
		}
		for g := range a.Groups {
			id := groupID(&a.Groups[g])
			row, ok := lines[id]
			if !ok {
				order = append(order, id)
				row = append(groupCells(&a.Groups[g], len(keys)), who.personCells(&a.Groups[g])...)
			}
			row = append(row, make([]Cell, len(t.Columns)-len(a.Measures)-len(row))...)
			for i := range a.Measures {
				row = append(row, inHours(&a.Measures[i], view.At(a.Measures[i].Totals, g)))
			}
			lines[id] = row
		}
	}
	for _, id := range order {
		t.Rows = append(t.Rows, append(lines[id], make([]Cell, len(t.Columns)-len(lines[id]))...))
	}
	if len(t.Rows) > 1 {
		t.Totals = totals
		t.Totals[0] = v1.Words("Total")
	}
	t.sortDescending(first)
	return t
}

// sortDescending puts the largest first, by the first column that has a unit.
func (t *Table) sortDescending(from int) {
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Kind != Text && c.Unit != "" })
	if at < 0 {
		at = from
	}
	if at >= len(t.Columns) {
		return
	}
	if from == 1 {
		t.Chart = &Chart{Kind: Bars, Label: t.Columns[0].Name, Values: t.sameTitleColumns(at)}
	}
	slices.SortStableFunc(t.Rows, func(a, b []Cell) int {
		if x, y := view.IsOthers(a[0].String()), view.IsOthers(b[0].String()); x != y {
			return map[bool]int{true: 1, false: -1}[x]
		}
		return compareCells(b[at], a[at])
	})
}

// sameTitleColumns are the columns with the title of one.
func (t *Table) sameTitleColumns(at int) (names []string) {
	for i := range t.Columns {
		if t.Columns[i].Kind != Text && t.Columns[i].Title == t.Columns[at].Title {
			names = append(names, t.Columns[i].Name)
		}
	}
	return names
}

// gpuModels is the use of GPUs by their model; nil where no record names one.
func (s *summary) gpuModels(ctx context.Context) (*Table, error) {
	if slices.Contains(s.o.By, modelKey) {
		return nil, nil //nolint:nilnil // no table is a good answer
	}
	var answers []*v1.Usage
	found := false
	for p, window := range s.o.Periods {
		if !slices.ContainsFunc(s.answers[p].Measures, func(m v1.Measure) bool { return m.Name == allGPUs }) {
			answers = append(answers, &v1.Usage{UsageAbout: v1.UsageAbout{By: append(slices.Clone(s.o.By), modelKey)}})
			continue
		}
		a, err := s.queryWindow(ctx, window, v1.UsageQuery{By: v1.JoinList(append(slices.Clone(s.o.By), modelKey)...), Measure: allGPUs})
		if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusBadRequest {
			return nil, nil //nolint:nilnil // no record has the key
		}
		if err != nil {
			return nil, err
		}
		answers, found = append(answers, a), found || len(a.Groups) > 0
	}
	if !found {
		return nil, nil //nolint:nilnil // nobody used any
	}
	t := s.sideBySide("gpus", "GPUs by model", answers)
	return &t, nil
}

// mainMeasure is the measure that is drawn: Cores, or the first that was used over time.
func mainMeasure(a *v1.Usage) int {
	at := slices.IndexFunc(a.Measures, func(m v1.Measure) bool { return m.Name == "Cores" })
	if at < 0 {
		at = slices.IndexFunc(a.Measures, func(m v1.Measure) bool { return addsOverTime(&m) })
	}
	return at
}

// mostLines is how many lines of a chart can be told apart.
const mostLines = 7

// buildCourse makes the table of what the values of the first key had in use, bucket by bucket.
func (s *summary) buildCourse(ctx context.Context) (Table, error) {
	a := s.answers[0]
	at := mainMeasure(a)
	if at < 0 || len(a.Groups) == 0 {
		return Table{}, nil
	}
	if s.o.Top == 0 {
		return s.measureCourse(a, at), nil
	}
	// The line of all others is of several values of the first key.
	a, err := s.queryWindow(ctx, s.o.Periods[0], v1.UsageQuery{By: v1.JoinList(s.o.By[0]), Measure: v1.JoinList(a.Measures[at].Name), Bucket: s.o.Bucket})
	if err != nil || len(a.Measures) == 0 {
		return Table{}, err
	}
	return s.measureCourse(a, 0), nil
}

func (s *summary) measureCourse(a *v1.Usage, at int) Table {
	m := &a.Measures[at]
	t := Table{
		Name: "course", Title: m.Name + " by " + s.o.Bucket + ", " + s.periods[0].Name,
		Columns: []Column{{Name: s.o.Bucket, Title: s.o.Bucket, Kind: Text}},
		Chart:   &Chart{Kind: Steps, Label: s.o.Bucket},
	}
	names := firstGroups(a, m)
	for i, name := range names {
		if i == mostLines && len(names) > mostLines+1 {
			name = view.Others(len(names) - mostLines)
		}
		c := Column{Name: name, Title: name, Kind: view.MeasureKind(m), Unit: meanUnit(m)}
		if name == s.o.Bucket {
			c.Name += " (" + a.By[0] + ")"
		}
		t.Columns, t.Chart.Values = append(t.Columns, c), append(t.Chart.Values, c.Name)
		if view.IsOthers(name) {
			break
		}
	}
	for b := range a.Labels {
		sums := make([]*big.Rat, len(t.Columns)-1)
		for g := range a.Groups {
			n := meanOf(a, m, g, b).Number()
			k := min(slices.Index(names, groupFirst(&a.Groups[g])), len(sums)-1)
			if n != nil && sums[k] == nil {
				sums[k] = new(big.Rat)
			}
			if n != nil {
				sums[k].Add(sums[k], n)
			}
		}
		row := []Cell{v1.Words(view.PartialLabel(a, b))}
		for _, sum := range sums {
			row = append(row, v1.Rat(sum))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// firstGroups are the values of the first key, the one with the most of a measure first.
func firstGroups(a *v1.Usage, m *v1.Measure) (names []string) {
	sums := map[string]*big.Rat{}
	for g := range a.Groups {
		name := groupFirst(&a.Groups[g])
		if sums[name] == nil {
			sums[name], names = new(big.Rat), append(names, name)
		}
		if n := v1.Figure(view.At(m.Totals, g)).Number(); n != nil {
			sums[name].Add(sums[name], n)
		}
	}
	slices.SortStableFunc(names, func(x, y string) int { return sums[y].Cmp(sums[x]) })
	return names
}

// mostDaily is how many lines the table by day has at most: it is in memory as a whole,
// and no one reads more.
const mostDaily = 20_000

// dailyTable has the course of each tuple; what had nothing in a bucket has no line there. Of
// more than most lines it has the first, and a note says so.
func (s *summary) dailyTable(most int) Table {
	a := s.answers[0]
	t := Table{
		Name: "daily", Title: "By " + s.o.Bucket + ", " + strings.Join(s.o.By, " and ") + ", " + s.periods[0].Name,
		Columns: append([]Column{{Name: bucketColumn(s.o), Title: s.o.Bucket, Kind: Text}}, keyColumns(a.By)...),
	}
	for i := range a.Measures {
		m := &a.Measures[i]
		t.Columns = append(t.Columns, Column{Name: m.Name, Title: m.Name, Kind: view.MeasureKind(m)})
	}
	left, last := 0, ""
	for b, label := range a.Labels {
		for g := range a.Groups {
			row := append([]Cell{v1.Words(label)}, groupCells(&a.Groups[g], len(a.By))...)
			some := false
			for i := range a.Measures {
				c := meanOf(a, &a.Measures[i], g, b)
				some = some || (c.Number() != nil && c.Number().Sign() != 0)
				row = append(row, c)
			}
			switch {
			case some && len(t.Rows) < most:
				t.Rows, last = append(t.Rows, row), label
			case some:
				left++
			}
		}
	}
	if left > 0 {
		s.notes = append(s.notes, fmt.Sprintf("The table by %s has the first %d lines, up to %s; %d more are not in it. Ask for fewer lines at most (top), a shorter period, or by week or month.", s.o.Bucket, most, last, left))
	}
	return t
}

// bucketColumn is the name of the column of buckets: a key may be called as they are.
func bucketColumn(o SummaryOptions) string {
	if slices.Contains(o.By, o.Bucket) {
		return o.Bucket + " of the period"
	}
	return o.Bucket
}
