package compat

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ai4Used is what a namespace used, as usage_stats of ai4-accounting counts it.
type ai4Used struct {
	sum          [5]big.Int // amount × microseconds
	jobs, owners map[string]bool
}

// AI4Usage writes the tables that usage_stats of ai4-accounting prints, with its
// figures: of each job that a snapshot shows as running or over the part between that
// snapshot and the one before it, in whole hours. What is after the last snapshot of the
// period is missing, and so is what came and went between two of them and was not listed
// any more. Usage has exact figures.
func AI4Usage(ctx context.Context, r v1.API, o AI4Options) (string, error) {
	world, err := o.askCluster(ctx, r)
	if err != nil {
		return "", fmt.Errorf("report usage for ai4: %w", err)
	}
	used := world.hoursUsed()
	period := world.from.UTC().Format(time.DateOnly) + ":" + world.to.UTC().Add(-time.Microsecond).Format(time.DateOnly)
	var out strings.Builder
	var total [6]int64
	owners := map[string]bool{}
	for _, n := range world.namespaces {
		u := used[n]
		if !isPlainName(n) {
			continue // Nomad does not allow the name, so it may be any text
		}
		if u == nil {
			u = newAI4Used()
		}
		figures := u.tableFigures()
		for i := range total {
			total[i] += figures[i]
		}
		maps.Copy(owners, u.owners)
		writeBox(&out, strings.ToUpper(n), period, append(figures[:], int64(len(u.owners))))
	}
	writeBox(&out, "Aggregated", period, append(total[:], int64(len(owners))))
	return out.String(), nil
}

func newAI4Used() *ai4Used { return &ai4Used{jobs: map[string]bool{}, owners: map[string]bool{}} }

// hoursUsed adds up what the snapshots show, by namespace.
func (w *ai4World) hoursUsed() map[string]*ai4Used {
	used := map[string]*ai4Used{}
	before := w.from
	jobs := ai4Walk{coming: w.jobs}
	for _, t := range w.instants {
		for _, j := range jobs.jobsAt(t) {
			state, a, r := j.stateAt(t)
			if state != ai4Running && state != ai4Dead {
				continue
			}
			if used[j.namespace] == nil {
				used[j.namespace] = newAI4Used()
			}
			u := used[j.namespace]
			u.jobs[j.name], u.owners[a.owner] = true, true
			begin, end := before, t
			if r.start.After(begin) {
				begin = r.start
			}
			if state == ai4Dead && r.stop.Before(end) {
				end = r.stop
			}
			for i, n := range r.amounts {
				part := big.NewInt(max(0, end.Sub(begin).Microseconds()))
				u.sum[i].Add(&u.sum[i], part.Mul(part, big.NewInt(n)))
			}
		}
		before = t
	}
	return used
}

// tableFigures are the hours that are over, in the order of its tables, and the jobs.
func (u *ai4Used) tableFigures() (out [6]int64) {
	for i, at := range []int{0, 1, 4, 2, 3} { // the GPUs come third
		out[i] = new(big.Int).Quo(&u.sum[at], big.NewInt(time.Hour.Microseconds())).Int64()
	}
	out[5] = int64(len(u.jobs))
	return out
}

// writeBox writes a table as usage_stats does.
func writeBox(out *strings.Builder, name, period string, figures []int64) {
	labels := []string{"cpu_num hours", "cpu_MHz hours", "gpu_num hours", "memory_MB hours", "disk_MB hours", "Nº jobs", "Nº active users"}
	left, right := 0, 0
	for i, l := range labels {
		left, right = max(left, len([]rune(l))), max(right, len(wholeNumber(figures[i])))
	}
	fmt.Fprintf(out, "%s accounting for the period %s\n", name, period)
	fmt.Fprintf(out, "┌%s┬%s┐\n", strings.Repeat("─", left+2), strings.Repeat("─", right+2))
	for i, l := range labels {
		fmt.Fprintf(out, "│ %*s │ %*d │\n", left, l, right, figures[i])
	}
	fmt.Fprintf(out, "└%s┴%s┘\n", strings.Repeat("─", left+2), strings.Repeat("─", right+2))
}
