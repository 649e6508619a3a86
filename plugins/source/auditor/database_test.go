package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// postgresBin is where Debian has PostgreSQL 15.
const postgresBin = "/usr/lib/postgresql/15/bin"

// auditorTable is AUDITOR's table behind its second migration.
const auditorTable = `CREATE TABLE auditor_accounting (
	id INT GENERATED ALWAYS AS IDENTITY, record_id TEXT NOT NULL UNIQUE, meta JSONB, components JSONB,
	start_time TIMESTAMPTZ NOT NULL, stop_time TIMESTAMPTZ, runtime BIGINT, updated_at TIMESTAMPTZ NOT NULL)`

// lacks skips a test of what Go does not bring, where not all tests are asked for.
func lacks(t *testing.T, what any) {
	t.Helper()
	if os.Getenv("BURSAR_TESTS") == "all" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// postgres starts a PostgreSQL of the test's own with AUDITOR's table; without the
// programs, which Go does not bring, the test is for the e2e suite.
func postgres(t *testing.T) *pgx.Conn {
	t.Helper()
	if _, err := os.Stat(postgresBin); err != nil {
		lacks(t, "there is no PostgreSQL 15")
	}
	dir, err := os.MkdirTemp("", "bursar-pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var who *syscall.Credential
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			lacks(t, err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		who = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(postgresBin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: who, Pdeathsig: syscall.SIGQUIT}
		return cmd
	}
	if out, err := run("initdb", "-D", dir+"/data", "-U", "auditor", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := run("postgres", "-D", dir+"/data", "-k", dir, "-h", "", "-c", "fsync=off")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Signal(syscall.SIGINT); _ = server.Wait() })
	for range 600 {
		conn, err := pgx.Connect(t.Context(), fmt.Sprintf("host=%s user=auditor dbname=postgres", dir))
		if err == nil {
			t.Cleanup(func() { conn.Close(context.Background()) })
			if _, err := conn.Exec(t.Context(), auditorTable); err != nil {
				t.Fatal(err)
			}
			return conn
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("PostgreSQL does not start")
	return nil
}

// dsn is the address of the database.
func dsn(conn *pgx.Conn) string {
	return fmt.Sprintf("postgres:///postgres?host=%s&user=auditor", conn.Config().Host)
}

func do(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// insert puts n records into the table, one in ten without a stop.
func insert(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	do(t, conn, `INSERT INTO auditor_accounting (record_id, meta, components, start_time, stop_time, runtime, updated_at)
		SELECT 'slurm-' || i, CASE i % 3 WHEN 0 THEN 'null'::jsonb WHEN 1 THEN NULL ELSE '{"site_id": ["hpc"], "group_id": ["a", "b"]}' END,
			'[{"name": "Cores", "amount": 8, "scores": [{"name": "HEPscore23", "value": 10.1}]}, {"name": "TotalCPU", "amount": 77, "scores": []}]',
			'2026-03-01'::timestamptz + i * interval '1.000001 s', CASE WHEN i % 10 > 0 THEN '2026-03-02'::timestamptz + i * interval '1 s' END,
			CASE WHEN i % 10 > 0 THEN 86400 END, '2026-03-02'::timestamptz + i * interval '1 minute'
		FROM generate_series(1, $1) i`, n)
}

func TestDatabase_KeepsThePromisesOfEverySource(t *testing.T) {
	conn := postgres(t)
	insert(t, conn, 3000)
	plugintest.Run(t, plugintest.Options{Source: newSource, CheckMapping: checkMapping, Config: plugintest.Block("config",
		plugintest.Attr("database", dsn(conn)), plugintest.Attr("page", 400), plugintest.Attr("overlap", "1m"))})
}

func TestDatabase_Changes_AreFollowedFromAnywhere(t *testing.T) {
	conn := postgres(t)
	insert(t, conn, 3000)
	for fail := range 5 {
		r := newReader(t, sdk.Node{Name: "database", Value: sdk.String(dsn(conn))}, page(300))
		r.fail = fail
		_ = r.collect()
		r.fail = 0
		do(t, conn, `INSERT INTO auditor_accounting (record_id, meta, components, start_time, updated_at) VALUES ($1, NULL, NULL, '2026-04-01', now())`, fmt.Sprint("a-first-", fail))
		do(t, conn, `UPDATE auditor_accounting SET stop_time = '2026-04-02', updated_at = now() WHERE record_id = $1`, fmt.Sprint("slurm-", 10+10*fail))
		r.must()
		r.must()
		if j := r.runs[fmt.Sprint("slurm-", 10+10*fail)]; len(r.runs) != 3001+fail || !j.Ended || len(r.refused) > 0 {
			t.Error(fail, len(r.runs), j, r.refused)
		}
	}
}

func TestDatabase_BadRecordsAndTables_AreNamed(t *testing.T) {
	conn := postgres(t)
	insert(t, conn, 20)
	do(t, conn, `UPDATE auditor_accounting SET components = '[{"name": "Cores", "amount": -1, "scores": []}]' WHERE record_id = 'slurm-7'`)
	do(t, conn, `UPDATE auditor_accounting SET stop_time = 'infinity' WHERE record_id = 'slurm-8'`)
	r := newReader(t, sdk.Node{Name: "database", Value: sdk.String(dsn(conn))}, page(3))
	r.must()
	if len(r.runs) != 18 || len(r.refused) != 2 || r.refused[0].Run != "slurm-7" || r.refused[1].Run != "slurm-8" {
		t.Error(len(r.runs), r.refused)
	}
	do(t, conn, `DROP TABLE auditor_accounting`)
	if err := r.collect(); err == nil || !strings.Contains(err.Error(), "run its migrations") {
		t.Error(err)
	}
}

func TestDatabase_IsNeverWritten(t *testing.T) {
	conn := postgres(t)
	db, err := newDatabase(&source{}, dsn(conn))
	if err != nil {
		t.Fatal(err)
	}
	db.config.ConnectTimeout = time.Minute
	db.config.RuntimeParams["statement_timeout"] = "0"
	err = db.inTransaction(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "DELETE FROM auditor_accounting")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Error(err)
	}
}
