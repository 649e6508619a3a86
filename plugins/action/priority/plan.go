package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/text"
)

// Bounds of what a plan tells.
const (
	maxGauged  = 100 // groups with gauges
	maxListed  = 20  // groups in one note
	maxAsIs    = 40  // notes about groups for which nothing is planned
	maxSources = 10
	maxWord    = 100 // bytes of a name that someone else chose
)

// planner makes one plan.
type planner struct {
	*config
	now    time.Time
	all    bool // what is set already is set again
	usage  *usage
	before state
	after  state
	out    sdk.Plan
	asIs   int
}

func (c *config) plan(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	p := planner{config: c, now: start.Now, usage: newUsage(c, start.Now), after: state{Format: format, Set: map[string]last{}}}
	var err error
	if p.before, err = readState(start.State); err != nil {
		return sdk.Plan{}, err
	}
	if err := p.arguments(start.Arguments); err != nil {
		return sdk.Plan{}, err
	}
	if err := p.usage.collect(ctx, data); err != nil {
		return sdk.Plan{}, err
	}
	used := p.usage.totals()
	for i, priority := range p.priorities(used) {
		if err := p.group(&c.groups[i], used[i], priority); err != nil {
			return sdk.Plan{}, err
		}
	}
	p.tell(used)
	p.out.State, err = p.after.bytes()
	return p.out, err
}

// arguments are those of a manual run.
func (p *planner) arguments(args map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if name != "all" || args[name] != "yes" {
			return fmt.Errorf("there is no argument %s=%.80s; all=yes sets all priorities again, also those that were set already", name, args[name])
		}
		p.all = true
	}
	return nil
}

// group plans what one group gets.
func (p *planner) group(g *group, used *big.Rat, priority int64) error {
	p.gauge(g, used, priority)
	values := g.values()
	values[priorityHolder] = strconv.FormatInt(priority, 10)
	load := payload{Format: format, Priority: priority}
	for _, c := range g.commands {
		load.Commands = append(load.Commands, c.fill(values))
	}
	summary := fmt.Sprintf("priority %d of %d to %d, usage %s", priority, p.min, p.max, decimal(used))
	if g.read != nil {
		load.Read, load.Pattern = g.read.command.fill(values), g.read.pattern
		summary += ", unless it is so already"
	} else {
		digest := load.digest()
		was := p.before.Set[g.name]
		if was.Digest == digest && !p.all && !p.stale(was) {
			p.after.Set[g.name] = was
			p.unchanged("%s: %s: set at %s", g.name, summary, was.At.Format(time.RFC3339))
			return nil
		}
		p.after.Set[g.name] = last{digest, p.now.UTC().Truncate(time.Second)}
	}
	bytes, err := json.Marshal(load)
	if err != nil {
		return err
	}
	p.out.Effects = append(p.out.Effects, sdk.Effect{Name: "group=" + g.name, Summary: summary, Payload: bytes, Show: load.show()})
	return nil
}

// stale reports whether something was set so long ago that it is set again.
func (p *planner) stale(was last) bool { return p.refresh > 0 && p.now.Sub(was.At) >= p.refresh }

// show is the payload for people.
func (p *payload) show() string {
	var b strings.Builder
	for _, c := range p.Commands {
		fmt.Fprintln(&b, strings.Join(c, " "))
	}
	if p.Read != nil {
		fmt.Fprintf(&b, "read back: %s\n", strings.Join(p.Read, " "))
	}
	return b.String()
}

func (p *planner) unchanged(text string, args ...any) {
	if p.asIs++; p.asIs <= maxAsIs {
		p.note(text, args...)
	}
}

func (p *planner) note(text string, args ...any) {
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(text, args...))
}

// gauge shows a group as AUDITOR's plugin does.
func (p *planner) gauge(g *group, used *big.Rat, priority int64) {
	value, _ := used.Float64()
	if len(p.out.Gauges) >= 2*maxGauged || math.IsInf(value, 0) {
		return
	}
	labels := map[string]string{"group": g.name}
	p.out.Gauges = append(p.out.Gauges, sdk.Gauge{Name: "resource_usage", Labels: labels, Value: value}, sdk.Gauge{Name: "priority", Labels: labels, Value: float64(priority)})
}

// tell adds the notes about all groups.
func (p *planner) tell(used []*big.Rat) {
	if more := p.asIs - maxAsIs; more > 0 {
		p.note("and %d more groups whose priority was set already", more)
	}
	var none []string
	for i, r := range used {
		if r.Sign() == 0 {
			none = append(none, p.groups[i].name)
		}
	}
	switch {
	case len(none) == len(used):
		p.note("no group of the mapping has used anything %s: all get %d", p.window(), p.min)
	case len(none) > 0:
		p.note("without usage %s: %s", p.window(), listed(none))
	}
	p.tellUnmapped()
	p.tellRecords()
	p.tellSources()
	if len(p.groups) > maxGauged {
		p.note("only the first %d groups have metrics", maxGauged)
	}
}

func (p *planner) window() string {
	if p.usage.from == record.None {
		return "ever"
	}
	return "since " + p.usage.from.String()
}

// tellUnmapped lists groups that have used something and get no priority.
func (p *planner) tellUnmapped() {
	var list []string
	for _, name := range p.usage.unmapped() {
		if r := p.usage.others[name].total(); r.Sign() > 0 {
			list = append(list, fmt.Sprintf("%s (%s)", cut(name), decimal(r)))
		}
	}
	for i := 0; i < min(len(list), maxListed); i += maxListed / 4 {
		p.note("with usage and not in the mapping: %s", strings.Join(list[i:min(i+maxListed/4, len(list))], ", "))
	}
	if len(list) > maxListed {
		p.note("and %d more groups are not in the mapping", len(list)-maxListed)
	}
	if p.usage.more > 0 {
		p.note("and %d records of still more groups that are not in the mapping", p.usage.more)
	}
}

// tellRecords tells of records that count otherwise than one might think.
func (p *planner) tellRecords() {
	u := p.usage
	for _, name := range slices.Sorted(maps.Keys(u.lacks)) {
		p.note("%d records have %s without the score %s; it counts as 1", u.lacks[name], cut(name), cut(p.components[name]))
	}
	if u.idle > 0 {
		p.note("%d records have none of the components %s and do not count", u.idle, listed(slices.Sorted(maps.Keys(p.components))))
	}
	if u.bare > 0 {
		p.note("%d records have no meta key %s and do not count", u.bare, cut(p.groupMeta))
	}
}

// late is how far a source may be behind before people are told.
const late = record.Hour

func (p *planner) tellSources() {
	n := 0
	for _, origin := range slices.Sorted(maps.Keys(p.usage.ends)) {
		end := p.usage.ends[origin]
		if p.usage.now-end < late {
			continue
		}
		if n++; n <= maxSources {
			p.note("%s is complete up to %s only; what ran later is missing from the usage", origin, end)
		}
	}
	if n > maxSources {
		p.note("and %d more sources are not complete", n-maxSources)
	}
}

// listed are names in a note.
func listed(names []string) string {
	text := make([]string, 0, maxListed+1)
	for i, name := range names {
		if i == maxListed {
			text = append(text, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		text = append(text, cut(name))
	}
	return strings.Join(text, ", ")
}

// cut is the beginning of a name.
func cut(s string) string { return text.Clip(s, maxWord) }
