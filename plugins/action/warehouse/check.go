package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// checkTables brings the tables to a digest of the cluster and compares the sums of each site and
// month, and those of the records that go on. The error names what differs.
func (f *follower) checkTables(ctx context.Context, stop time.Time) (string, error) {
	digest, err := f.data.API().ChangesDigest(ctx, &v1.Reading{})
	if err != nil {
		return "", err
	}
	change, err := f.writeRunning(ctx) // compares, too
	if err == nil {
		err = f.followChanges(ctx, digest.Last, stop)
	}
	if err != nil {
		return "", err
	}
	if f.at.last != digest.Last || f.at.epoch != digest.Epoch {
		return "", fmt.Errorf("the tables are at change %d and the digest at %d: another run went on", f.at.last, digest.Last)
	}
	want := map[siteMonth]figures{}
	for i := range digest.Digests {
		if d := &digest.Digests[i]; d.Month != "" {
			want[siteMonth{string(d.Site), monthName(string(d.Month))}] = figures{fmt.Sprint(d.Records), cores + " " + string(d.CoreSeconds)}
		}
	}
	got, err := f.querySums(ctx, "site, month", "sum(sign)", "sum(sign * `%s`)", []string{cores}, ledgerTable, "")
	if err != nil {
		return "", err
	}
	differs := compareFigures("the cluster", "the table ledger", want, got)
	wholes, err := f.querySums(ctx, "site, ''", "sumIf(sign, stop_us >= start_us)", "sum(sign * `%s`)", f.layout.components, ledgerTable, "")
	if err != nil {
		return "", err
	}
	sums := func(key, table string) (map[siteMonth]figures, error) {
		return f.querySums(ctx, key, "sum(stopped)", "sum(`%s`)", f.layout.components, table, " AND batch = 0")
	}
	sites, err := sums("site, ''", monthlyTable)
	if err != nil {
		return "", err
	}
	monthly, err := sums("site, month", monthlyTable)
	if err != nil {
		return "", err
	}
	daily, err := sums("site, month", dailyTable)
	if err != nil {
		return "", err
	}
	differs = append(differs, compareFigures("the table ledger", "the table monthly", wholes, sites)...)
	differs = append(differs, compareFigures("the table monthly", "the table daily", monthly, daily)...)
	if len(differs) > 0 {
		return "", f.nameDifference(ctx, differs)
	}
	said := fmt.Sprintf("the sums of %d sites and months agree at change %d, those of %d records that go on at change %d", len(want), digest.Last, f.open, change)
	notes, err := f.checkReplicas(ctx)
	if err == nil {
		err = f.followChanges(ctx, change, stop)
	}
	if err == nil {
		err = f.removeBatches(ctx)
	}
	return strings.Join(append([]string{said}, notes...), "; "), err
}

// nameDifference names the first places that differ, unless another attempt has written since.
func (f *follower) nameDifference(ctx context.Context, differs []string) error {
	if err := f.confirmTurn(ctx); err != nil {
		return err
	}
	return newRefusal("the sums differ in %d places: %s; run the action with replace=all", len(differs), strings.Join(differs[:min(len(differs), maxNamed)], "; "))
}

// monthName is what the column month has of a month such as 2026-03.
func monthName(month string) string {
	return strings.TrimLeft(strings.ReplaceAll(month, "-", ""), "0") // of the year 1 it is 101
}

// maxNamed is how many differences are named.
const maxNamed = 12

type siteMonth struct{ site, month string }

type figures struct{ records, used string } // used by component: "Cores 3600, TotalCPU 12.5"

// querySums asks a table for figures by site and month, and leaves out zeros. The expressions are
// those of a number of records and of the sum of a component.
func (f *follower) querySums(ctx context.Context, key, records, used string, components []string, table, where string) (map[siteMonth]figures, error) {
	var statement strings.Builder
	statement.WriteString("SELECT " + key + ", " + records)
	for _, c := range components {
		fmt.Fprintf(&statement, ", "+used, c)
	}
	fmt.Fprintf(&statement, " FROM %s WHERE cluster = %s%s GROUP BY site", f.tableName(table), quoteText(f.cluster), where)
	if strings.HasSuffix(key, "month") {
		statement.WriteString(", month")
	}
	rows, err := f.queryRows(ctx, statement.String())
	out := map[siteMonth]figures{}
	for _, r := range rows {
		zero := r[2] == "0"
		var list []string
		for i, c := range components {
			sum := withoutZeros(r[3+i])
			zero = zero && sum == "0"
			list = append(list, c+" "+sum)
		}
		if !zero {
			out[siteMonth{r[0], r[1]}] = figures{r[2], strings.Join(list, ", ")}
		}
	}
	return out, err
}

// withoutZeros is a decimal as the cluster writes it: 1.5 for 1.500000, and 0 where no record
// has the component.
func withoutZeros(text string) string {
	if text == `\N` {
		return "0"
	}
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// compareFigures names what differs.
func compareFigures(one, other string, a, b map[siteMonth]figures) (list []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	keys := slices.SortedFunc(maps.Keys(all), func(a, b siteMonth) int {
		return cmp.Or(cmp.Compare(a.site, b.site), cmp.Compare(a.month, b.month))
	})
	for _, k := range keys {
		if a[k] != b[k] {
			list = append(list, strings.TrimRight(fmt.Sprintf("site %q %s", k.site, k.month), " ")+": "+one+" has "+a[k].String()+", "+other+" "+b[k].String())
		}
	}
	return list
}

// String is the figures for people.
func (f figures) String() string {
	switch f.records {
	case "":
		return "nothing"
	case "1":
		return "1 record with " + f.used
	}
	return f.records + " records with " + f.used
}
