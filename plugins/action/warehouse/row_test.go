package main

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/proto/civil"
	"github.com/bursar-accounting/bursar/proto/record"
)

var testLayout = layout{dimensions: []string{"group_id"}, components: []string{"Cores", "TotalCPU"}, zone: "Europe/Berlin"}

func drawRow(t *rapid.T) row {
	start := rapid.Int64Range(3*86400*million, 4e15).Draw(t, "start") // days of a Date
	r := record.Record{
		ID: rapid.String().Draw(t, "id"), State: "COMPLETED", Start: record.Time(start),
		Stop: record.Time(start + rapid.Int64Range(-10, 100*86400*million).Draw(t, "runs")),
		Meta: record.Meta{{Key: "group_id", Values: []string{rapid.String().Draw(t, "group"), "second"}}, {Key: "site_id", Values: []string{"nemo"}}},
		Components: []record.Component{
			{Name: "Cores", Amount: rapid.Int64Range(0, 1<<62).Draw(t, "cores")},
			{Name: "TotalCPU", Kind: record.Total, Amount: rapid.Int64Range(0, 1<<62).Draw(t, "cpu")},
		}[:rapid.IntRange(0, 2).Draw(t, "components")],
	}
	return testLayout.rowOf(&r, rapid.Uint64().Draw(t, "seq"))
}

// drawZone draws a zone: clocks of most of these have skipped midnight or gone back over it.
func drawZone(t *rapid.T) *time.Location {
	zone, err := time.LoadLocation(rapid.SampledFrom([]string{
		"UTC", "Europe/Berlin", "Atlantic/Azores", "America/Santiago", "America/Havana", "America/Asuncion", "America/St_Johns", "Pacific/Apia", "Australia/Lord_Howe",
	}).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestUsage_OfARun_AddsUpToTheWholeRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, zone := drawRow(t), drawZone(t)
		for _, unit := range []unit{byDay, byMonth} {
			u := newUsage(&testLayout, zone, unit)
			u.addRun(&r, 1)
			var started, stopped int64
			used := make([]sum, len(r.used))
			for _, s := range u.sums {
				started, stopped = started+s.started, stopped+s.stopped
				for i := range used {
					used[i] = used[i].add(s.used[i])
				}
			}
			if want := int64(1); !r.isNegative() && (started != want || stopped != want) || !reflect.DeepEqual(used, r.used) {
				t.Errorf("%d started, %d stopped, %v used, want %v", started, stopped, used, r.used)
			}
			u.addRun(&r, -1)
			for _, s := range u.sums {
				if s.records != 0 || s.started != 0 || s.stopped != 0 || s.used[0] != (sum{}) || s.used[1] != (sum{}) {
					t.Errorf("%+v is left", s)
				}
			}
		}
	})
}

func TestPeriodOf_TimesInAnyOrder_AreInTheirPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := drawZone(t)
		changes := []time.Time{} // and times near changes of the clock
		for at := time.Unix(rapid.Int64Range(0, 2e9).Draw(t, "from"), 0).In(zone); len(changes) < 4; {
			_, at = at.ZoneBounds()
			if at.IsZero() {
				break
			}
			changes = append(changes, at)
		}
		days, months := newUsage(&testLayout, zone, byDay), newUsage(&testLayout, zone, byMonth)
		for range 20 {
			us := rapid.Int64Range(3*86400*million, 4e15).Draw(t, "time")
			if len(changes) > 0 && rapid.Bool().Draw(t, "near") {
				us = rapid.SampledFrom(changes).Draw(t, "change").UnixMicro() + rapid.Int64Range(-2*86400*million, 2*86400*million).Draw(t, "after")
			}
			day := civil.DayOf(zone, record.Time(us))
			if us < 3*86400*million {
				continue
			}
			for _, u := range []*usage{days, months} {
				p := u.periodOf(us)
				if us < p.from || us >= p.to || p.month != monthOf(day.Date()) || u.unit == byDay && civil.Day(p.day) != day {
					t.Fatalf("%s: %s of day %d is in %+v", zone, time.UnixMicro(us).In(zone), day, p)
				}
				if next := u.periodOf(p.to); next.from != p.to {
					t.Fatalf("%s: behind %+v comes %+v", zone, p, next)
				}
			}
		}
	})
}

// A month has what its days have, and a run counts once in it.
func TestUsage_ByMonth_HasTheSumsOfItsDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := drawZone(t)
		days, months := newUsage(&testLayout, zone, byDay), newUsage(&testLayout, zone, byMonth)
		ran := map[uint32]int64{}
		for range rapid.IntRange(1, 5).Draw(t, "runs") {
			r := drawRow(t)
			days.addRun(&r, 1)
			months.addRun(&r, 1)
			if r.isNegative() {
				continue
			}
			first, last := monthOf(civil.DayOf(zone, record.Time(r.start)).Date()), monthOf(civil.DayOf(zone, record.Time(max(r.start, r.stop-1))).Date())
			for m := first; m <= last; m++ {
				if m%100 >= 1 && m%100 <= 12 {
					ran[m]++
				}
			}
		}
		sums := map[uint32]usageSum{}
		add := func(s *usageSum, sign int64) {
			of := sums[s.period.month]
			of.started, of.stopped = of.started+sign*s.started, of.stopped+sign*s.stopped
			if of.used == nil {
				of.used = make([]sum, len(s.used))
			}
			for i := range s.used {
				of.addUsed(i, s.used[i], sign)
			}
			sums[s.period.month] = of
		}
		for _, s := range days.sums {
			add(s, 1)
		}
		for _, s := range months.sums {
			add(s, -1)
			ran[s.period.month] -= s.records
		}
		for month, s := range sums {
			if s.started != 0 || s.stopped != 0 || s.used[0] != (sum{}) || s.used[1] != (sum{}) || ran[month] != 0 {
				t.Errorf("%d differs by %+v and %d runs", month, s, ran[month])
			}
		}
	})
}

func TestPeriodOf_OutsideOfADate_IsTheFirstOrTheLast(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		days, months := newUsage(&testLayout, zone, byDay), newUsage(&testLayout, zone, byMonth)
		for year, want := range map[int][2]civil.Day{1: {1, 1}, 1969: {1, 1}, 1971: {365, 365}, 2106: {49673, 49673}, 2107: {lastDay, lastDay - 5}, 9999: {lastDay, lastDay - 5}} {
			at := time.Date(year, 1, 1, 0, 0, 0, 0, zone).UnixMicro()
			if got := [2]civil.Day{civil.Day(days.periodOf(at).day), civil.Day(months.periodOf(at).day)}; got != want {
				t.Errorf("%s: %d is day %d, want %d", name, year, got, want)
			}
		}
		for _, u := range []*usage{days, months} {
			for _, at := range []int64{math.MinInt64, math.MaxInt64} {
				if p := u.periodOf(at); at < p.from || at > p.to {
					t.Errorf("%s: %d is in %+v", name, at, p)
				}
			}
		}
	}
}

func TestRow_ReadAgain_IsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRow(t)
		b := appendText(appendText(nil, want.site), want.id)
		for _, n := range []uint64{want.seq, uint64(want.start), uint64(want.stop)} {
			b = append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48), byte(n>>56))
		}
		b = appendText(appendText(b, want.state), want.dimensions[0])
		for i, u := range want.used {
			if want.known[i] {
				b = u.appendTo(append(b, 0))
			} else {
				b = append(b, 1)
			}
		}
		in := rowReader{Reader: bytes.NewReader(b), layout: &testLayout}
		if got, ok := in.readRow(); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v: %v", got, want, in.err)
		}
		cut := rowReader{Reader: bytes.NewReader(b[:rapid.IntRange(1, len(b)-1).Draw(t, "cut")]), layout: &testLayout}
		if got, ok := cut.readRow(); ok || cut.err == nil {
			t.Errorf("a row that is cut off is %+v", got)
		}
	})
}
