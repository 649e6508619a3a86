package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// replicatedTables are those that have replicas, as SQL has a list.
func (l layout) replicatedTables() (list []string) {
	for _, d := range l.tableDefinitions() {
		if d.replicated {
			list = append(list, quoteText(d.table))
		}
	}
	return list
}

// ofReplicas is the condition of system.replicas for the tables.
func (s *session) ofReplicas() string {
	return fmt.Sprintf("database = %s AND table IN (%s)", quoteText(s.Database), strings.Join(s.layout.replicatedTables(), ", "))
}

// replicaState is what a server says of its replica of a table.
type replicaState struct {
	table                string
	readOnly, expired    bool
	doubtful, waiting    int64
	logged, taken, known int64
}

// replicaStates asks the server for its replicas of the tables.
func (s *session) replicaStates(ctx context.Context) ([]replicaState, error) {
	rows, err := s.queryRows(ctx, "SELECT table, is_readonly, is_session_expired, parts_to_check, queue_size - merges_in_queue - part_mutations_in_queue, log_max_index, log_pointer, total_replicas FROM system.replicas WHERE "+s.ofReplicas()+" ORDER BY table")
	var list []replicaState
	for _, r := range rows {
		var n [8]int64
		for i := 1; i < len(r); i++ {
			if n[i], err = strconv.ParseInt(r[i], 10, 64); err != nil {
				return nil, fmt.Errorf("ClickHouse on %s: system.replicas: %w", s.url.Host, err)
			}
		}
		list = append(list, replicaState{r[0], n[1] != 0, n[2] != 0, n[3], n[4], n[5], n[6], n[7]})
	}
	return list, err
}

// lack is what keeps a replica from having all rows that were written; "" when it has them.
func (r *replicaState) lack() string {
	switch {
	case r.readOnly || r.expired:
		return fmt.Sprintf("the table %s is read-only: its server has lost ZooKeeper", r.table)
	case r.doubtful > 0: // of an insert during which ZooKeeper was lost
		return fmt.Sprintf("parts of the table %s that are compared with ZooKeeper: %d", r.table, r.doubtful)
	case r.taken <= r.logged && r.logged > 0:
		return fmt.Sprintf("entries that the table %s is behind the other replicas: %d", r.table, r.logged-r.taken+1)
	case r.waiting > 0:
		return fmt.Sprintf("entries of the other replicas that the table %s has still to apply: %d", r.table, r.waiting)
	}
	return ""
}

// awaitReplica waits until the server has all rows that were written to any replica, at most as
// long as a request may take: what it counts before is too little, and what it counts of an insert
// during which ZooKeeper was lost may be too much.
func (s *session) awaitReplica(ctx context.Context) error {
	if !s.replicated() {
		return nil
	}
	return s.awaitState(ctx, func() (string, error) {
		states, err := s.replicaStates(ctx)
		if want := len(s.layout.replicatedTables()); err == nil && len(states) < want {
			return fmt.Sprintf("%d of %d tables are there", len(states), want), nil
		}
		lack := ""
		for i := range states {
			lack = cmp.Or(lack, states[i].lack())
		}
		return lack, err
	})
}

// awaitState asks until nothing is lacking, and then returns nil. It is an error when that takes
// longer than a request may.
func (s *session) awaitState(ctx context.Context, lacking func() (string, error)) error {
	for end := time.Now().Add(s.Timeout); ; {
		lack, err := lacking()
		switch {
		case err != nil || lack == "":
			return err
		case time.Now().After(end):
			return fmt.Errorf("ClickHouse on %s: %s", s.url.Host, lack)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quietLook):
		}
	}
}

// openReplica opens a session with another server of the site.
func (s *session) openReplica(u *url.URL) (*session, error) {
	c := *s.config
	c.url = u
	return openSession(&c)
}

// ensureReplicas creates the tables on the other servers, unless all are there. A server that does
// not answer does not stop writing: the notes name it.
func (s *session) ensureReplicas(ctx context.Context) (notes []string, err error) {
	lone, err := s.findLone(ctx)
	if err != nil || lone == nil {
		return nil, err
	}
	for _, u := range s.replicas {
		if err := s.createReplica(ctx, u); err != nil {
			if isRefused(err) {
				return nil, err
			}
			notes = append(notes, fmt.Sprintf("the replica on %s was not created: %v", u.Host, err))
		}
	}
	if len(notes) > 0 {
		return notes, nil
	}
	lone, err = s.findLone(ctx)
	if err == nil && lone != nil {
		err = newRefusal("the table %s has %d replicas, want %d: give the servers one ZooKeeper, the same macro shard, and different macros replica", s.tableName(lone.table), lone.known, len(s.replicas)+1)
	}
	return nil, err
}

// findLone returns a table that lacks a replica. Without ZooKeeper a server knows of none.
func (s *session) findLone(ctx context.Context) (*replicaState, error) {
	if !s.replicated() {
		return nil, nil
	}
	states, err := s.replicaStates(ctx)
	if err != nil || slices.ContainsFunc(states, func(r replicaState) bool { return r.readOnly || r.expired }) {
		return nil, err
	}
	if i := slices.IndexFunc(states, func(r replicaState) bool { return r.known <= int64(len(s.replicas)) }); i >= 0 {
		return &states[i], nil
	}
	return nil, nil
}

// createReplica creates the tables on another server.
func (s *session) createReplica(ctx context.Context, u *url.URL) error {
	other, err := s.openReplica(u)
	if err != nil {
		return err
	}
	defer other.close()
	return other.ensureTables(ctx)
}

// dropsPartitions reports whether the server removes a partition itself. Before 20.6 a replica
// that does not lead asks the leader, as the user default without a password.
func (s *session) dropsPartitions(ctx context.Context, table string) (bool, error) {
	if !s.replicated() || s.modern {
		return true, nil
	}
	leads, err := s.queryOne(ctx, fmt.Sprintf("SELECT is_leader FROM system.replicas WHERE database = %s AND table = %s", quoteText(s.Database), quoteText(table)))
	return leads == "1", err
}

// removePartitions removes the rows of the cluster with values of a column, which is the other one
// of the table's partitions. Before each partition, and each order to delete, it asks for leave.
func (f *follower) removePartitions(ctx context.Context, table, column string, values []string, leave func(context.Context) error) error {
	drops, err := f.dropsPartitions(ctx, table)
	if err != nil || len(values) == 0 {
		return err
	}
	if !drops {
		return f.deleteRows(ctx, table, leave, fmt.Sprintf("cluster = %s AND %s IN (%s)", quoteText(f.cluster), column, strings.Join(values, ", ")))
	}
	for _, value := range values {
		if err := leave(ctx); err != nil {
			return err
		}
		if err := f.executeStatement(ctx, fmt.Sprintf("ALTER TABLE %s DROP PARTITION (%s, %s)", f.tableName(table), quoteText(f.cluster), value)); err != nil {
			return err
		}
	}
	return nil
}

// deleteRows removes rows by a mutation, which any replica may order, and waits until this server
// is without them. Before each mutation it asks for leave.
func (s *session) deleteRows(ctx context.Context, table string, leave func(context.Context) error, where string) error {
	return s.awaitState(ctx, func() (string, error) {
		left, err := s.queryOne(ctx, fmt.Sprintf("SELECT count() FROM %s WHERE %s", s.tableName(table), where))
		if err != nil || left == "0" {
			return "", err
		}
		running, err := s.queryOne(ctx, fmt.Sprintf("SELECT count() FROM system.mutations WHERE database = %s AND table = %s AND is_done = 0", quoteText(s.Database), quoteText(table)))
		if err == nil && running == "0" {
			err = leave(ctx)
		}
		if err == nil && running == "0" {
			err = s.executeStatement(ctx, fmt.Sprintf("ALTER TABLE %s DELETE WHERE %s", s.tableName(table), where))
		}
		return fmt.Sprintf("rows of %s that are still to be deleted: %s", s.tableName(table), left), err
	})
}

// checkReplicas compares the sums of the other servers with those of this one. It says what was
// compared; the error names what differs.
func (f *follower) checkReplicas(ctx context.Context) (notes []string, err error) {
	var differs []string
	for _, u := range f.replicas {
		found, err := f.compareReplica(ctx, u)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			notes = append(notes, fmt.Sprintf("the replica on %s was not compared: %v", u.Host, err))
		case len(found) == 0:
			notes = append(notes, fmt.Sprintf("the replica on %s has the same", u.Host))
		}
		differs = append(differs, found...)
	}
	if len(differs) > 0 {
		return nil, f.nameDifference(ctx, differs)
	}
	return notes, nil
}

// compareReplica names the sums of months that differ on another server.
func (f *follower) compareReplica(ctx context.Context, u *url.URL) (differs []string, err error) {
	session, err := f.openReplica(u)
	if err != nil {
		return nil, err
	}
	defer session.close()
	err = session.ensureTables(ctx) // in place of a server that is gone there may be a new one
	if err == nil {
		err = session.awaitReplica(ctx)
	}
	if err != nil {
		return nil, err
	}
	other := *f
	other.session = session
	for _, t := range []struct{ table, records, used, where string }{
		{ledgerTable, "sum(sign)", "sum(sign * `%s`)", ""},
		{dailyTable, "sum(records)", "sum(`%s`)", " AND batch = 0"},
		{monthlyTable, "sum(records)", "sum(`%s`)", " AND batch = 0"},
	} {
		want, err := f.querySums(ctx, "site, month", t.records, t.used, f.layout.components, t.table, t.where)
		if err != nil {
			return nil, err
		}
		got, err := other.querySums(ctx, "site, month", t.records, t.used, f.layout.components, t.table, t.where)
		if err != nil {
			return nil, err
		}
		differs = append(differs, compareFigures("the table "+t.table, "that on "+u.Host, want, got)...)
	}
	return differs, nil
}
