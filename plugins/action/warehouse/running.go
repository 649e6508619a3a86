package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// snapshot is a batch of the records that go on: of a state of the cluster, each counted up
// to a time.
type snapshot struct {
	batch  uint64 // grows within a cluster
	fence  uint64 // of the attempt that wrote it
	epoch  string
	change uint64
	until  record.Time

	// Of a batch that was read.
	records        uint64
	running, daily []byte // in RowBinary
	sites          map[siteMonth]figures
}

// writeRunning writes the records that go on as a batch, and says that it is whole. It returns
// the change of which it is: the ledger goes to that one and no further, so that a run which has
// ended is not in both. Former batches are removed behind that.
func (f *follower) writeRunning(ctx context.Context) (change uint64, err error) {
	if err := f.awaitTables(ctx); err != nil {
		return 0, err
	}
	former, err := f.readSnapshot(ctx)
	if err == nil && former.epoch == f.epoch && former.fence > f.fence {
		err = fmt.Errorf("attempt %d writes to %s, and this is %d: it leaves the tables to that one", former.fence, f.tableName(snapshotsTable), f.fence)
	}
	if err != nil {
		return 0, err
	}
	batches, err := f.runningBatches(ctx)
	if err != nil {
		return 0, err
	}
	s, err := f.readRunning(ctx, max(former.batch, slices.Max(append(batches, 0)))+1)
	if err != nil {
		return 0, err
	}
	for table, rows := range map[string][]byte{runningTable: s.running, runningDailyTable: s.daily} {
		if len(rows) == 0 {
			continue
		}
		columns := f.layout.runningColumns()
		if table == runningDailyTable {
			columns = f.layout.runningDailyColumns()
		}
		if err := f.insertRows(ctx, table, fmt.Sprint(f.queryID(), s.batch, "-", table), columns, rows); err != nil {
			return 0, err
		}
	}
	if err := f.checkRunning(ctx, s); err != nil {
		return 0, err
	}
	now, err := f.readSnapshot(ctx)
	if err == nil && now.batch != former.batch {
		err = fmt.Errorf("another attempt wrote the open records meanwhile, and this is %d", f.fence)
	}
	if err != nil {
		return 0, err
	}
	if err := f.writeSnapshot(ctx, s); err != nil {
		return 0, err
	}
	f.open, f.batches, f.former = s.records, append(batches, s.batch), former.batch
	return s.change, nil
}

// readSnapshot returns the newest whole batch of the cluster; batch 0 when there is none.
func (f *follower) readSnapshot(ctx context.Context) (snapshot, error) {
	rows, err := f.queryRows(ctx, fmt.Sprintf("SELECT batch, fence, epoch FROM %s WHERE cluster = %s ORDER BY batch DESC LIMIT 1", f.tableName(snapshotsTable), quoteText(f.cluster)))
	if err != nil || len(rows) == 0 {
		return snapshot{}, err
	}
	batch, err := strconv.ParseUint(rows[0][0], 10, 64)
	fence, err2 := strconv.ParseUint(rows[0][1], 10, 64)
	if err = errors.Join(err, err2); err != nil {
		return snapshot{}, fmt.Errorf("the table %s: %w", f.tableName(snapshotsTable), err)
	}
	return snapshot{batch: batch, fence: fence, epoch: rows[0][2]}, nil
}

// writeSnapshot says that a batch is whole.
func (f *follower) writeSnapshot(ctx context.Context, s *snapshot) error {
	return f.executeStatement(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s, %d, %d, %s, %d, %d, %d, %d)",
		f.tableName(snapshotsTable), quoteNames(columnNames(snapshotColumns())), quoteText(f.cluster), s.batch, f.fence, quoteText(f.epoch), s.change, int64(s.until), s.records, time.Now().Unix()))
}

// readRunning reads the records that go on. The batch has the time of the answer as its
// number, or least.
func (f *follower) readRunning(ctx context.Context, least uint64) (*snapshot, error) {
	s := &snapshot{sites: map[siteMonth]figures{}}
	sums := newUsage(&f.layout, f.zone, byDay)
	first, whole, lines := true, false, uint64(0)
	for line, err := range f.data.API().OpenRunsLines(ctx, &v1.Reading{}) {
		switch {
		case err != nil:
			return nil, err
		case first:
			first = false
			if line.Cluster != f.cluster || line.Epoch != f.epoch {
				return nil, fmt.Errorf("/v1/changes/open: the cluster is now %s in the epoch %q, and was %s in %q", line.Cluster, line.Epoch, f.cluster, f.epoch)
			}
			s.change, s.until = line.Last, record.FromStd(line.Now.Time)
			s.batch = max(uint64(max(s.until, 0)), least)
		case line.Record != nil:
			lines++
			r := f.layout.rowOfOpen(line.Record, record.FromStd(line.CountedTo.Time))
			s.running = r.appendRunningRow(s.running, f.cluster, s.batch)
			sums.addRun(&r, 1)
		default:
			whole = true
			s.records = line.Records
			for _, d := range line.Digests {
				s.sites[siteMonth{string(d.Site), ""}] = figures{strconv.FormatUint(d.Records, 10), cores + " " + d.CoreSeconds}
			}
		}
	}
	if !whole || lines != s.records {
		return nil, errors.New("/v1/changes/open: the answer ended too early")
	}
	s.daily = sums.encodeRunningDays(f.cluster, s.batch)
	return s, nil
}

// rowOfOpen makes the row of a record that goes on: as if it stopped at until.
func (l *layout) rowOfOpen(r *v1.FullRecord, until record.Time) row {
	out := record.Record{ID: r.RecordID, State: string(r.State), Start: record.FromStd(r.StartTime.Time), Stop: until}
	for key, values := range r.Meta {
		out.Meta = append(out.Meta, record.MetaEntry{Key: key, Values: values})
	}
	for i := range r.Components {
		c := record.Component{Name: r.Components[i].Name, Amount: r.Components[i].Amount}
		if r.Components[i].Kind == totalKind {
			c.Kind = record.Total
		}
		out.Components = append(out.Components, c)
	}
	return l.rowOf(&out, r.Seq)
}

// totalKind is how /v1 calls the kind of a total.
const totalKind = "total"

// appendRunningRow appends a row of the table running in RowBinary.
func (r *row) appendRunningRow(b []byte, cluster string, batch uint64) []byte {
	little := binary.LittleEndian
	b = appendText(b, cluster)
	b = little.AppendUint64(b, batch)
	b = appendText(b, r.site)
	b = little.AppendUint64(b, uint64(r.start))
	b = little.AppendUint64(b, uint64(r.stop))
	b = appendText(b, r.id)
	b = little.AppendUint64(b, r.seq)
	b = appendText(b, r.state)
	return r.appendValues(b)
}

// encodeRunningDays returns the rows of the table running_daily in RowBinary.
func (u *usage) encodeRunningDays(cluster string, batch uint64) (b []byte) {
	little := binary.LittleEndian
	for _, key := range slices.SortedFunc(maps.Keys(u.sums), strings.Compare) {
		s := u.sums[key]
		b = appendText(b, cluster)
		b = little.AppendUint64(b, batch)
		b = appendText(b, s.site)
		b = little.AppendUint32(b, s.period.month)
		b = little.AppendUint16(b, s.period.day)
		b = little.AppendUint64(b, uint64(s.records))
		b = little.AppendUint64(b, uint64(s.started))
		b = s.appendValues(b)
	}
	return b
}

// checkRunning compares the sums of a batch, before it is said to be whole: each record has
// one start, so that daily sums have the number of records, too.
func (f *follower) checkRunning(ctx context.Context, s *snapshot) error {
	where := fmt.Sprintf(" AND batch = %d", s.batch)
	got, err := f.querySums(ctx, "site, ''", "count()", "sum(`%s`)", []string{cores}, runningTable, where)
	if err != nil {
		return err
	}
	differs := compareFigures("the cluster", "the table "+runningTable, s.sites, got)
	wholes, err := f.querySums(ctx, "site, ''", "count()", "sum(`%s`)", f.layout.components, runningTable, where)
	if err != nil {
		return err
	}
	days, err := f.querySums(ctx, "site, ''", "sum(started)", "sum(`%s`)", f.layout.components, runningDailyTable, where)
	if err != nil {
		return err
	}
	differs = append(differs, compareFigures("the table "+runningTable, "the table "+runningDailyTable, wholes, days)...)
	if len(differs) > 0 {
		return fmt.Errorf("the open records differ in %d places: %s; readers still see the earlier ones", len(differs), strings.Join(differs[:min(len(differs), maxNamed)], "; "))
	}
	return nil
}

// runningBatches are those of the cluster in the tables, whole or not.
func (f *follower) runningBatches(ctx context.Context) (list []uint64, err error) {
	for _, table := range []string{runningTable, runningDailyTable} {
		rows, err := f.queryRows(ctx, fmt.Sprintf("SELECT DISTINCT batch FROM %s WHERE cluster = %s", f.tableName(table), quoteText(f.cluster)))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			batch, err := strconv.ParseUint(r[0], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("the table %s: %w", f.tableName(table), err)
			}
			list = append(list, batch)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// batchesLeft is how many of the newest batches stay: a query that has just begun may still
// read a former one.
const batchesLeft = 4

// removeBatches removes the batches that writeRunning found, but the newest and the previous
// newest. It comes behind followChanges.
func (f *follower) removeBatches(ctx context.Context) error {
	var old []string
	for _, batch := range f.batches[:max(0, len(f.batches)-batchesLeft)] {
		if batch != f.former {
			old = append(old, strconv.FormatUint(batch, 10))
		}
	}
	for _, table := range []string{runningTable, runningDailyTable} {
		if err := f.removePartitions(ctx, table, "batch", old, func(context.Context) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}
