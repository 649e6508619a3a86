package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// replicaServer is a server with a replica of each table, and keeps what it was sent.
type replicaServer struct {
	mu     sync.Mutex
	sent   []string
	answer func(statement string) string // rows with blanks between, or ""
}

// withReplica is a session with a server that has one other replica, on a server that is not there.
func withReplica(t *testing.T, answer func(statement string) string) (*session, *replicaServer) {
	t.Helper()
	r := &replicaServer{answer: answer}
	s := sessionWith(t, answering(t, func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sent = append(r.sent, string(body))
		text := r.answer(string(body))
		first, _, _ := strings.Cut(text, "\n")
		_, _ = io.WriteString(w, strings.ReplaceAll(first+"\n"+text, " ", "\t")) // the names of the columns first
	}), texts("replicas", "http://127.0.0.1:1"))
	return s, r
}

// hasSent counts the statements that begin so.
func (r *replicaServer) hasSent(begin string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, statement := range r.sent {
		if strings.HasPrefix(statement, begin) {
			n++
		}
	}
	return n
}

func TestReplicaState_WhatItLacks_IsNamed(t *testing.T) {
	for want, r := range map[string]replicaState{
		"":                             {table: "ledger", logged: 6, taken: 7},
		"is read-only":                 {table: "ledger", readOnly: true},
		"has lost ZooKeeper":           {table: "ledger", expired: true, logged: 6, taken: 7},
		"compared with ZooKeeper: 2":   {table: "ledger", doubtful: 2, logged: 6, taken: 7},
		"behind the other replicas: 3": {table: "ledger", logged: 6, taken: 4},
		"still to apply: 5":            {table: "ledger", waiting: 5, logged: 6, taken: 7},
	} {
		if got := r.lack(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
	fresh := replicaState{table: "ledger"}
	if got := fresh.lack(); got != "" {
		t.Errorf("a table without any entry: %s", got)
	}
}

func TestAwaitReplica_ReplicaThatIsBehind_IsWaitedFor(t *testing.T) {
	there := ""
	for _, table := range testLayout.replicatedTables() {
		there += strings.Trim(table, "'") + " 0 0 0 0 6 7 2\n"
	}
	behind := strings.Replace(there, "ledger 0 0 0 0 6 7", "ledger 0 0 0 0 6 5", 1)
	answers := []string{behind, "ledger 0 0 0 0 6 7 2\n", there}
	s, _ := withReplica(t, func(string) string {
		text := answers[0]
		answers = answers[1:]
		return text
	})
	if err := s.awaitReplica(t.Context()); err != nil || len(answers) > 0 {
		t.Error(len(answers), err)
	}
	s, _ = withReplica(t, func(string) string { return behind })
	s.config.Timeout = time.Millisecond
	if err := s.awaitReplica(t.Context()); err == nil || isRefused(err) || !strings.Contains(err.Error(), "the table ledger is behind the other replicas: 2") {
		t.Errorf("%v, want another attempt", err)
	}
	s.config.Replicas = nil
	if err := s.awaitReplica(t.Context()); err != nil {
		t.Errorf("tables of one server: %v", err)
	}
}

// A server without ZooKeeper knows of no replicas at all.
func TestEnsureReplicas_OnlyWhereTheyAreKnown_AreCreated(t *testing.T) {
	for state, want := range map[string]string{
		"ledger 0 0 0 0 6 7 2\n": "",
		"ledger 1 0 0 0 0 0 0\n": "",
		"ledger 0 1 0 0 0 0 0\n": "",
		"ledger 0 0 0 0 6 7 1\n": "the replica on 127.0.0.1:1 was not created: ClickHouse on 127.0.0.1:1: dial",
	} {
		s, _ := withReplica(t, func(string) string { return state })
		notes, err := s.ensureReplicas(t.Context())
		if all := strings.Join(notes, "; "); err != nil || !strings.HasPrefix(all, want) || want == "" && all != "" {
			t.Errorf("%s: %q, %v, want %q", state, all, err, want)
		}
	}
}

func TestEnsureTable_OfAnotherEngine_IsRefused(t *testing.T) {
	for engine, replicated := range map[string]bool{"MergeTree": true, "ReplicatedMergeTree": false} {
		s, r := withReplica(t, func(statement string) string {
			if strings.HasPrefix(statement, "SELECT engine") {
				return engine + "\n"
			}
			return ""
		})
		if !replicated {
			s.config.Replicas = nil
		}
		err := s.ensureTable(t.Context(), &definition{table: ledgerTable, engine: "MergeTree", order: "ORDER BY cluster", replicated: true})
		if !isRefused(err) || !strings.Contains(err.Error(), "is a "+engine+",") || r.hasSent("CREATE TABLE IF NOT EXISTS `bursar`.`ledger`") != 1 {
			t.Errorf("%s: %v, want a refusal", engine, err)
		}
	}
}

// A replica that does not lead would ask the leader without a password.
func TestRemoveFrom_ReplicaThatDoesNotLead_Deletes(t *testing.T) {
	left := "2"
	var r *replicaServer
	s, r := withReplica(t, func(statement string) string {
		switch {
		case strings.HasPrefix(statement, "SELECT DISTINCT month"):
			return "202601\n202602\n"
		case strings.HasPrefix(statement, "SELECT number, fence"):
			return "0 0    0  0 0 0 0\n"
		case strings.HasPrefix(statement, "SELECT is_leader"), strings.Contains(statement, "system.mutations"):
			return "0\n"
		case strings.HasPrefix(statement, "SELECT count() FROM `bursar`.`ledger`"):
			return left + "\n"
		case strings.HasPrefix(statement, "ALTER"):
			left = "0"
		}
		return ""
	})
	f := &follower{feed: feed{session: s, cluster: "C"}}
	if err := f.removeFrom(t.Context(), &batchTables()[0]); err != nil || r.hasSent("ALTER TABLE `bursar`.`ledger` DELETE WHERE cluster = 'C' AND month IN (202601, 202602)") != 1 || r.hasSent("ALTER") != 1 {
		t.Errorf("%v after %q", err, r.sent)
	}
	s.modern = true
	if err := f.removeFrom(t.Context(), &batchTables()[0]); err != nil || r.hasSent("ALTER TABLE `bursar`.`ledger` DROP PARTITION ('C', 2026") != 2 || r.hasSent("SELECT is_leader") != 1 {
		t.Errorf("a release in which all replicas lead: %v after %q", err, r.sent)
	}
}

// Rows of a later attempt stay: an earlier one leaves before it orders to delete once more.
func TestDeleteRows_AnotherAttemptInBetween_IsNotOrderedAgain(t *testing.T) {
	s, r := withReplica(t, func(statement string) string {
		switch {
		case strings.Contains(statement, "system.mutations"):
			return "0\n"
		case strings.HasPrefix(statement, "SELECT count()"):
			return "2\n"
		}
		return ""
	})
	gone := errors.New("another attempt writes")
	err := s.deleteRows(t.Context(), ledgerTable, func(context.Context) error {
		if r.hasSent("ALTER") > 0 {
			return gone
		}
		return nil
	}, "cluster = 'C'")
	if !errors.Is(err, gone) || r.hasSent("ALTER") != 1 {
		t.Errorf("%v after %q", err, r.sent)
	}
}

func TestBatchID_AfterAReplacement_IsAnother(t *testing.T) {
	p := position{epoch: "E", cursor: "c", until: 9, page: 1, pages: 2}
	plain := batchID("C", &p)
	ids := []uint64{plain}
	for p.generation = 1; p.generation < 4; p.generation++ {
		id := batchID("C", &p)
		if slices.Contains(ids, id) {
			t.Errorf("generation %d has the id %d of an earlier one", p.generation, id)
		}
		ids = append(ids, id)
	}
	p.generation, p.fence, p.number = 0, 7, 8
	if id := batchID("C", &p); id != plain {
		t.Errorf("the id of another attempt is %d, want %d", id, plain)
	}
}

func TestEngineOf_WithReplicas_IsReplicated(t *testing.T) {
	s, _ := withReplica(t, func(string) string { return "" })
	got := map[string]string{}
	for _, d := range s.layout.tableDefinitions() {
		engine, arguments := s.engineOf(&d)
		got[d.table] = engine + "(" + arguments + ")"
	}
	for table, want := range map[string]string{
		ledgerTable:  "ReplicatedMergeTree('/clickhouse/tables/{shard}/bursar/ledger', '{replica}')",
		dailyTable:   "ReplicatedSummingMergeTree('/clickhouse/tables/{shard}/bursar/daily', '{replica}', (`marked`, `records`, `started`, `stopped`, `Cores`, `TotalCPU`))",
		monthlyTable: "ReplicatedSummingMergeTree('/clickhouse/tables/{shard}/bursar/monthly', '{replica}', (`marked`, `records`, `started`, `stopped`, `Cores`, `TotalCPU`))",
		cursorsTable: "ReplicatedMergeTree('/clickhouse/tables/{shard}/bursar/cursors', '{replica}')",
	} {
		if got[table] != want {
			t.Errorf("%s is a %s, want %s", table, got[table], want)
		}
	}
}
