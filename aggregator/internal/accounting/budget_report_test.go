package accounting

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
)

// report makes statements of budgets in a world.
func report(t *testing.T, w *world, set PriceSettings, q StatementRequest, keys ...usage.Key) []Statement {
	t.Helper()
	p, b, err := NewPricesAndBudgets(set)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := b.Report(t.Context(), w.books(p, keys...), q)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// one is the only statement, now.
func one(t *testing.T, w *world, set PriceSettings, now string, keys ...usage.Key) Statement {
	t.Helper()
	at := moment(t, now)
	list := report(t, w, set, StatementRequest{Now: at}, keys...)
	if len(list) != 1 || list[0].Problem != "" {
		t.Fatalf("%+v", list)
	}
	return list[0]
}

// atCent are prices of one cent for a core and hour.
func atCent(b ...Budget) PriceSettings {
	return PriceSettings{Lists: []PriceList{always(rate("Cores", 10_000))}, Budgets: b}
}

func TestABudgetHasWhatIsUsedReservedAndLeft(t *testing.T) {
	w := &world{records: []record.Record{
		job(t, "2025-12-31T12:00:00Z", "2026-01-01T12:00:00Z", 100, ProjectKey, "atlas"), // 12 h of it, 12 EUR
		job(t, "2026-03-01T00:00:00Z", "2026-03-01T10:00:00Z", 10, ProjectKey, "atlas"),  // 1 EUR
		job(t, "2026-03-01T00:00:00Z", "2026-03-01T10:00:00Z", 1000, ProjectKey, "cms"),
		job(t, "2026-03-01T00:00:00Z", "2026-03-01T10:00:00Z", 1000),
		job(t, "2026-03-10T00:00:00Z", "", 50, ProjectKey, "atlas", LimitKey, "86400"),  // 12 h used, 12 h reserved: 6 EUR each
		job(t, "2026-03-10T06:00:00Z", "", 200, ProjectKey, "atlas"),                    // 12 EUR, no limit
		job(t, "2026-03-09T00:00:00Z", "", 1, ProjectKey, "atlas", LimitKey, "3600"),    // over its limit: 0.36 EUR
		job(t, "2026-03-10T00:00:00Z", "", 1000, ProjectKey, "cms", LimitKey, "864000"), // another's
	}}
	s := one(t, w, atCent(yearly("atlas", 100, ProjectKey, "atlas")), "2026-03-10T12:00:00Z")
	for want, got := range map[string]string{
		"31.36": s.Used.Decimal(6), "6": s.Reserved.Decimal(6), "62.64": s.Left().Decimal(6),
		"present": s.State(), "2026": s.Period.Name, "2026-01-01T00:00:00Z": s.Period.From.String(), "2027-01-01T00:00:00Z": s.Period.To.String(),
		// 19.36 EUR since 2026-02-08T00:00:00Z, which is 30.5 days ago
		"2026-02-08T00:00:00Z": s.PaceFrom.String(), "0.634754": s.PerDay().Decimal(6), "EUR": s.Unit,
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if s.Running != 1 || s.Unlimited != 1 || !s.AtLeast() || s.Exhausted() {
		t.Errorf("%+v", s)
	}
	days := (100 - 31.36) / (19.36 / 30.5)
	if got := float64(s.Gone-s.Now) / float64(record.Day); got < days-1e-6 || got > days+1e-6 {
		t.Errorf("gone in %v days, want %v", got, days)
	}
}

func TestABudgetThatIsUsedUpSaysWhenToTheMinute(t *testing.T) {
	// 10 cores are 0.1 EUR an hour; 1.23 EUR are gone after 12 h 18 min.
	w := &world{records: []record.Record{job(t, "2026-05-02T06:00:00Z", "2026-05-09T00:00:00Z", 10, GroupKey, "g")}}
	b := yearly("b", 1, GroupKey, "g")
	b.Amount = Billionths(big.NewInt(1_230_000_000))
	s := one(t, w, atCent(b), "2026-06-01T00:00:00Z")
	if s.Gone.String() != "2026-05-02T18:18:00Z" || !s.Exhausted() || s.Left().Sign() >= 0 {
		t.Errorf("gone at %s, left %s", s.Gone, s.Left().Decimal(6))
	}
	past := report(t, w, atCent(b), StatementRequest{At: "2026-05", Now: moment(t, "2027-06-01T00:00:00Z")})[0]
	if past.Gone != s.Gone || past.State() != "past" || past.Paced || past.Used.Cmp(s.Used) != 0 {
		t.Errorf("a year later: %+v", past)
	}
}

func TestABudgetLastsWhenThePaceIsSlowOrNothingIsUsed(t *testing.T) {
	w := &world{records: []record.Record{job(t, "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", 10, GroupKey, "g")}} // 2.4 EUR a day
	for amount, want := range map[int64]string{73: "2026-12-01T10:00:00Z", 148: "none", 1000: "none"} {
		if s := one(t, w, atCent(yearly("b", amount, GroupKey, "g")), "2026-12-01T00:00:00Z"); s.Gone.String() != want {
			t.Errorf("%d EUR: gone at %s, want %s", amount, s.Gone, want)
		}
	}
	s := one(t, w, atCent(yearly("b", 5, GroupKey, "nobody")), "2026-12-01T00:00:00Z")
	if s.Gone.Present() || s.PerDay().Sign() != 0 || s.Used.Sign() != 0 || s.Left().Decimal(6) != "5" || !s.Paced {
		t.Errorf("nothing is used: %+v", s)
	}
}

func TestPeriodsAreThoseOfTheCalendar(t *testing.T) {
	for _, c := range []struct {
		every          calendar.Unit
		zone, at       string
		name, from, to string
	}{
		{calendar.Year, "UTC", "2024-02-29T12:00:00Z", "2024", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{calendar.Month, "UTC", "2024-02-29T23:59:59Z", "2024-02", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{calendar.Month, "UTC", "2026-02-28T23:59:59Z", "2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{calendar.Quarter, "UTC", "2026-12-31T23:59:59Z", "2026-Q4", "2026-10-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{calendar.Year, "Europe/Berlin", "2026-12-31T23:00:00Z", "2027", "2026-12-31T23:00:00Z", "2027-12-31T23:00:00Z"},
		{calendar.Month, "Europe/Berlin", "2026-03-29T01:30:00Z", "2026-03", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"},
		{calendar.Day, "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{calendar.Week, "UTC", "2027-01-03T00:00:00Z", "2026-W53", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
	} {
		b := Budget{Every: c.every, Zone: c.zone}
		p, err := b.periodAt(moment(t, c.at))
		if err != nil || p.Name != c.name || p.From.String() != c.from || p.To.String() != c.to {
			t.Errorf("%s in %s: %v %s – %s, %v", c.at, c.zone, p.Name, p.From, p.To, err)
		}
	}
}

func TestADayOf23HoursHas23HoursOfUse(t *testing.T) {
	w := &world{records: []record.Record{job(t, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", 1, GroupKey, "g")}}
	for at, want := range map[string]string{"2026-03-29T12:00:00Z": "23", "2026-10-25T12:00:00Z": "25", "2026-10-26T12:00:00Z": "24"} {
		b := yearly("b", 100, GroupKey, "g")
		b.Unit, b.Every, b.Zone = CoreHours, calendar.Day, "Europe/Berlin"
		s := report(t, w, PriceSettings{Budgets: []Budget{b}}, StatementRequest{At: at, Now: moment(t, "2027-02-01T00:00:00Z")})[0]
		if got := s.Used.Decimal(6); got != want || s.Unit != "core-hours" {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}

func TestASinglePeriodIsAnsweredWhateverTheTime(t *testing.T) {
	w := &world{records: []record.Record{job(t, "2026-04-01T00:00:00Z", "2026-04-11T00:00:00Z", 10, GroupKey, "g")}}
	b := yearly("b", 100, GroupKey, "g")
	b.Every, b.From, b.To = calendar.None, moment(t, "2026-04-05T00:00:00Z"), moment(t, "2026-07-01T00:00:00Z")
	for now, want := range map[string][]string{
		"2026-04-01T12:00:00Z": {"future", "0", "none", "none"},
		"2026-04-05T00:00:00Z": {"present", "0", "none", "2026-04-05T00:00:00Z"},
		"2026-04-07T00:00:00Z": {"present", "4.8", "2026-05-16T16:00:00Z", "2026-04-05T00:00:00Z"}, // 2.4 EUR a day since it began
		"2026-07-01T00:00:00Z": {"past", "14.4", "none", "none"},
	} {
		s := one(t, w, atCent(b), now)
		if got := []string{s.State(), s.Used.Decimal(6), s.Gone.String(), s.PaceFrom.String()}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", now, got, want)
		}
	}
}

func TestWhatHasNoPriceIsSaid(t *testing.T) {
	l := always(rate("Cores", 10_000))
	l.From = moment(t, "2026-01-02T00:00:00Z")
	w := &world{records: []record.Record{job(t, "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z", 1, GroupKey, "g")}}
	s := one(t, w, PriceSettings{Lists: []PriceList{l}, Budgets: []Budget{yearly("b", 1, GroupKey, "g")}}, "2026-01-05T00:00:00Z")
	if s.Used.Decimal(6) != "0.24" || len(s.Unpriced) != 1 || s.Unpriced[0].Component != "Cores" || s.Unpriced[0].Used != sums.SumOf(int64(record.Day)) || !s.AtLeast() {
		t.Errorf("%+v", s)
	}
}

func TestWhatIsReservedFollowsPricesAndProjectsThatChange(t *testing.T) {
	now, change := "2026-03-10T00:00:00Z", moment(t, "2026-03-10T06:00:00Z")
	cheap, dear := always(rate("Cores", 10_000)), always(rate("Cores", 30_000))
	cheap.To, dear.From, dear.Name = change, change, "dear"
	move := moment(t, "2026-03-10T09:00:00Z")
	key := usage.Key{Name: ProjectKey, From: []string{GroupKey}, Cuts: []record.Time{move}, Of: func(v []string, _ []bool, at record.Time) (string, bool) {
		if at < move {
			return "old", v[0] == "g"
		}
		return "new", v[0] == "g"
	}}
	w := &world{records: []record.Record{
		job(t, "2026-03-09T12:00:00Z", "", 1, GroupKey, "g", LimitKey, "86400"),
		job(t, "2026-03-09T12:00:00Z", "", 1, GroupKey, "h", LimitKey, "86400"),
		job(t, "2026-03-09T12:00:00Z", "", 1, GroupKey, "g", LimitKey, "soon"),
	}}
	set := PriceSettings{Lists: []PriceList{cheap, dear}, Budgets: []Budget{yearly("a", 9, ProjectKey, "old"), yearly("b", 9, ProjectKey, "new")}}
	at := moment(t, now)
	list := report(t, w, set, StatementRequest{Now: at}, key)
	if a, b := list[0].Reserved.Decimal(6), list[1].Reserved.Decimal(6); a != "0.15" || b != "0.09" || list[0].Running != 1 || list[1].Running != 1 || list[0].Unlimited != 1 || list[1].Unlimited != 0 {
		t.Errorf("%s and %s: %+v", a, b, list) // 6 h × 0.01 + 3 h × 0.03, and 3 h × 0.03
	}
}

func TestAReservationEndsWithThePeriodAndBeginsWhereCountingEnds(t *testing.T) {
	w := &world{counted: moment(t, "2026-03-31T10:00:00Z"), records: []record.Record{job(t, "2026-03-31T00:00:00Z", "", 10, GroupKey, "g", LimitKey, "864000")}}
	b := yearly("b", 100, GroupKey, "g")
	b.Unit, b.Every = CoreHours, calendar.Month
	s := one(t, w, PriceSettings{Budgets: []Budget{b}}, "2026-03-31T12:00:00Z")
	if s.Used.Decimal(6) != "100" || s.Reserved.Decimal(6) != "140" || !s.Exhausted() || s.Gone.String() != "2026-03-31T10:00:00Z" {
		t.Errorf("used %s, reserved %s, gone %s", s.Used.Decimal(6), s.Reserved.Decimal(6), s.Gone)
	}
}

func TestBudgetsOfOnePeriodAreOneQuestion(t *testing.T) {
	w := &world{records: []record.Record{job(t, "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", 1, ProjectKey, "p7", "site_id", "a")}}
	var set PriceSettings
	set.Lists = []PriceList{always(rate("Cores", 10_000))}
	for i := range 50 {
		set.Budgets = append(set.Budgets, yearly("b"+string(rune('a'+i)), 100, ProjectKey, "p"+string(rune('0'+i))))
	}
	both := yearly("both", 100, "site_id", "a", ProjectKey, "p7")
	set.Budgets = append(set.Budgets, both)
	at := moment(t, "2026-03-10T00:00:00Z")
	list := report(t, w, set, StatementRequest{Now: at})
	used := 0
	for i := range list {
		if list[i].Used.Decimal(6) == "0.24" {
			used++
		}
	}
	if w.asked != 2 || used != 2 || len(list) != 51 || !slices.IsSortedFunc(list, func(a, b Statement) int { return strings.Compare(a.Budget.Name, b.Budget.Name) }) {
		t.Errorf("%d questions, %d of %d used", w.asked, used, len(list))
	}
}

func TestABudgetWithoutItsUnitSaysSoAndOthersAreAnswered(t *testing.T) {
	w := &world{}
	su := yearly("su", 5, GroupKey, "g")
	su.Unit = ServiceUnits
	at := moment(t, "2026-03-10T00:00:00Z")
	list := report(t, w, atCent(su, yearly("eur", 5, GroupKey, "g")), StatementRequest{Now: at})
	if list[0].Problem != "" || !strings.Contains(list[1].Problem, "SU") || list[1].Exhausted() {
		t.Errorf("%+v", list)
	}
	p, b, err := NewPricesAndBudgets(atCent(su))
	if err != nil {
		t.Fatal(err)
	}
	books := w.books(p)
	books.Derivation.Weights = append(books.Derivation.Weights, usage.Weight{Name: "su", Unit: "SBU", Components: []string{"Cores"}, Of: func(string, record.Kind, []string, []bool, record.Time) (int64, bool) { return 2e9, true }})
	w.records = []record.Record{job(t, "2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z", 1, GroupKey, "g")}
	if list, _, err = b.Report(t.Context(), books, StatementRequest{Now: at}); err != nil || list[0].Unit != "SBU" || list[0].Used.Decimal(6) != "2" {
		t.Errorf("%+v %v", list, err)
	}
}

func TestErrorsOfQuestionsAreThoseOfTheReport(t *testing.T) {
	p, b, err := NewPricesAndBudgets(atCent(yearly("b", 5, GroupKey, "g")))
	if err != nil {
		t.Fatal(err)
	}
	books, broken := (&world{}).books(p), errors.New("broken")
	at := moment(t, "2026-03-10T00:00:00Z")
	if _, _, err := b.Report(t.Context(), books, StatementRequest{Name: "c", Now: at}); !errors.Is(err, ErrBudget) {
		t.Error(err)
	}
	if _, _, err := b.Report(t.Context(), books, StatementRequest{At: "sometime", Now: at}); !errors.Is(err, ErrTime) {
		t.Error(err)
	}
	books.Running = func(context.Context, func(*record.Record, record.Time) error) error { return broken }
	if _, _, err := b.Report(t.Context(), books, StatementRequest{Now: at}); !errors.Is(err, broken) {
		t.Error(err)
	}
	books.Ask = func(context.Context, sums.Query) (*sums.Answer, error) { return nil, broken }
	if _, _, err := b.Report(t.Context(), books, StatementRequest{Now: at}); !errors.Is(err, broken) || !strings.Contains(err.Error(), GroupKey) {
		t.Error(err)
	}
}

func TestALimitBeyondAllTimeIsNoOverflow(t *testing.T) {
	r := job(t, "2026-03-09T12:00:00Z", "", 1, LimitKey, "9223372036854775807")
	if at, ok := limitOf(&r); !ok || at != record.MaxTime {
		t.Error(at, ok)
	}
	for _, bad := range []string{"-1", "1.5", "UNLIMITED", ""} {
		r = job(t, "2026-03-09T12:00:00Z", "", 1, LimitKey, bad)
		if _, ok := limitOf(&r); ok {
			t.Errorf("%q is a limit", bad)
		}
	}
}

func TestBudget_InKWh_CountsEnergyAndForecastsIt(t *testing.T) {
	settings := handWorked(t)
	weights, err := settings.Weights()
	if err != nil {
		t.Fatal(err)
	}
	b := yearly("power", 1, GroupKey, "g")
	b.Unit = KWh
	unknown := yearly("carbon", 1, GroupKey, "early")
	unknown.Unit = CO2Unit
	_, budgets, err := NewPricesAndBudgets(PriceSettings{Budgets: []Budget{b, unknown}})
	if err != nil {
		t.Fatal(err)
	}
	// Without CPU time a core is under full load: 10 W × 1.2 for 50 h are 0.6 kWh.
	k := keep(t, []record.Record{
		job(t, "2026-03-01T00:00:00Z", "2026-03-03T02:00:00Z", 1, GroupKey, "g", "host", "n1"),
		job(t, "2026-03-01T00:00:00Z", "2026-03-03T02:00:00Z", 5, GroupKey, "h", "host", "n1"),
		job(t, "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z", 1, GroupKey, "early", "host", "n1"), // before the factors
	})
	book := &usage.Derivation{Weights: weights}
	rows := func(ctx context.Context, q sums.Query) (*sums.Answer, error) { return sums.Rows(ctx, k, q) }
	reader := UsageReader{
		Derivation: book,
		Ask:        func(ctx context.Context, q sums.Query) (*sums.Answer, error) { return book.Answer(ctx, rows, q) },
		Running:    func(context.Context, func(*record.Record, record.Time) error) error { return nil },
	}
	list, _, err := budgets.Report(t.Context(), reader, StatementRequest{Now: moment(t, "2026-03-11T00:00:00Z")})
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	slices.SortFunc(list, func(a, b Statement) int { return strings.Compare(b.Budget.Name, a.Budget.Name) })
	if s := &list[1]; !s.Unknown() || s.Used.Sign() == 0 {
		t.Errorf("of CO2 only the embodied part is known: %s %s are used, unknown is %v", s.Used.Decimal(6), s.Unit, s.Unknown())
	}
	// 0.6 kWh in the last 30 days: the other 0.4 kWh last for 20 days.
	s := &list[0]
	if s.Unit != KWh || s.Used.Decimal(6) != "0.6" || s.Left().Decimal(6) != "0.4" || s.PerDay().Decimal(6) != "0.02" || s.Gone.String() != "2026-03-31T00:00:00Z" {
		t.Errorf("used %s, left %s %s, %s a day, gone at %s: %s", s.Used.Decimal(6), s.Left().Decimal(6), s.Unit, s.PerDay().Decimal(6), s.Gone, s.Problem)
	}
}

// What a running record will take is not measured yet: where its power is not known, and where
// energy has a price of its own, the budget says that something is not reserved.
func TestBudget_RunningWithoutKnownEnergy_SaysThatMoreMayBeUsed(t *testing.T) {
	lists := PriceSettings{Lists: []PriceList{always(rate("Cores", 1e6), PriceRule{Component: "energy", Kind: record.Total, Billionths: 3e8})}}
	set, err := compileSet(Settings{Energy: handWorked(t), Money: lists}, &facts{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		unit, host, reserved string
		unvalued             bool
	}{
		{KWh, "n1", "0.24", false}, // 2 cores under full load for 10 h, × 1.2
		{KWh, "x1", "0", true},     // of no class
		{CO2Unit, "n1", "0", true}, // no factor is known
		{"EUR", "n1", "20", true},  // the cores alone
	} {
		b := yearly("b", 100, GroupKey, "g")
		b.Unit = c.unit
		_, budgets, err := NewPricesAndBudgets(PriceSettings{Lists: lists.Lists, Budgets: []Budget{b}})
		if err != nil {
			t.Fatal(err)
		}
		k := keep(t, nil)
		reader := UsageReader{
			Derivation: set.Derivation,
			Ask: func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
				return set.Derivation.Answer(ctx, func(ctx context.Context, q sums.Query) (*sums.Answer, error) { return sums.Rows(ctx, k, q) }, q)
			},
			Running: func(_ context.Context, yield func(*record.Record, record.Time) error) error {
				r := job(t, "2026-03-11T00:00:00Z", "", 2, GroupKey, "g", "host", c.host, LimitKey, "36000")
				return yield(&r, r.Start)
			},
		}
		list, _, err := budgets.Report(t.Context(), reader, StatementRequest{Now: moment(t, "2026-03-11T00:00:00Z")})
		if err != nil || len(list) != 1 {
			t.Fatal(c, list, err)
		}
		s := &list[0]
		if got := s.Reserved.Decimal(6); got != c.reserved || s.Unvalued != c.unvalued || s.AtLeast() != c.unvalued || s.Running != 1 {
			t.Errorf("%s on %s: %s reserved, of which something lacks: %v, want %s, %v", c.unit, c.host, got, s.Unvalued, c.reserved, c.unvalued)
		}
	}
}

// What was used before records are known is unknown, not 0: all of a period that ended before,
// and the start of a later one.
func TestBudgets_BeforeRecordsAreKnown_AreNotUnused(t *testing.T) {
	w := &world{records: []record.Record{job(t, "2026-10-28T00:00:00Z", "2026-10-28T10:00:00Z", 1, ProjectKey, "atlas")}}
	p, b, err := NewPricesAndBudgets(atCent(yearly("atlas", 100, ProjectKey, "atlas"), yearly("cms", 100, ProjectKey, "cms")))
	if err != nil {
		t.Fatal(err)
	}
	books := w.books(p)
	books.KnownFrom = func(*time.Location) record.Time { return moment(t, "2026-10-28T00:00:00Z") }
	for at, want := range map[string]string{"2025": "true false true false", "2026": "false true false true", "2027": "false false false false"} {
		list, _, err := b.Report(t.Context(), books, StatementRequest{At: at, Now: moment(t, "2026-11-28T00:00:00Z")})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(list[0].Unknown(), list[0].Begun(), list[1].Unknown(), list[1].Begun()); got != want {
			t.Errorf("%s: unknown and begun %s, want %s", at, got, want)
		}
	}
}
