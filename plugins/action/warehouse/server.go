package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/post"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// session speaks with a ClickHouse server by its HTTP interface.
type session struct {
	*config

	http     *http.Client
	password string
	modern   bool // it knows settings that Debian's 18.16 does not

	deduplicates bool // it leaves out an insert whose token it has seen
}

// refused is an error after which trying again is of no use: a person changes something first.
type refused struct{ error }

func newRefusal(format string, args ...any) error { return refused{fmt.Errorf(format, args...)} }

func isRefused(err error) bool {
	_, final := errors.AsType[refused](err)
	return final
}

// serverError is a refusal of the server.
type serverError struct {
	host   string
	status int
	text   string
}

// Error implements error.
func (e *serverError) Error() string {
	return fmt.Sprintf("ClickHouse on %s: %d: %s%s", e.host, e.status, e.text, e.adviceText())
}

// adviceText is what to do about errors that a site meets.
func (e *serverError) adviceText() string {
	for code, text := range map[string]string{
		"Code: 164": "the user may only read: give it a profile that may write",
		"Code: 192": "set user", "Code: 193": "set password_file", "Code: 516": "set user and password_file",
		"Code: 139": "set the macros shard and replica in the server's configuration",
		"Code: 225": "the server has no ZooKeeper: configure it, or leave out replicas",
		"Code: 242": "the table is read-only: look at the server's disk and its ZooKeeper",
		"Code: 253": "remove the replica of the former server from ZooKeeper, or give this server another macro replica",
		"Code: 243": "the disk is full: free some space",
	} {
		if strings.HasPrefix(e.text, code+",") || strings.HasPrefix(e.text, code+".") {
			return "; " + text
		}
	}
	return ""
}

// openSession reads the files of the configuration. The caller closes it.
func openSession(c *config) (*session, error) {
	s := &session{config: c}
	if c.PasswordFile != "" {
		text, err := os.ReadFile(string(c.PasswordFile))
		if err != nil {
			return nil, err
		}
		s.password = strings.TrimRight(string(text), "\r\n")
	}
	trusted := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		authorities, err := identity.ReadBundle(string(c.CA))
		if err != nil {
			return nil, err
		}
		trusted.RootCAs = x509.NewCertPool()
		for _, a := range authorities {
			trusted.RootCAs.AddCert(a)
		}
	}
	dialer := &net.Dialer{Timeout: c.Timeout}
	if c.url.Scheme == "http" && !c.AllowPlain {
		dialer.Control = post.OnlyLoopback
	}
	s.http = &http.Client{
		Timeout:       c.Timeout,
		Transport:     &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: trusted, TLSHandshakeTimeout: c.Timeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

func (s *session) close() { s.http.CloseIdleConnections() }

// maxAnswer is how much of an answer is read.
const maxAnswer = 256 << 20

// postStatement sends a statement and returns the whole answer. With data, which stands behind the
// statement, it has the query id.
func (s *session) postStatement(ctx context.Context, statement, id string, data []byte) ([]byte, error) {
	parameters := maps.Clone(always)
	body := []byte(statement)
	if data != nil {
		parameters.Set("query", statement)
		parameters.Set("query_id", id)
		if s.deduplicates {
			parameters.Set("insert_deduplication_token", id)
		}
		body = data
	}
	if s.replicated() || s.deduplicates { // a profile may have it off
		parameters.Set("insert_deduplicate", "1")
	}
	if s.modern { // an insert ends when it is in the table, each month of it at once
		parameters.Set("async_insert", "0")
		parameters.Set("max_partitions_per_insert_block", "0")
	}
	target := *s.url
	target.RawQuery = parameters.Encode()
	if target.Path == "" {
		target.Path = "/"
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("X-ClickHouse-User", s.User)
	q.Header.Set("X-ClickHouse-Key", s.password)
	q.Header.Set("User-Agent", "bursar-action-warehouse/"+version)
	answer, err := s.http.Do(q)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok { // its URL is long
			err = e.Err
		}
		return nil, fmt.Errorf("ClickHouse on %s: %w", s.url.Host, err)
	}
	defer func() { _ = answer.Body.Close() }() // an error of it has no meaning any more
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ClickHouse on %s: %w", s.url.Host, err)
	case answer.StatusCode != http.StatusOK || answer.Header.Get("X-ClickHouse-Exception-Code") != "":
		return nil, &serverError{s.url.Host, answer.StatusCode, firstLine(text)}
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("ClickHouse on %s: the answer has more than %d bytes: set a smaller batch", s.url.Host, maxAnswer)
	}
	if late := lateError.Find(text); late != nil {
		return nil, &serverError{s.url.Host, answer.StatusCode, firstLine(late)}
	}
	return text, nil
}

// always is said with each statement. With wait_end_of_query an error that comes late is a
// status, too. The others are settings that a profile of the user may have otherwise: an
// answer is whole or an error, and has no rows beside those asked for.
var always = url.Values{
	"wait_end_of_query": {"1"}, "extremes": {"0"},
	"timeout_overflow_mode": {"throw"}, "read_overflow_mode": {"throw"}, "result_overflow_mode": {"throw"}, "group_by_overflow_mode": {"throw"},
	"sort_overflow_mode": {"throw"}, "distinct_overflow_mode": {"throw"}, "set_overflow_mode": {"throw"},
}

// lateError is what a server appends to an answer that it breaks off, in a status of 200.
var lateError = regexp.MustCompile(`Code: [0-9]+[.,] [^\x00\n]*DB::Exception[^\x00\n]*\n?$`)

const maxErrorText = 500

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.ToValidUTF8(line[:min(len(line), maxErrorText)], nil))
}

// executeStatement does a statement without an answer.
func (s *session) executeStatement(ctx context.Context, statement string) error {
	_, err := s.postStatement(ctx, statement, "", nil)
	return err
}

// queryRows returns the rows of a SELECT as texts, each with a value for each column. No rows are
// an answer only below the names of the columns.
func (s *session) queryRows(ctx context.Context, statement string) (rows [][]string, err error) {
	text, err := s.postStatement(ctx, statement+" FORMAT TabSeparatedWithNames", "", nil)
	if err != nil {
		return nil, err
	}
	columns := 0
	for line := range strings.Lines(string(text)) {
		values := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case !strings.HasSuffix(line, "\n") || columns > 0 && len(values) != columns:
			return nil, fmt.Errorf("ClickHouse on %s: the answer ends with %q, and not with a row", s.url.Host, firstLine([]byte(line)))
		case columns == 0:
			columns = len(values)
			continue
		}
		for i := range values {
			values[i] = unescaper.Replace(values[i])
		}
		rows = append(rows, values)
	}
	if columns == 0 {
		return nil, fmt.Errorf("ClickHouse on %s: the answer is empty", s.url.Host)
	}
	return rows, nil
}

// queryOne returns the value of a SELECT of one row and one column.
func (s *session) queryOne(ctx context.Context, statement string) (string, error) {
	rows, err := s.queryRows(ctx, statement)
	if err == nil && (len(rows) != 1 || len(rows[0]) != 1) {
		err = fmt.Errorf("ClickHouse on %s: %d rows, want one value", s.url.Host, len(rows))
	}
	if err != nil {
		return "", err
	}
	return rows[0][0], nil
}

var (
	unescaper = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\t`, "\t", `\n`, "\n", `\r`, "\r", `\b`, "\b", `\f`, "\f", `\0`, "\x00")
	escaper   = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`, "\x00", `\0`)
)

// quoteText writes a text as SQL has it.
func quoteText(text string) string { return "'" + escaper.Replace(text) + "'" }

// tableName is the name of a table with its database.
func (s *session) tableName(table string) string {
	return quoteNames([]string{s.Database}) + "." + quoteNames([]string{table})
}

// insertRows inserts rows in RowBinary as one block, under a query id: the server runs one of an
// id at a time, and where it deduplicates it inserts each partition of an id once.
func (s *session) insertRows(ctx context.Context, table, id string, columns []column, rows []byte) error {
	block, err := blockOf(columns, rows)
	if err != nil {
		return err
	}
	_, err = s.postStatement(ctx, fmt.Sprintf("INSERT INTO %s (%s) FORMAT Native", s.tableName(table), quoteNames(columnNames(columns))), id, block)
	return err
}

// awaitQuiet waits for the end of inserts whose query id begins so: those of an attempt that
// has ended, of which no one knows yet whether their rows will be there. It is an error when
// they take longer than a request may.
func (s *session) awaitQuiet(ctx context.Context, begin string) error {
	return s.awaitState(ctx, func() (string, error) {
		rows, err := s.queryRows(ctx, "SELECT query_id, elapsed FROM system.processes WHERE startsWith(query_id, "+quoteText(begin)+")")
		if err != nil || len(rows) == 0 {
			return "", err
		}
		return fmt.Sprintf("the insert %s of an earlier attempt has been running for %s s: its end comes first", rows[0][0], rows[0][1]), nil
	})
}

// quietLook is how often the server is asked for inserts of an earlier attempt.
const quietLook = 200 * time.Millisecond
