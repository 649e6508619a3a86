package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/client"
)

// notZero returns an error for a number that is 0, which a report would take for one
// that is not given.
func notZero(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if value := cmd.Flags().Lookup(name).Value.String(); value == "0" || value == "-0" {
			return usageError(cmd, fmt.Errorf("-%s is %s; want more than 0", name, value))
		}
	}
	return nil
}

func (p *Program) reportEfficiency() *cobra.Command {
	o := report.EfficiencyOptions{Factors: report.DefaultFactors()}
	var where []string
	cmd := &cobra.Command{
		Use: "efficiency", Short: "What jobs booked and what they used, and what could be saved",
		Long: `What jobs booked and what they used of it – cores, memory, GPUs –, how long they
waited, and which left the most unused; with what could be saved in core-hours,
GB-hours, kWh and CO2.

Used cores are the CPU seconds of the component TotalCPU, which the sources for
Slurm and Grid Engine tell. Used memory is the component MemoryUsed, a rate in the
unit of Memory with the peak of the job, which a mapping can add; see
hcl/examples/slurm.hcl. What records do not say is named below the report, and is
not taken for 0.

The factors for energy and CO2 are those of Green Algorithms for unknown hardware
and the mean of the world (Lannelongue et al. 2021, doi 10.1002/advs.202100707):
12 W for a core, 0.3725 W for a GB, 200 W for a GPU, PUE 1.67, 475 g for a kWh.
Give those of your site; a reader will ask where they are from.`,
		Example: "  bursar report efficiency\n  bursar report efficiency -period last-month -by group_id -o efficiency.html\n" +
			"  bursar report efficiency -where group_id=atlas -pue 1.2 -co2-per-kwh 0.35 -kwh-per-core-hour 0.008",
	}
	periodFlags(cmd, &o.Periods, &o.Zone)
	fl := cmd.Flags()
	fl.StringVar(&o.By, "by", "user_id", "the `key` that gives the lines; also project, pi, cluster")
	fl.StringArrayVar(&where, "where", nil, "only of `key=value`; may be repeated")
	fl.IntVar(&o.Top, "top", 25, "how many lines at most, a `number`; the others are one line; 0 is all")
	fl.IntVar(&o.Worst, "jobs", 10, "how many jobs are named, a `number` from 1 to 100")
	fl.IntVar(&o.Scan, "scan", 50_000, "how many jobs are looked at one by one for median wait and for the list of jobs, a `number`; when there are more, those that ran the longest")
	fl.StringVar(&o.CPU, "cpu", "TotalCPU", "`component` with the CPU seconds that were used")
	fl.StringVar(&o.Memory, "memory-used", "MemoryUsed", "`component` with the memory that was used")
	fl.StringVar(&o.GPUs, "gpus-used", "GPUsUsed", "`component` with the GPUs that were used, such as 0.4 of one")
	fl.Float64Var(&o.MemoryPerGB, "memory-per-gb", 1024, "how much of the component Memory is a GB, a `number`")
	fl.Float64Var(&o.Factors.CoreHour, "kwh-per-core-hour", o.Factors.CoreHour, "energy that a core draws, in `kWh`")
	fl.Float64Var(&o.Factors.GBHour, "kwh-per-gb-hour", o.Factors.GBHour, "energy that a GB of memory draws, in `kWh`")
	fl.Float64Var(&o.Factors.GPUHour, "kwh-per-gpu-hour", o.Factors.GPUHour, "energy that a GPU draws, in `kWh`")
	fl.Float64Var(&o.Factors.PUE, "pue", o.Factors.PUE, "what the site draws for a kWh of its computers, a `number`")
	fl.Float64Var(&o.Factors.Carbon, "co2-per-kwh", o.Factors.Carbon, "CO2 equivalents of a kWh, in `kg`")
	return p.reports(cmd, func(ctx context.Context, c *client.Client) (*report.Document, error) {
		if err := checkPeriods(cmd, o.Periods); err != nil {
			return nil, err
		}
		if err := notZero(cmd, "jobs", "scan", "memory-per-gb"); err != nil {
			return nil, err
		}
		o.Now = p.Now()
		var err error
		if o.Where, err = argumentsOf(where); err != nil {
			return nil, usageError(cmd, err)
		}
		return report.Efficiency(ctx, c.API, o)
	})
}
