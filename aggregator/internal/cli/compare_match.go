package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// The kinds of results.
const (
	kindEqual        = "equal"
	kindMissingHere  = "missing here"
	kindMissingThere = "missing there"
	kindDifferent    = "different"
	kindInvalid      = "invalid there"
)

// The causes of differences; "" is unknown.
const (
	causeDeleted     = "deleted here"
	causeArchived    = "archived here"
	causeWithdrawn   = "withdrawn here"
	causeStopOnly    = "only its stop is here"
	causeElsewhere   = "here outside the window"
	causeArrived     = "arrived during the comparison"
	causeQuarantined = "quarantined here"
	causeMapping     = "left out by the mapping of -config"
	causeOtherRun    = "another run of the job"
	causeOpenHere    = "still running here"
	causeOpenThere   = "still running there"
	causeRecent      = "stopped in the last 10 minutes"
	causeNotLooked   = "not looked up, since too many are missing"
)

// compareRecent is how recent a stop is that one side may not have yet.
const compareRecent = 10 * record.Minute

// compareJobs compares both sides job by job.
func (c *comparison) compareJobs(ctx context.Context) error {
	for part, err := range c.spool.eachPart() {
		if err != nil {
			return err
		}
		jobs := map[string][]*comparand{}
		for _, e := range part {
			jobs[jobID(e.ID)] = append(jobs[jobID(e.ID)], e)
		}
		var missing []*comparand
		for _, job := range slices.Sorted(maps.Keys(jobs)) {
			missing = append(missing, c.compareJob(jobs[job])...)
		}
		if err := c.lookUpMissing(ctx, missing, jobs); err != nil {
			return err
		}
	}
	return nil
}

// compareJob compares the runs of a job: those of one id, then those that began together,
// since both sides may form ids in other ways, and then other runs of one id. It returns
// what is missing here.
func (c *comparison) compareJob(job []*comparand) (missing []*comparand) {
	var rest []*comparand
	for _, e := range c.byID(job) {
		here, there, invalid, leftOut := e[sideHere], e[sideThere], e[sideInvalid], e[sideLeftOut]
		switch {
		case there == nil && invalid != nil:
			c.addToSums(kindInvalid, nil, here)
			c.addDifference(kindInvalid, "not a valid record", invalid, invalid.note)
		case there == nil && leftOut != nil:
			if c.leftOut++; here != nil {
				c.missingThere(here, causeMapping)
			}
		case here != nil && there != nil && (c.listed || !areDisjoint(&here.Record, &there.Record)):
			c.compareRecords(there, here, "")
		default:
			rest = append(rest, slices.DeleteFunc([]*comparand{here, there}, func(e *comparand) bool { return e == nil })...)
		}
	}
	for _, e := range c.matchRuns(rest) {
		switch {
		case e.side == sideThere && c.isInWindow(&e.Record):
			missing = append(missing, e)
		case e.side == sideHere && !(c.listed && e.Open()): // a list is of what ended
			c.missingThere(e, c.oneSidedCause(e, job))
		}
	}
	return missing
}

func (c *comparison) missingThere(here *comparand, cause string) {
	if c.isInWindow(&here.Record) {
		c.addToSums(kindMissingThere, nil, here)
		c.addDifference(kindMissingThere, cause, here, "")
	}
}

// byID groups the entries of a job by their id and side. Of a record that one side gave
// several times the last counts, but not a running one where it has ended; of a list the
// first.
func (c *comparison) byID(job []*comparand) map[string]*[4]*comparand {
	ids := map[string]*[4]*comparand{}
	for _, e := range job {
		at := ids[e.ID]
		if at == nil {
			at = &[4]*comparand{}
			ids[e.ID] = at
		}
		switch before := at[e.side]; {
		case before != nil && e.side == sideThere && c.listed:
			c.addDifference(kindInvalid, "id given more than once; the first amount counts", e, e.note)
		case before == nil || !e.Open() || before.Open():
			at[e.side] = e
		}
	}
	return ids
}

// areDisjoint reports whether one of two runs had ended when the other began.
func areDisjoint(a, b *record.Record) bool {
	return !startsNear(a.Start, b.Start) && (!a.Open() && a.Stop <= b.Start || !b.Open() && b.Stop <= a.Start)
}

func startsNear(a, b record.Time) bool {
	return a != record.None && b != record.None && max(a, b)-min(a, b) <= sameStart
}

// jobID is the id of a run without what tells runs of a job apart behind it: the time in
// seconds, or behind an @ in milliseconds.
func jobID(id string) string {
	for mark, unit := range map[string]record.Time{"-": record.Second, "@": record.Second / 1000} {
		at := strings.LastIndex(id, mark)
		n, err := strconv.ParseInt(id[at+1:], 10, 64)
		const years = 365 * record.Day
		if at > 0 && err == nil && n >= int64(30*years/unit) && n < int64(130*years/unit) {
			return id[:at]
		}
	}
	return id
}

// matchRuns judges runs of a job that began together, and then those of one id. It returns
// the others.
func (c *comparison) matchRuns(runs []*comparand) (rest []*comparand) {
	slices.SortFunc(runs, func(a, b *comparand) int { return cmp.Or(cmp.Compare(a.Start, b.Start), strings.Compare(a.ID, b.ID)) })
	done := map[*comparand]bool{}
	match := func(cause string, a, b *comparand) {
		if a.side == sideHere {
			a, b = b, a
		}
		done[a], done[b] = true, true
		c.compareRecords(a, b, cause)
	}
	var last *comparand // that is not matched
	for _, e := range runs {
		if last != nil && last.side != e.side && startsNear(last.Start, e.Start) {
			match("", last, e)
			last = nil
			continue
		}
		last = e
	}
	ids := map[string]*comparand{}
	for _, e := range runs {
		if other := ids[e.ID]; other != nil && !done[e] {
			match(causeOtherRun, other, e)
		} else if !done[e] {
			ids[e.ID] = e
		}
	}
	return slices.DeleteFunc(slices.Clone(runs), func(e *comparand) bool { return done[e] })
}

// oneSidedCause is why a record is on one side only, as far as the records show it.
func (c *comparison) oneSidedCause(e *comparand, runs []*comparand) string {
	other := func(o *comparand) bool { return o.side <= sideThere && o.ID != e.ID && !startsNear(o.Start, e.Start) }
	suffix := e.ID[len(jobID(e.ID)):]
	switch {
	case suffix != "" && (suffix == string(record.AppendSuffix(nil, &e.Record)) || suffix == "@"+strconv.FormatInt(int64(e.Start)/1000, 10)), slices.ContainsFunc(runs, other):
		return causeOtherRun
	case e.Start != record.None && e.Open():
		return map[side]string{sideHere: causeOpenHere, sideThere: causeOpenThere}[e.side]
	case !e.Open() && e.Stop > c.began-compareRecent && e.Stop <= c.ended:
		return causeRecent
	}
	return ""
}

// compareRecords compares the two records of a run.
func (c *comparison) compareRecords(there, here *comparand, cause string) {
	switch {
	case c.listed && !here.Open() && !c.isInWindow(&here.Record):
		c.addToSums(kindMissingHere, there, nil)
		c.addDifference(kindMissingHere, causeElsewhere, there, "stop "+timeText(here.Stop))
		return
	case !c.isInWindow(&here.Record) && !c.isInWindow(&there.Record):
		return
	}
	fields := c.differingFields(there, here)
	if len(fields) == 0 {
		c.addToSums(kindEqual, there, here)
		c.results[kindEqual]++
		return
	}
	c.addToSums(kindDifferent, there, here)
	var texts []string
	for _, f := range fields {
		if _, known := c.fields[f.name]; known || len(c.fields) < compareGroups {
			c.fields[strings.Clone(f.name)]++
		}
		texts = append(texts, f.name+" "+f.there+" → "+f.here)
	}
	switch {
	case cause != "":
	case here.Open() && !there.Open(), c.listed && here.Open():
		cause = causeOpenHere
	case there.Open() && !here.Open() && !c.listed:
		cause = causeOpenThere
	}
	c.addDifference(kindDifferent, cause, here, strings.Join(texts, "; "))
}

// fieldDifference is a field with the values of both sides.
type fieldDifference struct{ name, there, here string }

// differingFields are the fields in which two records differ.
func (c *comparison) differingFields(there, here *comparand) (list []fieldDifference) {
	if c.listed {
		a, b := c.componentUsage(there), c.componentUsage(here)
		if b == nil || new(big.Rat).Abs(new(big.Rat).Sub(a, b)).Cmp(roundingTolerance(there.note)) > 0 {
			list = append(list, fieldDifference{c.opt.component, there.note, cmp.Or(v1.Rat(b).String(), "–")})
		}
		return list
	}
	add := func(name, a, b string) {
		if a != b && !c.isIgnored(name) {
			list = append(list, fieldDifference{name, cutToWidth(cmp.Or(a, "–"), 60), cutToWidth(cmp.Or(b, "–"), 60)})
		}
	}
	for _, t := range []struct {
		name string
		a, b record.Time
	}{{"start", there.Start, here.Start}, {"stop", there.Stop, here.Stop}} {
		const tolerance = record.Second / 1000 // archives have milliseconds
		if (t.a == record.None) != (t.b == record.None) || max(t.a, t.b)-min(t.a, t.b) >= tolerance {
			add(t.name, timeText(t.a), timeText(t.b))
		}
	}
	for _, key := range namesOf(there.Meta, here.Meta, func(e record.MetaEntry) string { return e.Key }) {
		add("meta."+key, v1.JoinList(there.Meta.Get(key)...), v1.JoinList(here.Meta.Get(key)...))
	}
	for _, name := range namesOf(there.Components, here.Components, func(o record.Component) string { return o.Name }) {
		add(name, amountText(&there.Record, name), amountText(&here.Record, name))
	}
	return list
}

// namesOf are the names of two lists, each once.
func namesOf[T any](a, b []T, name func(T) string) []string {
	var names []string
	for _, one := range slices.Concat(a, b) {
		names = append(names, name(one))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func timeText(t record.Time) string {
	if t == record.None {
		return "–"
	}
	return t.String()
}

// amountText is all that a record says of components of a name.
func amountText(r *record.Record, name string) string {
	var parts []string
	for i := range r.Components {
		one := &r.Components[i]
		if one.Name != name {
			continue
		}
		text := []string{strconv.FormatInt(one.Amount, 10)}
		if one.Kind == record.Total {
			text = append(text, "in total")
		}
		scores := slices.SortedStableFunc(slices.Values(one.Scores), func(a, b record.Score) int { return strings.Compare(a.Name, b.Name) })
		for _, s := range scores {
			text = append(text, fmt.Sprintf("× %s %v", s.Name, s.Value))
		}
		parts = append(parts, strings.Join(text, " "))
	}
	return strings.Join(parts, " + ")
}

// roundingTolerance is by how much an amount may differ that was rounded to its digits.
func roundingTolerance(amount string) *big.Rat {
	_, behind, _ := strings.Cut(amount, ".")
	if strings.ContainsAny(amount, "eE") {
		return new(big.Rat)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(behind))), nil)
	return new(big.Rat).SetFrac(big.NewInt(1), power.Mul(power, big.NewInt(2)))
}
