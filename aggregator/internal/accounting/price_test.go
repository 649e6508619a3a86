package accounting

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/proto/record"
)

func TestAmountsAreWrittenAsDecimals(t *testing.T) {
	third := AmountOfHours(sums.SumOf(1200 * 1e6)) // 20 minutes
	for want, got := range map[string]string{
		"0": Amount{}.Decimal(6), "0.333333": third.Decimal(6), "0.33": third.Decimal(2), "-0.333333": Amount{}.Sub(third).Decimal(6), "1": third.Add(third).Add(third).Decimal(6),
		"0.666667": third.Add(third).Decimal(6), "12.5": Billionths(big.NewInt(12_500_000_000)).Decimal(6), "0.000000001": Billionths(big.NewInt(1)).Decimal(9),
		"0.25": Billionths(big.NewInt(1)).Share(Billionths(big.NewInt(4)), 6), "-1.5": Billionths(big.NewInt(-3)).Share(Billionths(big.NewInt(2)), 6),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := Amount.Sub(Amount{}, Billionths(big.NewInt(1))).Decimal(6); got != "0" {
		t.Errorf("a little less than nothing is %s", got)
	}
	if f := third.Float(); f < 0.333 || f > 0.334 {
		t.Error(f)
	}
}

func TestTheMostSpecificPriceCounts(t *testing.T) {
	p, err := NewPrices(PriceSettings{Lists: []PriceList{always(
		rate("Cores", 1), rate("Cores", 2, ClassKey, "gpu"), rate("Cores", 3, PIKey, "curie"), rate("Cores", 4, ProjectKey, "atlas"),
		rate("Cores", 5, GroupKey, "g"), rate("Cores", 6, GroupKey, "g", ClassKey, "gpu"), rate("Cores", 7, GroupKey, "g", ClassKey, "gpu", "qos", "low"),
		rate("Cores", 8, "qos", "low", ClassKey, "gpu"), PriceRule{Component: "TotalCPU", Kind: record.Total, Billionths: 9},
		rate("GPUs", 0, ProjectKey, "free"),
	)}})
	if err != nil {
		t.Fatal(err)
	}
	w, has := p.Weight()
	if !has || w.Name != "cost" || w.Unit != "EUR" || strings.Join(w.Components, " ") != "Cores GPUs TotalCPU" {
		t.Fatalf("%+v", w)
	}
	price := func(component string, kind record.Kind, meta map[string]string) (int64, bool) {
		var values []string
		var lacks []bool
		for _, k := range w.From {
			values, lacks = append(values, meta[k]), append(lacks, meta[k] == "")
		}
		return w.Of(component, kind, values, lacks, 0)
	}
	for _, c := range []struct {
		meta map[string]string
		want int64
	}{
		{nil, 1}, {map[string]string{ClassKey: "cpu"}, 1}, {map[string]string{ClassKey: "gpu"}, 2}, {map[string]string{PIKey: "curie", ClassKey: "gpu"}, 3},
		{map[string]string{PIKey: "curie", ProjectKey: "atlas"}, 4}, {map[string]string{PIKey: "curie", ProjectKey: "atlas", GroupKey: "g"}, 5},
		{map[string]string{ProjectKey: "atlas", GroupKey: "g", ClassKey: "gpu"}, 6}, {map[string]string{GroupKey: "g", ClassKey: "gpu", "qos": "low"}, 7},
		{map[string]string{GroupKey: "h", ClassKey: "gpu", "qos": "low"}, 8}, {map[string]string{GroupKey: "h", "qos": "low"}, 1},
	} {
		if got, ok := price("Cores", record.Rate, c.meta); !ok || got != c.want*1000 {
			t.Errorf("%v: %d %v, want %d", c.meta, got, ok, c.want*1000)
		}
	}
	for what, want := range map[string]bool{"Cores": false, "TotalCPU": true} {
		if _, ok := price(what, record.Total, nil); ok != want {
			t.Errorf("a total of %s has a price: %v", what, ok)
		}
	}
	if n, ok := price("GPUs", record.Rate, map[string]string{ProjectKey: "free"}); !ok || n != 0 {
		t.Error("what is free has no price")
	}
	if _, ok := price("GPUs", record.Rate, nil); ok {
		t.Error("what has no price is free")
	}
}

func TestGroupsMayHaveAnotherKey(t *testing.T) {
	p, err := NewPrices(PriceSettings{GroupKey: "account", Lists: []PriceList{always(rate("Cores", 1, "account", "a"), rate("Cores", 2, ClassKey, "gpu", GroupKey, "b"))}})
	if err != nil {
		t.Fatal(err)
	}
	list := p.At(0)
	if len(list) != 2 || list[0].Rule.String() != "Cores of account=a" {
		t.Errorf("%v", list)
	}
}

func TestListsOfOneNameFollowEachOther(t *testing.T) {
	list := func(name, from, to string, price int64) PriceList {
		return PriceList{Name: name, Currency: "EUR", From: moment(t, from), To: moment(t, to), Rules: []PriceRule{rate("Cores", price)}}
	}
	p, err := NewPrices(PriceSettings{Lists: []PriceList{
		list("a", "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z", 30), list("a", "2026-01-01T00:00:00Z", "", 10), list("a", "2026-07-01T00:00:00Z", "", 20),
	}})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := p.Weight()
	for when, want := range map[string]int64{
		"2025-12-31T23:59:59.999999Z": -1, "2026-01-01T00:00:00Z": 10, "2026-06-30T23:59:59.999999Z": 10, "2026-07-01T00:00:00Z": 20,
		"2026-12-31T23:59:59.999999Z": 20, "2027-01-01T00:00:00Z": 30, "2027-12-31T23:59:59.999999Z": 30, "2028-01-01T00:00:00Z": -1,
	} {
		got, ok := w.Of("Cores", record.Rate, nil, nil, moment(t, when))
		if ok != (want >= 0) || ok && got != want*1000 {
			t.Errorf("%s: %d %v, want %d", when, got, ok, want)
		}
		if n := len(p.At(moment(t, when))); n != 1 && ok || n != 0 && !ok {
			t.Errorf("%s: %d prices hold", when, n)
		}
	}
	if len(w.Cuts) != 4 {
		t.Errorf("cuts %v", w.Cuts)
	}
}

func TestAPriceThatChangesInTheMiddleOfAJobCountsFromThenOn(t *testing.T) {
	cheap, dear := always(rate("Cores", 100_000)), always(rate("Cores", 250_000))
	cheap.To = moment(t, "2026-03-01T12:00:00Z")
	dear.Name, dear.From = "later", cheap.To
	p, err := NewPrices(PriceSettings{Lists: []PriceList{cheap, dear}})
	if err != nil {
		t.Fatal(err)
	}
	w := world{records: []record.Record{job(t, "2026-03-01T10:00:00Z", "2026-03-01T16:00:00Z", 2)}}
	if got := cost(t, &w, p, moment(t, "2026-03-01T00:00:00Z"), moment(t, "2026-03-02T00:00:00Z"))[0].Decimal(9); got != "2.4" { // 2×2×0.1 + 4×2×0.25
		t.Error(got)
	}
}

// cost is what everything costs in buckets.
func cost(t interface {
	Fatal(...any)
}, w *world, p *Prices, edges ...record.Time) (out []Amount) {
	a, err := w.books(p).Ask(nil, sums.Query{Weights: []string{Cost}, Edges: edges, Now: record.MaxTime}) //nolint:staticcheck // the world needs none
	if err != nil {
		t.Fatal(err)
	}
	for b := range len(edges) - 1 {
		sum := Amount{}
		for g := range a.Groups {
			sum = sum.Add(AmountOf(a.Worths[0].Sum[g*(len(edges)-1)+b]))
		}
		out = append(out, sum)
	}
	return out
}

func TestTheCostOfDaysAddsUpToThatOfTheMonth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(0, 30*int64(record.Day))
		var lists []PriceList
		for i, cut := range rapid.SliceOfNDistinct(at, 1, 4, rapid.ID[int64]).Draw(t, "cuts") {
			l := always(rate("Cores", rapid.Int64Range(0, 1e9).Draw(t, "price")), PriceRule{Component: "Energy", Kind: record.Total, Billionths: 7})
			if l.From = record.Time(cut); i == 0 {
				l.From = record.None
			}
			lists = append(lists, l)
		}
		p, err := NewPrices(PriceSettings{Lists: lists})
		if err != nil {
			t.Fatal(err)
		}
		w, twice := &world{}, &world{}
		for range rapid.IntRange(0, 8).Draw(t, "jobs") {
			r := record.Record{Start: record.Time(at.Draw(t, "start")), Components: []record.Component{
				{Name: "Cores", Amount: rapid.Int64Range(0, 64).Draw(t, "cores")}, {Name: "Energy", Kind: record.Total, Amount: rapid.Int64Range(0, 1e6).Draw(t, "energy")},
			}}
			r.Stop = r.Start + 1 + record.Time(at.Draw(t, "time"))
			w.records = append(w.records, r)
			twice.records = append(twice.records, r, r)
		}
		days := []record.Time{0}
		for d := record.Day; d <= 30*record.Day; d += record.Day {
			days = append(days, d)
		}
		sum := Amount{}
		for _, day := range cost(t, w, p, days...) {
			sum = sum.Add(day)
		}
		month := cost(t, w, p, 0, 30*record.Day)
		if sum.Cmp(month[0]) != 0 {
			t.Fatalf("the days cost %s, the month %s", sum.Decimal(18), month[0].Decimal(18))
		}
		if both := cost(t, twice, p, 0, 30*record.Day); both[0].Cmp(month[0].Add(month[0])) != 0 {
			t.Fatalf("twice the jobs cost %s, and once %s", both[0].Decimal(18), month[0].Decimal(18))
		}
	})
}
