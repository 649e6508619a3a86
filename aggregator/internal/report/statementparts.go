package report

import (
	"cmp"
	"context"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// pricesOf are the currency, and the prices that hold at some time of a period, in the
// order in which they begin.
func pricesOf(ctx context.Context, r v1.API, p Period) (currency string, list []v1.Price, err error) {
	a, err := r.Prices(ctx, &v1.PricesQuery{From: p.From.UTC().Format(time.RFC3339Nano), To: p.To.UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return "", nil, err
	}
	slices.SortStableFunc(a.Prices, func(a, b v1.Price) int { return a.From.Compare(b.From.Time) })
	return string(a.Currency), a.Prices, nil
}

// buildPrices makes the table of the prices that held.
func (s *statement) buildPrices(context.Context) (*Table, error) {
	if s.money == "" {
		s.addNote("No prices configured; showing usage only.")
		return nil, nil
	}
	s.addNote("Cost is what was used × the price that held at that instant; a run over a change of prices, or over the end of the period, is split there to the microsecond. The most specific price counts.")
	own := slices.DeleteFunc(slices.Clone(s.list), func(p v1.Price) bool { return !s.canMatch(p.Match) })
	if len(own) == 0 {
		return nil, nil
	}
	l := view.Prices(v1.Prices{Currency: v1.Text(s.money), Prices: own})
	l.Title = "Prices that held"
	t := Table(l.Table(s.zone))
	return &t, nil
}

// canMatch reports whether a condition can be met by the subject: it says nothing else of
// what is known of that.
func (s *statement) canMatch(match map[string]string) bool {
	for key, values := range s.o.subjectValues() {
		if other, ok := match[key]; ok && !slices.Contains(values, other) {
			return false
		}
	}
	return true
}

// askBudgets asks, once, how budgets stood at the end of the period. That is asked for as a clock
// shows it, which each budget reads by that of its own zone: as an instant, it may be in the
// next period of a budget further east.
func (s *statement) askBudgets(ctx context.Context) (v1.Budgets, error) {
	if s.standing != nil {
		return *s.standing, nil
	}
	at := s.periods[0].To.Add(-time.Second)
	if at.After(s.o.Now) {
		at = s.o.Now
	}
	a, err := s.r.Budgets(ctx, &v1.BudgetsQuery{At: at.In(s.zone).Format(time.DateTime)})
	if err == nil {
		s.standing = &a
	}
	return a, err
}

// buildBudgets makes the table of the budgets that the subject draws on.
func (s *statement) buildBudgets(ctx context.Context) (*Table, error) {
	a, err := s.askBudgets(ctx)
	if hasStatus(err, http.StatusForbidden) {
		s.addNote("Budgets are shown only to readers of all records.")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if a.Budgets, err = s.ownBudgets(ctx, a.Budgets); err != nil {
		return nil, err
	}
	s.notes = append(s.notes, view.BudgetNotes(a.Budgets)...)
	if len(a.Budgets) == 0 {
		s.addNote("No budget of the configuration is for %s.", subjectText(s.o.Of))
		return nil, nil
	}
	if !a.Now.IsZero() {
		s.addNote("Budgets are as of %s %s, each of its whole period, also beyond that of the statement.", a.Now.In(s.zone).Format(view.MinuteLayout), s.zone)
	}
	s.addNote("Left of a budget is what is neither used nor reserved by jobs that run. Forecast at end is a forecast: what is used, and the pace of the last days until then. A budget has all records of its own conditions, also of others than the subject.")
	list := view.Budgets(a, s.zone.String())
	t := Table(list.Table(s.zone))
	return &t, nil
}

// ownBudgets are those of a list that the subject draws on: all of them, where the subject is all.
func (s *statement) ownBudgets(ctx context.Context, all []v1.Budget) ([]v1.Budget, error) {
	if len(s.o.Of) == 0 || len(all) == 0 {
		return all, nil // what values records have takes long where they are many
	}
	belongs, err := s.recordValues(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(b v1.Budget) bool { return !budgetApplies(b.Match, belongs) }), nil
}

// recordValues are the values that the records of the subject have: its project and
// investigator beside what was asked for. It asks once, or for each key where there is not every one.
func (s *statement) recordValues(ctx context.Context) (map[string][]string, error) {
	if s.own != nil {
		return s.own, nil
	}
	out := s.o.subjectValues()
	keys := slices.DeleteFunc([]string{s.o.Keys.Group, "project", "pi"}, func(key string) bool { return out[key] != nil })
	err := s.addValues(ctx, out, keys...)
	if hasStatus(err, http.StatusBadRequest) {
		err = nil
		for _, key := range keys {
			if one := s.addValues(ctx, out, key); one != nil && !hasStatus(one, http.StatusBadRequest) { // the key is not known
				err = cmp.Or(err, one)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	s.own = out
	return out, nil
}

// addValues adds the values that records of the subject have for keys.
func (s *statement) addValues(ctx context.Context, out map[string][]string, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	a, err := s.usageOfPeriod(ctx, v1.UsageQuery{By: v1.JoinList(keys...), Measure: "records"}, 0)
	if err != nil {
		return err
	}
	for _, g := range a.Groups {
		for i, value := range g.Values {
			if value != nil && i < len(keys) && !slices.Contains(out[keys[i]], *value) {
				out[keys[i]] = append(out[keys[i]], *value)
			}
		}
	}
	return nil
}

// budgetApplies reports whether a budget counts records of the subject: each of its conditions
// is one that some of these meet.
func budgetApplies(match map[string]string, belongs map[string][]string) bool {
	for key, value := range match {
		if !slices.Contains(belongs[strings.TrimPrefix(key, "meta.")], value) {
			return false
		}
	}
	return len(match) > 0
}

// large is a job with what it had in the period.
type large struct {
	job
	cores, used *big.Rat
}

// scanned is how many jobs are looked at for the largest and for advice.
const scanned = 2000

// largestJobs are the largest jobs, by core-hours in the period.
func (s *statement) largestJobs(ctx context.Context) (*Table, error) {
	if s.large == nil {
		if _, err := s.scanJobs(ctx, nil); err != nil {
			return nil, err
		}
	}
	if len(s.large) == 0 {
		return nil, nil
	}
	return s.jobsTable(ctx, s.large)
}

// scanOrder is the order in which jobs are looked at, and which of them come first in words.
func (s *statement) scanOrder() (o struct{ by, words string }) {
	o.by, o.words = "-used.Cores", "used the most core-hours"
	if s.now.Find("Cores") == nil {
		o.by, o.words = "-runtime", "ran the longest"
	}
	return o
}

// scanJobs keeps the largest of the jobs that ran in the period, and passes those that began in it to
// more. It looks at them and at those that began before it one after the other, each beginning with
// what used the most core-hours until its end, and ends when no other can be among the largest:
// none uses more in the period than in all. It reports whether more has all that it is for.
func (s *statement) scanJobs(ctx context.Context, more func(*job)) (whole bool, err error) {
	within := span{From: s.periods[0].From.Time, To: s.periods[0].To.Time}
	test := within.timeTest()
	q := jobQuery{keys: s.o.Keys, where: s.o.Of, started: v1.TimeTest{Lt: test.Lt}, stopped: v1.TimeTest{Gte: test.Gte}, order: s.scanOrder().by, most: scanned, note: s.addNote}
	if key := q.mixedKey(); key != "" {
		s.addNote("The largest jobs are not named: no single job says its %s of itself.", key)
		s.large = []large{}
		return true, nil
	}
	if q.filter, err = q.buildFilter(ctx, s.r); err != nil {
		return false, err
	}
	top := largestOf{within: within, most: s.o.Top, list: []large{}}
	q.started = test
	whole, err = q.forEachJob(ctx, s.r, func(j *job) bool {
		if more != nil {
			more(j)
		}
		return top.addJob(j) || more != nil
	})
	if err != nil {
		return false, err
	}
	all := whole || top.proven
	top.proven, q.started = false, v1.TimeTest{Lt: test.Gte}
	before, err := q.forEachJob(ctx, s.r, top.addJob)
	if err != nil {
		return false, err
	}
	if (!all || !before) && s.now.Find("Cores") != nil {
		s.addNote("The largest jobs are from a part of the jobs, those that %s until their end.", s.scanOrder().words)
	}
	s.large = top.list
	return whole, nil
}

// largestOf keeps the jobs that used the most core-hours within a time.
type largestOf struct {
	within span
	most   int
	list   []large // the largest first
	proven bool    // no job that comes later in the order of core-hours until the end is larger
}

// addJob reports whether a job that comes later in that order can be larger than those that it keeps.
func (l *largestOf) addJob(j *job) bool {
	cores, _ := j.componentAmount("Cores")
	if cores == nil || j.StopTime.IsZero() {
		return true
	}
	all := new(big.Rat).Mul(cores, j.runtimeHours())
	if l.proven = l.proven || len(l.list) == l.most && all.Cmp(l.list[len(l.list)-1].used) < 0; l.proven {
		return false
	}
	from, to := l.within.clipJob(j)
	one := large{job: *j, cores: cores, used: new(big.Rat).Mul(cores, hoursOf(to.Sub(from)))}
	at, _ := slices.BinarySearchFunc(l.list, one, func(a, b large) int { return cmp.Or(b.used.Cmp(a.used), strings.Compare(a.RecordID, b.RecordID)) })
	l.list = slices.Insert(l.list, at, one)[:min(len(l.list)+1, l.most)]
	return true
}

// clipJob returns the part of a job's time that is within the window.
func (s span) clipJob(j *job) (from, to time.Time) {
	from, to = j.StartTime.Time, j.StopTime.Time
	if from.Before(s.From) {
		from = s.From
	}
	if to.After(s.To) {
		to = s.To
	}
	return from, to
}

func (s *statement) jobsTable(ctx context.Context, list []large) (*Table, error) {
	t := &Table{
		Name: "jobs", Title: "The largest jobs that ended",
		Columns: []Column{
			{Name: "record_id", Title: "Record", Kind: Text}, {Name: s.o.Keys.User, Title: "User", Kind: Text}, {Name: "began", Title: "Began", Kind: Text},
			{Name: "cores", Title: "Cores", Kind: Number}, {Name: "hours", Title: "Ran", Kind: Number, Unit: "hours"},
			{Name: "core_hours", Title: "Cores", Kind: Number, Unit: "core-hours"}, {Name: "cost", Title: "Cost", Kind: Money, Unit: s.money},
			{Name: "state", Title: "State", Kind: Text},
		},
	}
	for i := range list {
		j := &list[i]
		cost := Cell{}
		if s.costs {
			a, err := s.usageOfPeriod(ctx, v1.UsageQuery{Measure: "cost", RecordID: j.RecordID}, 0)
			if err != nil {
				return nil, err
			}
			cost = v1.Rat(totalOf(a, "cost", nil))
		}
		t.Rows = append(t.Rows, []Cell{
			v1.Words(j.RecordID), v1.Words(j.Meta.First(s.o.Keys.User)), v1.Words(j.StartTime.In(s.zone).Format(view.MinuteLayout)), v1.Rat(j.cores), v1.Rat(j.runtimeHours()), v1.Rat(j.used), cost, textCell(j.State),
		})
	}
	if !s.costs {
		t.dropColumn("cost")
	}
	s.addNote("Core-hours and cost of a job are those in the period; a job that runs is not in the list.")
	return t, nil
}
