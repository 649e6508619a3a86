package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cores is the component of the cluster's digest.
const cores = "Cores"

// The tables.
const (
	ledgerTable  = "ledger"
	dailyTable   = "daily"
	monthlyTable = "monthly"
	cursorsTable = "cursors"
	schemaTable  = "schema"
)

// batchTable is a table that each batch adds rows to. Its partitions are a cluster and the number in
// the column partition each.
type batchTable struct {
	name, partition string
	columns         func(layout) []column
	counted, where  string // how the rows of a batch are counted
}

// batchTables are ledger, daily and monthly.
func batchTables() []batchTable {
	return []batchTable{
		{ledgerTable, "month", layout.ledgerColumns, "count()", ""},
		{dailyTable, "month", layout.dailyColumns, "sum(marked)", " AND site = ''"},
		{monthlyTable, "year", layout.monthlyColumns, "sum(marked)", " AND site = ''"},
	}
}

// schemaVersion is that of the tables below. Tables of a later version are refused. 1 had no table
// monthly: it is created, and the rows of each cluster are written anew.
const schemaVersion = 2

// column is a column of a table.
type column struct{ name, kind string }

// layout is what the columns of the tables follow from.
type layout struct {
	dimensions, components []string
	zone                   string
}

// The types of amounts: of sums, and of one record, which may lack the component.
const (
	decimal      = "Decimal(38, 6)"
	maybeDecimal = "Nullable(" + decimal + ")"
)

// ledgerColumns are the columns of a signed row.
func (l layout) ledgerColumns() []column {
	return l.appendColumns(maybeDecimal, []column{
		{"cluster", "String"}, {"site", "String"}, {"month", "UInt32"}, {"stop_us", "Int64"}, {"record_id", "String"}, {"seq", "UInt64"},
		{"sign", "Int8"}, {"batch", "UInt64"}, {"start_us", "Int64"}, {"stop", "DateTime('UTC')"}, {"state", "String"},
	})
}

// dailyColumns are the columns of sums by day. A row with a batch has no sums: it marks that those
// of the batch are in the partition.
func (l layout) dailyColumns() []column {
	return l.appendColumns(decimal, []column{
		{"cluster", "String"}, {"site", "String"}, {"month", "UInt32"}, {"day", "Date"}, {"batch", "UInt64"}, {"marked", "Int64"},
		{"records", "Int64"}, {"started", "Int64"}, {"stopped", "Int64"},
	})
}

// monthlyColumns are the columns of sums by month: those by day, and the year.
func (l layout) monthlyColumns() []column {
	return slices.Insert(l.dailyColumns(), 2, column{"year", "UInt32"})
}

// appendColumns appends the columns of the dimensions and those of the components, with their type.
func (l layout) appendColumns(amount string, list []column) []column {
	for _, name := range l.dimensions {
		list = append(list, column{name, "String"})
	}
	for _, name := range l.components {
		list = append(list, column{name, amount})
	}
	return list
}

// cursorColumns are those of the table cursors, of which a row is a [position].
func cursorColumns() []column {
	return []column{
		{"cluster", "String"}, {"number", "UInt64"}, {"fence", "UInt64"}, {"state", "String"}, {"epoch", "String"}, {"cursor", "String"},
		{"until", "UInt64"}, {"page", "UInt32"}, {"pages", "UInt32"}, {"last", "UInt64"}, {"batch", "UInt64"}, {"rows", "UInt64"},
		{"reason", "String"}, {"written", "DateTime('UTC')"},
	}
}

// String is what the table schema has of the layout.
func (l layout) String() string {
	return fmt.Sprintf("dimensions %s; components %s; zone %s", strings.Join(l.dimensions, ","), strings.Join(l.components, ","), l.zone)
}

// definition is how a table is created.
type definition struct {
	table      string
	columns    []column
	engine     string
	arguments  string // of the engine
	order      string // PARTITION BY and ORDER BY
	replicated bool   // where the tables have replicas
}

// engineOf is the engine of a table, with its arguments where that is wanted.
func (s *session) engineOf(d *definition) (name, arguments string) {
	if !d.replicated || !s.replicated() {
		return d.engine, d.arguments
	}
	arguments = fmt.Sprintf("'%s/%s/%s', '{replica}'", s.KeeperPath, s.Database, d.table)
	if d.arguments != "" {
		arguments += ", " + d.arguments
	}
	return "Replicated" + d.engine, arguments
}

func (l layout) tableDefinitions() []definition {
	summed := slices.Concat([]string{"marked", "records", "started", "stopped"}, l.components)
	key := slices.Concat([]string{"cluster", "site", "day"}, l.dimensions, []string{"batch"})
	return append(l.runningDefinitions(), []definition{
		{ledgerTable, l.ledgerColumns(), "MergeTree", "", "PARTITION BY (cluster, month) ORDER BY (cluster, site, stop_us, record_id)", true},
		{dailyTable, l.dailyColumns(), "SummingMergeTree", "(" + quoteNames(summed) + ")", fmt.Sprintf("PARTITION BY (cluster, month) ORDER BY (%s)", quoteNames(key)), true},
		{monthlyTable, l.monthlyColumns(), "SummingMergeTree", "(" + quoteNames(summed) + ")", fmt.Sprintf("PARTITION BY (cluster, year) ORDER BY (%s)", quoteNames(key)), true},
		{cursorsTable, cursorColumns(), "MergeTree", "", "ORDER BY (cluster, number)", true},
	}...)
}

func quoteNames(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }

func columnNames(columns []column) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// ensureTables creates the tables that are missing. It refuses tables of another owner, of
// other columns and of a later version.
func (s *session) ensureTables(ctx context.Context) error {
	if err := s.checkVersion(ctx); err != nil {
		return err
	}
	known, err := s.queryRows(ctx, "SELECT name FROM system.databases WHERE name = "+quoteText(s.Database))
	if err == nil && len(known) == 0 {
		err = s.executeStatement(ctx, "CREATE DATABASE IF NOT EXISTS "+quoteNames([]string{s.Database}))
	}
	if err != nil {
		return err
	}
	if err := s.ensureSchema(ctx); err != nil {
		return err
	}
	for _, d := range s.layout.tableDefinitions() {
		if err := s.ensureTable(ctx, &d); err != nil {
			return err
		}
	}
	if err := s.ensureAll(ctx); err != nil {
		return err
	}
	if err := s.ensureDeduplication(ctx); err != nil {
		return err
	}
	return s.ensureViews(ctx)
}

// The oldest release that is tested.
const oldestYear, oldestMonth = 18, 16

func (s *session) checkVersion(ctx context.Context) error {
	version, err := s.queryOne(ctx, "SELECT version()")
	if err != nil {
		return err
	}
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return newRefusal("unknown version of ClickHouse %q: use %d.%d or later", version, oldestYear, oldestMonth)
	}
	year, err := strconv.Atoi(parts[0])
	month, err2 := strconv.Atoi(parts[1])
	if err != nil || err2 != nil || year < oldestYear || year == oldestYear && month < oldestMonth {
		return newRefusal("ClickHouse %s is too old: use %d.%d or later", version, oldestYear, oldestMonth)
	}
	s.modern = year > 21
	s.deduplicates = year > 22 || year == 22 && month >= 2
	return nil
}

// ensureSchema creates the table schema first, so that tables without it are foreign.
func (s *session) ensureSchema(ctx context.Context) error {
	columns := []column{{"version", "UInt32"}, {"layout", "String"}}
	rows, err := s.queryRows(ctx, "SELECT name FROM system.tables WHERE database = "+quoteText(s.Database))
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, row := range rows {
		there[row[0]] = true
	}
	for _, d := range s.layout.tableDefinitions() {
		if there[d.table] && !there[schemaTable] {
			return newRefusal("the table %s exists and is not of this action: use another database", s.tableName(d.table))
		}
	}
	if err := s.ensureTable(ctx, &definition{table: schemaTable, columns: columns, engine: "MergeTree", order: "ORDER BY version"}); err != nil {
		return err
	}
	rows, err = s.queryRows(ctx, "SELECT DISTINCT version, layout FROM "+s.tableName(schemaTable)+" ORDER BY version")
	if err != nil {
		return err
	}
	has := 0
	for _, row := range rows {
		if row[1] != s.layout.String() {
			return newRefusal("the tables of %q have %s, and this action has %s: use the same, or another database", s.Database, row[1], s.layout)
		}
		if has, err = strconv.Atoi(row[0]); err != nil || has > schemaVersion {
			return newRefusal("the tables of %q have version %s and this plugin writes version %d: run the newer plugin", s.Database, row[0], schemaVersion)
		}
	}
	if has == schemaVersion {
		return nil
	}
	return s.executeStatement(ctx, fmt.Sprintf("INSERT INTO %s (version, layout) VALUES (%d, %s)", s.tableName(schemaTable), schemaVersion, quoteText(s.layout.String())))
}

// ensureTable creates a table unless it exists, and compares its columns.
func (s *session) ensureTable(ctx context.Context, d *definition) error {
	engine, arguments := s.engineOf(d)
	err := s.executeStatement(ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = %s(%s) %s", s.tableName(d.table), columnTypes(d.columns), engine, arguments, d.order))
	if err != nil {
		return err
	}
	has, err := s.queryOne(ctx, fmt.Sprintf("SELECT engine FROM system.tables WHERE database = %s AND name = %s", quoteText(s.Database), quoteText(d.table)))
	if err != nil {
		return err
	}
	if strings.HasPrefix(has, "Replicated") != strings.HasPrefix(engine, "Replicated") {
		return newRefusal("the table %s is a %s, and replicas in this action's configuration ask for a %s: change replicas, or use another database", s.tableName(d.table), has, engine)
	}
	return s.checkColumns(ctx, d)
}

// checkColumns compares the columns of a table.
func (s *session) checkColumns(ctx context.Context, d *definition) error {
	rows, err := s.queryRows(ctx, fmt.Sprintf("SELECT name, type FROM system.columns WHERE database = %s AND table = %s", quoteText(s.Database), quoteText(d.table)))
	if err != nil {
		return err
	}
	has := map[string]string{}
	for _, row := range rows {
		has[row[0]] = row[1]
	}
	for _, c := range d.columns {
		if has[c.name] != c.kind {
			return newRefusal("the table %s has a column %s of type %q and not %s: it is not of this action; use another database", s.tableName(d.table), c.name, has[c.name], c.kind)
		}
	}
	return nil
}

// ensureAll creates the tables over all shards.
func (s *session) ensureAll(ctx context.Context) error {
	if s.Cluster == "" {
		return nil
	}
	for _, table := range batchTables() {
		err := s.executeStatement(ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s AS %s ENGINE = Distributed(%s, %s, %s)",
			s.tableName(table.name+"_all"), s.tableName(table.name), quoteNames([]string{s.Cluster}), quoteNames([]string{s.Database}), table.name))
		if err != nil {
			return err
		}
	}
	return nil
}
