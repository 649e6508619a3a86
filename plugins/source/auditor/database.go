package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// database is AUDITOR's PostgreSQL.
type database struct{ config *pgx.ConnConfig }

func newDatabase(s *source, dsn string) (*database, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil { // it may quote the address
		return nil, errors.New(`it is not an address of PostgreSQL, such as "postgres://reader@db.example.org/auditor"`)
	}
	config.ConnectTimeout = min(s.Timeout, time.Minute)
	config.RuntimeParams["timezone"] = "UTC"
	config.RuntimeParams["application_name"] = "bursar-source-auditor"
	config.RuntimeParams["default_transaction_read_only"] = "on"
	config.RuntimeParams["statement_timeout"] = fmt.Sprint(s.Timeout.Milliseconds())
	return &database{config}, nil
}

// name implements input.
func (d *database) name() string {
	return fmt.Sprintf("postgres://%s:%d/%s", d.config.Host, d.config.Port, d.config.Database)
}

// row writes a record as AUDITOR's server does.
const row = `SELECT record_id, updated_at, json_build_object('record_id', record_id, 'meta', meta, 'components', components,
	'start_time', start_time, 'stop_time', stop_time)::text FROM auditor_accounting `

// The questions for pages, by keys.
const (
	byID     = row + `WHERE record_id > $1 ORDER BY record_id LIMIT $2`
	byChange = row + `WHERE (updated_at, record_id) > ($3, $1) ORDER BY updated_at, record_id LIMIT $2`
	byStop   = row + `WHERE record_id > $1 AND (stop_time >= $3 AND stop_time < $4 OR stop_time IS NULL AND start_time >= $3 AND start_time < $4)
	ORDER BY record_id LIMIT $2`
)

// inTransaction calls do in a transaction that reads one state of the table and writes nothing.
func (d *database) inTransaction(ctx context.Context, do func(tx pgx.Tx) error) (err error) {
	busy := sdk.Idle(ctx) // a connection has a deadline
	conn, err := pgx.ConnectConfig(ctx, d.config)
	busy()
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = conn.Close(closing) // nothing was written
	}()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err == nil {
		err = do(tx)
	}
	if problem, ok := errors.AsType[*pgconn.PgError](err); ok && problem.Code == "42P01" {
		return fmt.Errorf("database: %w; AUDITOR has this table since 0.6.2: run its migrations, or name another database", err)
	}
	return err
}

// collectRecords implements input: all by id once, and then what has changed.
func (d *database) collectRecords(ctx context.Context, c *collection, at *place) error {
	return d.inTransaction(ctx, func(tx pgx.Tx) error {
		switch w := c.from.Window; {
		case w != nil:
			return d.sendPages(ctx, tx, c, at, byStop, func() []any { return []any{w.From, w.To} })
		case c.from.Rewind > 0:
			at.ID, at.Since = "", at.Since-c.from.Rewind.Microseconds()
		}
		if at.All {
			return d.sendChanges(ctx, tx, c, at)
		}
		continued := at.ID != ""
		total, err := d.countAll(ctx, tx, at)
		if err != nil {
			return err
		}
		c.total = total
		if err := d.sendPages(ctx, tx, c, at, byID, func() []any { return nil }); err != nil {
			return err
		}
		at.All, at.ID = true, ""
		if continued { // what changed since the first part was read
			return d.sendChanges(ctx, tx, c, at)
		}
		return c.flush(ctx)
	})
}

// sendChanges hands on what has changed since the last look.
func (d *database) sendChanges(ctx context.Context, tx pgx.Tx, c *collection, at *place) error {
	at.ID, at.Since = "", max(at.Since-c.Overlap.Microseconds(), 0)
	return d.sendPages(ctx, tx, c, at, byChange, func() []any { return []any{time.UnixMicro(at.Since)} })
}

// countAll says how many records there are, and notes from which change on to follow.
func (d *database) countAll(ctx context.Context, tx pgx.Tx, at *place) (total int64, err error) {
	var last *time.Time
	busy := sdk.Idle(ctx) // statement_timeout
	defer busy()
	if err := tx.QueryRow(ctx, `SELECT count(*), max(updated_at) FROM auditor_accounting`).Scan(&total, &last); err != nil {
		return 0, fmt.Errorf("database: %w", err)
	}
	if at.ID == "" && last != nil {
		at.Since = last.UnixMicro()
	}
	return total, nil
}

// sendPages hands on what the question gives, page by page. More are its parameters behind
// the id and the limit.
func (d *database) sendPages(ctx context.Context, tx pgx.Tx, c *collection, at *place, question string, more func() []any) error {
	for {
		busy := sdk.Idle(ctx) // statement_timeout
		rows, err := tx.Query(ctx, question, append([]any{at.ID, c.Page}, more()...)...)
		var page []stored
		if err == nil { // all of it: the agent may take its time
			page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
		}
		busy()
		if err != nil {
			return fmt.Errorf("database: %w", err)
		}
		for _, r := range page {
			at.ID, at.Done = r.ID, at.Done+1
			if question == byChange {
				at.Since = r.Changed.UnixMicro()
			}
			if c.total > 0 {
				c.setProgress(at.Done, c.total, "records", r.ID)
			}
			if _, _, err := c.decodeAndAdd(ctx, r.Record, c.kinds); err != nil {
				return err
			}
		}
		if len(page) < c.Page {
			return nil
		}
	}
}

// stored is a row.
type stored struct {
	ID      string
	Changed time.Time
	Record  []byte // as JSON
}

// countWindow implements input.
func (d *database) countWindow(ctx context.Context, w sdk.Window) (n int64, err error) {
	err = d.inTransaction(ctx, func(tx pgx.Tx) error {
		busy := sdk.Idle(ctx) // statement_timeout
		defer busy()
		return tx.QueryRow(ctx, `SELECT count(*) FROM auditor_accounting WHERE stop_time >= $1 AND stop_time < $2`, w.From, w.To).Scan(&n)
	})
	return n, err
}
