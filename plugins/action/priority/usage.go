package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// usage is what groups have used.
type usage struct {
	config *config
	from   record.Time // of the look-back; None: there is none
	now    record.Time
	groups map[string]*sum // the mapped ones
	others map[string]*sum // groups that are not mapped
	more   int             // records of others that are not in the list
	bare   int             // records without a group
	idle   int             // records without any of the components
	lacks  map[string]int  // records of which a component has no score, by component
	ends   map[string]record.Time

	key     []byte
	product big.Int
	factor  big.Int
}

// sum adds up exactly: one sum of whole numbers for each product of scores.
type sum struct {
	parts map[string]*part
	done  big.Rat // of parts that were too many to keep
}

type part struct {
	scores []float64
	amount big.Int // in millionths
}

// Bounds of what is kept of hostile records.
const (
	maxParts  = 1000
	maxOthers = 10_000
)

func newUsage(c *config, now time.Time) *usage {
	u := &usage{
		config: c, now: record.FromStd(now), from: record.None,
		groups: map[string]*sum{}, others: map[string]*sum{}, lacks: map[string]int{}, ends: map[string]record.Time{},
	}
	if c.lookback > 0 {
		u.from = u.now - record.Time(c.lookback.Microseconds())
	}
	for i := range c.groups {
		u.groups[c.groups[i].name] = &sum{}
	}
	return u
}

// collectRecords reads all records that count. Those that go on are read first: one that ends
// meanwhile is then found twice, and not missed.
func (u *usage) collectRecords(ctx context.Context, data *sdk.Data) error {
	open := map[string]bool{}
	if u.config.running {
		if err := u.readEnds(ctx, data); err != nil {
			return err
		}
		if err := u.collectOpen(ctx, data, open); err != nil {
			return err
		}
	}
	for r, err := range data.Records(ctx, u.endedQuery()) {
		if err != nil {
			return fmt.Errorf("records that have ended: %w", err)
		}
		if !open[r.ID] {
			u.addRecord(&r, r.Stop)
		}
	}
	return nil
}

// endedQuery asks for the records that have ended and count, those in archives included.
func (u *usage) endedQuery() *v1.ListRecordsQuery {
	q := &v1.ListRecordsQuery{Open: new(false), Archived: new(true)}
	switch {
	case u.from == record.None:
	case u.config.atStart:
		q.StartTime.Gte = v1.Stamp(u.from)
	default:
		q.StopTime.Gt = v1.Stamp(u.from)
	}
	if !u.config.atStart {
		q.StartTime.Lt = v1.Stamp(u.now)
	}
	return q
}

// collectOpen adds the runs that go on, up to now and no further than their source is
// complete, as /v1/usage counts them.
func (u *usage) collectOpen(ctx context.Context, data *sdk.Data, seen map[string]bool) error {
	query := &v1.ListRecordsQuery{Open: new(true), StartTime: v1.TimeTest{Lt: v1.Stamp(u.now)}}
	for line, err := range data.Lines(ctx, v1.ListRecordsAddress(query, "")) {
		var r record.Record
		var from struct {
			Origin string `json:"origin"`
		}
		if err == nil {
			r, err = wire.DecodeRecordJSON(line)
		}
		if err == nil {
			err = json.Unmarshal(line, &from)
		}
		if err != nil {
			return fmt.Errorf("records that go on: %w", err)
		}
		end := u.now
		if known, ok := u.ends[from.Origin]; ok {
			end = min(end, known)
		}
		seen[strings.Clone(r.ID)] = true
		u.addRecord(&r, end)
	}
	return nil
}

// readEnds reads up to when each source is complete.
func (u *usage) readEnds(ctx context.Context, data *sdk.Data) error {
	answer, err := data.API().Agents(ctx, nil)
	if err != nil {
		return err
	}
	for _, a := range answer.Agents {
		for _, s := range a.Sources {
			if !s.CompleteTo.IsZero() {
				u.ends[record.Origin{Agent: a.Name, Type: s.Type, Label: s.Label}.String()] = record.FromStd(s.CompleteTo.Time)
			}
		}
	}
	return nil
}

// addRecord adds a record that runs to an end.
func (u *usage) addRecord(r *record.Record, end record.Time) {
	length := end - r.Start
	counted := min(end, u.now) - r.Start
	if u.config.atStart {
		length -= length % record.Second // AUDITOR knows whole seconds
		counted = length
	} else if u.from != record.None && u.from > r.Start {
		counted -= u.from - r.Start
	}
	if length <= 0 || counted <= 0 {
		return
	}
	if !u.multiplyAmounts(r, int64(length), int64(counted)) {
		u.idle++
		return
	}
	to := u.sumOf(r)
	if to == nil {
		return
	}
	to.addAmount(u.key, &u.product)
}

// multiplyAmounts makes the product of the amounts of a record's components, as long as they
// count, in millionths, and the key of their scores; false: it has none of the
// components. A total was used evenly over the run.
func (u *usage) multiplyAmounts(r *record.Record, length, counted int64) (found bool) {
	u.key = u.key[:0]
	u.product.SetInt64(counted)
	totals := 0
	for i := range r.Components {
		c := &r.Components[i]
		name, wanted := u.config.components[c.Name]
		if !wanted {
			continue
		}
		found = true
		u.product.Mul(&u.product, u.factor.SetInt64(c.Amount))
		if c.Kind == record.Total {
			u.product.Mul(&u.product, u.factor.SetInt64(int64(record.Second)))
			totals++
		}
		if name != "" {
			u.key = binary.BigEndian.AppendUint64(u.key, math.Float64bits(u.scoreOf(c, name)))
		}
	}
	for range totals {
		u.product.Quo(&u.product, u.factor.SetInt64(length))
	}
	return found
}

// scoreOf is the value of a component's score; 1 when it has none of that name.
func (u *usage) scoreOf(c *record.Component, name string) float64 {
	for _, s := range c.Scores {
		if s.Name == name {
			return s.Value
		}
	}
	u.lacks[c.Name]++
	return 1
}

// sumOf is the sum of a record's group; nil: it is not kept.
func (u *usage) sumOf(r *record.Record) *sum {
	values := r.Meta.Get(u.config.groupMeta)
	if len(values) == 0 {
		u.bare++
		return nil
	}
	if to := u.groups[values[0]]; to != nil {
		return to
	}
	if to := u.others[values[0]]; to != nil {
		return to
	}
	if len(u.others) == maxOthers {
		u.more++
		return nil
	}
	to := &sum{}
	u.others[strings.Clone(values[0])] = to
	return to
}

// addAmount adds millionths of an amount that is weighted with scores.
func (s *sum) addAmount(key []byte, amount *big.Int) {
	p := s.parts[string(key)]
	if p == nil {
		if len(s.parts) == maxParts {
			s.foldParts()
		}
		if s.parts == nil {
			s.parts = map[string]*part{}
		}
		p = &part{}
		for k := key; len(k) > 0; k = k[8:] {
			p.scores = append(p.scores, math.Float64frombits(binary.BigEndian.Uint64(k)))
		}
		s.parts[string(key)] = p
	}
	p.amount.Add(&p.amount, amount)
}

// foldParts adds up all parts. A score counts as the decimal number that it is written as.
func (s *sum) foldParts() {
	million := big.NewInt(int64(record.Second))
	for _, p := range s.parts {
		value := new(big.Rat).SetFrac(&p.amount, million)
		for _, score := range p.scores {
			if exact, ok := new(big.Rat).SetString(strconv.FormatFloat(score, 'g', -1, 64)); ok {
				value.Mul(value, exact)
			}
		}
		s.done.Add(&s.done, value)
	}
	s.parts = nil
}

// totalUsage is the sum, in amount × seconds.
func (s *sum) totalUsage() *big.Rat {
	s.foldParts()
	return &s.done
}

// groupTotals are the totals of the mapped groups, in their order.
func (u *usage) groupTotals() []*big.Rat {
	out := make([]*big.Rat, len(u.config.groups))
	for i := range u.config.groups {
		out[i] = u.groups[u.config.groups[i].name].totalUsage()
	}
	return out
}

// unmappedGroups are the groups that are not mapped, those that used most first.
func (u *usage) unmappedGroups() []string {
	names := slices.Collect(maps.Keys(u.others))
	slices.SortFunc(names, func(a, b string) int {
		if n := u.others[b].totalUsage().Cmp(u.others[a].totalUsage()); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	return names
}

// formatDecimal writes a usage with at most six digits behind the point.
func formatDecimal(r *big.Rat) string {
	return string(bytes.TrimRight(bytes.TrimRight([]byte(r.FloatString(6)), "0"), "."))
}
