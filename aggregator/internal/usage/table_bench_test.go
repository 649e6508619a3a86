package usage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/proto/record"
)

// yearOfUsers answers with 1 500 users, of whom most use something on most days.
func yearOfUsers(_ context.Context, q sums.Query) (*sums.Answer, error) {
	const users = 1500
	rng := rand.New(rand.NewPCG(1, 2))
	cells := users * (len(q.Edges) - 1)
	a := &sums.Answer{Edges: q.Edges, By: q.By, Records: make([]uint64, cells), Begun: make([]uint64, cells), Jobs: make([]uint64, cells), Started: make([]uint64, cells)}
	cores := sums.Component{Name: "Cores", Used: make([]sums.Sum, cells)}
	score := sums.Score{Name: "HEPScore23", Used: make([]float64, cells), Lacking: make([]sums.Sum, cells)}
	for i := range users {
		a.Groups = append(a.Groups, sums.Group{Values: []string{fmt.Sprintf("user%04d", i)}, Lacks: []bool{false}})
	}
	for i := range cells {
		if rng.IntN(3) > 0 {
			v := rng.Int64N(1e15)
			a.Records[i], cores.Used[i], score.Used[i] = uint64(rng.IntN(100)), sums.SumOf(v), float64(v)*21.5
		}
	}
	cores.Scores = []sums.Score{score}
	a.Components = []sums.Component{cores}
	return a, nil
}

func BenchmarkAYearByUserAndDay(b *testing.B) {
	w, err := calendar.ParseWindow("2026", 0, time.UTC)
	if err != nil {
		b.Fatal(err)
	}
	for _, measure := range []string{"Cores", "Cores*HEPScore23", ""} {
		r := Request{Window: w, Bucket: calendar.Day, By: []string{"user_id"}, Now: record.MaxTime}
		if measure != "" {
			r.Measures = []string{measure}
		}
		s, err := MakeTable(b.Context(), plain(yearOfUsers), r)
		if err != nil {
			b.Fatal(err)
		}
		for _, format := range []string{"json", "csv"} {
			b.Run(measure+" "+format, func(b *testing.B) {
				for b.Loop() {
					send := func([]byte) error { return nil }
					if format == "json" {
						err = s.JSON([]byte("{}"), send)
					} else {
						err = s.CSV(send)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
