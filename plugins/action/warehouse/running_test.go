package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// runningServer is a ClickHouse as far as the records that go on need one.
type runningServer struct {
	*session

	snapshots []string // the newest batch with its fence and epoch, by question; the last stays
	batches   []string // that the tables have
	running   string   // sums by site
	daily     string
	asked     []string
	inserted  map[string][]byte // by table
}

func newRunningServer(t *testing.T) *runningServer {
	s := &runningServer{snapshots: []string{""}, inserted: map[string][]byte{}}
	s.session = sessionWith(t, answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		statement := string(body)
		if q := r.URL.Query().Get("query"); q != "" {
			statement = q
			s.inserted[strings.Split(q, "`")[3]] = body
		}
		s.asked = append(s.asked, statement)
		answer := ""
		switch {
		case strings.HasPrefix(statement, "SELECT batch, fence"):
			answer = "batch\tfence\tepoch\n" + s.snapshots[0]
			s.snapshots = s.snapshots[min(1, len(s.snapshots)-1):]
		case strings.HasPrefix(statement, "SELECT DISTINCT batch FROM `bursar`.`running` "):
			answer = "batch\n" + strings.Join(append(s.batches, ""), "\n")
		case strings.HasPrefix(statement, "SELECT site, '', count(), sum(`Cores`) FROM"):
			answer = "site\t''\tcount()\tc\n" + s.running
		case strings.HasPrefix(statement, "SELECT site, '', count(), sum(`Cores`), sum(`TotalCPU`) FROM"):
			answer = "site\t''\tcount()\tc\tt\n" + strings.ReplaceAll(s.running, "\n", "\t9.5\n")
		case strings.HasPrefix(statement, "SELECT site, '', sum(started)"):
			answer = "site\t''\tsum(started)\tc\tt\n" + s.daily
		case strings.HasPrefix(statement, "SELECT"):
			answer = "x\n"
		}
		_, _ = io.WriteString(w, answer)
	}))
	s.zone = time.UTC
	return s
}

// statements are the beginnings of what was asked, without questions.
func (s *runningServer) statements() (list []string) {
	for _, statement := range s.asked {
		if !strings.HasPrefix(statement, "SELECT") {
			begin, _, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(statement, "`bursar`.", ""), "`", ""), " (cluster, ")
			list = append(list, begin)
		}
	}
	return list
}

const openLines = `{"cluster":"C","epoch":"E","last":12,"now":"2026-01-02T00:00:10Z"}
{"counted_to":"2026-01-02T00:00:02Z","record":{"record_id":"a","seq":7,"meta":{"site_id":["s"],"group_id":["g"]},"components":[{"name":"Cores","amount":3,"kind":"rate","scores":[]},{"name":"TotalCPU","amount":9,"kind":"total","scores":[]}],"start_time":"2026-01-01T23:59:59Z","stop_time":null,"state":"RUNNING"}}
{"counted_to":"2026-01-02T00:00:10Z","record":{"record_id":"b","seq":9,"meta":{"site_id":["s"]},"components":[{"name":"TotalCPU","amount":1,"kind":"total","scores":[]}],"start_time":"2026-01-02T00:00:10Z","stop_time":null,"state":null}}
{"records":2,"digests":[{"site":"s","records":2,"core_seconds":"9"}]}
`

// follow is an attempt to write what /v1/changes/open answers.
func (s *runningServer) follow(lines string) *follower {
	data := sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, lines) }))
	return &follower{feed: feed{session: s.session, data: data, cluster: "C", epoch: "E"}, fence: 5}
}

const openBatch = 1767312010 * million // the time of the answer

func TestWriteRunning_OpenRecords_AreShownWhenTheyAreWhole(t *testing.T) {
	s := newRunningServer(t)
	s.running, s.daily = "s\t\t2\t9.000000\n", "s\t\t2\t9.000000\t9.5\n"
	s.snapshots, s.batches = []string{"13\t4\tE\n"}, []string{"11", "12", "13", "14", "15", "16"}
	f := s.follow(openLines)
	change, err := f.writeRunning(t.Context())
	if err != nil || change != 12 || f.open != 2 {
		t.Fatal(change, f.open, err)
	}
	got := s.statements()
	slices.Sort(got[:2])
	want := []string{"INSERT INTO running", "INSERT INTO running_daily", "INSERT INTO snapshots"}
	if !slices.Equal(got, want) { // former batches stay until the ledger follows
		t.Errorf("%q, want %q", got, want)
	}
	if err := f.removeBatches(t.Context()); err != nil {
		t.Fatal(err)
	}
	got = s.statements()[len(want):]
	want = []string{
		"ALTER TABLE running DROP PARTITION ('C', 11)", "ALTER TABLE running DROP PARTITION ('C', 12)",
		"ALTER TABLE running_daily DROP PARTITION ('C', 11)", "ALTER TABLE running_daily DROP PARTITION ('C', 12)",
	}
	if !slices.Equal(got, want) { // 13 was shown until now
		t.Errorf("%q, want %q", got, want)
	}
	said := slices.IndexFunc(s.asked, func(q string) bool { return strings.HasPrefix(q, "INSERT INTO `bursar`.`snapshots`") })
	if want := fmt.Sprintf("VALUES ('C', %d, 5, 'E', 12, %d, 2, ", openBatch, openBatch); !strings.Contains(s.asked[said], want) {
		t.Errorf("%s, want %s", s.asked[said], want)
	}
	first := row{site: "s", id: "a", seq: 7, start: 1767311999 * million, stop: 1767312002 * million, state: "RUNNING", dimensions: []string{"g", ""}, used: []sum{{lo: 9 * million}, {lo: 9 * million}}, known: []bool{true, true}}
	second := row{site: "s", id: "b", seq: 9, start: openBatch, stop: openBatch, dimensions: []string{"", ""}, used: []sum{{}, {lo: million}}, known: []bool{false, true}}
	block, err := blockOf(f.layout.runningColumns(), second.appendRunningRow(first.appendRunningRow(nil, "C", openBatch), "C", openBatch))
	if err != nil || !bytes.Equal(s.inserted[runningTable], block) {
		t.Errorf("%q, want %q: %v", s.inserted[runningTable], block, err)
	}
	sums := newUsage(&f.layout, time.UTC, byDay)
	sums.addRun(&first, 1)
	sums.addRun(&second, 1)
	if len(sums.sums) != 3 { // two of the first, one of the second
		t.Errorf("%d days", len(sums.sums))
	}
	block, err = blockOf(f.layout.runningDailyColumns(), sums.encodeRunningDays("C", openBatch))
	if err != nil || !bytes.Equal(s.inserted[runningDailyTable], block) {
		t.Errorf("%q, want %q: %v", s.inserted[runningDailyTable], block, err)
	}
}

// No record goes on any more: a batch without rows takes the place of the former one.
func TestWriteRunning_NoOpenRecords_AreABatchToo(t *testing.T) {
	s := newRunningServer(t)
	s.snapshots = []string{fmt.Sprintf("%d\t4\tE\n", openBatch+7)} // by a clock that goes ahead
	if _, err := s.follow(`{"cluster":"C","epoch":"E","last":12,"now":"2026-01-02T00:00:10Z"}` + "\n" + `{"records":0,"digests":[]}` + "\n").writeRunning(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.statements(); !slices.Equal(got, []string{"INSERT INTO snapshots"}) || !strings.Contains(strings.Join(s.asked, "\n"), fmt.Sprintf("VALUES ('C', %d, ", openBatch+8)) {
		t.Errorf("%q", s.asked)
	}
}

func TestWriteRunning_WhatIsNotWhole_IsNotShown(t *testing.T) {
	begin, _, _ := strings.Cut(openLines, `{"records"`)
	for name, c := range map[string]struct {
		lines, running string
		snapshots      []string
		want           string
	}{
		"an answer that was cut off":    {lines: begin, want: "the answer ended too early"},
		"an answer that lacks a record": {lines: begin + `{"records":3,"digests":[]}` + "\n", want: "the answer ended too early"},
		"an empty answer":               {lines: "", want: "the answer ended too early"},
		"another epoch":                 {lines: strings.ReplaceAll(openLines, `"E"`, `"F"`), want: `the cluster is now C in the epoch "F"`},
		"rows that are missing":         {lines: openLines, running: "s\t\t1\t9.000000\n", want: `site "s": the cluster has 2 records with Cores 9, the table running 1 record with Cores 9`},
		"days that differ":              {lines: openLines, running: "s\t\t2\t9.000000\n", want: "the table running has 2 records with Cores 9, TotalCPU 9.5, the table running_daily nothing"},
		"a later attempt":               {lines: openLines, snapshots: []string{"13\t6\tE\n"}, want: "attempt 6 writes to"},
		"an attempt that is beside it":  {lines: openLines, running: "s\t\t2\t9.000000\n", snapshots: []string{"13\t4\tE\n", "14\t4\tE\n"}, want: "another attempt wrote the open records meanwhile"},
	} {
		s := newRunningServer(t)
		s.running = c.running
		if c.snapshots != nil {
			s.snapshots, s.daily = c.snapshots, "s\t\t2\t9.000000\t9.5\n"
		}
		_, err := s.follow(c.lines).writeRunning(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || isRefused(err) {
			t.Errorf("%s: %v, want %s and another attempt", name, err, c.want)
		}
		if got := s.statements(); slices.Contains(got, "INSERT INTO snapshots") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What usage counts of a run that goes on is what it would count of a run that stopped then.
func TestRowOfOpen_UntilATime_IsThatOfARunThatStopped(t *testing.T) {
	open := &v1.FullRecord{RecordID: "a", Meta: v1.Meta{"group_id": {"g", "h"}, "site_id": {"s"}}, StartTime: v1.Time{Time: time.UnixMicro(5).UTC()}, Seq: 3, State: "RUNNING",
		Components: []v1.FullComponent{{Name: "Cores", Amount: 7, Kind: "rate"}, {Name: "TotalCPU", Amount: 8, Kind: totalKind}}}
	closed := record.Record{ID: "a", State: "RUNNING", Start: 5, Stop: 105, Meta: record.Meta{{Key: "group_id", Values: []string{"g", "h"}}, {Key: "site_id", Values: []string{"s"}}},
		Components: []record.Component{{Name: "Cores", Amount: 7}, {Name: "TotalCPU", Amount: 8, Kind: record.Total}}}
	got, want := testLayout.rowOfOpen(open, 105), testLayout.rowOf(&closed, 3)
	if a, b := got.appendRunningRow(nil, "C", 1), want.appendRunningRow(nil, "C", 1); !bytes.Equal(a, b) || got.used[0] != (sum{lo: 700}) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
