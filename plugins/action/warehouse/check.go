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

// check brings the tables to a digest of the cluster and compares the sums of each site and
// month. The error names what differs.
func (f *follower) check(ctx context.Context, stop time.Time) (string, error) {
	digest, err := f.data.API().ChangesDigest(ctx, &v1.Reading{})
	if err != nil {
		return "", err
	}
	if err := f.follow(ctx, digest.Last, true, stop); err != nil {
		return "", err
	}
	if f.at.last != digest.Last || f.at.epoch != digest.Epoch {
		return "", fmt.Errorf("the tables are at change %d and the digest at %d: another run went on", f.at.last, digest.Last)
	}
	want := map[siteMonth]figures{}
	for i := range digest.Digests {
		if d := &digest.Digests[i]; d.Month != "" {
			want[siteMonth{string(d.Site), strings.ReplaceAll(string(d.Month), "-", "")}] = figures{fmt.Sprint(d.Records), string(d.CoreSeconds)}
		}
	}
	got, err := f.sums(ctx, fmt.Sprintf("SELECT site, month, sum(sign), sum(sign * `%s`) FROM %s WHERE cluster = %s GROUP BY site, month", cores, f.name(ledgerTable), quote(f.cluster)))
	if err != nil {
		return "", err
	}
	differs := compareFigures("the cluster", "the table ledger", want, got)
	wholes, err := f.sums(ctx, fmt.Sprintf("SELECT site, '', sumIf(sign, stop_us >= start_us), sum(sign * `%s`) FROM %s WHERE cluster = %s GROUP BY site", cores, f.name(ledgerTable), quote(f.cluster)))
	if err != nil {
		return "", err
	}
	days, err := f.sums(ctx, fmt.Sprintf("SELECT site, '', sum(stopped), sum(`%s`) FROM %s WHERE cluster = %s AND batch = 0 GROUP BY site", cores, f.name(dailyTable), quote(f.cluster)))
	if err != nil {
		return "", err
	}
	differs = append(differs, compareFigures("the table ledger", "the table daily", wholes, days)...)
	if len(differs) > 0 {
		return "", refuse("the sums differ in %d places: %s; run the action with replace=all", len(differs), strings.Join(differs[:min(len(differs), maxNamed)], "; "))
	}
	return fmt.Sprintf("the sums of %d sites and months agree at change %d", len(want), digest.Last), nil
}

// maxNamed is how many differences are named.
const maxNamed = 12

type siteMonth struct{ site, month string }

type figures struct{ records, coreSeconds string }

// sums asks for figures by site and month, and leaves out zeros.
func (f *follower) sums(ctx context.Context, statement string) (map[siteMonth]figures, error) {
	rows, err := f.query(ctx, statement)
	out := map[siteMonth]figures{}
	for _, r := range rows {
		sum := figures{r[2], r[3]}
		if strings.Contains(sum.coreSeconds, ".") {
			sum.coreSeconds = strings.TrimSuffix(strings.TrimRight(sum.coreSeconds, "0"), ".")
		}
		if sum != (figures{"0", "0"}) {
			out[siteMonth{r[0], r[1]}] = sum
		}
	}
	return out, err
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
	return cmp.Or(f.records, "0") + " records and " + cmp.Or(f.coreSeconds, "0") + " core-seconds"
}
