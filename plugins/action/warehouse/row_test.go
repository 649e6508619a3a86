package main

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

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

func TestDays_OfARun_AddUpToTheWholeRun(t *testing.T) {
	zone, err := time.LoadLocation(testLayout.zone)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := drawRow(t)
		d := newDays(&testLayout, zone)
		d.addRun(&r, 1)
		var started, stopped int64
		used := make([]sum, len(r.used))
		for _, s := range d.sums {
			started, stopped = started+s.started, stopped+s.stopped
			for i := range used {
				used[i] = used[i].add(s.used[i])
			}
			if length := s.day.to - s.day.from; length%(3600*million) != 0 || length < 23*3600*million || length > 25*3600*million {
				t.Errorf("the day %d takes %d µs", s.day.number, length)
			}
		}
		if want := int64(1); !r.isNegative() && (started != want || stopped != want) || !reflect.DeepEqual(used, r.used) {
			t.Errorf("%d started, %d stopped, %v used, want %v", started, stopped, used, r.used)
		}
		d.addRun(&r, -1)
		for _, s := range d.sums {
			if s.records != 0 || s.started != 0 || s.stopped != 0 || s.used[0] != (sum{}) || s.used[1] != (sum{}) {
				t.Errorf("%+v is left", s)
			}
		}
	})
}

func TestDays_OutsideOfADate_CountOnTheFirstAndTheLast(t *testing.T) {
	d := newDays(&testLayout, time.UTC)
	for year, want := range map[int]uint16{1: 1, 1969: 1, 1971: 365, 2106: 49673, 2107: lastDay, 9999: lastDay} {
		if got := d.dayOf(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()).number; got != want {
			t.Errorf("%d is day %d, want %d", year, got, want)
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
