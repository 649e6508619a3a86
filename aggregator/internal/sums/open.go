package sums

import (
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// OpenEnds says up to when runs that go on are counted: by source, the time to which it is
// known to be complete.
type OpenEnds map[record.Origin]record.Time

// ReadOpenEnds returns those of a view.
func ReadOpenEnds(v *store.View) (OpenEnds, error) {
	agents, err := v.Agents()
	if err != nil {
		return nil, err
	}
	ends := OpenEnds{}
	for i := range agents {
		for _, w := range agents[i].Watermarks {
			ends[w.Source] = w.CompleteTo
		}
	}
	return ends, nil
}

// EndOf is the time up to which a run that goes on is counted: the present, and no further
// than its source is known to be complete.
func (e OpenEnds) EndOf(start, now record.Time, origin record.Origin) record.Time {
	if w, ok := e[origin]; ok {
		now = min(now, w)
	}
	return max(now, start)
}

// OpenDigester adds up records that go on, by site. Its zero value is ready for use.
type OpenDigester struct{ sums map[string]*Digest }

// AddRow adds a record that is counted up to end.
func (d *OpenDigester) AddRow(row *columns.Row, end record.Time) {
	site := ""
	if list := row.Record.Meta.Get(digestKey); len(list) > 0 {
		site = list[0]
	}
	sum := d.sums[site]
	if sum == nil {
		if d.sums == nil {
			d.sums = map[string]*Digest{}
		}
		sum = &Digest{Site: strings.Clone(site)}
		d.sums[sum.Site] = sum
	}
	sum.Records++
	for i := range row.Record.Components {
		c := &row.Record.Components[i]
		switch {
		case c.Name != digestComponent:
		case c.Kind == record.Total:
			sum.CoreSeconds = sum.CoreSeconds.Add(Product(c.Amount, million))
		default:
			sum.CoreSeconds = sum.CoreSeconds.Add(Product(c.Amount, int64(end-row.Record.Start)))
		}
	}
}

// Digests returns the sums in the order of sites.
func (d *OpenDigester) Digests() (list []Digest) {
	for _, s := range d.sums {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Digest) int { return strings.Compare(a.Site, b.Site) })
	return list
}
