package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// compatSettings are those of AUDITOR's utilization plugin 0.11.
type compatSettings struct {
	GroupedBy   string            `hcl:"grouped_by,optional" default:"user_id" doc:"the meta key of the first column"`
	GroupedList hcl.Strings       `hcl:"grouped_list,optional" doc:"texts; a value that has one of them counts for the first"`
	Watts       float64           `hcl:"watt_per_core,optional" default:"4.6" doc:"watts of a core"`
	Sites       map[string]string `hcl:"watt_per_core_of_site,optional" doc:"watts of a core by site, in place of watt_per_core; a record of another site has no energy"`
	SiteKey     string            `hcl:"site_key,optional" default:"site" doc:"the meta key of the site"`
	CO2         float64           `hcl:"co2_per_kwh,optional" default:"0.363" doc:"kg of CO2 of a kWh"`
	Collector   string            `hcl:"collector_type,optional" default:"htcondor" allowed:"htcondor slurm kubernetes" doc:"of slurm and kubernetes, CPU time is divided by 1000, as AUDITOR does"`
	TotalCPU    string            `hcl:"total_cpu,optional" default:"TotalCPU" doc:"the component of CPU time"`

	sites map[string]float64
}

// flat is what AUDITOR's plugin keeps of a record. What a record lacks is NaN.
type flat struct {
	user                                  string
	cores, benchmark, cpu, watts, runtime float64
}

// auditorFigures are those of a user.
type auditorFigures struct{ khs23h, efficiency, coreHours, power, co2 float64 }

// auditor makes AUDITOR's table of a month from the records that stopped in it.
func (p *planner) auditor(ctx context.Context, from, to time.Time) (table, error) {
	days := map[string][]auditorFigures{}
	for day := from; day.Before(to); day = day.Add(24 * time.Hour) {
		var list []flat
		next := day.Add(24 * time.Hour)
		q := &v1.ListRecordsQuery{StopTime: v1.TimeTest{Gte: v1.Time{Time: day}, Lt: v1.Time{Time: next}}}
		for r, err := range p.data.Records(ctx, q) {
			if err != nil {
				return table{}, err
			}
			if f, ok := p.flat(&r); ok {
				list = append(list, f)
			}
		}
		for user, f := range p.Compat.day(list) {
			days[user] = append(days[user], f...)
		}
	}
	t := table{columns: []string{"user", "khs23h", "cpu_eff", "corehours", "power [kWh]", "co2 [kg]"}}
	for _, user := range slices.Sorted(maps.Keys(days)) {
		column := func(of func(*auditorFigures) float64) (list []float64) {
			for i := range days[user] {
				list = append(list, of(&days[user][i]))
			}
			return list
		}
		efficiency, n := kahan(column(func(f *auditorFigures) float64 { return f.efficiency }))
		row := []string{user}
		for _, v := range []float64{
			total(column(func(f *auditorFigures) float64 { return f.khs23h })), efficiency / float64(n),
			total(column(func(f *auditorFigures) float64 { return f.coreHours })), total(column(func(f *auditorFigures) float64 { return f.power })),
			total(column(func(f *auditorFigures) float64 { return f.co2 })),
		} {
			row = append(row, python(v))
		}
		t.rows = append(t.rows, row)
	}
	return t, nil
}

func total(list []float64) float64 { sum, _ := kahan(list); return sum }

func (p *planner) flat(r *record.Record) (flat, bool) {
	c := p.Compat
	users := r.Meta.Get(c.GroupedBy)
	if len(users) == 0 || !r.Stop.Present() {
		return flat{}, false
	}
	nan := math.NaN()
	f := flat{user: users[0], cores: nan, benchmark: nan, cpu: nan, watts: c.Watts, runtime: float64((r.Stop - r.Start) / record.Second)}
	for i := range r.Components {
		o := &r.Components[i]
		switch o.Name {
		case p.Cores:
			f.cores = float64(o.Amount)
		case c.TotalCPU:
			f.cpu = float64(o.Amount)
		}
		if len(o.Scores) > 0 && o.Scores[0].Name == p.Benchmark {
			f.benchmark = o.Scores[0].Value
		}
	}
	if len(c.sites) > 0 {
		f.watts = nan
		if sites := r.Meta.Get(c.SiteKey); len(sites) > 0 {
			if w, is := c.sites[sites[0]]; is {
				f.watts = w
			}
		}
	}
	for _, name := range c.GroupedList {
		if strings.Contains(f.user, name) {
			f.user = name
			break
		}
	}
	return f, true
}

// day has the figures of the users of a day, by the names that AUDITOR gives them. A user's
// records are those whose user matches the name as a pattern, as there: prod has production's.
func (c *compatSettings) day(list []flat) map[string][]auditorFigures {
	out := map[string][]auditorFigures{}
	var users []string
	for i := range list {
		if !slices.Contains(users, list[i].user) {
			users = append(users, list[i].user)
		}
	}
	for _, user := range users {
		pattern, err := regexp.Compile(user)
		if err != nil {
			pattern = regexp.MustCompile(regexp.QuoteMeta(user))
		}
		var work, hours, cpu, held, power []float64
		for i := range list {
			f := &list[i]
			if !pattern.MatchString(f.user) {
				continue
			}
			work = append(work, f.benchmark*f.cores*f.runtime/3600)
			hours = append(hours, f.cores*f.runtime/3600)
			cpu, held = append(cpu, f.cpu), append(held, f.runtime*f.cores)
			power = append(power, f.watts*f.cores*f.runtime/3600)
		}
		used := pairwise(cpu)
		if c.Collector != "htcondor" {
			used /= 1000
		}
		f := auditorFigures{khs23h: pairwise(work) / 1000, efficiency: used / pairwise(held), coreHours: pairwise(hours), power: pairwise(power) / 1000}
		f.co2 = f.power * c.CO2
		out[renamed(user)] = append(out[renamed(user)], f)
	}
	return out
}

// renamed is the name of a user that is a VOMS attribute: /atlas/Role=production/… is
// atlas-production.
func renamed(user string) string {
	parts := strings.Split(user, "/")
	if len(parts) < 4 {
		return user
	}
	if strings.Contains(parts[2], "NULL") {
		return parts[1]
	}
	words := strings.Split(parts[2], "=")
	return parts[1] + "-" + words[len(words)-1]
}

// pairwise adds up as numpy does, whose order decides the last digit. NaN is nothing.
func pairwise(list []float64) float64 {
	known := make([]float64, len(list))
	for i, v := range list {
		if !math.IsNaN(v) {
			known[i] = v
		}
	}
	return pairs(known)
}

func pairs(a []float64) (sum float64) {
	const block, lanes = 128, 8
	n := len(a)
	switch {
	case n < lanes:
		for _, v := range a {
			sum += v
		}
		return sum
	case n > block:
		half := n / 2
		half -= half % lanes
		return pairs(a[:half]) + pairs(a[half:])
	}
	r := [lanes]float64(a[:lanes])
	i := lanes
	for ; i < n-n%lanes; i += lanes {
		for k := range r {
			r[k] += a[i+k]
		}
	}
	sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
	for ; i < n; i++ {
		sum += a[i]
	}
	return sum
}

// kahan adds up days as pandas does, without those that are NaN, and counts them.
func kahan(list []float64) (sum float64, n int) {
	rest := 0.0
	for _, v := range list {
		if math.IsNaN(v) {
			continue
		}
		y := v - rest
		t := sum + y
		rest = t - sum - y
		sum, n = t, n+1
	}
	return sum, n
}

// python writes a number as Python does; nothing for NaN.
func python(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return ""
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strings.ToLower(fmt.Sprint(v)), "+")
	case size != 0 && (size < 1e-4 || size >= 1e16):
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	return cmp.Or(text+map[bool]string{true: "", false: ".0"}[strings.Contains(text, ".")], text)
}
