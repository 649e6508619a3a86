package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// follower brings the tables to a state of the cluster.
type follower struct {
	feed

	fence   uint64
	at      position
	written int64  // rows of the ledger
	open    uint64 // records that go on
	notes   []string

	lacks bool       // monthly has no rows of the cluster, and daily has
	ahead *readAhead // nil: nothing is read ahead

	batches []uint64 // of records that go on, in the tables
	former  uint64   // the batch shown before
}

// errLater says that time is up and the rest is for the next attempt.
var errLater = errors.New("the rest follows")

// followChanges writes what there is up to the change target, and no further. After stop no
// further batch begins, and the error is errLater.
func (f *follower) followChanges(ctx context.Context, target uint64, stop time.Time) error {
	if err := f.beginTurn(ctx); err != nil {
		return err
	}
	defer f.endAhead()
	for {
		var err error
		switch {
		case f.at.number > 0 && f.at.epoch != f.epoch: // of another life of the cluster, whose fences are others
			err = errBeginAnew{fmt.Sprintf("the cluster is in the epoch %q, and the tables are of %q", f.epoch, f.at.epoch)}
		case f.at.fence > f.fence:
			return fmt.Errorf("attempt %d writes to %s, and this is %d: it leaves the tables to that one", f.at.fence, f.tableName(cursorsTable), f.fence)
		case f.lacks:
			f.lacks, err = false, errBeginAnew{fmt.Sprintf("the table %s is new", f.tableName(monthlyTable))}
		case f.at.state == stateWritten:
			if f.at.cursor != "" && f.at.last >= target {
				return nil
			}
			if time.Now().After(stop) {
				return errLater
			}
			before := f.at.cursor
			err = f.writeNext(ctx, target)
			if err == nil && f.at.cursor == before {
				err = fmt.Errorf("/v1/changes ends at change %d, and %d was asked for: this node's state is an earlier one", f.at.last, target)
			}
		case f.at.state == stateBegun:
			err = f.writeBegun(ctx)
		case f.at.state == stateReplacing:
			err = f.removeRows(ctx)
		case f.at.state == "":
			err = f.replaceRows(ctx, "there was no cursor")
		default:
			err = newRefusal("unknown state %q in %s: run the newer plugin", f.at.state, f.tableName(cursorsTable))
		}
		if anew, ok := errors.AsType[errBeginAnew](err); ok {
			err = f.replaceRows(ctx, anew.reason)
		}
		if err != nil {
			return err
		}
	}
}

// awaitTables waits until this server has all that was written by earlier attempts.
func (f *follower) awaitTables(ctx context.Context) error {
	if err := f.awaitQuiet(ctx, f.queryID()); err != nil {
		return err
	}
	return f.awaitReplica(ctx)
}

// beginTurn waits until this server has all that was written, and reads the position.
func (f *follower) beginTurn(ctx context.Context) error {
	err := f.awaitTables(ctx)
	if err == nil {
		f.at, err = f.readPosition(ctx, f.cluster)
	}
	if err == nil && f.replicated() {
		f.at.generation, err = f.readGeneration(ctx, f.cluster)
	}
	if err == nil {
		f.lacks, err = f.lacksMonths(ctx)
	}
	return err
}

// lacksMonths reports whether daily has rows of the cluster and monthly has none: those of a former
// version of the action, or of a batch that was begun, which may be the first one.
func (f *follower) lacksMonths(ctx context.Context) (bool, error) {
	if f.at.state != stateWritten && f.at.state != stateBegun {
		return false, nil
	}
	has := func(table string) (bool, error) {
		rows, err := f.queryRows(ctx, fmt.Sprintf("SELECT cluster FROM %s WHERE cluster = %s LIMIT 1", f.tableName(table), quoteText(f.cluster)))
		return len(rows) > 0, err
	}
	months, err := has(monthlyTable)
	if err != nil || months {
		return false, err
	}
	return has(dailyTable)
}

// writeNext begins the batch behind the position, and writes it.
func (f *follower) writeNext(ctx context.Context, target uint64) error {
	b, err := f.nextBatch(ctx, f.askBehind(f.at.cursor, f.at.last, target))
	if err != nil {
		return err
	}
	if b.last < target {
		f.beginAhead(ctx, f.askBehind(b.cursor, b.last, target))
	}
	if len(b.rows[ledgerTable]) > 0 { // else there is nothing that could be there in part
		begun := b.begun
		begun.state = stateBegun
		if err := f.advancePosition(ctx, begun); err != nil {
			return err
		}
	}
	return f.writeBatch(ctx, b)
}

// askBehind is what a batch behind a cursor is asked for with.
func (f *follower) askBehind(cursor string, last, target uint64) position {
	pages := (f.Batch + maxPage - 1) / maxPage
	return position{cursor: cursor, last: last, generation: f.at.generation, until: target, page: f.Batch / pages, pages: pages}
}

// writeBegun reads a batch that was begun once more, and writes what is missing of it.
func (f *follower) writeBegun(ctx context.Context) error {
	b, err := f.readBatch(ctx, f.at)
	if err != nil {
		return err
	}
	return f.writeBatch(ctx, b)
}

// writeBatch inserts what is missing of a batch, and then writes the position behind it.
func (f *follower) writeBatch(ctx context.Context, b *batch) error {
	for _, table := range batchTables() {
		if err := f.insertMissing(ctx, b, &table); err != nil {
			return err
		}
	}
	next := position{state: stateWritten, cursor: b.cursor, last: b.last, batch: b.id}
	for _, r := range b.rows[ledgerTable] {
		next.rows += r.count
	}
	f.written += next.rows
	return f.advancePosition(ctx, next)
}

// partitionsAtOnce is how many partitions one insert has.
const partitionsAtOnce = 50

// insertTries is how often rows are inserted that are not there afterwards.
const insertTries = 3

// insertMissing inserts the rows of a batch that a table does not have, and returns when it has
// them. A server that was killed may remember the id of an insert without its rows, and leaves out
// the next one of this id; so each further try has an id of its own.
func (f *follower) insertMissing(ctx context.Context, b *batch, table *batchTable) error {
	for part := range slices.Chunk(slices.Sorted(maps.Keys(b.rows[table.name])), partitionsAtOnce) {
		for try := 0; ; try++ {
			missing, err := f.missingRows(ctx, b, table, part)
			if err == nil && len(missing) > 0 && try > 0 { // another replica may have taken them
				if err = f.awaitReplica(ctx); err == nil {
					missing, err = f.missingRows(ctx, b, table, part)
				}
			}
			if err != nil {
				return err
			}
			if len(missing) == 0 {
				break
			}
			if try == insertTries {
				return newRefusal("%s answers that it has the rows of batch %d from %s %d on, and does not have them; run the action with replace=all", f.tableName(table.name), b.id, table.partition, part[0])
			}
			if err := f.confirmTurn(ctx); err != nil {
				return err
			}
			id := fmt.Sprint(f.queryID(), f.at.number, "-", b.id, "-", table.name, "-", part[0])
			if try > 0 { // the first id is that of earlier attempts, which may begin late
				id += fmt.Sprint("-", try)
			}
			if err := f.insertRows(ctx, table.name, id, table.columns(f.layout), missing); err != nil {
				return err
			}
		}
	}
	return nil
}

// missingRows returns the rows of some partitions of a batch that a table does not have. A partition
// of an insert is there as a whole or not at all, so any other number is a fault that a person looks at.
func (f *follower) missingRows(ctx context.Context, b *batch, table *batchTable, part []uint32) (missing []byte, err error) {
	names := make([]string, len(part))
	for i, m := range part {
		names[i] = strconv.FormatUint(uint64(m), 10)
	}
	there, err := f.queryRows(ctx, fmt.Sprintf("SELECT %s, %s FROM %s WHERE cluster = %s%s AND batch = %d AND %[1]s IN (%[7]s) GROUP BY %[1]s",
		table.partition, table.counted, f.tableName(table.name), quoteText(f.cluster), table.where, b.id, strings.Join(names, ", ")))
	if err != nil {
		return nil, err
	}
	has := map[string]string{}
	for _, row := range there {
		has[row[0]] = row[1]
	}
	var parts [][]byte
	for i, m := range part {
		rows := b.rows[table.name][m]
		switch want := strconv.FormatInt(rows.count, 10); has[names[i]] {
		case want:
		case "", "0":
			parts = append(parts, rows.bytes)
		default:
			return nil, newRefusal("%s has %s rows of a batch in %s %s, and the batch has %s: another writer wrote it, too, or rows were removed; run the action with replace=all", f.tableName(table.name), has[names[i]], table.partition, names[i], want)
		}
	}
	return slices.Concat(parts...), nil
}

// queryID is what the ids of all inserts of the cluster begin with.
func (f *follower) queryID() string { return "bursar-" + f.cluster + "-" }

// confirmTurn returns an error when another attempt has written a position since.
func (f *follower) confirmTurn(ctx context.Context) error {
	now, err := f.readPosition(ctx, f.cluster)
	if err == nil && (now.number != f.at.number || now.fence != f.at.fence) {
		err = fmt.Errorf("attempt %d writes to %s, too, and this is %d: it leaves the tables to that one", now.fence, f.tableName(cursorsTable), f.fence)
	}
	return err
}

// advancePosition appends the next position.
func (f *follower) advancePosition(ctx context.Context, next position) error {
	if err := f.confirmTurn(ctx); err != nil {
		return err
	}
	next.number, next.fence, next.epoch, next.generation = f.at.number+1, f.fence, f.epoch, f.at.generation
	if next.state == stateReplacing && f.replicated() {
		next.generation = next.number
	}
	if err := f.writePosition(ctx, f.cluster, &next); err != nil {
		return err
	}
	f.at = next
	return nil
}

// replaceRows begins to replace all rows of the cluster.
func (f *follower) replaceRows(ctx context.Context, reason string) error {
	f.notes = append(f.notes, "all rows of the cluster are written anew: "+reason)
	return f.advancePosition(ctx, position{state: stateReplacing, reason: reason})
}

// removeRows removes all rows of the cluster, so that the feed can begin anew.
func (f *follower) removeRows(ctx context.Context) error {
	for _, table := range batchTables() {
		if err := f.removeFrom(ctx, &table); err != nil {
			return err
		}
	}
	return f.advancePosition(ctx, position{state: stateWritten})
}

// removeFrom removes the rows of the cluster from a table.
func (f *follower) removeFrom(ctx context.Context, table *batchTable) error {
	rows, err := f.queryRows(ctx, fmt.Sprintf("SELECT DISTINCT %s FROM %s WHERE cluster = %s", table.partition, f.tableName(table.name), quoteText(f.cluster)))
	if err != nil {
		return err
	}
	values := make([]string, len(rows))
	for i, r := range rows {
		values[i] = r[0]
	}
	return f.removePartitions(ctx, table.name, table.partition, values, f.confirmTurn)
}

// replaceOnce removes all rows of the cluster, unless it was done for this reason before.
func (f *follower) replaceOnce(ctx context.Context, reason string) error {
	if err := f.beginTurn(ctx); err != nil {
		return err
	}
	known, err := f.queryOne(ctx, fmt.Sprintf("SELECT count() FROM %s WHERE cluster = %s AND reason = %s", f.tableName(cursorsTable), quoteText(f.cluster), quoteText(reason)))
	if err == nil && known == "0" {
		err = f.replaceRows(ctx, reason)
	}
	if err == nil && f.at.state == stateReplacing {
		err = f.removeRows(ctx)
	}
	return err
}
