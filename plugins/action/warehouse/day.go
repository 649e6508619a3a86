package main

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// days adds up what runs used by site, day and dimensions.
type days struct {
	layout *layout
	zone   *time.Location
	sums   map[string]*daySum // by the bytes of the key
	key    []byte
	day    dayTime // that was looked up last
}

// daySum is a row of the table daily.
type daySum struct {
	site                      string
	dimensions                []string
	day                       dayTime
	records, started, stopped int64
	used                      []sum
}

// dayTime is a day of the zone: [from, to) in microseconds.
type dayTime struct {
	from, to int64
	number   uint16 // days since 1970-01-01
	month    uint32
}

func newDays(l *layout, zone *time.Location) *days {
	return &days{layout: l, zone: zone, sums: map[string]*daySum{}}
}

// dayOf returns the day of a time. Days that a Date cannot be are the first and the last one
// that it can.
func (d *days) dayOf(us int64) dayTime {
	if us >= d.day.from && us < d.day.to {
		return d.day
	}
	t := time.UnixMicro(us).In(d.zone)
	year, month, day := t.Date()
	from := time.Date(year, month, day, 0, 0, 0, 0, d.zone)
	to := time.Date(year, month, day+1, 0, 0, 0, 0, d.zone)
	number := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsOfDay
	d.day = dayTime{from: from.UnixMicro(), to: to.UnixMicro(), number: uint16(number), month: monthOf(t)}
	switch {
	case number < 1: // 0 is the day of marks
		next := time.Date(1970, 1, 3, 0, 0, 0, 0, d.zone).UnixMicro()
		d.day = dayTime{from: math.MinInt64, to: next, number: 1, month: 197001}
	case number >= lastDay:
		from := time.Unix(lastDay*secondsOfDay, 0).UTC()
		first := time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, d.zone).UnixMicro()
		d.day = dayTime{from: first, to: math.MaxInt64, number: lastDay, month: monthOf(from)}
	}
	return d.day
}

const (
	secondsOfDay = 86400
	lastDay      = 49709 // 2106-02-06: later ones are no Date on old servers
)

// addRun adds a run with a sign, to each day its part.
func (d *days) addRun(r *row, sign int64) {
	if r.isNegative() {
		return
	}
	over := uint64(r.stop - r.start)
	var given [maxComponents]sum
	for day := d.dayOf(r.start); ; day = d.dayOf(day.to) {
		s := d.sumOf(r, day)
		started := r.start >= day.from && r.start < day.to
		if started {
			s.started += sign
		}
		if started || r.stop > day.from {
			s.records += sign
		}
		at := uint64(min(r.stop, day.to) - r.start)
		for i := range r.used {
			until := r.used[i].usedUntil(at, over)
			s.addUsed(i, until.subtract(given[i]), sign)
			given[i] = until
		}
		if r.stop < day.to {
			s.stopped += sign
			return
		}
	}
}

// maxComponents is how many components may be configured.
const maxComponents = 32

func (s *daySum) addUsed(i int, used sum, sign int64) {
	if sign < 0 {
		s.used[i] = s.used[i].subtract(used)
		return
	}
	s.used[i] = s.used[i].add(used)
}

func (d *days) sumOf(r *row, day dayTime) *daySum {
	d.key = binary.LittleEndian.AppendUint16(d.key[:0], day.number)
	d.key = appendText(d.key, r.site)
	for _, v := range r.dimensions {
		d.key = appendText(d.key, v)
	}
	s := d.sums[string(d.key)]
	if s == nil {
		s = &daySum{site: strings.Clone(r.site), day: day, used: make([]sum, len(d.layout.components))}
		for _, v := range r.dimensions {
			s.dimensions = append(s.dimensions, strings.Clone(v)) // r is of a long line
		}
		d.sums[string(d.key)] = s
	}
	return s
}

// encodeRows returns the rows of each month in RowBinary, with a mark of the batch in each.
func (d *days) encodeRows(cluster string, batch uint64) map[uint32]*rows {
	months := map[uint32]*rows{}
	for _, key := range slices.SortedFunc(maps.Keys(d.sums), strings.Compare) {
		s := d.sums[key]
		out := months[s.day.month]
		if out == nil {
			mark := daySum{dimensions: make([]string, len(s.dimensions)), day: dayTime{month: s.day.month}, used: make([]sum, len(s.used))}
			out = &rows{count: 1, bytes: mark.appendRow(nil, cluster, batch, 1)}
			months[s.day.month] = out
		}
		out.bytes = s.appendRow(out.bytes, cluster, 0, 0)
	}
	return months
}

func (s *daySum) appendRow(b []byte, cluster string, batch uint64, marked int64) []byte {
	little := binary.LittleEndian
	b = appendText(b, cluster)
	b = appendText(b, s.site)
	b = little.AppendUint32(b, s.day.month)
	b = little.AppendUint16(b, s.day.number)
	b = little.AppendUint64(b, batch)
	for _, n := range []int64{marked, s.records, s.started, s.stopped} {
		b = little.AppendUint64(b, uint64(n))
	}
	return s.appendValues(b)
}

// appendValues appends the dimensions and components.
func (s *daySum) appendValues(b []byte) []byte {
	for _, v := range s.dimensions {
		b = appendText(b, v)
	}
	for _, v := range s.used {
		b = v.appendTo(b)
	}
	return b
}

// rows are rows of a month in RowBinary. Count is how many of a batch the table then has, by
// which it is known whether they are there.
type rows struct {
	count int64
	bytes []byte
}
