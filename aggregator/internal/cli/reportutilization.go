package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/compat"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/auditor/utilization"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
)

// asAuditor is the program whose table of utilization can be written.
const asAuditor = "auditor"

// auditorFlags are those of report utilization that are AUDITOR's settings.
type auditorFlags struct {
	compat string
	rules  utilization.Rules
	lists  []string // of GroupedList
	sites  []string // SITE=WATTS
}

// flagNames are those of the flags that have a meaning with -compat only.
func (f *auditorFlags) flagNames() []string {
	return []string{"grouped-by", "grouped-list", "watt-per-core", "watt-per-core-of", "site-key", "carbon-per-kwh", "collector-type", "cores", "total-cpu", "benchmark"}
}

func (f *auditorFlags) addFlags(cmd *cobra.Command) {
	fl, r := cmd.Flags(), &f.rules
	r.Collector = utilization.DefaultCollector
	fl.Var(&choice{&f.compat, []string{asAuditor}}, "compat", "print the table of another program, by its rules: auditor")
	fl.StringVar(&r.GroupedBy, "grouped-by", utilization.DefaultGroupedBy, "with -compat: the meta `key` of the first column")
	fl.StringArrayVar(&f.lists, "grouped-list", nil, "with -compat: `texts`; a value that has one of them counts for the first; a comma-separated list")
	fl.Float64Var(&r.Watts, "watt-per-core", utilization.DefaultWatts, "with -compat: `watts` of a core")
	fl.StringArrayVar(&f.sites, "watt-per-core-of", nil, "with -compat: watts of a core by site, `SITE=WATTS`, in place of -watt-per-core; may be repeated")
	fl.StringVar(&r.SiteKey, "site-key", utilization.DefaultSiteKey, "with -compat: the meta `key` of the site")
	fl.Float64Var(&r.CO2, "carbon-per-kwh", utilization.DefaultCO2, "with -compat: `kg` of CO2 of a kWh")
	fl.Var(&choice{&r.Collector, utilization.Collectors()}, "collector-type", "with -compat: htcondor, slurm or kubernetes; of the last two AUDITOR divides CPU time by 1000")
	fl.StringVar(&r.Cores, "cores", "Cores", "with -compat: the `component` of cores")
	fl.StringVar(&r.TotalCPU, "total-cpu", "TotalCPU", "with -compat: the `component` of CPU time")
	fl.StringVar(&r.Benchmark, "benchmark", "HEPScore23", "with -compat: the `score` of cores for khs23h")
}

// readLists reads the options that are lists.
func (f *auditorFlags) readLists() error {
	f.rules.GroupedList = splitLists(f.lists)
	f.rules.Sites = map[string]float64{}
	for _, text := range f.sites {
		site, number, _ := strings.Cut(text, "=")
		watts, err := strconv.ParseFloat(number, 64)
		if err != nil || watts < 0 || site == "" {
			return fmt.Errorf("-watt-per-core-of: invalid %q: use SITE=WATTS, such as hall1=4.6", text)
		}
		f.rules.Sites[site] = watts
	}
	return nil
}

// chosenMonth is that of -period, the last one without it. Other parameters of the report have
// no meaning for AUDITOR's.
func (f *auditorFlags) chosenMonth(cmd *cobra.Command, asked url.Values) (string, error) {
	for name := range asked {
		if name != "period" && cmd.Flags().Changed(name) {
			return "", fmt.Errorf("-%s has no meaning with -compat auditor, which has a form of its own", name)
		}
	}
	if format := cmd.Flags().Lookup("format"); format.Changed && format.Value.String() != string(asCSV) {
		return "", errors.New("-compat auditor writes CSV; leave -format out")
	}
	switch periods := asked["period"]; {
	case !cmd.Flags().Changed("period"):
		return "last-month", nil
	case len(periods) != 1:
		return "", errors.New("-compat auditor is of one -period")
	default:
		return periods[0], nil
	}
}

// likeAuditor adds the flags that make report utilization the table of AUDITOR's utilization
// plugin.
func (p *Program) likeAuditor(cmd *cobra.Command, asked func() url.Values, exact builder) builder {
	cmd.Example += "\n  bursar report utilization -compat auditor -period 2026-03 -watt-per-core-of hall1=4.6 -o utilization.csv"
	cmd.Long += `

-compat auditor prints the table of AUDITOR's utilization plugin 0.11 as CSV, with its
columns and figures to the digit, from the records that stopped in a month of UTC that has
ended. All of a run counts at its stop, in whole seconds; a user's records are those
whose user matches the name as a pattern; the CPU efficiency is the mean of the days'.
The action energy writes and mails the same each month.`
	var f auditorFlags
	f.addFlags(cmd)
	return func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if f.compat == "" {
			if i := slices.IndexFunc(f.flagNames(), cmd.Flags().Changed); i >= 0 {
				return nil, commandline.UsageError(cmd, fmt.Errorf("-%s is for -compat auditor", f.flagNames()[i]))
			}
			return exact(ctx, c)
		}
		period, err := f.chosenMonth(cmd, asked())
		if err := errors.Join(err, f.readLists()); err != nil {
			return nil, commandline.UsageError(cmd, err)
		}
		text, err := compat.AuditorUtilization(ctx, c.API, &f.rules, period, p.Now())
		if err != nil {
			return nil, err
		}
		if file := cmd.Flags().Lookup("output").Value.String(); file != "" {
			if err := replaceFile(file, text); err != nil {
				return nil, err
			}
			p.say("%s is written.", file)
			return nil, nil
		}
		_, err = p.Stdout.Write(text)
		return nil, err
	}
}
