// Package utilization makes the table of AUDITOR's utilization plugin 0.11 by its rules, to the
// digit, with all that is odd about them: they need single records, whole seconds, days by stop
// and users matched as patterns, and their digits are those of numpy and pandas.
package utilization

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Rules are the settings of AUDITOR's utilization plugin.
type Rules struct {
	// GroupedBy is the meta key of the first column. A value that has one of the texts of
	// GroupedList counts for the first.
	GroupedBy   string
	GroupedList []string
	// Watts are those of a core, unless Sites has some: then they are those of the site that
	// SiteKey names, and a record of another one has no energy.
	Watts   float64
	Sites   map[string]float64
	SiteKey string
	// CO2 is in kg of a kWh.
	CO2 float64
	// Collector is htcondor, or else CPU time is divided by 1000, as AUDITOR does.
	Collector string
	// Cores and TotalCPU are the components of cores and CPU time, Benchmark the score of cores.
	Cores, TotalCPU, Benchmark string
}

// The defaults of [Rules], which are AUDITOR's.
const (
	DefaultGroupedBy = "user_id"
	DefaultWatts     = 4.6
	DefaultSiteKey   = "site"
	DefaultCO2       = 0.363
	DefaultCollector = "htcondor"
)

// Collectors are the values of [Rules.Collector].
func Collectors() []string { return []string{DefaultCollector, "slurm", "kubernetes"} }

// Columns are those of the table.
func Columns() []string {
	return []string{"user", "khs23h", "cpu_eff", "corehours", "power [kWh]", "co2 [kg]"}
}

// Stopped returns the records that stopped from a time on and before another.
type Stopped func(from, to time.Time) iter.Seq2[record.Record, error]

// flat is what AUDITOR's plugin keeps of a record. What a record lacks is NaN.
type flat struct {
	user                                  string
	cores, benchmark, cpu, watts, runtime float64
}

// figures are those of a user.
type figures struct{ khs23h, efficiency, coreHours, power, co2 float64 }

// Table makes the rows of a month, or of other whole days of UTC, from the records that stopped
// in it. Errors are those of stopped.
func (r *Rules) Table(from, to time.Time, stopped Stopped) (rows [][]string, err error) {
	days := map[string][]figures{}
	for day := from; day.Before(to); day = day.Add(24 * time.Hour) {
		var list []flat
		for job, err := range stopped(day, day.Add(24*time.Hour)) {
			if err != nil {
				return nil, err
			}
			if f, ok := r.flatten(&job); ok {
				list = append(list, f)
			}
		}
		for user, f := range r.dayFigures(list) {
			days[user] = append(days[user], f...)
		}
	}
	for _, user := range slices.Sorted(maps.Keys(days)) {
		column := func(of func(*figures) float64) (list []float64) {
			for i := range days[user] {
				list = append(list, of(&days[user][i]))
			}
			return list
		}
		efficiency, n := kahanSum(column(func(f *figures) float64 { return f.efficiency }))
		row := []string{user}
		for _, v := range []float64{
			sumOf(column(func(f *figures) float64 { return f.khs23h })), efficiency / float64(n),
			sumOf(column(func(f *figures) float64 { return f.coreHours })), sumOf(column(func(f *figures) float64 { return f.power })),
			sumOf(column(func(f *figures) float64 { return f.co2 })),
		} {
			row = append(row, formatPython(v))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func sumOf(list []float64) float64 { sum, _ := kahanSum(list); return sum }

func (r *Rules) flatten(job *record.Record) (flat, bool) {
	users := job.Meta.Get(r.GroupedBy)
	if len(users) == 0 || !job.Stop.Present() {
		return flat{}, false
	}
	nan := math.NaN()
	f := flat{user: users[0], cores: nan, benchmark: nan, cpu: nan, watts: r.Watts, runtime: float64((job.Stop - job.Start) / record.Second)}
	for i := range job.Components {
		o := &job.Components[i]
		switch o.Name {
		case r.Cores:
			f.cores = float64(o.Amount)
		case r.TotalCPU:
			f.cpu = float64(o.Amount)
		}
		if len(o.Scores) > 0 && o.Scores[0].Name == r.Benchmark {
			f.benchmark = o.Scores[0].Value
		}
	}
	if len(r.Sites) > 0 {
		f.watts = nan
		if sites := job.Meta.Get(r.SiteKey); len(sites) > 0 {
			if w, is := r.Sites[sites[0]]; is {
				f.watts = w
			}
		}
	}
	for _, name := range r.GroupedList {
		if strings.Contains(f.user, name) {
			f.user = name
			break
		}
	}
	return f, true
}

// dayFigures has the figures of the users of a day, by the names that AUDITOR gives them. A user's
// records are those whose user matches the name as a pattern, as there: prod has production's.
func (r *Rules) dayFigures(list []flat) map[string][]figures {
	out := map[string][]figures{}
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
		used := pairwiseSum(cpu)
		if r.Collector != "htcondor" {
			used /= 1000
		}
		f := figures{khs23h: pairwiseSum(work) / 1000, efficiency: used / pairwiseSum(held), coreHours: pairwiseSum(hours), power: pairwiseSum(power) / 1000}
		f.co2 = f.power * r.CO2
		out[shownUser(user)] = append(out[shownUser(user)], f)
	}
	return out
}

// shownUser is the name of a user that is a VOMS attribute: /atlas/Role=production/… is
// atlas-production.
func shownUser(user string) string {
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

// pairwiseSum adds up as numpy does, whose order decides the last digit. NaN is nothing.
func pairwiseSum(list []float64) float64 {
	known := make([]float64, len(list))
	for i, v := range list {
		if !math.IsNaN(v) {
			known[i] = v
		}
	}
	return sumPairs(known)
}

func sumPairs(a []float64) (sum float64) {
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
		return sumPairs(a[:half]) + sumPairs(a[half:])
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

// kahanSum adds up days as pandas does, without those that are NaN, and counts them.
func kahanSum(list []float64) (sum float64, n int) {
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

// formatPython writes a number as Python does; nothing for NaN.
func formatPython(v float64) string {
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
