package report

import (
	"context"
	"fmt"
	"strconv"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// statementEntry is the statement of one group, project or person.
func statementEntry() Entry {
	period := periodParam()
	period.Most, period.Default = 1, []string{"last-month"}
	period.About = "The time that is reported, a window as of /v1/usage; it stands beside the one before it."
	return Entry{
		Report: v1.Report{Name: "statement", Title: "Statement", About: "What a group, a project or a person used in a month, what it costs, and what is left of budgets.", Parameters: []Param{
			{
				Name: "of", Title: "Subject", Kind: ParamPairs, Most: 5, Needed: true, Default: []string{}, Words: []string{"group_id=atlas", "project=bell", "pi=curie", "user_id=alice"},
				About: "Of whom, as KEY=VALUE; several must all be so. Also of[KEY]=VALUE.",
			},
			period,
			{
				Name: "top", Title: "People and jobs at most", Kind: ParamNumber, Default: []string{"10"}, Most: 1, Words: []string{},
				About: "How many people and how many jobs are named, from 1 to 100.",
			},
			memoryParam(), zoneParam(),
		}},
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			o := StatementOptions{Of: q.Pairs("of"), Period: q.One("period"), Zone: q.One("zone"), Top: q.Number("top"), Now: q.Now}
			if err := q.factors(factor{"memory_per_gb", &o.MemoryPerGB}); err != nil {
				return nil, err
			}
			if err := within(bounds{"top", float64(o.Top), 1, mostJobs}, bounds{"memory_per_gb", o.MemoryPerGB, leastMemory, mostFactor}); err != nil {
				return nil, err // 0 is no default here
			}
			return Statement(ctx, r, o)
		},
	}
}

// efficiencyEntry is what was booked and used.
func efficiencyEntry() Entry {
	f := DefaultFactors()
	energy := func(name, title, about string, value float64) Param {
		text := strconv.FormatFloat(value, 'f', -1, 64)
		return textParam(name, title, about, text, text)
	}
	top := topParam()
	top.Default = []string{"25"}
	return Entry{
		Report: v1.Report{Name: "efficiency", Title: "Efficiency", About: "What jobs booked and what they used, how long they waited, and what could be saved.", Parameters: []Param{
			periodParam(),
			textParam("by", "Group by", "The key that gives the lines; also project, pi and cluster.", "user_id", "group_id", "user_id", "project", "pi"),
			whereParam(), top,
			energy("kwh_per_core_hour", "kWh of a core and hour", "Energy that a core draws, in kWh.", f.CoreHour),
			energy("kwh_per_gb_hour", "kWh of a GB and hour", "Energy that a GB of memory draws, in kWh.", f.GBHour),
			energy("kwh_per_gpu_hour", "kWh of a GPU and hour", "Energy that a GPU draws, in kWh.", f.GPUHour),
			energy("pue", "PUE", "What the site draws for a kWh of its computers.", f.PUE),
			energy("carbon_per_kwh", "kg of CO2 of a kWh", "CO2 equivalents of a kWh, in kg.", f.Carbon),
			memoryParam(), zoneParam(),
		}},
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			o := EfficiencyOptions{Periods: q.All("period"), Zone: q.One("zone"), By: q.One("by"), Where: q.Pairs("where"), Top: q.Number("top"), Now: q.Now}
			err := q.factors(
				factor{"kwh_per_core_hour", &o.Factors.CoreHour}, factor{"kwh_per_gb_hour", &o.Factors.GBHour}, factor{"kwh_per_gpu_hour", &o.Factors.GPUHour},
				factor{"pue", &o.Factors.PUE}, factor{"carbon_per_kwh", &o.Factors.Carbon}, factor{"memory_per_gb", &o.MemoryPerGB},
			)
			if err == nil { // 0 is no default here
				o.Worst, o.Scan = defaultWorst, defaultScan
				err = o.check()
			}
			if err != nil {
				return nil, err
			}
			return Efficiency(ctx, r, o)
		},
	}
}

// memoryParam says what the component Memory is counted in.
func memoryParam() Param {
	return textParam("memory_per_gb", "Memory of a GB", "How much of the component Memory is a GB; 1024 where it is in MB.", "1024", "1024", "1")
}

// factor is a parameter that is a number with a fraction.
type factor struct {
	name string
	to   *float64
}

// factors reads parameters that are numbers, none of which may be less than 0.
func (q *Query) factors(list ...factor) error {
	for _, f := range list {
		n, err := strconv.ParseFloat(q.One(f.name), 64)
		if err != nil || !(n >= 0 && n <= 1e12) {
			return fmt.Errorf("%w: %s is %.60q; want a number, 0 or more, such as 0.475", ErrQuery, f.name, q.One(f.name))
		}
		*f.to = n
	}
	return nil
}
