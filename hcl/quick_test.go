package hcl

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuickClockAgreesWithTheExactOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.SampledFrom([]string{"", "0", "5", "23", "24", "59", "60", "07", "100", "99998", "99999", "123456", "x", "+1", "1.5"})
		point := rapid.SampledFrom([]string{"", ".", ".1", ".123456789", ".1234567894", ".000", ".x"})
		s := field.Draw(t, "a") + rapid.SampledFrom([]string{":", "-", ""}).Draw(t, "mark") + field.Draw(t, "b")
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			s += ":" + field.Draw(t, "c")
		}
		s += point.Draw(t, "point")
		got, ok := quickClock(s)
		if !ok {
			return
		}
		want, err := secondsOf(s)
		if err != nil {
			t.Fatalf("%q is %v and %v", s, got, err)
		}
		if n := roundHalfEven(want); n.Int64() != int64(got) {
			t.Fatalf("%q is %v and %v", s, got, time.Duration(n.Int64()))
		}
	})
}

func TestQuickClockTakesWhatSacctPrints(t *testing.T) {
	for _, s := range []string{"00:00.000", "02:03:04", "1-02:03:04", "03:04.567", "365-23:59:59", "90:00"} {
		if _, ok := quickClock(s); !ok {
			t.Error(fmt.Sprint(s, " takes the slow way"))
		}
	}
}
