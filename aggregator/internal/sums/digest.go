package sums

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// The key and the component of a [Digest].
const (
	digestKey       = "site_id"
	digestComponent = "Cores"
)

// Digest is how many records of a site stopped in a month, and what their cores came to. It
// is by which a copy of the records checks itself.
type Digest struct {
	Site string // the first value of site_id; "" without one
	// Month is that of the stop in UTC, such as 2026-03; "" for the records that go on.
	Month   string
	Records uint64
	// CoreSeconds is the sum over the records in millionths: cores × run time, or the amount
	// itself of a total. It is 0 for those that go on.
	CoreSeconds Sum
}

// Digests returns the digests of the records of a view that are allowed, as
// [store.Query.Allowed] has it, by site and month; those without a site come first, and of a
// site those that go on.
func Digests(ctx context.Context, v *store.View, allowed [][]store.MetaTest) ([]Digest, error) {
	if err := v.HasKeys(math.MinInt64, math.MaxInt64, digestKey); err != nil {
		return nil, err
	}
	d := &digester{keys: newKeys([]string{digestKey}, nil), layouts: newLayouts(), sums: map[digestOf]*Digest{}}
	err := v.Scan(ctx, store.Query{Allowed: allowed}, d.addBlock, func(row *columns.Row) error {
		d.addRun(runOf(d.keys, d.layouts, row))
		return nil
	})
	return d.sortedDigests(), err
}

// digestOf is what a digest is of: the number of a site's tuple, and a month or -1.
type digestOf struct {
	tuple uint32
	month int64
}

type digester struct {
	keys    *keys
	layouts *layouts
	sums    map[digestOf]*Digest
	run     run
}

func (d *digester) addBlock(b *columns.Block, rows columns.Mask) error {
	t, err := newTable(b, d.keys, d.layouts)
	if err != nil {
		return err
	}
	for i := range rows.Rows() {
		if err := t.readRun(&d.run, i); err != nil {
			return err
		}
		d.addRun(&d.run)
	}
	return nil
}

func (d *digester) addRun(r *run) {
	of := digestOf{r.tuple, -1}
	if r.stop != record.None {
		t := r.stop.Std()
		of.month = int64(t.Year())*12 + int64(t.Month()) - 1
	}
	sum := d.sums[of]
	if sum == nil {
		sum = &Digest{Site: d.keys.tuples[r.tuple].values[0]}
		if r.stop != record.None {
			sum.Month = r.stop.Std().Format("2006-01")
		}
		d.sums[of] = sum
	}
	sum.Records++
	if r.stop == record.None || r.isNegative() {
		return
	}
	for k := range r.layout.parts {
		if r.layout.parts[k].name == digestComponent {
			sum.CoreSeconds = sum.CoreSeconds.Add(r.usedBetween(k, r.stop, r.start, r.stop))
		}
	}
}

// sortedDigests returns the digests in order. Records of a site that are parts of runs and
// others have different tuples.
func (d *digester) sortedDigests() []Digest {
	var list []Digest
	for _, s := range d.sums {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Digest) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Month, b.Month))
	})
	var out []Digest
	for i := range list {
		if n := len(out) - 1; n >= 0 && out[n].Site == list[i].Site && out[n].Month == list[i].Month {
			out[n].Records += list[i].Records
			out[n].CoreSeconds = out[n].CoreSeconds.Add(list[i].CoreSeconds)
			continue
		}
		out = append(out, list[i])
	}
	return out
}
