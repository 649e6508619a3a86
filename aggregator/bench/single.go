package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// singleTime is how long each number of clients writes.
const singleTime = 5 * time.Second

// singleClients are the numbers of clients, and how many records a second are to be
// written: 1.5, 2, 5, 8 and 8 times what AUDITOR 0.11 on PostgreSQL 15 took on a machine
// where a sync takes 0.1 to 0.2 ms.
func singleClients() []struct {
	clients int
	rate    float64
} {
	return []struct {
		clients int
		rate    float64
	}{{1, 1.5 * 1307}, {4, 2 * 1985}, {16, 5 * 2537}, {64, 8 * 3073}, {128, 8 * 3073}}
}

// writer writes one record durably; close ends what it holds.
type writer interface {
	writeRecord(ctx context.Context, r *record.Record) error
	closeWriter(ctx context.Context) error
}

// measureSingle measures writes of one record each: POST /record, and one transaction of
// PostgreSQL for each record, over as many connections.
func (b *bench) measureSingle(ctx context.Context) error {
	gen := benchmark.Generator(3, b.n, b.measuredKinds()[0])
	node, err := b.newNode("single", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.stopNode(), os.RemoveAll(node.dir)) }()
	if err := node.ensureRunning(ctx); err != nil {
		return err
	}
	profiled, err := b.startProfile("single")
	if err != nil {
		return err
	}
	if err := b.measureLone(ctx, node, gen); err != nil {
		return err
	}
	ours, err := b.measureSingles(ctx, "single", "POST /record", gen, node.cpuSeconds, func(ctx context.Context) (writer, error) { return newPoster(ctx, node.baseURL()) })
	if err := errors.Join(err, profiled()); err != nil {
		return err
	}
	server, err := b.startPostgres(ctx)
	if errors.Is(err, errNoPostgres) {
		b.addLine(Line{Name: "single_postgres", What: "one record a transaction into PostgreSQL", Skipped: err.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	theirs, err := b.singlesOfPostgres(ctx, server, gen)
	if err := errors.Join(err, server.stopServer()); err != nil {
		return err
	}
	for i, c := range singleClients() {
		b.addLine(overRuns(fmt.Sprintf("single_ratio_%d", c.clients), fmt.Sprintf("POST /record against one transaction of PostgreSQL, %d clients", c.clients),
			"×", goal{}, []float64{ours[i] / theirs[i]}))
	}
	return nil
}

// measureLone says where a POST /record that is alone spends its time. Its parts are measured
// from outside: HTTP by the health check, the commit by the node's own histogram.
func (b *bench) measureLone(ctx context.Context, node *nodeSite, gen *benchmark.Gen) error {
	b.progress.beginPiece("a lone POST /record")
	const commits, seconds, syncs = "bursar_raft_commit_seconds_count", "bursar_raft_commit_seconds_sum", "bursar_raft_log_syncs_total"
	before, err := readMetrics(ctx, node.baseURL()+"/metrics")
	if err != nil {
		return err
	}
	took, _, err := writeSingles(ctx, 1, gen, func(ctx context.Context) (writer, error) { return newPoster(ctx, node.baseURL()) })
	if err != nil {
		return err
	}
	after, err := readMetrics(ctx, node.baseURL()+"/metrics")
	if err != nil {
		return err
	}
	var health []float64
	for range 2000 {
		begun := time.Now()
		if _, err := getText(ctx, node.baseURL()+"/health_check"); err != nil {
			return err
		}
		health = append(health, millisecondsSince(begun))
	}
	n := after[commits] - before[commits]
	all, http, commit := meanOf(took), meanOf(health), 1e3*(after[seconds]-before[seconds])/n
	b.addLine(overRuns("lone", "a lone POST /record, mean", "ms", goal{}, []float64{all}).
		addNote("%.2f entries of the log and %.2f syncs for each", n/float64(len(took)), (after[syncs]-before[syncs])/float64(len(took))))
	b.addLine(overRuns("lone_http", "of it HTTP, both ends: GET /health_check", "ms", goal{}, []float64{http}))
	b.addLine(overRuns("lone_commit", "of it the commit: raft, one write and sync, the store", "ms", goal{}, []float64{commit}).
		addNote("one write of 4 KiB and its sync: %.3f", b.report.Conditions.FsyncMicros/1e3))
	b.addLine(overRuns("lone_rest", "of it the rest: access, JSON, columns, the queue", "ms", goal{}, []float64{all - http - commit}))
	return nil
}

func (b *bench) singlesOfPostgres(ctx context.Context, s *pgServer, gen *benchmark.Gen) ([]float64, error) {
	conn, err := s.connectTo(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, pgTable)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return nil, err
	}
	return b.measureSingles(ctx, "single_postgres", "one transaction of PostgreSQL", gen, nil, func(ctx context.Context) (writer, error) {
		conn, err := s.connectTo(ctx)
		return pgWriter{conn}, err
	})
}

// measureSingles measures each number of clients and returns their rates. cpu is the CPU time, in
// seconds, that the node has had; nil: it is not known.
func (b *bench) measureSingles(ctx context.Context, name, what string, gen *benchmark.Gen, cpu func() float64, open func(context.Context) (writer, error)) ([]float64, error) {
	var rates []float64
	for _, c := range singleClients() {
		b.progress.beginPiece("%s, %d clients", what, c.clients)
		before := 0.0
		if cpu != nil {
			before = cpu()
		}
		took, seconds, err := writeSingles(ctx, c.clients, gen, open)
		if err != nil {
			return nil, err
		}
		used := ""
		if cpu != nil {
			used = fmt.Sprintf("; CPU of the node %.0f µs a record", 1e6*(cpu()-before)/float64(len(took)))
		}
		rate := float64(len(took)) / seconds
		rates = append(rates, rate)
		target := goal{}
		if name == "single" {
			target = atLeast(c.rate)
		}
		b.addLine(overRuns(fmt.Sprintf("%s_%d", name, c.clients), fmt.Sprintf("%s, one record each, %d clients", what, c.clients), "rec/s", target, []float64{rate}).
			addNote("p50 %.2f, p99 %.2f, max %.1f ms%s", medianOf(took), percentileOf(took, 99), percentileOf(took, 100), used))
	}
	return rates, nil
}

// writeSingles writes from several clients at a time for [singleTime] and returns
// how many milliseconds each write took.
func writeSingles(ctx context.Context, clients int, gen *benchmark.Gen, open func(context.Context) (writer, error)) (took []float64, seconds float64, err error) {
	records := make(chan record.Record, 1000)
	all := make([][]float64, clients)
	ready, begin := make(chan struct{}, clients), make(chan struct{})
	g, ctx := errgroup.WithContext(ctx)
	for i := range clients {
		g.Go(func() error {
			w, err := open(ctx)
			if err != nil {
				return err
			}
			ready <- struct{}{}
			<-begin
			for r := range records {
				begun := time.Now()
				if err := w.writeRecord(ctx, &r); err != nil {
					return errors.Join(err, w.closeWriter(ctx))
				}
				all[i] = append(all[i], millisecondsSince(begun))
			}
			return w.closeWriter(ctx)
		})
	}
	for range clients {
		select {
		case <-ready:
		case <-ctx.Done():
			close(begin)
			close(records)
			return nil, 0, g.Wait()
		}
	}
	begun := time.Now()
	close(begin)
	for end := time.After(singleTime); records != nil; {
		r, more := gen.Next()
		if !more {
			return nil, 0, errors.New("-n: too few records")
		}
		select {
		case records <- r:
		case <-end:
			close(records)
			records = nil
		case <-ctx.Done():
			close(records)
			records = nil
		}
	}
	err = g.Wait()
	seconds = time.Since(begun).Seconds()
	for _, a := range all {
		took = append(took, a...)
	}
	return took, seconds, err
}

// poster posts to a node over a connection of its own, and waits for each answer by itself,
// as pgx does: net/http would hand each request and each answer to another goroutine.
type poster struct {
	conn      net.Conn
	host      string
	answers   *bufio.Reader
	body, out []byte
}

func newPoster(ctx context.Context, site string) (writer, error) {
	host := strings.TrimPrefix(site, "http://")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	return &poster{conn: conn, host: host, answers: bufio.NewReader(conn)}, nil
}

func (p *poster) writeRecord(ctx context.Context, r *record.Record) error {
	defer context.AfterFunc(ctx, func() { _ = p.conn.Close() })()
	p.body = wire.AppendJSON(p.body[:0], r)
	p.out = fmt.Appendf(p.out[:0], "POST /record HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", p.host, len(p.body), p.body)
	if _, err := p.conn.Write(p.out); err != nil {
		return err
	}
	resp, err := http.ReadResponse(p.answers, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return err
}

func (p *poster) closeWriter(context.Context) error { return p.conn.Close() }

// pgWriter inserts over one connection.
type pgWriter struct{ conn *pgx.Conn }

func (w pgWriter) writeRecord(ctx context.Context, r *record.Record) error {
	var rows pgRows
	rows.addRecord(r)
	_, err := w.conn.Exec(ctx, pgInsert, rows.ids, rows.starts, rows.stops, rows.metas, rows.components, rows.runtimes)
	return err
}

func (w pgWriter) closeWriter(ctx context.Context) error {
	return w.conn.Close(context.WithoutCancel(ctx))
}
