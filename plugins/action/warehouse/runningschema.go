package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// The tables of the records that go on, and the views by which they are read.
const (
	runningTable      = "running"
	runningDailyTable = "running_daily"
	snapshotsTable    = "snapshots"
	runningView       = "running_now"
	usageView         = "usage_now"
)

// runningColumns are the columns of a record that goes on.
func (l layout) runningColumns() []column {
	return l.appendColumns(maybeDecimal, []column{
		{"cluster", "String"}, {"batch", "UInt64"}, {"site", "String"}, {"start_us", "Int64"}, {"until_us", "Int64"},
		{"record_id", "String"}, {"seq", "UInt64"}, {"state", "String"},
	})
}

// runningDailyColumns are the columns of their sums by day.
func (l layout) runningDailyColumns() []column {
	return l.appendColumns(decimal, []column{
		{"cluster", "String"}, {"batch", "UInt64"}, {"site", "String"}, {"month", "UInt32"}, {"day", "Date"}, {"records", "Int64"}, {"started", "Int64"},
	})
}

// snapshotColumns are those of the table snapshots, of which a row says that a batch of the
// two others is whole.
func snapshotColumns() []column {
	return []column{
		{"cluster", "String"}, {"batch", "UInt64"}, {"fence", "UInt64"}, {"epoch", "String"}, {"change", "UInt64"},
		{"until_us", "Int64"}, {"records", "UInt64"}, {"written", "DateTime('UTC')"},
	}
}

// runningDefinitions are the tables of the records that go on. Each batch is a partition, so
// that it is there as a whole and goes as a whole.
func (l layout) runningDefinitions() []definition {
	return []definition{
		{table: runningTable, columns: l.runningColumns(), engine: "MergeTree", order: "PARTITION BY (cluster, batch) ORDER BY (cluster, site, start_us, record_id)", replicated: true},
		{table: runningDailyTable, columns: l.runningDailyColumns(), engine: "MergeTree", order: "PARTITION BY (cluster, batch) ORDER BY (cluster, site, day)", replicated: true},
		{table: snapshotsTable, columns: snapshotColumns(), engine: "ReplacingMergeTree", arguments: "batch", order: "ORDER BY cluster", replicated: true},
	}
}

// viewDefinition is a view with its columns.
type viewDefinition struct {
	name    string
	columns []column
	query   string
}

// viewDefinitions are the views of the newest batch of each cluster.
func (s *session) viewDefinitions() []viewDefinition {
	newest := fmt.Sprintf("(cluster, batch) IN (SELECT cluster, max(batch) FROM %s GROUP BY cluster)", s.tableName(snapshotsTable))
	names := columnNames(s.layout.runningColumns())
	running := viewDefinition{runningView, s.layout.runningColumns(), fmt.Sprintf("SELECT %s FROM %s WHERE %s", quoteNames(names), s.tableName(runningTable), newest)}
	columns := s.layout.appendColumns(decimal, []column{
		{"cluster", "String"}, {"site", "String"}, {"month", "UInt32"}, {"day", "Date"}, {"running", "UInt8"},
		{"records", "Int64"}, {"started", "Int64"}, {"stopped", "Int64"},
	})
	own := quoteNames(slices.Concat(s.layout.dimensions, s.layout.components))
	usage := fmt.Sprintf("SELECT cluster, site, month, day, toUInt8(0) AS running, records, started, stopped, %s FROM %s WHERE batch = 0"+
		" UNION ALL SELECT cluster, site, month, day, toUInt8(1) AS running, records, started, toInt64(0) AS stopped, %[1]s FROM %[3]s WHERE %[4]s",
		own, s.tableName(dailyTable), s.tableName(runningDailyTable), newest)
	return []viewDefinition{running, {usageView, columns, usage}}
}

// ensureViews creates the views that are missing, and with a cluster the tables that read them
// on all shards.
func (s *session) ensureViews(ctx context.Context) error {
	for _, v := range s.viewDefinitions() {
		err := s.executeStatement(ctx, fmt.Sprintf("CREATE VIEW IF NOT EXISTS %s AS %s", s.tableName(v.name), v.query))
		if err == nil {
			err = s.checkColumns(ctx, &definition{table: v.name, columns: v.columns})
		}
		if err == nil && s.Cluster != "" {
			err = s.executeStatement(ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = Distributed(%s, %s, %s)",
				s.tableName(v.name+"_all"), columnTypes(v.columns), quoteNames([]string{s.Cluster}), quoteNames([]string{s.Database}), v.name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// columnTypes are columns as a table is created with.
func columnTypes(columns []column) string {
	types := make([]string, 0, len(columns))
	for _, c := range columns {
		types = append(types, quoteNames([]string{c.name})+" "+c.kind)
	}
	return strings.Join(types, ", ")
}
