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

func (c *config) planPriorities(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (sdk.Plan, error) {
	p := planner{config: c, now: start.Now, usage: newUsage(c, start.Now), after: state{Format: format, Set: map[string]last{}}}
	var err error
	if p.before, err = readState(start.State); err != nil {
		return sdk.Plan{}, err
	}
	if err := p.readArguments(start.Arguments); err != nil {
		return sdk.Plan{}, err
	}
	if err := p.usage.collectRecords(ctx, data); err != nil {
		return sdk.Plan{}, err
	}
	used := p.usage.groupTotals()
	for i, priority := range p.prioritiesOf(used) {
		if err := p.planGroup(&c.groups[i], used[i], priority); err != nil {
			return sdk.Plan{}, err
		}
	}
	p.addSummaryNotes(used)
	p.out.State, err = p.after.encodeState()
	return p.out, err
}

// readArguments reads the arguments of a manual run.
func (p *planner) readArguments(args map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if name != "all" || args[name] != "yes" {
			return fmt.Errorf("there is no argument %s=%.80s; all=yes sets all priorities again, also those that were set already", name, args[name])
		}
		p.all = true
	}
	return nil
}

// planGroup plans what one group gets.
func (p *planner) planGroup(g *group, used *big.Rat, priority int64) error {
	p.addGauges(g, used, priority)
	values := g.placeholderValues()
	values[priorityHolder] = strconv.FormatInt(priority, 10)
	load := payload{Format: format, Priority: priority}
	for _, c := range g.commands {
		load.Commands = append(load.Commands, c.fillPlaceholders(values))
	}
	summary := fmt.Sprintf("priority %d of %d to %d, usage %s", priority, p.min, p.max, formatDecimal(used))
	if g.read != nil {
		load.Read, load.Pattern = g.read.command.fillPlaceholders(values), g.read.pattern
		summary += ", unless it is so already"
	} else {
		digest := load.payloadDigest()
		was := p.before.Set[g.name]
		if was.Digest == digest && !p.all && !p.isStale(was) {
			p.after.Set[g.name] = was
			p.noteUnchanged("%s: %s: set at %s", g.name, summary, was.At.Format(time.RFC3339))
			return nil
		}
		p.after.Set[g.name] = last{digest, p.now.UTC().Truncate(time.Second)}
	}
	bytes, err := json.Marshal(load)
	if err != nil {
		return err
	}
	p.out.Effects = append(p.out.Effects, sdk.Effect{Name: "group=" + g.name, Summary: summary, Payload: bytes, Show: load.payloadText()})
	return nil
}

// isStale reports whether something was set so long ago that it is set again.
func (p *planner) isStale(was last) bool { return p.refresh > 0 && p.now.Sub(was.At) >= p.refresh }

// payloadText is the payload for people.
func (p *payload) payloadText() string {
	var b strings.Builder
	for _, c := range p.Commands {
		fmt.Fprintln(&b, strings.Join(c, " "))
	}
	if p.Read != nil {
		fmt.Fprintf(&b, "read back: %s\n", strings.Join(p.Read, " "))
	}
	return b.String()
}

func (p *planner) noteUnchanged(text string, args ...any) {
	if p.asIs++; p.asIs <= maxAsIs {
		p.addNote(text, args...)
	}
}

func (p *planner) addNote(text string, args ...any) {
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(text, args...))
}

// addGauges adds the gauges of a group as AUDITOR's plugin does.
func (p *planner) addGauges(g *group, used *big.Rat, priority int64) {
	value, _ := used.Float64()
	if len(p.out.Gauges) >= 2*maxGauged || math.IsInf(value, 0) {
		return
	}
	labels := map[string]string{"group": g.name}
	p.out.Gauges = append(p.out.Gauges, sdk.Gauge{Name: "resource_usage", Labels: labels, Value: value}, sdk.Gauge{Name: "priority", Labels: labels, Value: float64(priority)})
}

// addSummaryNotes adds the notes about all groups.
func (p *planner) addSummaryNotes(used []*big.Rat) {
	if more := p.asIs - maxAsIs; more > 0 {
		p.addNote("and %d more groups whose priority was set already", more)
	}
	var none []string
	for i, r := range used {
		if r.Sign() == 0 {
			none = append(none, p.groups[i].name)
		}
	}
	switch {
	case len(none) == len(used):
		p.addNote("no group of the mapping has used anything %s: all get %d", p.windowText(), p.min)
	case len(none) > 0:
		p.addNote("without usage %s: %s", p.windowText(), listNames(none))
	}
	p.tellUnmapped()
	p.tellRecords()
	p.tellSources()
	if len(p.groups) > maxGauged {
		p.addNote("only the first %d groups have metrics", maxGauged)
	}
}

func (p *planner) windowText() string {
	if p.usage.from == record.None {
		return "ever"
	}
	return "since " + p.usage.from.String()
}

// tellUnmapped lists groups that have used something and get no priority.
func (p *planner) tellUnmapped() {
	var list []string
	for _, name := range p.usage.unmappedGroups() {
		if r := p.usage.others[name].totalUsage(); r.Sign() > 0 {
			list = append(list, fmt.Sprintf("%s (%s)", cutName(name), formatDecimal(r)))
		}
	}
	for i := 0; i < min(len(list), maxListed); i += maxListed / 4 {
		p.addNote("with usage and not in the mapping: %s", strings.Join(list[i:min(i+maxListed/4, len(list))], ", "))
	}
	if len(list) > maxListed {
		p.addNote("and %d more groups are not in the mapping", len(list)-maxListed)
	}
	if p.usage.more > 0 {
		p.addNote("and %d records of still more groups that are not in the mapping", p.usage.more)
	}
}

// tellRecords tells of records that count otherwise than one might think.
func (p *planner) tellRecords() {
	u := p.usage
	for _, name := range slices.Sorted(maps.Keys(u.lacks)) {
		p.addNote("%d records have %s without the score %s; it counts as 1", u.lacks[name], cutName(name), cutName(p.components[name]))
	}
	if u.idle > 0 {
		p.addNote("%d records have none of the components %s and do not count", u.idle, listNames(slices.Sorted(maps.Keys(p.components))))
	}
	if u.bare > 0 {
		p.addNote("%d records have no meta key %s and do not count", u.bare, cutName(p.groupMeta))
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
			p.addNote("%s is complete up to %s only; what ran later is missing from the usage", origin, end)
		}
	}
	if n > maxSources {
		p.addNote("and %d more sources are not complete", n-maxSources)
	}
}

// listNames writes names for a note.
func listNames(names []string) string {
	text := make([]string, 0, maxListed+1)
	for i, name := range names {
		if i == maxListed {
			text = append(text, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		text = append(text, cutName(name))
	}
	return strings.Join(text, ", ")
}

// cutName is the beginning of a name.
func cutName(s string) string { return text.Clip(s, maxWord) }
