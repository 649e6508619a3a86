package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// capacity is an answer of GET /v1/capacity.
type capacity v1.Capacity

// capacityRow is a cluster or a group of clusters.
type capacityRow struct {
	name string
	// saidBy is where what it has comes from.
	saidBy     string
	components v1.Amounts
	steps      []v1.CapacityStep
}

func (p *Program) capacityCommand() *cobra.Command {
	var at, window, zone string
	cmd := &cobra.Command{
		Use: "capacity", Short: "Show cluster capacity: cores, memory, GPUs, service units",
		Long: `Show the capacity of clusters and groups of clusters: cores, memory, GPUs, service units.

Capacity comes from the cluster blocks of the configuration and from sources that
report it. Where it is unknown, the table shows "-" and utilization excludes that time.
With -window there is a row for each change in the window.

For utilization, run "bursar usage -measure utilization".`,
		Example: `  bursar capacity
  bursar capacity -at 2025-01-01
  bursar capacity -window this-year -format csv
  bursar usage -window last-month -by cluster -measure Cores,capacity,utilization,'utilization*GPUs'`,
	}
	cmd.Flags().StringVar(&at, "at", "", "what there was at this `time`; default now")
	cmd.Flags().StringVar(&window, "window", "", "the changes in a `time`, by a word as in bursar usage")
	cmd.Flags().StringVar(&zone, "zone", "", "the time `zone` by whose clock days begin; default the site's")
	_ = cmd.RegisterFlagCompletionFunc("window", cobra.FixedCompletions(windowWords(), cobra.ShellCompDirectiveNoFileComp)) // the option exists
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Capacity, error) {
		return api.Capacity(ctx, &v1.CapacityQuery{At: at, Window: window, Zone: zone})
	}
	return queryCommand(p, cmd, ask, func(answer v1.Capacity, f format, c *clock) page {
		a := (*capacity)(&answer)
		if named, err := time.LoadLocation(zone); zone != "" && err == nil {
			c = clockFor(f, named)
		}
		out := page{table: a.capacityTable(window != "", c)}
		if f == asTable {
			for i, name := range out.table.head {
				out.table.head[i] = strings.TrimSpace(name + " " + v1.AmountUnit(name))
			}
		}
		if zone != "" {
			out.notes = append(out.notes, c.zoneNotes()...)
		}
		if len(a.Clusters) == 0 {
			out.notes = append(out.notes, "No capacity configured or reported: add a cluster block to the configuration.")
		}
		for _, g := range a.Groups {
			if len(g.Unknown) > 0 {
				out.notes = append(out.notes, "No capacity configured or reported for "+strings.Join(g.Unknown, ", ")+" of "+g.Name+".")
			}
		}
		return out
	})
}

// capacityTable has a line for each cluster and group, or for each of their changes, whose times
// are by a clock.
func (a *capacity) capacityTable(changes bool, at *clock) *table {
	var components []string
	all := a.capacityRows()
	for i := range all {
		for name := range all[i].components {
			components = append(components, name)
		}
	}
	slices.Sort(components)
	components = slices.Compact(components)
	head := []string{"CLUSTER"}
	if changes {
		head = append(head, "FROM")
	}
	for _, name := range components {
		head = append(head, ">"+name)
	}
	t := newTable(append(head, "?~SAID BY")...)
	line := func(c *capacityRow, from v1.Time, amounts v1.Amounts) {
		cells := []string{c.name}
		if changes {
			cells = append(cells, at.instantText(from))
		}
		for _, name := range components {
			text := "-"
			if n := amounts[name]; n != nil {
				text = n.String()
			}
			cells = append(cells, text)
		}
		t.addRow(append(cells, c.saidBy)...)
	}
	for i := range all {
		c := &all[i]
		if !changes {
			line(c, v1.Time{}, c.components)
		}
		for _, s := range c.steps {
			line(c, s.From, s.Components)
		}
	}
	return t
}

// capacityRows are those of the clusters, and then of the groups.
func (a *capacity) capacityRows() (all []capacityRow) {
	for _, c := range a.Clusters {
		var words []string
		if c.Configured {
			words = append(words, "configuration")
		}
		all = append(all, capacityRow{c.Name, strings.Join(append(words, c.Sources...), ", "), c.Components, c.Steps})
	}
	for _, g := range a.Groups {
		members := strings.Join(slices.Concat(g.Members, g.Unknown), ", ")
		all = append(all, capacityRow{g.Name, "group: " + members, g.Components, g.Steps})
	}
	return all
}

func (p *Program) censusCommand() *cobra.Command {
	by := "user"
	words := []string{"user", "queue", "source", "all"}
	cmd := &cobra.Command{
		Use: "census", Short: "Show how many jobs run and wait now, by user or queue",
		Long: `Show how many jobs run and wait, by user or queue, as each source last reported it.

The numbers are those of the schedulers; waiting jobs have no records yet. The time of
each source's report is below the table.`,
		Example: "  bursar census\n  bursar census -by queue\n  bursar census -by all -format csv",
	}
	cmd.Flags().Var(&choice{&by, words}, "by", "a line for each: "+strings.Join(words, ", "))
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the option exists
	ask := func(ctx context.Context, api v1.API, _ []string) (v1.Capacity, error) { return api.Capacity(ctx, nil) }
	return queryCommand(p, cmd, ask, func(answer v1.Capacity, f format, c *clock) page {
		a := (*capacity)(&answer)
		t, hidden := a.censusTable(by)
		out := page{table: t, answer: a.Census}
		switch {
		case a.Census == nil:
			p.say("You may see some of the records only, and the census is of all jobs.")
			if f == asTable {
				return page{}
			}
			return out
		case hidden:
			out.notes = append(out.notes, "You may not see whose jobs these are; -by source has the numbers.")
		}
		if f == asTable && len(t.rows) > 1 {
			cells := make([]string, len(t.head))
			cells[0] = "TOTAL"
			cells[len(cells)-2], cells[len(cells)-1] = strconv.FormatInt(a.Census.Running, 10), strconv.FormatInt(a.Census.Pending, 10)
			t.addRow(cells...)
		}
		for _, s := range a.Census.Sources {
			out.notes = append(out.notes, s.Source+" looked at "+c.timeWithZone(s.At)+".")
		}
		if len(a.Census.Sources) == 0 {
			out.notes = append(out.notes, "No source has said how many jobs it has.")
		}
		return out
	})
}

// censusTable is in the order of the numbers, the greatest first. hidden says that it
// lacks what the reader may not see.
func (a *capacity) censusTable(by string) (t *table, hidden bool) {
	columns := map[string][]string{"user": {"USER"}, "queue": {"QUEUE"}, "source": {"SOURCE"}, "all": {"USER", "QUEUE", "SOURCE"}}[by]
	t = newTable(append(slices.Clone(columns), ">RUNNING", ">PENDING")...)
	type line struct {
		cells            []string
		running, pending int64
	}
	var lines []*line
	of := map[string]*line{}
	add := func(r v1.CensusRow, cells ...string) {
		key := strings.Join(cells, "\x00")
		l := of[key]
		if l == nil {
			l = &line{cells: cells}
			of[key], lines = l, append(lines, l)
		}
		l.running, l.pending = l.running+r.Running, l.pending+r.Pending
	}
	if a.Census == nil {
		return t, true
	}
	for _, s := range a.Census.Sources {
		if by == "source" {
			add(v1.CensusRow{Running: s.Running, Pending: s.Pending}, s.Source)
			continue
		}
		hidden = hidden || s.Rows == nil
		for _, r := range s.Rows {
			switch by {
			case "user":
				add(r, r.User)
			case "queue":
				add(r, r.Queue)
			default:
				add(r, r.User, r.Queue, s.Source)
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b *line) int {
		return cmp.Or(cmp.Compare(b.running+b.pending, a.running+a.pending), slices.Compare(a.cells, b.cells))
	})
	for _, l := range lines {
		t.addRow(append(l.cells, strconv.FormatInt(l.running, 10), strconv.FormatInt(l.pending, 10))...)
	}
	return t, hidden
}
