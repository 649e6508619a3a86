package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/compat"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
)

// asClusterAccountant is the program whose figures -compat reproduces.
const asClusterAccountant = "clusteraccountant"

// originals are the files of another program.
type originals struct {
	compat     string
	tables     string
	accounting []string
}

// likeClusterAccountant adds the flags that make report subscription the report of
// ClusterAccountant.
func (p *Program) likeClusterAccountant(cmd *cobra.Command, e *report.Entry, asked func() url.Values, exact builder) builder {
	cmd.Example += "\n  bursar report subscription -compat clusteraccountant -accounting accounting -tables tables.sql -period 2012-10 -period 2012"
	cmd.Long += `

-compat clusteraccountant makes the report that ClusterAccountant made, of its own
files and without asking a cluster: -tables FILE is a dump of its tables as INSERT
statements (mysqldump), -accounting FILE Grid Engine's accounting; without it the
table accounting of the dump is reported. -where group=G and -where owner=U are its
options -p and -u. It differs from what bursar says of the same jobs:
- lines of other than 43 fields, and further runs of a job, are dropped;
- a job counts where it ends, with all its CPU time, not where it ran;
- contributions and types of nodes count whatever their dates;
- the first type whose pattern matches gives the factor, even one that is retired;
- principal investigators without usage have no row on its page, and its text has no exempt ones;
- the clusters are those of processor_type, and what is of none counts for the first;
  where one has no capacity, utilization is the computation units that were used.
Its sums of 32 bits, in which small jobs vanish, are exact here.`
	var files originals
	fl := cmd.Flags()
	fl.Var(&choice{&files.compat, []string{asClusterAccountant}}, "compat", "make it of the files of another program, with its rules: clusteraccountant")
	fl.StringArrayVar(&files.accounting, "accounting", nil, "with -compat: a `file` of Grid Engine's accounting; may be repeated")
	fl.StringVar(&files.tables, "tables", "", "with -compat: a `file` with the dump of ClusterAccountant's tables")
	return func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if err := files.checkFlags(cmd); err != nil {
			return nil, err
		}
		if files.compat == "" {
			return exact(ctx, c)
		}
		q, err := e.Query(asked())
		if err != nil {
			return nil, err
		}
		return files.buildReport(report.SubscriptionOptions{Periods: q.All("period"), Zone: cmp.Or(q.One("zone"), "UTC"), Where: q.Pairs("where"), Now: p.Now()})
	}
}

// checkFlags returns what is wrong with the options.
func (f *originals) checkFlags(cmd *cobra.Command) error {
	given := f.tables != "" || len(f.accounting) > 0
	switch {
	case f.compat == "" && given:
		return commandline.UsageError(cmd, errors.New("-accounting and -tables are the files of another program: say which with -compat clusteraccountant"))
	case f.compat != "" && f.tables == "":
		return commandline.UsageError(cmd, errors.New("-compat clusteraccountant makes the report of that program's own files: name them with -tables FILE and -accounting FILE"))
	}
	for _, name := range []string{"by", "credit", "address", "ca-cert", "client-cert", "client-key"} {
		if f.compat != "" && cmd.Flags().Changed(name) {
			return commandline.UsageError(cmd, fmt.Errorf("-%s has no meaning with -compat clusteraccountant, which has rules of its own and asks no aggregator", name))
		}
	}
	return nil
}

// buildReport makes the report of the files.
func (f *originals) buildReport(o report.SubscriptionOptions) (*report.Document, error) {
	zone, err := time.LoadLocation(o.Zone)
	if err != nil {
		return nil, err
	}
	tables, err := os.Open(f.tables)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tables.Close() }() // it was read only
	var accounting []io.Reader
	for _, name := range f.accounting {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it was read only
		accounting = append(accounting, file)
	}
	original, err := compat.ReadClusterAccountant(tables, accounting, zone)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(append([]string{f.tables}, f.accounting...), ", "), err)
	}
	return original.Subscription(o)
}
