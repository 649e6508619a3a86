package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// forgetfulServer has a batch of one record that was begun, and counts what it takes. It leaves
// out inserts of ids that it remembers without their rows.
type forgetfulServer struct {
	*session

	remembers func(id string) bool
	rows      map[string]uint64 // by table
	ids       []string          // of inserts
	positions []string          // that were written
}

func newForgetfulServer(t *testing.T, remembers func(id string) bool) *forgetfulServer {
	s := &forgetfulServer{remembers: remembers, rows: map[string]uint64{}}
	s.session = sessionWith(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		statement := string(body)
		if q := r.URL.Query().Get("query"); q != "" {
			id := r.URL.Query().Get("query_id")
			s.ids = append(s.ids, id)
			_, columns := binary.Uvarint(body)
			if rows, _ := binary.Uvarint(body[columns:]); !s.remembers(id) {
				s.rows[strings.Split(q, "`")[3]] += rows
			}
			return
		}
		switch {
		case strings.HasPrefix(statement, "SELECT number, fence"):
			position := "4\t1\tbegun\tE\tc0\t5\t\t6\t1\t1\t0"
			if len(s.positions) > 0 {
				position = s.positions[len(s.positions)-1]
			}
			fmt.Fprintf(w, "number\tfence\tstate\tepoch\tcursor\tlast\treason\tuntil\tpage\tpages\tbatch\n%s\n", position)
		case strings.HasPrefix(statement, "INSERT INTO `bursar`.`cursors`"):
			s.positions = append(s.positions, "5\t2\twritten\tE\tc1\t6\t\t0\t0\t0\t1")
		case strings.HasPrefix(statement, "SELECT month, count() FROM `bursar`.`ledger`"):
			fmt.Fprintf(w, "month\tn\n202601\t%d\n", s.rows[ledgerTable])
		case strings.HasPrefix(statement, "SELECT month, sum(marked) FROM `bursar`.`daily`"):
			fmt.Fprintf(w, "month\tn\n202601\t%d\n", min(s.rows[dailyTable], 1)) // of the mark
		case strings.HasPrefix(statement, "SELECT year, sum(marked) FROM `bursar`.`monthly`"):
			fmt.Fprintf(w, "year\tn\n2026\t%d\n", min(s.rows[monthlyTable], 1))
		case strings.HasPrefix(statement, "SELECT"):
			_, _ = io.WriteString(w, "x\n")
		}
	}))
	s.zone = time.UTC
	return s
}

// follow goes to the end of the batch.
func (s *forgetfulServer) follow(t *testing.T) error {
	f := &follower{feed: feed{session: s.session, cluster: "C", epoch: "E", data: ledgerOf(
		`{"seq":6,"record_id":"a","record":` + recordOf(6, 1) + `,"supersedes":null}` + "\n" + `{"last":6,"more":false,"next":"c1"}`)}, fence: 2}
	return f.followChanges(t.Context(), 6, time.Now().Add(time.Hour))
}

// ends are the ids without what all have in front: the table, the month, and the try.
func (s *forgetfulServer) ends() (list []string) {
	for _, id := range s.ids {
		list = append(list, strings.Join(strings.Split(id, "-")[4:], "-"))
	}
	return list
}

// A server that was killed may remember an insert, and not have its rows.
func TestInsertMissing_InsertThatAddsNothing_HasAnotherIdNext(t *testing.T) {
	s := newForgetfulServer(t, func(id string) bool { return strings.HasSuffix(id, "202601") })
	if err := s.follow(t); err != nil || s.rows[ledgerTable] != 1 || s.rows[dailyTable] == 0 || s.rows[monthlyTable] == 0 || len(s.positions) != 1 {
		t.Errorf("%v with %v and the positions %q", err, s.rows, s.positions)
	}
	if want := []string{"ledger-202601", "ledger-202601-1", "daily-202601", "daily-202601-1", "monthly-2026"}; !slices.Equal(s.ends(), want) {
		t.Errorf("the inserts %q, want %q", s.ids, want)
	}
}

func TestInsertMissing_ServerWithoutTheRows_IsRefusedAndNothingAdvances(t *testing.T) {
	s := newForgetfulServer(t, func(string) bool { return true })
	err := s.follow(t)
	if !isRefused(err) || !strings.Contains(err.Error(), "answers that it has the rows of batch") || len(s.positions) != 0 {
		t.Errorf("%v, want a refusal, with the positions %q", err, s.positions)
	}
	if want := []string{"ledger-202601", "ledger-202601-1", "ledger-202601-2"}; !slices.Equal(s.ends(), want) {
		t.Errorf("the inserts %q, want %q", s.ids, want)
	}
}

// What another replica took counts when this one has fetched it.
func TestInsertMissing_RowsOfAnotherReplica_AreAwaited(t *testing.T) {
	there, fetched := "", false
	for _, table := range testLayout.replicatedTables() {
		there += strings.Trim(table, "'") + " 0 0 0 0 6 7 2\n"
	}
	s, r := withReplica(t, func(statement string) string {
		switch {
		case strings.Contains(statement, "system.replicas"):
			fetched = true
			return there
		case strings.HasPrefix(statement, "SELECT number, fence"):
			return "0 0    0  0 0 0 0\n"
		case strings.HasPrefix(statement, "SELECT month") && fetched:
			return "202601 1\n"
		}
		return ""
	})
	f := &follower{feed: feed{session: s, cluster: "C"}}
	one := row{dimensions: []string{"", ""}, used: make([]sum, 2), known: []bool{true, true}}
	b := &batch{id: 1, rows: map[string]map[uint32]*rows{ledgerTable: {202601: {count: 1, bytes: one.appendLedgerRow(nil, "C", 1, 1)}}}}
	err := f.insertMissing(t.Context(), b, &batchTables()[0])
	if err != nil || r.hasSent("SELECT month") != 3 {
		t.Errorf("%v after %q", err, r.sent)
	}
	inserts := 0
	for _, statement := range r.sent {
		if !strings.HasPrefix(statement, "SELECT") {
			inserts++
		}
	}
	if inserts != 1 {
		t.Errorf("%d inserts, want 1: %q", inserts, r.sent)
	}
}

// rememberingServer has what is inserted: batches of a record of January 2026 each.
type rememberingServer struct {
	*session

	position string
	rows     map[string]uint64 // by table, of the batch behind the position
	sent     []string          // what was asked for, in short
}

// newRememberingServer calls inserting before an insert into a table is there.
func newRememberingServer(t *testing.T, stored string, inserting func(table string)) *rememberingServer {
	s := &rememberingServer{position: "4\t1\twritten\tE\tc0\t5\t\t0\t0\t0\t0", rows: map[string]uint64{}}
	s.session = sessionWith(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		statement := string(body)
		if q := r.URL.Query().Get("query"); q != "" {
			table := strings.Split(q, "`")[3]
			inserting(table)
			_, columns := binary.Uvarint(body)
			s.rows[table], _ = binary.Uvarint(body[columns:])
			s.sent = append(s.sent, "insert "+table)
			return
		}
		switch {
		case strings.HasPrefix(statement, "SELECT number, fence"):
			fmt.Fprintf(w, "number\tfence\tstate\tepoch\tcursor\tlast\treason\tuntil\tpage\tpages\tbatch\n%s\n", s.position)
		case strings.HasPrefix(statement, "INSERT INTO `bursar`.`cursors`"):
			_, values, _ := strings.Cut(statement, "VALUES (")
			v := strings.Split(strings.ReplaceAll(strings.TrimSuffix(values, ")"), "'", ""), ", ")
			s.position = strings.Join([]string{v[1], v[2], v[3], v[4], v[5], v[9], v[12], v[6], v[7], v[8], v[10]}, "\t")
			s.sent, s.rows = append(s.sent, v[3]+" "+v[9]), map[string]uint64{}
		case strings.HasSuffix(statement, "FORMAT RowBinary"):
			s.sent = append(s.sent, "look up")
			_, _ = io.WriteString(w, stored)
		case strings.HasPrefix(statement, "SELECT month, count() FROM `bursar`.`ledger`"):
			fmt.Fprintf(w, "month\tn\n202601\t%d\n", s.rows[ledgerTable])
		case strings.HasPrefix(statement, "SELECT month, sum(marked) FROM `bursar`.`daily`"):
			fmt.Fprintf(w, "month\tn\n202601\t%d\n", min(s.rows[dailyTable], 1)) // of the mark
		case strings.HasPrefix(statement, "SELECT year, sum(marked) FROM `bursar`.`monthly`"):
			fmt.Fprintf(w, "year\tn\n2026\t%d\n", min(s.rows[monthlyTable], 1))
		case strings.HasPrefix(statement, "SELECT"):
			_, _ = io.WriteString(w, "x\n")
		}
	}))
	s.zone, s.Batch = time.UTC, 1
	return s
}

// threeChanges are pages of a change each, of which the last one supersedes the second.
func threeChanges(asked func(cursor string)) *sdk.Data {
	var pages []string
	for i, supersedes := range []string{"null", "null", recordOf(7, 1)} {
		pages = append(pages, fmt.Sprintf(`{"seq":%d,"record_id":"a","record":%s,"supersedes":%s}`, i+6, recordOf(i+6, i), supersedes)+"\n"+
			fmt.Sprintf(`{"last":%d,"more":%t,"next":"c%d"}`, i+6, i < 2, i+1))
	}
	return sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked(r.URL.Query().Get("cursor"))
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Query().Get("cursor"), "c"))
		fmt.Fprintf(w, "{\"cluster\":\"C\",\"epoch\":\"E\"}\n%s\n", pages[n])
	}))
}

// The cluster makes the next page while ClickHouse inserts, so the server waits here for it.
func TestFollow_NextBatch_IsReadWhileOneIsInserted(t *testing.T) {
	second := make(chan struct{})
	s := newRememberingServer(t, "", func(string) {
		select {
		case <-second:
		case <-t.Context().Done():
		}
	})
	f := &follower{feed: feed{session: s.session, cluster: "C", epoch: "E", data: threeChanges(func(cursor string) {
		if cursor == "c1" {
			close(second)
		}
	})}, fence: 2}
	if err := f.followChanges(t.Context(), 7, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	want := []string{"begun 5", "insert ledger", "insert daily", "insert monthly", "written 6", "begun 6", "insert ledger", "insert daily", "insert monthly", "written 7"}
	if !slices.Equal(s.sent, want) || f.ahead != nil {
		t.Errorf("%q, want %q", s.sent, want)
	}
}

// A row that the batch before adds is there only when that batch is.
func TestFollow_FormerRowOfTheBatchBefore_IsLookedUpBehindIt(t *testing.T) {
	r := row{site: "", id: "a", seq: 7, start: 1767225600 * million, stop: (1767225600 + 3600) * million, dimensions: []string{"g", ""}, used: []sum{{lo: 3600 * million}, {}}, known: []bool{true, false}}
	s := newRememberingServer(t, string(storedRow(&r)), func(string) {})
	f := &follower{feed: feed{session: s.session, cluster: "C", epoch: "E", data: threeChanges(func(string) {})}, fence: 2}
	if err := f.followChanges(t.Context(), 8, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	want := []string{"written 7", "look up", "begun 7", "insert ledger", "insert daily", "insert monthly", "written 8"}
	if n := len(s.sent) - len(want); n < 0 || !slices.Equal(s.sent[n:], want) {
		t.Errorf("%q, want %q at the end", s.sent, want)
	}
}

func TestFollow_InsertThatFails_EndsWhatIsReadAhead(t *testing.T) {
	s := newRememberingServer(t, "", func(string) { panic(http.ErrAbortHandler) })
	f := &follower{feed: feed{session: s.session, cluster: "C", epoch: "E", data: threeChanges(func(string) {})}, fence: 2}
	if err := f.followChanges(t.Context(), 8, time.Now().Add(time.Hour)); err == nil || f.ahead != nil {
		t.Errorf("%v, and what is read ahead goes on", err)
	}
	if want := []string{"begun 5"}; !slices.Equal(s.sent, want) {
		t.Errorf("%q, want %q", s.sent, want)
	}
}
