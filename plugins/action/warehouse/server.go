package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// session speaks with a ClickHouse server by its HTTP interface.
type session struct {
	*config

	http     *http.Client
	password string
	modern   bool // it knows settings that Debian's 18.16 does not
}

// refused is an error after which trying again is of no use: a person changes something first.
type refused struct{ error }

func refuse(format string, args ...any) error { return refused{fmt.Errorf(format, args...)} }

// serverError is a refusal of the server.
type serverError struct {
	host   string
	status int
	text   string
}

// Error implements error.
func (e *serverError) Error() string {
	return fmt.Sprintf("ClickHouse on %s: %d: %s%s", e.host, e.status, e.text, e.advice())
}

// advice is what to do about errors that a site meets.
func (e *serverError) advice() string {
	for code, text := range map[string]string{
		"Code: 164": "the user may only read: give it a profile that may write",
		"Code: 192": "set user", "Code: 193": "set password_file", "Code: 516": "set user and password_file",
		"Code: 242": "the table is read-only: look at the server's disk and its ZooKeeper",
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
		text, err := os.ReadFile(string(c.CA))
		if err != nil {
			return nil, err
		}
		trusted.RootCAs = x509.NewCertPool()
		if !trusted.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificates in PEM", c.CA)
		}
	}
	dialer := &net.Dialer{Timeout: c.Timeout}
	if c.url.Scheme == "http" && !c.AllowPlain {
		dialer.Control = allowOnlyLoopback
	}
	s.http = &http.Client{
		Timeout:       c.Timeout,
		Transport:     &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: trusted, TLSHandshakeTimeout: c.Timeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

func (s *session) close() { s.http.CloseIdleConnections() }

// allowOnlyLoopback refuses connections to other machines, whatever a name stands for.
func allowOnlyLoopback(_, address string, _ syscall.RawConn) error {
	if host, _, err := net.SplitHostPort(address); err != nil || !isLoopback(host) {
		return errors.New("http is for this machine only, and the name stands for another one")
	}
	return nil
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 256 << 20

// post sends a statement and returns the whole answer. With data, which stands behind the
// statement, it has the query id.
func (s *session) post(ctx context.Context, statement, id string, data []byte) ([]byte, error) {
	// With wait_end_of_query an error that comes late is a status, too.
	parameters := url.Values{"wait_end_of_query": {"1"}}
	body := []byte(statement)
	if data != nil {
		parameters.Set("query", statement)
		parameters.Set("query_id", id)
		body = data
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
	case answer.StatusCode != http.StatusOK:
		return nil, &serverError{s.url.Host, answer.StatusCode, firstLine(text)}
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("ClickHouse on %s: the answer has more than %d bytes: set a smaller batch", s.url.Host, maxAnswer)
	}
	return text, nil
}

const maxErrorText = 500

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.ToValidUTF8(line[:min(len(line), maxErrorText)], nil))
}

// execute does a statement without an answer.
func (s *session) execute(ctx context.Context, statement string) error {
	_, err := s.post(ctx, statement, "", nil)
	return err
}

// query returns the rows of a SELECT as texts.
func (s *session) query(ctx context.Context, statement string) (rows [][]string, err error) {
	text, err := s.post(ctx, statement+" FORMAT TabSeparated", "", nil)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		values := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for i := range values {
			values[i] = unescaper.Replace(values[i])
		}
		rows = append(rows, values)
	}
	return rows, nil
}

var (
	unescaper = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\t`, "\t", `\n`, "\n", `\r`, "\r", `\b`, "\b", `\f`, "\f", `\0`, "\x00")
	escaper   = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`, "\x00", `\0`)
)

// quote writes a text as SQL has it.
func quote(text string) string { return "'" + escaper.Replace(text) + "'" }

// name is that of a table with its database.
func (s *session) name(table string) string {
	return quoteNames([]string{s.Database}) + "." + quoteNames([]string{table})
}

// insert inserts rows in RowBinary, under a query id: the server runs one of an id at a time.
func (s *session) insert(ctx context.Context, table, id string, columns []column, rows []byte) error {
	_, err := s.post(ctx, fmt.Sprintf("INSERT INTO %s (%s) FORMAT RowBinary", s.name(table), quoteNames(columnNames(columns))), id, rows)
	return err
}

// checkQuiet returns an error while inserts run whose query id begins so: those of an attempt
// that has ended, of which no one knows yet whether their rows will be there.
func (s *session) checkQuiet(ctx context.Context, begin string) error {
	rows, err := s.query(ctx, "SELECT query_id, elapsed FROM system.processes WHERE startsWith(query_id, "+quote(begin)+")")
	if err == nil && len(rows) > 0 {
		err = fmt.Errorf("ClickHouse on %s: the insert %s of an earlier attempt has been running for %s s: its end comes first", s.url.Host, rows[0][0], rows[0][1])
	}
	return err
}
