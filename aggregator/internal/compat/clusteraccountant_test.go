package compat

import (
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
)

// original is where the files of ClusterAccountant and its figures are.
const original = "../accounting/testdata/gridengine/"

func now() time.Time { return time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC) }

func readOriginal(t *testing.T) *ClusterAccountant {
	t.Helper()
	tables, err := os.Open(original + "tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	accounting, err := os.Open(original + "accounting")
	if err != nil {
		t.Fatal(err)
	}
	defer accounting.Close()
	c, err := ReadClusterAccountant(tables, []io.Reader{accounting}, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type printed struct {
	Imported int
	Oct      struct {
		Total         float64 `json:"total_su"`
		Contributions float64 `json:"total_contribution_units"`
		PI            map[string]struct {
			SU           float64  `json:"su"`
			Share        float64  `json:"share_pct"`
			Units        float64  `json:"contribution_units"`
			Contribution float64  `json:"contribution_pct"`
			Ratio        *float64 `json:"ratio_pct"`
			Shown        string   `json:"shown"`
			Exempt       bool     `json:"exempt"`
			Listed       bool     `json:"in_html_table"`
		} `json:"pi"`
		Projects    map[string]float64   `json:"su_by_project"`
		Groups      map[string]float64   `json:"su_by_group"`
		Owners      map[string]float64   `json:"su_by_owner"`
		Utilization map[string][]float64 `json:"utilization_pct"`
	} `json:"oct"`
}

// october2012 is the report of the month, and what was printed of it.
func october2012(t *testing.T) (*report.Document, *printed) {
	t.Helper()
	var want printed
	text, err := os.ReadFile(original + "expected-october.json")
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := readOriginal(t)
	if len(c.records) != want.Imported {
		t.Errorf("%d records are taken, want %d", len(c.records), want.Imported)
	}
	d, err := c.Subscription(report.SubscriptionOptions{Periods: []string{"2012-10"}, Now: now()})
	if err != nil {
		t.Fatal(err)
	}
	return d, &want
}

// same compares a figure, times scale, with one that was printed with some digits.
func same(t *testing.T, what string, got report.Cell, want float64, scale int64, digits int) {
	t.Helper()
	if got.Number() == nil {
		t.Errorf("%s is not known, want %g", what, want)
		return
	}
	scaled := new(big.Rat).Mul(got.Number(), big.NewRat(scale, 1))
	if g, w := scaled.FloatString(digits), strconv.FormatFloat(want, 'f', digits, 64); g != w {
		t.Errorf("%s is %s, want %s", what, g, w)
	}
}

func TestTheReportOfClusterAccountantIsMadeOfItsOwnFiles(t *testing.T) {
	d, want := october2012(t)
	table := &d.Tables[0]
	same(t, "all that was used", table.Totals[1], want.Oct.Total, 1, 6)
	same(t, "all that was contributed", table.Totals[3], want.Oct.Contributions, 1, 6)
	for _, row := range table.Rows {
		pi := row[0].String()
		w, ok := want.Oct.PI[pi]
		if !ok {
			t.Errorf("%s is there", pi)
		}
		delete(want.Oct.PI, pi)
		same(t, pi+" used", row[1], w.SU, 1, 4)
		same(t, pi+"'s share", row[2], w.Share, 100, 4)
		same(t, pi+" contributed", row[3], w.Units, 1, 4)
		same(t, pi+"'s part of the contributions", row[4], w.Contribution, 100, 4)
		if (row[5].Number() == nil) != (w.Ratio == nil) {
			t.Errorf("%s has the ratio %s", pi, row[5])
		}
		if w.Ratio != nil {
			same(t, pi+"'s ratio", row[5], *w.Ratio, 100, 4)
		}
		shown := row[7].String()
		if w.Listed {
			shown = row[6].String()
		}
		if shown != w.Shown || row[6].Known() != w.Listed || (row[8].String() == "✓") != w.Exempt {
			t.Errorf("%s is shown as %q, listed %t, exempt %s; want %+v", pi, shown, row[6].Known(), row[8], w)
		}
	}
	if len(want.Oct.PI) > 0 {
		t.Errorf("missing: %v", want.Oct.PI)
	}
}

func TestTheSumsAndTheUtilizationOfClusterAccountantAreThoseThatItPrinted(t *testing.T) {
	d, want := october2012(t)
	for i, sums := range []map[string]float64{want.Oct.Projects, want.Oct.Groups, want.Oct.Owners} {
		for _, row := range d.Tables[i+1].Rows {
			name := row[0].String()
			same(t, name, row[1], sums[name], 1, 4)
			delete(sums, name)
		}
		if len(sums) > 0 {
			t.Errorf("missing in %s: %v", d.Tables[i+1].Name, sums)
		}
	}
	for i, row := range d.Tables[4].Rows {
		same(t, "scluster", row[1], want.Oct.Utilization["scluster"][i], 100, 6)
		same(t, "katana", row[2], want.Oct.Utilization["katana"][i], 100, 6)
	}
	if n := len(d.Tables[4].Rows); n != 15 {
		t.Errorf("%d intervals", n)
	}
}

func TestADumpOfTablesIsReadAsItIsWritten(t *testing.T) {
	for text, want := range map[string]string{
		"-- MySQL dump\n/*!40101 SET x */;\nCREATE TABLE `project` (`gid` int);\nINSERT INTO `project` VALUES (1,'a;\\'b','p'),(2,'c''d',NULL);": "1|a;'b|p 2|c'd| ",
		"insert into accounting.project (groupid, gid, pi_owner_userid) values ('g', 7, 'x');":                                                   "7|g|x ",
		"insert into other values (1,2),(3);":                                                                       "",
		"insert into `db`.`project` values (1,'a','p'); insert into `db` . `other` values (1);":                     "1|a|p ",
		"insert into db.`project` values (2,'b','p'); insert into `db`.project values (3,'c','p'); insert into db.": "2|b|p 3|c|p ",
	} {
		var got strings.Builder
		err := readInserts(text, accountantTables(), func(_ string, row sqlRow) error {
			got.WriteString(row["gid"] + "|" + row["groupid"] + "|" + row["pi_owner_userid"] + " ")
			return nil
		})
		if err != nil || got.String() != want {
			t.Errorf("%q: %q, %v, want %q", text, got.String(), err, want)
		}
	}
	for text, says := range map[string]string{
		"\ninsert into project values (1,'a')":                                       "line 2: a row of project has 2 values",
		"insert into project values (1,'a','b','c');":                                "more than the 3 columns",
		"insert into project values (1,'a":                                           "has no end",
		"insert into project select * from x;":                                       `"select" in place of values`,
		"insert into processor_type values (1,'x','a',1,1,1,1,'katana',0);":          "is not like 2012-10-05",
		"insert into processor_type values (1,'2012-01-01','(',1,1,1,1,'katana',0);": "the regex",
		"insert into contribution values (1,'2012-01-01','a','a','h','t',1,'x',1);":  "split_percentage is",
	} {
		if _, err := ReadClusterAccountant(strings.NewReader(text), nil, time.UTC); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}

func TestADumpWithoutATableSaysWhichIsMissing(t *testing.T) {
	const people, projects, types = "insert into principal_investigator values (1,'a','A','B','A','a@b',0);", "insert into project values (1,'g','a');", "insert into processor_type values (1,'2012-01-01','^a','t',1,1,1,'katana',0);"
	for text, missing := range map[string]string{
		"-- nothing":                   "rows for principal_investigator and project and processor_type;",
		"CREATE TABLE `project` (x);":  "rows for principal_investigator and project and processor_type;",
		people + types:                 "rows for project;",
		projects + types:               "rows for principal_investigator;",
		people + "\n" + projects:       "rows for processor_type;",
		people + "\n" + types + "-- x": "rows for project;",
	} {
		if _, err := ReadClusterAccountant(strings.NewReader(text), nil, time.UTC); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("%q: %v, want %s", text, err, missing)
		}
	}
	c, err := ReadClusterAccountant(strings.NewReader(people+projects+types), []io.Reader{strings.NewReader("# a comment\n")}, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Subscription(report.SubscriptionOptions{Periods: []string{"2012-10"}, Now: now()}); !errors.Is(err, report.ErrNothing) || !strings.Contains(err.Error(), "nor in any other month; not taken: 1 comments") {
		t.Error(err)
	}
}

func TestAPeriodOfClusterAccountantWithoutJobsNamesTheMonthsThatHaveSome(t *testing.T) {
	_, err := readOriginal(t).Subscription(report.SubscriptionOptions{Periods: []string{"2026-10"}, Now: now()})
	if !errors.Is(err, report.ErrNothing) || !strings.Contains(err.Error(), "the nearest months that have some are 2012-") {
		t.Error(err)
	}
}

func TestWhoIsExemptAndContributedIsNotOver(t *testing.T) {
	one, none := big.NewRat(1, 1), new(big.Rat)
	for _, c := range []struct {
		exempt     bool
		used, gave *big.Rat
		page, text string
	}{
		{true, one, one, "N/A", "N/A"}, {true, one, none, "N/A", "Over"}, {true, none, one, "", "Under"}, {false, one, none, "Over", "Over"}, {false, none, none, "", "N/A"},
	} {
		if page, text := shownLine(c.exempt, c.used, c.gave, report.Cell{}); page.String() != c.page || text != c.text {
			t.Errorf("%+v: %q, %q", c, page, text)
		}
	}
}

func TestADumpThatIsTooLongIsRefusedAndNotCut(t *testing.T) {
	if text, err := allOf(strings.NewReader("12345"), 5); err != nil || text != "12345" {
		t.Error(text, err)
	}
	if _, err := allOf(strings.NewReader("123456"), 5); err == nil || !strings.Contains(err.Error(), "more than 5 bytes; dump only the tables accounting, contribution, principal_investigator") {
		t.Error(err)
	}
}

// dumped is the accounting of the original files as a dump of ClusterAccountant's own
// table, which the program filled from them.
func dumped(t *testing.T, c *ClusterAccountant, lines string, explicit bool) string {
	t.Helper()
	var b strings.Builder
	columns := ""
	if explicit {
		columns = "(`cpu`,`job_number`,`task_number`,`pe_taskid`,`hostname`,`_group`,`owner`,`end_time`)"
	} else {
		b.WriteString("CREATE TABLE IF NOT EXISTS `cluster`.`accounting` (\n`cpu` float NOT NULL DEFAULT '0', `job_number` char(50), task_number decimal(5,0), `pe_taskid` char(50),\n`hostname` char(50), `_group` char(50), `owner` char(50), `end_time` bigint(20),\nPRIMARY KEY (`job_number`,`task_number`,`pe_taskid`), KEY `g` (`_group`)) ENGINE=InnoDB;\n")
	}
	seen := newClusterAccountant()
	seen.types, seen.clusters = c.types, c.clusters
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		before := len(seen.records)
		if err := seen.addLine(line); err != nil {
			t.Fatal(err)
		}
		if len(seen.records) == before {
			continue
		}
		f := strings.Split(line, ":")
		b.WriteString("INSERT INTO `accounting` " + columns + " VALUES (" + f[fieldCPU] + ",'" + strings.Join([]string{f[fieldJob], f[fieldTask], f[fieldPart], f[fieldHost], f[fieldGroup], f[fieldOwner]}, "','") + "'," + f[fieldEnd] + ");\n")
	}
	return b.String()
}

// ClusterAccountant reports of its table, whatever became of the file: the report of the
// dump alone is that of the files, and a file beside it adds nothing that is in the dump.
func TestClusterAccountant_TablesAlone_GiveTheSameReport(t *testing.T) {
	tables, err := os.ReadFile(original + "tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(original + "accounting")
	if err != nil {
		t.Fatal(err)
	}
	o := report.SubscriptionOptions{Periods: []string{"2012-10", "2012"}, Now: now()}
	whole := readOriginal(t)
	want, err := whole.Subscription(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, dump := range map[string]string{
		"with the definition": dumped(t, whole, string(lines), false) + string(tables),
		"with the columns":    string(tables) + dumped(t, whole, string(lines), true),
	} {
		for _, files := range [][]io.Reader{nil, {strings.NewReader(string(lines))}} {
			c, err := ReadClusterAccountant(strings.NewReader(dump), files, time.UTC)
			if err != nil {
				t.Fatal(name, err)
			}
			got, err := c.Subscription(o)
			if err != nil {
				t.Fatal(name, err)
			}
			if d := cmp.Diff(want.Tables, got.Tables, cmp.Comparer(func(a, b report.Cell) bool { return a.String() == b.String() })); d != "" {
				t.Errorf("%s, %d files: %s", name, len(files), d)
			}
		}
	}
	if _, err := ReadClusterAccountant(strings.NewReader(string(tables)), nil, time.UTC); err == nil || !strings.Contains(err.Error(), "no rows of the table accounting") {
		t.Error(err)
	}
	if _, err := ReadClusterAccountant(strings.NewReader(string(tables)+"insert into accounting values (1,2);"), nil, time.UTC); err == nil || !strings.Contains(err.Error(), "unknown columns of accounting") {
		t.Error(err)
	}
}

// Its options -p and -u choose the records of all its tables; contributions stay.
func TestClusterAccountant_Filters_ChooseGroupAndOwner(t *testing.T) {
	c := readOriginal(t)
	for _, x := range []struct {
		where map[string]string
		used  string
	}{
		{map[string]string{"group": "phys1"}, "12.1778"}, {map[string]string{"owner": "carl"}, "18.7361"},
		{map[string]string{"group": "phys1", "owner": "bob"}, "12.1778"}, {map[string]string{"group": "chem"}, "0.0000"},
	} {
		d, err := c.Subscription(report.SubscriptionOptions{Periods: []string{"2012-10"}, Where: x.where, Now: now()})
		if err != nil {
			t.Fatal(x.where, err)
		}
		totals := d.Tables[0].Totals
		if got := totals[1].Number().FloatString(4); got != x.used || totals[3].Number().FloatString(0) != "5000" {
			t.Errorf("%v: %s used and %s contributed, want %s and 5000", x.where, got, totals[3], x.used)
		}
	}
	for where, want := range map[string]string{"group=phys": "did you mean", "owner=zzz": "there are alan", "user_id=x": "cannot filter by", "group=phys1,owner=carl": "no job of the accounting ended"} {
		pairs := map[string]string{}
		for pair := range strings.SplitSeq(where, ",") {
			key, value, _ := strings.Cut(pair, "=")
			pairs[key] = value
		}
		if _, err := c.Subscription(report.SubscriptionOptions{Periods: []string{"2012-10"}, Where: pairs, Now: now()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", where, err, want)
		}
	}
}

func FuzzInserts(f *testing.F) {
	f.Add("insert into project values (1,'a','b');")
	f.Add("INSERT INTO `contribution` (`id`) VALUES (1),(NULL); -- x")
	f.Fuzz(func(_ *testing.T, text string) {
		_ = readInserts(text, accountantTables(), func(string, sqlRow) error { return nil })
	})
}

func FuzzAccountingLine(f *testing.F) {
	f.Add("all.q:kat-n1:bellgrp:ann:job:100:sge:0:1349006340:1349006400:1349071200:0:0:64800:32400:3600:0.000000:0:0:0:0:100:0:0:0.000000:0:0:0:0:10:5:NONE:defaultdepartment:NONE:1:0:36000.000000:1.5:0.25:-q all.q:0.0:NONE:1000000.0")
	f.Fuzz(func(_ *testing.T, text string) {
		c := newClusterAccountant()
		c.clusters = []string{"all"}
		_ = c.addLine(text)
	})
}
