package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/record"
)

// postgresBin is where Debian has PostgreSQL 15.
const postgresBin = "/usr/lib/postgresql/15/bin"

// measurePostgres measures bare inserts of the same rows into PostgreSQL, and how many
// times faster the ingest of this run was.
func (b *bench) measurePostgres(ctx context.Context) error {
	line := Line{Name: "postgres", What: "bare inserts into PostgreSQL 15, UNNEST of 1000, JSONB, unique id", Unit: "rec/s"}
	server, err := b.startPostgres(ctx)
	if errors.Is(err, errNoPostgres) {
		line.Skipped = err.Error()
		b.addLine(line)
		return nil
	}
	if err != nil {
		return err
	}
	rate, size, err := b.insertAll(ctx, server)
	if err != nil {
		return errors.Join(err, server.stopServer())
	}
	line.Measured, line.Low, line.High, line.Runs = rate, rate, rate, 1
	b.addLine(line.addNote("one connection, default configuration, %.0f B a record", size/float64(b.n)))
	if b.ingested > 0 {
		b.addLine(overRuns("ratio", "agent buffer → one node against PostgreSQL, same run", "×", atLeast(3), []float64{b.ingested / rate}))
	}
	if b.replicated > 0 {
		b.addLine(overRuns("ratio_trio", "agent buffer → three nodes against PostgreSQL, same run", "×", atLeast(1.3), []float64{b.replicated / rate}))
	}
	if len(b.told) > 0 {
		err = b.pgQuestions(ctx, server)
	}
	return errors.Join(err, server.stopServer())
}

// pgServer is a PostgreSQL of our own.
type pgServer struct {
	process *process
	dir     string // of its socket
	user    string
}

// errNoPostgres is wrapped by the reasons why there can be none.
var errNoPostgres = errors.New("no PostgreSQL 15")

// startPostgres makes and starts a cluster on a socket of its own.
func (b *bench) startPostgres(ctx context.Context) (s *pgServer, err error) {
	if _, err := os.Stat(filepath.Join(postgresBin, "postgres")); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoPostgres, err)
	}
	who, err := unprivilegedUser()
	if err != nil {
		return nil, err
	}
	s = &pgServer{user: who.Username}
	if s.dir, err = os.MkdirTemp(b.dir, "pg"); err != nil {
		return nil, err
	}
	credential, err := b.handFolder(s.dir, who)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	b.progress.beginPiece("initdb")
	initdb := exec.CommandContext(ctx, filepath.Join(postgresBin, "initdb"), "-D", data, "-A", "trust", "-U", s.user, "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Pdeathsig: syscall.SIGKILL}
	initdb.Dir = s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	cmd := exec.Command(filepath.Join(postgresBin, "postgres"), "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=200")
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if s.process, err = startCommand(cmd); err != nil {
		return nil, err
	}
	return s, pollUntil(ctx, s.process, func() bool {
		conn, err := s.connectTo(ctx)
		if err != nil {
			return false
		}
		return conn.Close(ctx) == nil
	})
}

// unprivilegedUser is who PostgreSQL runs as: root cannot.
func unprivilegedUser() (*user.User, error) {
	if os.Getuid() != 0 {
		return user.Current()
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return u, nil
		}
	}
	return nil, fmt.Errorf("%w: it does not run as root, and no user postgres or nobody exists", errNoPostgres)
}

// handFolder gives a folder to another user and lets it through to it.
func (b *bench) handFolder(dir string, who *user.User) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return nil, err
	}
	credential := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return credential, errors.Join(os.Chown(dir, uid, gid), os.Chmod(b.dir, 0o711)) //nolint:gosec // the other user must get through
}

func (s *pgServer) connectTo(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, fmt.Sprintf("host=%s user=%s dbname=postgres", s.dir, s.user))
}

// stopServer ends the server: SIGTERM alone would wait for connections.
func (s *pgServer) stopServer() error { return s.process.stopProcess() }

const (
	pgTable = `CREATE TABLE records (
	id bigserial PRIMARY KEY, record_id text NOT NULL UNIQUE, start_time timestamptz NOT NULL, stop_time timestamptz,
	meta jsonb, components jsonb, runtime bigint)`
	pgInsert = `INSERT INTO records (record_id, start_time, stop_time, meta, components, runtime)
	SELECT * FROM UNNEST($1::text[], $2::timestamptz[], $3::timestamptz[], $4::jsonb[], $5::jsonb[], $6::bigint[])`
)

// insertAll inserts all records and returns the rate and the bytes of the table
// with its indexes.
func (b *bench) insertAll(ctx context.Context, s *pgServer) (rate, size float64, err error) {
	conn, err := s.connectTo(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if err := conn.QueryRow(ctx, "SELECT version()").Scan(&b.report.Conditions.Postgres); err != nil {
		return 0, 0, err
	}
	if _, err := conn.Exec(ctx, pgTable); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.progress.beginPiece("inserts into PostgreSQL, %d records", b.n)
	begun, done := time.Now(), 0
	for rows := range b.pgBatches(ctx) {
		if _, err := conn.Exec(ctx, pgInsert, rows.ids, rows.starts, rows.stops, rows.metas, rows.components, rows.runtimes); err != nil {
			return 0, 0, err
		}
		done += len(rows.ids)
		b.progress.showDone(float64(done), float64(b.n))
	}
	rate = float64(done) / time.Since(begun).Seconds()
	return rate, size, conn.QueryRow(ctx, "SELECT pg_total_relation_size('records')::float8").Scan(&size)
}

// pgRows are the columns of one insert.
type pgRows struct {
	ids, metas, components []string
	starts, stops          []time.Time
	runtimes               []int64
}

// pgBatches makes the rows ahead, beside the inserts.
func (b *bench) pgBatches(ctx context.Context) <-chan *pgRows {
	out := make(chan *pgRows, 8)
	go func() {
		defer close(out)
		rows := &pgRows{}
		gen := benchmark.Generator(1, b.n, b.measuredKinds()[0])
		gen.Extended = true // as the agent's: the same records, of which the table has no submit time
		for r := range gen.All() {
			rows.addRecord(&r)
			if len(rows.ids) < 1000 {
				continue
			}
			select {
			case out <- rows:
				rows = &pgRows{}
			case <-ctx.Done():
				return
			}
		}
		if len(rows.ids) > 0 {
			out <- rows
		}
	}()
	return out
}

func (p *pgRows) addRecord(r *record.Record) {
	p.ids = append(p.ids, r.ID)
	p.starts, p.stops = append(p.starts, time.UnixMicro(int64(r.Start))), append(p.stops, time.UnixMicro(int64(r.Stop)))
	p.runtimes = append(p.runtimes, int64(r.Stop-r.Start)/int64(record.Second))
	p.metas, p.components = append(p.metas, metaJSON(r)), append(p.components, componentsJSON(r))
}

// metaJSON is AUDITOR's form; the benchmark's texts need no escapes.
func metaJSON(r *record.Record) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range r.Meta {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + m.Key + `":["` + strings.Join(m.Values, `","`) + `"]`)
	}
	b.WriteByte('}')
	return b.String()
}

func componentsJSON(r *record.Record) string {
	b := []byte{'['}
	for i, c := range r.Components {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":%q,"amount":%d,"scores":[`, c.Name, c.Amount)
		for k, s := range c.Scores {
			if k > 0 {
				b = append(b, ',')
			}
			value, _ := json.Marshal(s.Value) // a number
			b = fmt.Appendf(b, `{"name":%q,"value":%s}`, s.Name, value)
		}
		b = append(b, "]}"...)
	}
	return string(append(b, ']'))
}
