package main

import (
	"bytes"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const password = "s3cret of ClickHouse"

// sessionWith is a session with a server.
func sessionWith(t *testing.T, s *httptest.Server, nodes ...sdk.Node) *session {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := configure(append(nodes, text("url", s.URL), text("password_file", file))...)
	if err != nil {
		t.Fatal(err)
	}
	session, err := openSession(&a.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.close)
	return session
}

// answering is a server that answers each request in the same way.
func answering(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s
}

const late = "Code: 241, e.displayText() = DB::Exception: Memory limit exceeded, e.what() = DB::Exception\n"

func TestQuery_AnswerThatIsNotWhole_IsAnError(t *testing.T) {
	for name, c := range map[string]struct{ header, body, want string }{
		"an error in the header":         {"241", "n\tm\n", "200"},
		"an error behind rows":           {"", "n\tm\n1\t2\n" + late, "Memory limit exceeded"},
		"an error of a newer release":    {"", "n\n1\nCode: 241. DB::Exception: Memory limit exceeded. (MEMORY_LIMIT_EXCEEDED)\n", "Memory limit exceeded"},
		"an error behind binary values":  {"", "n\n1\n\x00\x01" + late, "Memory limit exceeded"},
		"an error in place of the names": {"", late, "Memory limit exceeded"},
		"nothing":                        {"", "", "the answer is empty"},
		"half a row":                     {"", "n\tm\n1\t", "and not with a row"},
		"a row of another statement":     {"", "n\tm\n1\n", "and not with a row"},
	} {
		s := sessionWith(t, answering(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.header != "" {
				w.Header().Set("X-ClickHouse-Exception-Code", c.header)
			}
			_, _ = io.WriteString(w, c.body)
		}))
		rows, err := s.queryRows(t.Context(), "SELECT 1")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %q, %v, want %s", name, rows, err, c.want)
		}
	}
	s := sessionWith(t, answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "n\tm\n") }))
	if rows, err := s.queryRows(t.Context(), "SELECT 1"); err != nil || len(rows) != 0 {
		t.Errorf("no rows: %q, %v", rows, err)
	}
}

// A profile of the user may have answers cut short when a limit is met, and rows added to them.
func TestPost_EachStatement_SaysThatAnswersAreWhole(t *testing.T) {
	s := sessionWith(t, answering(t, func(_ http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		for _, name := range []string{"timeout_overflow_mode", "read_overflow_mode", "result_overflow_mode", "group_by_overflow_mode", "sort_overflow_mode", "distinct_overflow_mode", "set_overflow_mode"} {
			if q.Get(name) != "throw" {
				t.Errorf("%s is %q", name, q.Get(name))
			}
		}
		if q.Get("wait_end_of_query") != "1" || q.Get("extremes") != "0" || r.Header.Get("X-ClickHouse-Key") != password || strings.Contains(r.URL.String(), "s3cret") {
			t.Error(r.URL, r.Header)
		}
	}))
	if err := s.executeStatement(t.Context(), "DROP TABLE x"); err != nil {
		t.Error(err)
	}
	if err := s.insertRows(t.Context(), "t", "id", nil, nil); err != nil {
		t.Error(err)
	}
}

func TestPost_ServerThatIsSilent_MeetsTheTimeout(t *testing.T) {
	end := make(chan struct{})
	server := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("query") != "" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // the rest of the answer never comes
		}
		<-end
	})
	t.Cleanup(func() { close(end) })
	s := sessionWith(t, server)
	s.http.Timeout = 50 * time.Millisecond
	for name, call := range map[string]func() error{
		"execute": func() error { return s.executeStatement(t.Context(), "X") },
		"insert":  func() error { return s.insertRows(t.Context(), "t", "id", nil, nil) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "Client.Timeout") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPost_HTTPS_TrustsTheAuthorityOfCA(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "n\n1\n") }))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if one, err := sessionWith(t, server, text("ca", ca)).queryOne(t.Context(), "SELECT 1"); err != nil || one != "1" {
		t.Error(one, err)
	}
	if _, err := sessionWith(t, server).queryOne(t.Context(), "SELECT 1"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an authority that is not trusted: %v", err)
	}
	if err := os.WriteFile(ca, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := configure(text("url", server.URL), text("ca", ca))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openSession(&a.config); err == nil || !strings.Contains(err.Error(), ca) {
		t.Errorf("a file without a certificate: %v", err)
	}
}

// Nothing goes to where a server redirects, the password least of all.
func TestPost_Redirect_IsNotFollowed(t *testing.T) {
	other := answering(t, func(_ http.ResponseWriter, r *http.Request) { t.Error("asked with", r.Header) })
	s := sessionWith(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	if err := s.executeStatement(t.Context(), "X"); err == nil || !strings.Contains(err.Error(), "307") {
		t.Error(err)
	}
}

func TestQuote_AnyText_ComesBack(t *testing.T) {
	for _, text := range []string{"", "'", `\`, `\'`, "a\tb\nc\x00d", "'; DROP TABLE x; --", "ü"} {
		q := quoteText(text)
		if back := unescaper.Replace(q[1 : len(q)-1]); back != text || strings.Contains(strings.ReplaceAll(strings.ReplaceAll(q[1:len(q)-1], `\\`, ""), `\'`, ""), "'") {
			t.Errorf("%q: %s, back %q", text, q, back)
		}
	}
}

// A block has the number of its rows, so a server notices when the rest of it is missing.
func TestBlockOf_RowsOfATable_AreOneBlock(t *testing.T) {
	r := row{site: "nemo", id: "a'b", seq: 300, start: 1, stop: 2_000_000, state: "DONE", dimensions: []string{"g"}, used: []sum{{0, 5}, {-1, 7}}, known: []bool{true, true}}
	lacking := r
	lacking.used, lacking.known = []sum{{0, 5}, {}}, []bool{true, false}
	var rows []byte
	for i := range 200 {
		if i == 7 {
			rows = lacking.appendLedgerRow(rows, "cluster", -1, 9)
			continue
		}
		rows = r.appendLedgerRow(rows, "cluster", -1, 9)
	}
	columns := testLayout.ledgerColumns()
	block, err := blockOf(columns, rows)
	if err != nil {
		t.Fatal(err)
	}
	in := bytes.NewReader(block)
	number := func() uint64 {
		n, err := binary.ReadUvarint(in)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	text := func() string {
		b := make([]byte, number())
		if _, err := io.ReadFull(in, b); err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if n, count := number(), number(); n != uint64(len(columns)) || count != 200 {
		t.Errorf("%d columns of %d rows", n, count)
	}
	want := map[string]string{"cluster": "cluster", "site": "nemo", "record_id": "a'b", "state": "DONE", "group_id": "g",
		"month": "\x89\x01\x03\x00", "sign": "\xff", "seq": "\x2c\x01\x00\x00\x00\x00\x00\x00", "stop": "\x02\x00\x00\x00",
		"Cores": "\x05" + strings.Repeat("\x00", 15), "TotalCPU": "\x07" + strings.Repeat("\x00", 7) + strings.Repeat("\xff", 8)}
	for _, c := range columns {
		if name, kind := text(), text(); name != c.name || kind != c.kind {
			t.Errorf("column %s %s, want %v", name, kind, c)
		}
		fixed := func(n int) string {
			b := make([]byte, n)
			if _, err := io.ReadFull(in, b); err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		kind, nulls := c.kind, ""
		if kind == maybeDecimal {
			kind, nulls = decimal, fixed(200)
		}
		if c.name == "TotalCPU" && nulls != strings.Repeat("\x00", 7)+"\x01"+strings.Repeat("\x00", 192) {
			t.Errorf("%q are missing", nulls)
		}
		for i := range 200 {
			var got string
			if kind == "String" {
				got = text()
			} else {
				got = fixed(widths[kind])
			}
			if w, ok := want[c.name]; ok && got != w && (i != 7 || c.name != "TotalCPU") {
				t.Fatalf("%s is %q, want %q", c.name, got, w)
			}
		}
	}
	if in.Len() > 0 {
		t.Errorf("%d bytes more", in.Len())
	}
	for _, table := range testLayout.tableDefinitions() {
		for _, c := range table.columns {
			if _, ok := widths[c.kind]; !ok && c.kind != "String" && c.kind != maybeDecimal {
				t.Errorf("%s.%s: the width of %s is unknown", table.table, c.name, c.kind)
			}
		}
	}
	if _, err := blockOf(columns, rows[:len(rows)-1]); err == nil {
		t.Error("a row that is not whole is taken")
	}
}

// fakeServer answers the statements of a follower: there is a position, and stored rows of the
// ledger in RowBinary.
func fakeServer(t *testing.T, position, stored string) *session {
	return sessionWith(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch statement := string(body); {
		case strings.HasPrefix(statement, "SELECT number, fence"):
			fmt.Fprintf(w, "number\tfence\tstate\tepoch\tcursor\tlast\treason\tuntil\tpage\tpages\tbatch\n%s\n", position)
		case strings.HasSuffix(statement, "FORMAT TabSeparatedWithNames"):
			_, _ = io.WriteString(w, "x\n")
		case strings.HasSuffix(statement, "FORMAT RowBinary"):
			_, _ = io.WriteString(w, stored)
		}
	}))
}

// ledgerOf answers /v1/changes with pages, and /v1/status.
func ledgerOf(pages ...string) *sdk.Data {
	return sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/status" {
			_, _ = io.WriteString(w, `{"last_change":9}`)
			return
		}
		n := 0
		_, _ = fmt.Sscanf(r.URL.Query().Get("cursor"), "c%d", &n)
		fmt.Fprintf(w, "{\"cluster\":\"C\",\"epoch\":\"E\"}\n%s\n", pages[n])
	}))
}

func recordOf(seq int, cores int) string {
	return fmt.Sprintf(`{"record_id":"a","meta":{"group_id":["g"]},"components":[{"name":"Cores","amount":%d,"scores":[]}],"start_time":"2026-01-01T00:00:00Z","stop_time":"2026-01-01T01:00:00Z","seq":%d}`, cores, seq)
}

// A page that ends with its part of the feed is followed by the next part in the same batch.
func TestReadBatch_FormerRowOfTheSameBatch_IsTakenBack(t *testing.T) {
	f := &feed{session: fakeServer(t, "", ""), cluster: "C", epoch: "E", data: ledgerOf(
		`{"seq":6,"record_id":"a","record":`+recordOf(6, 1)+`,"supersedes":null}`+"\n"+`{"last":6,"more":true,"next":"c1"}`,
		`{"seq":7,"record_id":"a","record":`+recordOf(7, 2)+`,"supersedes":`+recordOf(6, 1)+`}`+"\n"+`{"last":7,"more":false,"next":"c2"}`)}
	f.zone = time.UTC
	b, err := f.readBatch(t.Context(), position{cursor: "c0", until: 9, page: 1, pages: 2})
	if err != nil || len(b.rows[ledgerTable]) != 1 || b.rows[ledgerTable][202601].count != 3 || b.last != 7 {
		t.Fatalf("%+v: %v", b, err)
	}
	days, months := newUsage(&f.layout, time.UTC, byDay), newUsage(&f.layout, time.UTC, byMonth)
	added := row{site: "", start: 1767225600 * million, stop: (1767225600 + 3600) * million, dimensions: []string{"g", ""}, used: []sum{{lo: 2 * 3600 * million}, {}}}
	days.addRun(&added, 1)
	months.addRun(&added, 1)
	if got, want := b.rows[dailyTable][202601].bytes, days.encodeRows("C", b.id)[202601].bytes; !bytes.Equal(got, want) {
		t.Errorf("the day has\n%q, want\n%q", got, want)
	}
	if got, want := b.rows[monthlyTable][2026].bytes, months.encodeRows("C", b.id)[2026].bytes; !bytes.Equal(got, want) {
		t.Errorf("the month has\n%q, want\n%q", got, want)
	}
	f.data = ledgerOf(`{"seq":7,"record_id":"a","record":` + recordOf(7, 2) + `,"supersedes":` + recordOf(6, 1) + `}` + "\n" + `{"last":7,"more":false,"next":"c2"}`)
	if _, err := f.readBatch(t.Context(), position{cursor: "c0", until: 9, page: 1, pages: 2}); err == nil || !strings.Contains(err.Error(), "the row of change 6 is not in") {
		t.Errorf("a row that is nowhere: %v", err)
	}
}

func TestEnsureSchema_TablesOfALaterVersionOrAnotherLayout_AreRefused(t *testing.T) {
	for has, want := range map[string]string{
		"3\t" + testLayout.String():       "version 3 and this plugin writes version 2: run the newer plugin",
		"1\t" + testLayout.String():       "",
		"2\tdimensions user_id; zone UTC": "use the same, or another database",
		"2\t" + testLayout.String():       "",
	} {
		s := sessionWith(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			switch statement := string(body); {
			case strings.HasPrefix(statement, "SELECT name FROM system.tables"):
				_, _ = io.WriteString(w, "name\nledger\nschema\n")
			case strings.HasPrefix(statement, "SELECT engine FROM"):
				_, _ = io.WriteString(w, "engine\nMergeTree\n")
			case strings.HasPrefix(statement, "SELECT name, type FROM"):
				_, _ = io.WriteString(w, "name\ttype\nversion\tUInt32\nlayout\tString\n")
			case strings.HasPrefix(statement, "SELECT DISTINCT version"):
				_, _ = io.WriteString(w, "version\tlayout\n"+has+"\n")
			}
		}))
		s.layout = testLayout
		err := s.ensureSchema(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !isRefused(err) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", has, err, want)
		}
	}
}

// storedRow is a row of the ledger as a server answers it.
func storedRow(r *row) []byte {
	stored := appendText(appendText(nil, r.site), r.id)
	for _, n := range []uint64{r.seq, uint64(r.start), uint64(r.stop)} {
		stored = binary.LittleEndian.AppendUint64(stored, n)
	}
	return r.appendValues(appendText(stored, r.state))
}

// A withdrawn or deleted record is taken back with the values that were added, whatever the
// feed says of them now.
func TestReadBatch_WithdrawnRecord_IsTakenBackAsStored(t *testing.T) {
	r := row{site: "nemo", id: "a", seq: 6, start: 1767225600 * million, stop: 1767225601 * million, state: "DONE", dimensions: []string{"g", "u"}, used: []sum{{lo: 1_500_000}, {}}, known: []bool{true, false}}
	stored := storedRow(&r)
	f := &feed{session: fakeServer(t, "", string(stored)), cluster: "C", epoch: "E", data: ledgerOf(
		`{"seq":7,"record_id":"a","record":null,"supersedes":` + recordOf(6, 99) + `}` + "\n" + `{"last":7,"more":false,"next":"c1"}`)}
	f.zone = time.UTC
	b, err := f.readBatch(t.Context(), position{cursor: "c0", until: 9, page: 1, pages: 1})
	if err != nil || len(b.rows[ledgerTable]) != 1 {
		t.Fatal(b, err)
	}
	if got, want := b.rows[ledgerTable][202601], r.appendLedgerRow(nil, "C", -1, b.id); got.count != 1 || !bytes.Equal(got.bytes, want) {
		t.Errorf("%+v, want %q", got, want)
	}
	f.session = fakeServer(t, "", string(stored[:len(stored)-3]))
	if _, err := f.readBatch(t.Context(), position{cursor: "c0", until: 9, page: 1, pages: 1}); err == nil || isRefused(err) {
		t.Errorf("an answer that is not whole: %v, want another attempt", err)
	}
}

// A node that is behind, or was put back from a copy, must not be asked without a pause.
func TestFollow_FeedThatEndsBeforeTheTarget_IsAnError(t *testing.T) {
	f := &follower{feed: feed{session: fakeServer(t, "4\t1\twritten\tE\tc0\t5\t\t0\t0\t0\t0", ""), cluster: "C", epoch: "E", data: ledgerOf(`{"last":5,"more":false,"next":"c0"}`)}, fence: 2}
	if err := f.followChanges(t.Context(), 9, time.Now().Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "ends at change 5, and 9 was asked for") {
		t.Error(err)
	}
}

// After a plugin was killed the server often still works on its insert; an attempt that failed
// for that would be followed by ever longer pauses.
func TestAwaitQuiet_InsertOfAnEarlierAttempt_IsWaitedFor(t *testing.T) {
	left := 2
	s := sessionWith(t, answering(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "query_id\telapsed\n")
		if left--; left >= 0 {
			_, _ = io.WriteString(w, "bursar-C-1\t0.5\n")
		}
	}))
	if err := s.awaitQuiet(t.Context(), "bursar-C-"); err != nil || left != -1 {
		t.Error(left, err)
	}
	left = 1 << 30
	s.config.Timeout = time.Millisecond
	if err := s.awaitQuiet(t.Context(), "bursar-C-"); err == nil || !strings.Contains(err.Error(), "the insert bursar-C-1 of an earlier attempt") {
		t.Error(err)
	}
}

func TestCompareFigures_WhatDiffers_IsNamed(t *testing.T) {
	a := map[siteMonth]figures{{"s", "202601"}: {"1", "Cores 5"}, {"s", "202602"}: {"1", "Cores 5"}}
	b := map[siteMonth]figures{{"s", "202602"}: {"1", "Cores 5"}, {"z", ""}: {"2", "Cores 7, TotalCPU 1.5"}}
	got := strings.Join(compareFigures("one", "other", a, b), "; ")
	if want := `site "s" 202601: one has 1 record with Cores 5, other nothing; site "z": one has nothing, other 2 records with Cores 7, TotalCPU 1.5`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestMonthName_IsThatOfTheColumn(t *testing.T) {
	for month, want := range map[string]string{"2026-03": "202603", "0001-01": "101", "0999-12": "99912"} {
		if got := monthName(month); got != want {
			t.Errorf("%s is %s, want %s", month, got, want)
		}
	}
}
