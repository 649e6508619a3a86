package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// How who has AUDITOR's table asks for usage. It has no index but that of the record
// ids; one of times is made before, as someone who asks often would have it.
const (
	pgTimes = `CREATE INDEX ON records (start_time, stop_time)`
	pgUsage = `SELECT who, bucket, sum(amount * EXTRACT(EPOCH FROM upto - since))::float8 FROM (
	SELECT r.meta->$3->>0 AS who, d AS bucket, (c->>'amount')::numeric AS amount,
		greatest(r.start_time, d, $1) AS since, least(r.stop_time, d + $4::interval, $2) AS upto
	FROM records r
	CROSS JOIN LATERAL jsonb_array_elements(r.components) c
	CROSS JOIN LATERAL generate_series(%s, least(r.stop_time, $2) - interval '1 microsecond', $4::interval) d
	WHERE r.start_time < $2 AND r.stop_time > $1 AND c->>'name' = 'Cores') x
	GROUP BY who, bucket`
	// Where the first bucket of a record begins, with buckets of a day and with one.
	pgDay, pgOnce = `date_trunc('day', greatest(r.start_time, $1))`, `greatest(r.start_time, $1)`
)

// pgQuestions puts the questions about usage to PostgreSQL.
func (b *bench) pgQuestions(ctx context.Context, s *pgServer) error {
	conn, err := s.connectTo(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was only read
	b.progress.beginPiece("PostgreSQL: an index of times, and ANALYZE")
	for _, text := range []string{"SET TIME ZONE 'UTC'", pgTimes, "VACUUM ANALYZE records"} {
		if _, err := conn.Exec(ctx, text); err != nil {
			return err
		}
	}
	for _, q := range askedQuestions() {
		if err := b.pgQuestion(ctx, conn, q); err != nil {
			return fmt.Errorf("%s: %w", q.what, err)
		}
	}
	return nil
}

func (b *bench) pgQuestion(ctx context.Context, conn *pgx.Conn, q question) error {
	b.progress.beginPiece("PostgreSQL: %s", q.what)
	text, bucket := fmt.Sprintf(pgUsage, pgOnce), "1000 years"
	if q.daily {
		text, bucket = fmt.Sprintf(pgUsage, pgDay), "1 day"
	}
	var times []float64
	total := 0.0
	for range 2 { // the second time the pages are warm
		begun := time.Now()
		rows, err := conn.Query(ctx, text, q.from, q.to, q.by, bucket)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (sum float64, err error) {
			var who *string
			var at time.Time
			return sum, row.Scan(&who, &at, &sum)
		})
		if err != nil {
			return err
		}
		times = append(times, millisecondsSince(begun))
		total = 0
		for _, sum := range list {
			total += sum
		}
	}
	return b.addComparison(q, "PostgreSQL", times[1], total, fmt.Sprintf("; the first time %.0f", times[0]))
}
