package recordfile

import (
	"maps"
	"math/big"
	"math/bits"
	"strings"

	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/record"
)

// parseOrigin reads what [record.Origin.String] gives.
func parseOrigin(s string) (o record.Origin, ok bool) {
	parts := strings.SplitN(s, "/", 3)
	switch {
	case s == record.Pushed.String():
		return record.Pushed, true
	case len(parts) == 2 && parts[1] == "pushed":
		return record.Origin{Agent: parts[0]}, true
	case len(parts) == 3:
		return record.Origin{Agent: parts[0], Type: parts[1], Label: parts[2]}, true
	}
	return record.Origin{}, false
}

func parseRank(s string) (record.Rank, bool) {
	for r := record.RankImport; r.Valid(); r++ {
		if r.String() == s {
			return r, true
		}
	}
	return 0, false
}

// Totals counts rows: how many there are, what they used, and the sum by which the store
// knows them. It does not depend on their order. The zero Totals has none.
type Totals struct {
	archived.Sum

	used   map[string]*used // by kind and component
	buffer []byte
}

// used is a whole number of 128 bits.
type used struct{ hi, lo uint64 }

func (u *used) addUint128(hi, lo uint64) {
	var carry uint64
	u.lo, carry = bits.Add64(u.lo, lo, 0)
	u.hi, _ = bits.Add64(u.hi, hi, carry)
}

func (u *used) String() string {
	b := new(big.Int).SetUint64(u.hi)
	return b.Add(b.Lsh(b, 64), new(big.Int).SetUint64(u.lo)).String()
}

// Row counts a row.
func (t *Totals) Row(r *archived.Row) {
	t.buffer = r.Append(t.buffer[:0])
	t.Add(t.buffer)
	if t.used == nil {
		t.used = map[string]*used{}
	}
	length := uint64(max(0, r.ShownStop()-r.Record.Start))
	for i := range r.Record.Components {
		c := &r.Record.Components[i]
		hi, lo := uint64(0), uint64(c.Amount)
		if c.Kind == record.Rate {
			hi, lo = bits.Mul64(lo, length)
		}
		key := c.Kind.String() + ":" + c.Name
		if t.used[key] == nil {
			t.used[key] = &used{}
		}
		t.used[key].addUint128(hi, lo)
	}
}

// Content is what a file has, as a manifest says it.
type Content struct {
	Records uint64 `json:"records"`
	Digest  string `json:"digest"` // of the archived.Sum of all rows
	// Sums are what all records used, as whole numbers, by kind and component: amount ×
	// microseconds of "rate:Cores", and the amount of "total:TotalCPU".
	Sums map[string]string `json:"sums"`
}

// Content returns what was counted.
func (t *Totals) Content() Content {
	c := Content{Records: t.Count, Digest: t.Digest(), Sums: map[string]string{}}
	for key, u := range t.used {
		c.Sums[key] = u.String()
	}
	return c
}

// Equal reports whether two files have the same rows.
func (c *Content) Equal(o *Content) bool {
	return c.Records == o.Records && c.Digest == o.Digest && maps.Equal(c.Sums, o.Sums)
}
