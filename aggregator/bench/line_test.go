package main

import (
	"strings"
	"testing"
)

func TestNumbersAreWrittenForPeople(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{250_000, "rec/s", "250 000 rec/s"}, {1_234_567.8, "rec/s", "1 234 568 rec/s"}, {9999, "B", "9999 B"},
		{0.654, "ms", "0.65 ms"}, {12.34, "s", "12.3 s"}, {3, "×", "3 ×"}, {0, "s", "0 s"},
	} {
		if got := formatNumber(c.v, c.unit); got != c.want {
			t.Errorf("number(%v) = %q, want %q", c.v, got, c.want)
		}
	}
}

func TestALineSaysWhetherItsTargetIsReached(t *testing.T) {
	values := []float64{90_000, 120_000, 110_000}
	l := overRuns("post", "POST", "rec/s", atLeast(100_000), values)
	if l.Measured != 110_000 || l.Low != 90_000 || l.High != 120_000 || l.Runs != 3 || l.Target != "≥ 100 000 rec/s" || !*l.Reached {
		t.Errorf("%+v", l)
	}
	l = overRuns("restart", "restart", "s", goalUnder(5), []float64{6})
	if *l.Reached || !strings.Contains(l.formatRow(), "✗") || !strings.Contains(l.formatRow(), "one run") {
		t.Errorf("%+v %q", l, l.formatRow())
	}
	if l = overRuns("x", "x", "s", goal{}, []float64{6}); l.Reached != nil || l.Target != "" {
		t.Errorf("%+v", l)
	}
	if l = overRuns("x", "x", "s", goalUnder(1), nil); l.Skipped == "" {
		t.Errorf("%+v", l)
	}
}

func TestPercentilesAreOfTheSortedValues(t *testing.T) {
	var values []float64
	for i := range 100 {
		values = append(values, float64(99-i))
	}
	for p, want := range map[int]float64{0: 0, 50: 50, 99: 99, 100: 99} {
		if got := percentileOf(values, p); got != want {
			t.Errorf("percentile %d = %v, want %v", p, got, want)
		}
	}
	if percentileOf(nil, 50) != 0 {
		t.Error("of nothing")
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, args := range []string{"-only nothing", "-ids nomad", "-n 5", "-runs 0", "-format xml", "extra"} {
		if _, err := parseOptions(strings.Fields(args)); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	o, err := parseOptions(strings.Fields("-n 20000 -only ingest,disk -ids uuid"))
	if err != nil || !o.wantsMeasurement("disk") || o.wantsMeasurement("dev") {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestAJournalTellsOfALineThatIsWaitedFor(t *testing.T) {
	j := newJournal()
	write := func(s string) {
		if n, err := j.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	write("one\ntw")
	if got := <-j.expectLine("one"); got != "one" {
		t.Errorf("%q of the past", got)
	}
	later := j.expectLine("two")
	write("o\nthree\n")
	if got := <-later; got != "two" {
		t.Errorf("%q of the future", got)
	}
	if j.lastLines() != "one\ntwo\nthree" {
		t.Errorf("tail %q", j.lastLines())
	}
}
