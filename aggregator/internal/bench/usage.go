package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"
)

// The year of the benchmark records.
const (
	yearFrom = "2024-01-01T00:00:00Z"
	yearTo   = "2025-01-01T00:00:00Z"
)

// questions is how often each question about usage is asked.
const questions = 200

// usage measures GET /v1/usage, one question after the other: a year by user and day,
// any window by group, and a month by user against the way without it, which is to
// fetch the month's records.
func (b *bench) usage(ctx context.Context) error {
	s, err := b.first(ctx)
	if err != nil {
		return err
	}
	b.progress.begin("usage")
	if err := s.node.indexed(ctx); err != nil {
		return err
	}
	year := url.Values{"from": {yearFrom}, "to": {yearTo}, "by": {"user_id"}, "bucket": {"day"}, "measure": {"Cores"}}
	if err := b.ask(ctx, s.node, "usage_year", "usage of a year by user and day, as columns of JSON: p99", func() url.Values { return year }); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(3, 4))
	begin, err := time.Parse(time.RFC3339, yearFrom)
	if err != nil {
		return err
	}
	err = b.ask(ctx, s.node, "usage_window", "usage of any window to the microsecond, by group: p99", func() url.Values {
		from := begin.Add(time.Duration(rng.Int64N(int64(180*24*time.Hour))) / 1000 * 1000)
		to := from.Add(time.Duration(int64(48*time.Hour)+rng.Int64N(int64(180*24*time.Hour))) / 1000 * 1000)
		return url.Values{"from": {from.Format(time.RFC3339Nano)}, "to": {to.Format(time.RFC3339Nano)}, "by": {"group_id"}}
	})
	if err != nil {
		return err
	}
	return b.month(ctx, s.node)
}

// indexed waits until the node has its sums by day.
func (n *nodeSite) indexed(ctx context.Context) error {
	for {
		text, err := get(ctx, n.url()+"/metrics")
		if err != nil {
			return err
		}
		if strings.Contains(text, "\nbursar_usage_indexes 1\n") {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ask puts a kind of question often.
func (b *bench) ask(ctx context.Context, n *nodeSite, name, what string, question func() url.Values) error {
	var times []float64
	for range questions {
		query := question().Encode()
		begun := time.Now()
		if _, err := get(ctx, n.url()+"/v1/usage?"+query); err != nil {
			return err
		}
		times = append(times, since(begun))
	}
	line := Line{
		Name: name, What: what, Unit: "ms", Runs: 1,
		Measured: percentile(times, 99), Low: percentile(times, 50), High: percentile(times, 100), Spread: "p50–max",
	}
	b.add(line.against(under(50)).noted("%d by HTTP, one after the other", questions))
	return nil
}

// month asks for March, and fetches its records, which is what a client of AUDITOR
// does before it adds up.
func (b *bench) month(ctx context.Context, n *nodeSite) error {
	const from, to = "2024-03-01T00:00:00Z", "2024-04-01T00:00:00Z"
	begun := time.Now()
	for range questions {
		query := url.Values{"from": {from}, "to": {to}, "by": {"user_id"}}
		if _, err := get(ctx, n.url()+"/v1/usage?"+query.Encode()); err != nil {
			return err
		}
	}
	asked := since(begun) / questions
	begun = time.Now()
	query := url.Values{"start_time[lt]": {to}, "stop_time[gt]": {from}}
	lines, err := sweep(ctx, n.url()+"/records?"+query.Encode(), func(int) {})
	if err != nil {
		return err
	}
	fetched := since(begun)
	b.add(Line{
		Name: "usage_ratio", What: "usage of a month by user, against fetching its records", Unit: "×", Runs: 1, Measured: fetched / asked, Low: fetched / asked, High: fetched / asked,
		Note: fmt.Sprintf("%.1f ms against %.0f ms for %d records, which were not even added up", asked, fetched, lines),
	})
	return nil
}
