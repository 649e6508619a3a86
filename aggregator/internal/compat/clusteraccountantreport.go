package compat

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Subscription is the report that ClusterAccountant makes of its files, with all that is
// odd about it: a job counts with all of its CPU time in the period in which it ends;
// contributions and node types count whatever their dates; its page has no line for who
// used nothing, and its text calls no one exempt. Only its sums of 32 bits, which lose
// small jobs, are exact here.
func (c *ClusterAccountant) Subscription(o report.SubscriptionOptions) (*report.Document, error) {
	o.Periods = report.DefaultPeriods(o.Periods)
	zone, err := time.LoadLocation(o.Zone)
	if err != nil {
		return nil, fmt.Errorf("report subscription: %w", err)
	}
	d := &report.Document{
		Format: report.Format, Report: "subscription", Title: "PI Usage, PI Subscription and Cluster Utilization", Subject: "as ClusterAccountant has it",
		Made: v1.Time{Time: o.Now.UTC()}, Zone: zone.String(),
	}
	for key := range o.Where {
		if key != accountantGroup && key != accountantOwner {
			return nil, fmt.Errorf("report subscription: ClusterAccountant cannot filter by %q: use %s or %s", key, accountantGroup, accountantOwner)
		}
	}
	var begin time.Time
	found := false
	for i, word := range o.Periods {
		w, err := calendar.ParseWindow(word, record.Time(o.Now.UnixMicro()), zone)
		if err != nil {
			return nil, fmt.Errorf("report subscription: %w", err)
		}
		from, to := time.UnixMicro(int64(w.From)), time.UnixMicro(int64(w.To))
		p := &accountantPeriod{c: c, Period: report.PeriodOf(word, from, to, zone), number: i + 1, zone: zone, where: o.Where}
		d.Periods = append(d.Periods, p.Period)
		if i == 0 {
			begin = from
		}
		found = found || len(p.recordsWithin()) > 0
		d.Add(p.buildTables()...)
		d.Notes = append(d.Notes, p.notes...)
	}
	if !found {
		if err := c.unmatchedError(o.Where); err != nil {
			return nil, err
		}
		return nil, c.nothingError(o.Periods, begin, zone)
	}
	d.Notes = append(d.Notes, c.notesOf()...)
	return d, d.Check()
}

// unmatchedError is the error of a filter that no record passes, whatever the period.
func (c *ClusterAccountant) unmatchedError(where map[string]string) error {
	names := map[string]map[string]bool{accountantGroup: {}, accountantOwner: {}}
	for i := range c.records {
		names[accountantGroup][c.records[i].group], names[accountantOwner][c.records[i].owner] = true, true
	}
	for key, list := range where {
		values := v1.SplitList(list)
		if value := values[0]; !slices.ContainsFunc(values, func(v string) bool { return names[key][v] }) {
			return fmt.Errorf("%w: no job of the accounting has the %s %q%s", report.ErrNothing, key, value, report.Suggestion(value, slices.Sorted(maps.Keys(names[key]))))
		}
	}
	return nil
}

// nothingError is the error of a report in whose periods no job ended.
func (c *ClusterAccountant) nothingError(periods []string, begin time.Time, zone *time.Location) error {
	var months []string
	for i := range c.records {
		if end := c.records[i].end; end.Unix() > 0 {
			months = append(months, end.In(zone).Format("2006-01"))
		}
	}
	slices.Sort(months)
	which := strings.Join(periods, " and ")
	if months = report.NearestMonths(slices.Compact(months), begin); len(months) > 0 {
		return fmt.Errorf("%w: no job of the accounting ended in %s; the nearest months that have some are %s", report.ErrNothing, which, strings.Join(months, ", "))
	}
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(c.dropped)) {
		why = append(why, fmt.Sprintf("%d %s", c.dropped[reason], reason))
	}
	if len(why) == 0 {
		return fmt.Errorf("%w: no job of the accounting ended in %s, nor in any other month", report.ErrNothing, which)
	}
	return fmt.Errorf("%w: no job of the accounting ended in %s, nor in any other month; not taken: %s", report.ErrNothing, which, strings.Join(why, ", "))
}

func (c *ClusterAccountant) notesOf() (notes []string) {
	for _, why := range slices.Sorted(maps.Keys(c.dropped)) {
		notes = append(notes, fmt.Sprintf("Not taken: %d %s.", c.dropped[why], why))
	}
	if len(c.strangers) > 0 {
		notes = append(notes, fmt.Sprintf("Hosts of no processor type count with the factor 1 for %s: %s.", c.clusters[0], report.SomeOf(slices.Collect(maps.Keys(c.strangers)))))
	}
	return append(notes,
		"The ratio is (service units ÷ those of all investigators) ÷ (contribution ÷ those of all that are not exempt). All contributions count, whatever their date.",
		"A job counts where it ends, with all its CPU time × the factor of the first type whose pattern its host begins with. Groups of no project are in the tables by group and by owner and in the utilization only.",
		"On its page there is no line for who used nothing. Where a cluster has no capacity it shows computation units in place of per cent.",
		"Without -compat bursar counts what these rules lose: see bursar report subscription -h.")
}

// accountantPeriod is a period of the report.
type accountantPeriod struct {
	report.Period
	c      *ClusterAccountant
	number int
	zone   *time.Location
	where  map[string]string
	notes  []string
}

// The filters that ClusterAccountant has: its options -p and -u.
const (
	accountantGroup = "group"
	accountantOwner = "owner"
)

// passesFilters reports whether the filters let a record pass.
func (p *accountantPeriod) passesFilters(r *accounted) bool {
	group, byGroup := p.where[accountantGroup]
	owner, byOwner := p.where[accountantOwner]
	return (!byGroup || slices.Contains(v1.SplitList(group), r.group)) && (!byOwner || slices.Contains(v1.SplitList(owner), r.owner))
}

// recordsWithin are the records that end in the period and pass the filters.
func (p *accountantPeriod) recordsWithin() (list []*accounted) {
	for i := range p.c.records {
		if r := &p.c.records[i]; !r.end.Before(p.From.Time) && r.end.Before(p.To.Time) && p.passesFilters(r) {
			list = append(list, r)
		}
	}
	return list
}

func (p *accountantPeriod) buildTables() []report.Table {
	list := p.recordsWithin()
	alias := map[string]string{}
	for _, i := range p.c.people {
		alias[i.user] = i.alias
	}
	byPI, byProject, byGroup, byOwner := map[string]*big.Rat{}, map[string]*big.Rat{}, map[string]*big.Rat{}, map[string]*big.Rat{}
	for _, group := range p.c.order {
		byProject[group] = new(big.Rat)
	}
	for _, r := range list {
		su := new(big.Rat).Quo(r.units, big.NewRat(3600, 1))
		addTo(byGroup, r.group, su)
		addTo(byOwner, r.owner, su)
		if user, ok := p.c.projects[r.group]; ok {
			addTo(byProject, r.group, su)
			addTo(byPI, user, su)
		}
	}
	if len(list) == 0 {
		p.notes = append(p.notes, p.Name+": no job ended.")
	}
	return []report.Table{
		p.subscriptionTable(byPI),
		p.sumsTable("project", "Service units by project", byProject),
		p.sumsTable("group", "Service units by Unix group", byGroup),
		p.sumsTable("owner", "Service units by owner", byOwner),
		p.utilizationTable(list),
	}
}

func addTo(to map[string]*big.Rat, name string, n *big.Rat) {
	if to[name] == nil {
		to[name] = new(big.Rat)
	}
	to[name].Add(to[name], n)
}

// subscriptionTable is the table of investigators.
func (p *accountantPeriod) subscriptionTable(used map[string]*big.Rat) report.Table {
	t := report.Table{
		Name: fmt.Sprintf("subscription-%d", p.number), Title: "Service units and subscription by PI, " + p.Name,
		Columns: []report.Column{
			{Name: "pi", Title: "PI", Kind: report.Text},
			{Name: "used", Title: "Used", Kind: report.Number, Unit: "SU", Period: p.number},
			{Name: "used_share", Title: "Share of use", Kind: report.Share, Period: p.number},
			{Name: "contributed", Title: "Contributed", Kind: report.Number, Unit: "units", Period: p.number},
			{Name: "contribution_share", Title: "Share of contributions", Kind: report.Share, Period: p.number},
			{Name: "ratio", Title: "Ratio", Kind: report.Ratio, Period: p.number},
			{Name: "page", Title: "On its page", Kind: report.Text, Period: p.number},
			{Name: "text", Title: "In its text", Kind: report.Text, Period: p.number},
			{Name: "exempt", Title: "Exempt", Kind: report.Text},
		},
		Chart: &report.Chart{Kind: report.Bars, Label: "pi", Values: []string{"used_share", "contribution_share"}},
	}
	gave, all, total := map[string]*big.Rat{}, new(big.Rat), new(big.Rat)
	for _, one := range p.c.contributions {
		addTo(gave, one.credit, one.units)
	}
	for _, i := range p.c.people {
		if gave[i.user] == nil {
			gave[i.user] = new(big.Rat)
		}
		if used[i.user] == nil {
			used[i.user] = new(big.Rat)
		}
		if !i.exempt {
			all.Add(all, gave[i.user])
		}
		total.Add(total, used[i.user])
	}
	people := slices.Clone(p.c.people)
	slices.SortStableFunc(people, func(a, b investigator) int {
		return cmp.Or(used[b.user].Cmp(used[a.user]), gave[b.user].Cmp(gave[a.user]), strings.Compare(a.alias, b.alias))
	})
	for _, i := range people {
		share, contribution := report.Quotient(used[i.user], total), report.Quotient(gave[i.user], all)
		ratio := report.Cell{}
		if used[i.user].Sign() > 0 && gave[i.user].Sign() > 0 {
			ratio = report.Quotient(share.Number(), contribution.Number())
		}
		page, text := shownLine(i.exempt, used[i.user], gave[i.user], ratio)
		t.Rows = append(t.Rows, []report.Cell{
			v1.Words(i.alias), v1.Rat(used[i.user]), share, v1.Rat(gave[i.user]), contribution, ratio, page, v1.Words(text), v1.Words(map[bool]string{true: "✓", false: "✗"}[i.exempt]),
		})
	}
	t.Totals = []report.Cell{v1.Words("Total"), v1.Rat(total), {}, v1.Rat(all), {}, {}, {}, {}, {}}
	return t
}

// shownLine is what stands on ClusterAccountant's page, where who used nothing has no line,
// and in its text, which knows no exemption.
func shownLine(exempt bool, used, gave *big.Rat, ratio report.Cell) (page report.Cell, text string) {
	uses, contributes := used.Sign() > 0, gave.Sign() > 0
	switch {
	case uses && contributes && ratio.Number() == nil: // only who is exempt contributes, so that there is nothing to divide by
		text = "N/A"
	case uses && contributes:
		text = new(big.Rat).Mul(ratio.Number(), big.NewRat(100, 1)).FloatString(0) + "%"
	case uses:
		text = "Over"
	case contributes:
		text = "Under"
	default:
		text = "N/A"
	}
	switch {
	case !uses:
		return report.Cell{}, text
	case exempt:
		return v1.Words("N/A"), text
	}
	return v1.Words(text), text
}

// sumsTable is a table of service units by something.
func (p *accountantPeriod) sumsTable(name, title string, sums map[string]*big.Rat) report.Table {
	t := report.Table{
		Name: fmt.Sprintf("%s-%d", name, p.number), Title: title + ", " + p.Name,
		Columns: []report.Column{{Name: name, Title: name, Kind: report.Text}, {Name: "used", Title: "Used", Kind: report.Number, Unit: "SU", Period: p.number}},
	}
	total := new(big.Rat)
	names := slices.Sorted(maps.Keys(sums))
	slices.SortStableFunc(names, func(a, b string) int { return sums[b].Cmp(sums[a]) })
	for _, n := range names {
		total.Add(total, sums[n])
		t.Rows = append(t.Rows, []report.Cell{v1.Words(n), v1.Rat(sums[n])})
	}
	if len(t.Rows) > 1 {
		t.Totals = []report.Cell{v1.Words("Total"), v1.Rat(total)}
	}
	return t
}

// utilizationTable is the course of the clusters: days ÷ 2 intervals, at most 50. The first
// cluster, which has what is of no other one, is the last column.
func (p *accountantPeriod) utilizationTable(list []*accounted) report.Table {
	clusters := append(slices.Clone(p.c.clusters[1:]), p.c.clusters[0])
	t := report.Table{
		Name: fmt.Sprintf("utilization-%d", p.number), Title: "Cluster utilization, " + p.Name,
		Columns: []report.Column{{Name: "from", Title: "From", Kind: report.Text}},
		Chart:   &report.Chart{Kind: report.Line, Label: "from", Values: clusters},
	}
	for _, name := range clusters {
		t.Columns = append(t.Columns, report.Column{Name: name, Title: name, Kind: report.Share, Period: p.number})
	}
	length := p.To.Sub(p.From.Time).Milliseconds()
	n := min(length/(24*time.Hour).Milliseconds()/2, 50)
	if n == 0 {
		p.notes = append(p.notes, p.Name+": ClusterAccountant shows no utilization of less than two days; it divides by zero.")
		return t
	}
	step := time.Duration(length/n) * time.Millisecond
	used := map[string][]*big.Rat{}
	for _, name := range clusters {
		used[name] = make([]*big.Rat, n)
	}
	for _, r := range list {
		i := min(int64(r.end.Sub(p.From.Time)/step), n-1)
		if used[r.cluster][i] == nil {
			used[r.cluster][i] = new(big.Rat)
		}
		used[r.cluster][i].Add(used[r.cluster][i], r.units)
	}
	for i := range n {
		begin := p.From.Add(time.Duration(i) * step)
		row := []report.Cell{v1.Words(begin.In(p.zone).Format(view.MinuteLayout))}
		for _, name := range clusters {
			row = append(row, p.fullness(used[name][i], name, begin.Add(step), step))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// fullness is how full a cluster was in an interval, with the nodes that are there at its
// end; what was used, taken for per cent, where there are none.
func (p *accountantPeriod) fullness(used *big.Rat, cluster string, end time.Time, step time.Duration) report.Cell {
	if used == nil {
		used = new(big.Rat)
	}
	capacity := new(big.Rat)
	for i := range p.c.types {
		if t := &p.c.types[i]; t.cluster == cluster && !t.disabled && !t.installed.After(end) {
			capacity.Add(capacity, new(big.Rat).Mul(t.number, t.factor))
		}
	}
	capacity.Mul(capacity, big.NewRat(step.Milliseconds(), 1000))
	if capacity.Sign() == 0 {
		return v1.Rat(new(big.Rat).Quo(used, big.NewRat(100, 1)))
	}
	return v1.Rat(new(big.Rat).Quo(used, capacity))
}
