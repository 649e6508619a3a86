package main

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/civil"
	"github.com/bursar-accounting/bursar/proto/record"
)

// usage adds up what runs used by site, period and dimensions.
type usage struct {
	layout  *layout
	zone    *time.Location
	unit    unit
	sums    map[string]*usageSum // by the bytes of the key
	key     []byte
	periods []period // that were looked up, in their order
}

// unit is how long a period is.
type unit int

// The units.
const (
	byDay unit = iota
	byMonth
)

// usageSum is a row of the table daily or monthly.
type usageSum struct {
	site                      string
	dimensions                []string
	period                    period
	records, started, stopped int64
	used                      []sum
}

// period is a day or month of the zone: [from, to) in microseconds.
type period struct {
	from, to int64
	day      uint16 // the first one, in days since 1970-01-01
	month    uint32 // such as 202603
}

func newUsage(l *layout, zone *time.Location, unit unit) *usage {
	return &usage{layout: l, zone: zone, unit: unit, sums: map[string]*usageSum{}}
}

// periodOf returns the period of a time. Times outside the range of a Date count in its first or
// last period.
func (u *usage) periodOf(us int64) period {
	i, _ := slices.BinarySearchFunc(u.periods, us, func(p period, us int64) int {
		if p.to <= us {
			return -1
		}
		return 1
	})
	if i == len(u.periods) || us < u.periods[i].from {
		u.periods = slices.Insert(u.periods, i, u.newPeriod(us))
	}
	return u.periods[i]
}

func (u *usage) newPeriod(us int64) period {
	first, last := firstDay.Start(u.zone), lastDay.Start(u.zone)
	day := civil.DayOf(u.zone, min(max(record.Time(us), first), last))
	begin, end := day, day+1
	if u.unit == byMonth {
		year, month, _ := day.Date().Date()
		begin = civil.DayAt(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC))
		end = civil.DayAt(time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC))
	}
	p := period{from: int64(begin.Start(u.zone)), to: int64(end.Start(u.zone)), day: uint16(max(begin, firstDay)), month: monthOf(day.Date())}
	if begin <= firstDay {
		p.from = math.MinInt64
	}
	if end > lastDay {
		p.to = math.MaxInt64
	}
	return p
}

// The days that a Date can be on all servers, to 2106-02-06. 0 is that of marks.
const (
	firstDay civil.Day = 1
	lastDay  civil.Day = 49709
)

// addRun adds a run with a sign, to each period its part.
func (u *usage) addRun(r *row, sign int64) {
	if r.isNegative() {
		return
	}
	over := uint64(r.stop - r.start)
	var given [maxComponents]sum
	for at := u.periodOf(r.start); ; at = u.periodOf(at.to) {
		s := u.sumOf(r, at)
		started := r.start >= at.from && r.start < at.to
		if started {
			s.started += sign
		}
		if started || r.stop > at.from {
			s.records += sign
		}
		passed := uint64(min(r.stop, at.to) - r.start)
		for i := range r.used {
			until := r.used[i].usedUntil(passed, over)
			s.addUsed(i, until.subtract(given[i]), sign)
			given[i] = until
		}
		if r.stop < at.to {
			s.stopped += sign
			return
		}
	}
}

// maxComponents is how many components may be configured.
const maxComponents = 32

func (s *usageSum) addUsed(i int, used sum, sign int64) {
	if sign < 0 {
		s.used[i] = s.used[i].subtract(used)
		return
	}
	s.used[i] = s.used[i].add(used)
}

func (u *usage) sumOf(r *row, at period) *usageSum {
	u.key = binary.LittleEndian.AppendUint16(u.key[:0], at.day)
	u.key = appendText(u.key, r.site)
	for _, v := range r.dimensions {
		u.key = appendText(u.key, v)
	}
	s := u.sums[string(u.key)]
	if s == nil {
		s = &usageSum{site: strings.Clone(r.site), period: at, used: make([]sum, len(u.layout.components))}
		for _, v := range r.dimensions {
			s.dimensions = append(s.dimensions, strings.Clone(v)) // r is of a long line
		}
		u.sums[string(u.key)] = s
	}
	return s
}

// encodeRows returns the rows of each partition in RowBinary, with a mark of the batch in each.
func (u *usage) encodeRows(cluster string, batch uint64) map[uint32]*rows {
	parts := map[uint32]*rows{}
	for _, key := range slices.SortedFunc(maps.Keys(u.sums), strings.Compare) {
		s := u.sums[key]
		part := u.unit.partitionOf(s.period.month)
		out := parts[part]
		if out == nil {
			mark := usageSum{dimensions: make([]string, len(s.dimensions)), period: period{month: s.period.month}, used: make([]sum, len(s.used))}
			out = &rows{count: 1, bytes: mark.appendRow(nil, u.unit, cluster, batch, 1)}
			parts[part] = out
		}
		out.bytes = s.appendRow(out.bytes, u.unit, cluster, 0, 0)
	}
	return parts
}

// partitionOf is the partition of a month: of days the month itself, of months the year.
func (u unit) partitionOf(month uint32) uint32 {
	if u == byMonth {
		return month / 100
	}
	return month
}

func (s *usageSum) appendRow(b []byte, unit unit, cluster string, batch uint64, marked int64) []byte {
	little := binary.LittleEndian
	b = appendText(b, cluster)
	b = appendText(b, s.site)
	if unit == byMonth {
		b = little.AppendUint32(b, unit.partitionOf(s.period.month))
	}
	b = little.AppendUint32(b, s.period.month)
	b = little.AppendUint16(b, s.period.day)
	b = little.AppendUint64(b, batch)
	for _, n := range []int64{marked, s.records, s.started, s.stopped} {
		b = little.AppendUint64(b, uint64(n))
	}
	return s.appendValues(b)
}

// appendValues appends the dimensions and components.
func (s *usageSum) appendValues(b []byte) []byte {
	for _, v := range s.dimensions {
		b = appendText(b, v)
	}
	for _, v := range s.used {
		b = v.appendTo(b)
	}
	return b
}

// rows are rows of a partition in RowBinary. Count is how many of a batch the table then has, by
// which it is known whether they are there.
type rows struct {
	count int64
	bytes []byte
}
