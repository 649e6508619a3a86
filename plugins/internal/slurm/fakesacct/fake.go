// Package fakesacct is an sacct for tests that behaves as the real one does in
// what the plugin relies on: columns, windows over eligible and end time, ids of
// jobs, arrays and heterogeneous jobs, duplicates, delimiters, time formats, and
// ways to fail. It is the test binary itself, started by a small script.
package fakesacct

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/gob"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

const variable = "BURSAR_FAKE_SACCT"

// DB is what slurmdbd holds, and how sacct behaves.
type DB struct {
	Columns []string
	Rows    []Row // jobs by id, each followed by its steps

	Stderr   string // is printed
	Exit     int    // status
	Hang     bool   // never ends, nor does its child, after Prefix bytes
	Prefix   int    // bytes after which the output ends or hangs; 0: all
	Banner   string // is printed before the first row
	MaxRange int64  // seconds that a window may have; 0: any
}

// Row is a row by column; times in seconds since the epoch, "" for none.
type Row map[string]string

// Main serves sacct when the process was started as one; call it first in TestMain.
func Main() {
	dir := os.Getenv(variable)
	if dir == "" {
		return
	}
	if err := serveQuery(dir, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sacct:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Recorded reads a database from the output of a real sacct: a line with the
// columns, then rows whose fields end with 0x1f and "@@".
func Recorded(t testing.TB, path string) *DB {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	db := &DB{Columns: strings.Split(head, ",")}
	rows := sacct.NewRows(strings.NewReader(rest), "\x1f@@", len(db.Columns))
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return db
		}
		if err != nil {
			t.Fatal(err)
		}
		r := Row{}
		for i, f := range row.Fields {
			r[db.Columns[i]] = f
		}
		db.Rows = append(db.Rows, r)
	}
}

// Install writes db and the script that serves it into dir, and returns the path
// of sacct. Installing again replaces the database.
func Install(t testing.TB, dir string, db *DB) string {
	t.Helper()
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(db); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "db"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sacct")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	script := fmt.Sprintf("#!/bin/sh\nexec env %s=%s %s \"$@\"\n", variable, dir, self)
	if err := programtest.WriteProgram(path, script); err != nil {
		t.Fatal(err)
	}
	return path
}

// Calls returns the arguments of the calls so far.
func Calls(t testing.TB, dir string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// query is a parsed command line.
type query struct {
	format, delimiter, jobs, clusters string
	start, end, states                string
	allocations, help                 bool
}

func parseArgs(args []string) (query, error) {
	var q query
	f := flag.NewFlagSet("sacct", flag.ContinueOnError)
	must := map[string]*bool{}
	for _, name := range []string{"allusers", "duplicates", "noheader", "noconvert", "parsable"} {
		must[name] = f.Bool(name, false, "")
	}
	f.StringVar(&q.format, "format", "", "")
	f.StringVar(&q.delimiter, "delimiter", "|", "")
	f.StringVar(&q.jobs, "jobs", "", "")
	f.StringVar(&q.clusters, "clusters", "", "")
	f.StringVar(&q.start, "starttime", "", "")
	f.StringVar(&q.end, "endtime", "", "")
	f.StringVar(&q.states, "state", "", "")
	f.BoolVar(&q.allocations, "allocations", false, "")
	f.BoolVar(&q.help, "helpformat", false, "")
	if err := f.Parse(args); err != nil {
		return q, err
	}
	for name, on := range must {
		if !*on && !q.help {
			return q, fmt.Errorf("fatal: this fake wants --%s", name)
		}
	}
	if os.Getenv("TZ") != "UTC" || os.Getenv("SLURM_TIME_FORMAT") != "%s" {
		return q, errors.New("fatal: this fake speaks UTC and seconds only")
	}
	return q, nil
}

func serveQuery(dir string, args []string) error {
	b, err := os.ReadFile(filepath.Join(dir, "db"))
	if err != nil {
		return err
	}
	var db DB
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&db); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(log, strings.Join(args, " "))
	log.Close()
	q, err := parseArgs(args)
	if err != nil {
		return err
	}
	if q.help {
		fmt.Println(strings.Join(db.Columns, " "))
		return nil
	}
	return db.printRows(q)
}

// printRows prints what q asks for.
func (db *DB) printRows(q query) error {
	fmt.Fprint(os.Stderr, db.Stderr)
	columns := strings.Split(q.format, ",")
	for _, c := range columns {
		if !slices.Contains(db.Columns, c) {
			return fmt.Errorf("error: Invalid field requested: %q", c)
		}
	}
	from, to, err := q.timeWindow()
	if err != nil {
		return err
	}
	if db.MaxRange > 0 && q.jobs == "" && to-from > db.MaxRange {
		return errors.New("error: Too wide of a date range in query")
	}
	text := strings.Builder{}
	text.WriteString(db.Banner)
	jobs := map[string]bool{}
	for id := range strings.SplitSeq(q.jobs, ",") {
		jobs[id] = q.jobs != ""
	}
	mine := false
	for _, r := range db.Rows {
		step := strings.Contains(r["JobIDRaw"], ".")
		if !step {
			mine = r.matchesQuery(q, jobs, from, to)
		}
		if !mine || (step && q.allocations) {
			continue
		}
		for _, c := range columns {
			text.WriteString(r[c] + q.delimiter)
		}
		text.WriteByte('\n')
	}
	out := text.String()
	if db.Prefix > 0 {
		out = out[:min(len(out), db.Prefix)]
	}
	os.Stdout.WriteString(out)
	if db.Hang {
		time.Sleep(time.Hour)
	}
	if db.Exit != 0 {
		os.Exit(db.Exit)
	}
	return nil
}

func (q query) timeWindow() (from, to int64, err error) {
	const layout = "2006-01-02T15:04:05"
	s, err := time.Parse(layout, q.start)
	if err != nil {
		return 0, 0, err
	}
	if q.end == "" {
		return s.Unix(), time.Now().Unix() + 1<<32, nil
	}
	e, err := time.Parse(layout, q.end)
	return s.Unix(), e.Unix(), err
}

// matchesQuery selects jobs as slurmdbd does: those that were eligible before the end
// of the window and did not end before its start, or those of an id; with states,
// those that ended in the window in one of them.
func (r Row) matchesQuery(q query, jobs map[string]bool, from, to int64) bool {
	if q.clusters != "" && q.clusters != "all" && !slices.Contains(strings.Split(q.clusters, ","), r["Cluster"]) {
		return false
	}
	if q.jobs != "" {
		array, _, _ := strings.Cut(r["JobID"], "_")
		het, _, _ := strings.Cut(r["JobID"], "+")
		return jobs[r["JobIDRaw"]] || jobs[r["JobID"]] || jobs[array] || jobs[het]
	}
	eligible, end := r.numberIn("Eligible"), r.numberIn("End")
	if q.states != "" {
		state, _, _ := strings.Cut(r["State"], " ")
		return slices.Contains(strings.Split(q.states, ","), state) && end >= from && end <= to && end != 0
	}
	return eligible != 0 && eligible < to && (end >= from || end == 0)
}

func (r Row) numberIn(column string) int64 {
	n, _ := strconv.ParseInt(r[column], 10, 64)
	return n
}

// Shift moves a time by so many seconds.
func (r Row) Shift(column string, seconds int64) {
	if n := r.numberIn(column); n > 0 {
		r[column] = strconv.FormatInt(n+seconds, 10)
	}
}

// Jobstats packs a text as Jobstats does for AdminComment.
func Jobstats(t testing.TB, text io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.Copy(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return "JS1:" + base64.StdEncoding.EncodeToString(b.Bytes())
}
