package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// MinuteLayout is how times stand in notes.
const MinuteLayout = "2006-01-02 15:04"

// Of puts what notes are of, such as a period or a budget, before each of them. Notes begin
// with words of their own, never with a name, so that they can go on in lower case.
func Of(subject string, notes []string) []string {
	out := make([]string, len(notes))
	for i, note := range notes {
		out[i] = subject + ": " + withFirst(unicode.ToLower, note)
	}
	return out
}

// UsageNotes are what people must know of an answer to read its figures rightly: of when
// records are known, what its measures leave out, what energy rests on, and how complete it
// is. unit is the unit of time that was asked for, hour or second.
func UsageNotes(a *v1.Usage, unit string) []string {
	notes := KnownNotes(&a.UsageAbout)
	var without []string
	for i := range a.Measures {
		if m := &a.Measures[i]; m.Component != "" && m.Score == "" && m.Without != nil && *m.Without > 0 {
			without = append(without, fmt.Sprintf("%s without %s", Count(*m.Without), m.Name))
		}
	}
	if without != nil {
		notes = append(notes, fmt.Sprintf("Of %s: %s.", Plural(a.Records, "record"), strings.Join(without, ", ")))
	}
	for i := range a.Measures {
		m := &a.Measures[i]
		if note := LackingNote(m, unit); note != "" {
			notes = append(notes, note)
		}
		if m.Shared && m.Kind == "ratio" {
			notes = append(notes, fmt.Sprintf("Figures of %s by %s are parts of the capacity of all clusters that each row can use; rows share clusters, so each figure is a share of them. For how full clusters are, group by cluster.", m.Name, strings.Join(a.By, ", ")))
		}
	}
	notes = append(notes, ValueNotes(a)...)
	if a.Several > 0 {
		notes = append(notes, fmt.Sprintf("%s more than one value of %s; the first counts.", Have(a.Several, "record"), strings.Join(a.By, " or ")))
	}
	return append(notes, CompleteNotes(&a.Complete, a.Zone)...)
}

// ValueNotes say what the measures of an answer leave out because it has no price, power or
// factor, and whether energy and CO2 are measured or modelled.
func ValueNotes(a *v1.Usage) (notes []string) {
	for i := range a.Measures {
		m := &a.Measures[i]
		for _, part := range m.Unpriced {
			if part.Component != "energy" || a.Energy == nil || m.Unit != "kg CO2e" { // the note about energy says it, once
				notes = append(notes, UnpricedNote(v1.Figure(&part.Total), part.UnitText(), part.Component, string(m.Unit), m.Name)...)
			}
		}
	}
	return append(notes, a.Energy.Notes()...)
}

// LackingNote says what a measure leaves out because it has no score or no capacity, over
// time in a unit, hour or second; "" where it leaves out nothing.
func LackingNote(m *v1.Measure, unit string) string {
	much := ""
	if m.Lacking != nil && positive(v1.Figure(&m.Lacking.Total)) {
		much = strings.TrimSpace(Number("", v1.Figure(&m.Lacking.Total))+" "+m.LackingUnit(unit)) + " are not in " + m.Name
	}
	switch {
	case m.Score != "" && m.Without != nil && *m.Without > 0:
		if much != "" {
			much = ": " + much
		}
		return fmt.Sprintf("%s %s but no score %s%s.", Have(*m.Without, "record"), m.Component, m.Score, much)
	case much == "":
		return ""
	}
	return much + ": no capacity configured or reported for that time and cluster; see bursar capacity."
}

// UnpricedNote says that what was used of a component has no price, power or factor, and is
// not in something in a unit, such as the measure cost or a budget in kWh; none of nothing.
func UnpricedNote(used v1.Cell, usedUnit, component, unit, of string) []string {
	if !positive(used) {
		return nil
	}
	if measure, what, is := v1.EnergyOf(component); is { // of a price of energy or CO2
		name := map[string]string{"energy": "the energy of ", "co2": "the CO2 of "}[measure]
		return UnpricedNote(used, usedUnit, what, v1.EnergyUnit(measure), name+of)
	}
	much := strings.TrimSpace(Number("", used) + " " + usedUnit)
	if stem, _, _ := strings.Cut(usedUnit, "-"); !strings.EqualFold(stem, strings.TrimSuffix(component, "s")) { // core-hours say of what they are
		much += " of " + component
	}
	lack := "price"
	switch {
	case component == "energy" && unit == "kg CO2e":
		lack = "CO2 factor"
	case unit == "kWh" || unit == "kg CO2e":
		lack = "known power"
	}
	return []string{fmt.Sprintf("%s have no %s at their time and are not in %s.", much, lack, of)}
}

// positive reports whether a figure is known and above zero.
func positive(c v1.Cell) bool { return c.Number() != nil && c.Number().Sign() > 0 }

// WindowNote says of which window an answer is, beside which other one, and how it credits.
func WindowNote(from, to v1.Time, other *v1.UsageSpan, zone, credit string) string {
	span := func(from, to v1.Time) string { return Instant(from, zone) + " to " + Instant(to, zone) }
	text := "From " + span(from, to)
	if other != nil {
		text += ", compared with " + span(other.From, other.To)
	}
	text += " " + zone
	if credit == "stop" {
		text += "; all of a run is credited to its stop"
	}
	return text + "."
}

// KnownNotes say of which part of an answer's window records are known, of all sources and of
// single ones; none where that is all of it.
func KnownNotes(a *v1.UsageAbout) (notes []string) {
	if a.Comparable != nil && !*a.Comparable {
		notes = append(notes, "Sums are not compared: records are not known for all of both periods.")
	}
	return append(notes, SpanNotes(a.Known, a.Window.From, a.Window.To, a.Zone)...)
}

// SpanNotes say which part of a period is known, from a time to another; nil is none of it.
func SpanNotes(known *v1.KnownSpan, begin, end v1.Time, zone string) (notes []string) {
	if known == nil {
		return []string{"No records are known for this period: its usage is unknown, not 0."}
	}
	from, to := minute(known.From, zone), minute(known.To, zone)
	begins, goesOn := known.From.After(begin.Time), known.To.Before(end.Time)
	until := ""
	if goesOn {
		until = to
	}
	switch {
	case begins:
		notes = append(notes, knownFrom(from, until, zone)+"; the rest of the period is unknown, not 0, and does not count in averages, utilization and comparisons.")
	case goesOn:
		notes = append(notes, "The period goes on: averages, utilization and comparisons are of the time up to "+to+" "+zone+".")
	}
	var later []string
	for _, s := range known.Later {
		later = append(later, s.Source+" from "+minute(s.From, zone)+" on")
	}
	if later != nil {
		notes = append(notes, "All runs are known of "+strings.Join(later, ", of ")+"; figures of the time before may lack some.")
	}
	return notes
}

func knownFrom(from, until, zone string) string {
	span := from + " " + zone + " on"
	if until != "" {
		span = from + " to " + until + " " + zone
	}
	return "Records are known from " + span
}

// PeriodNotes are those of an answer about a period, and of one about the period before where
// that has records: which part of them is known, whether their sums are compared, and how
// complete the first is. Each begins with the name of its period.
func PeriodNotes(now, before *v1.Usage, name, nameBefore string, compared bool) []string {
	about := now.UsageAbout
	if before.Records > 0 {
		about.Comparable = &compared
	}
	notes := Of(name, append(KnownNotes(&about), CompleteNotes(&now.Complete, now.Zone)...))
	if before.Records > 0 && !compared {
		notes = append(notes, Of(nameBefore, KnownNotes(&before.UsageAbout))...)
	}
	return notes
}

// CompleteNotes are what is not in an answer, and up to when it is complete, with times by
// the clock of a zone.
func CompleteNotes(k *v1.Complete, zone string) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch {
	case k.Open == 1:
		add("1 record is still open; it counts up to now, or as far as its source has reported.")
	case k.Open > 1:
		add("%s are still open; they count up to now, or as far as their source has reported.", Plural(k.Open, "record"))
	}
	if k.Limited {
		add("Only records that the reader may see are included; completeness is not shown.")
		return notes
	}
	if !k.CompleteTo.IsZero() {
		add("Records are complete to %s %s.", minute(k.CompleteTo, zone), zone)
	}
	for _, s := range k.Sources {
		if s.Silent {
			add("Source %s is silent; its records are known to %s %s.", s.Source, minute(s.CompleteTo, zone), zone)
		}
	}
	for _, u := range k.Unknown {
		add("%s", unknownNote(u.Source, u.Reason, u.Days))
	}
	for _, g := range k.Gaps {
		add("Data of %s from %s to %s %s are missing: %s.", g.Source, minute(g.From, zone), minute(g.To, zone), zone, g.Reason)
	}
	for _, m := range k.Missing {
		add("%s of %s from %s to %s %s missing; see bursar completeness.", Plural(m.Runs, "run"), m.Source, minute(m.From, zone), minute(m.To, zone), zone)
	}
	for _, f := range k.Findings {
		add("%s of %s: %s, for example %s; see bursar status.", Plural(f.Count, "record"), f.Source, f.What, f.Example)
	}
	if k.Quarantined != nil && *k.Quarantined > 0 {
		add("%s quarantined and not counted; see bursar quarantine list.", Are(*k.Quarantined, "job"))
	}
	return notes
}

// unknownNote says that it is unknown how complete the records of a source are, for one of
// the reasons that /v1 gives. days is how many days were not counted.
func unknownNote(source, reason string, days int64) string {
	switch reason {
	case "no_source":
		return "Completeness unknown: no source has reported yet."
	case "no_data":
		return fmt.Sprintf("Completeness unknown: nothing received from %s yet.", source)
	case "no_watermark":
		if source == "pushed" {
			return "Completeness unknown: clients that push records do not report up to when they are complete."
		}
		return fmt.Sprintf("Completeness unknown: %s does not report up to when it is complete.", source)
	case "not_counted":
		return fmt.Sprintf("Completeness not checked: %s of %s not compared with the scheduler; see bursar completeness.", Plural(days, "day"), source)
	}
	return fmt.Sprintf("Completeness of %s unknown: %s.", source, reason)
}

// BudgetNotes are what people must know of budgets to read their figures rightly.
func BudgetNotes(list []v1.Budget) (notes []string) {
	known := map[string][]string{} // what is known, and the budgets of which it is
	for i := range list {
		b := &list[i]
		notes = append(notes, oneBudgetNotes(b)...)
		if b.BudgetStanding != nil && !b.KnownFrom.IsZero() {
			from := knownFrom(minute(b.KnownFrom, b.Period.Zone), "", b.Period.Zone)
			known[from] = append(known[from], b.Name)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(known)) {
		what := "Budgets " + strings.Join(known[from], ", ")
		if len(known[from]) == 1 {
			what = "Budget " + known[from][0]
		}
		notes = append(notes, Of(what, []string{from + "; what was used before is unknown, not 0, and is not in used."})...)
	}
	return notes
}

func oneBudgetNotes(b *v1.Budget) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if b.Problem != "" || b.BudgetStanding == nil {
		return Of("Budget "+b.Name, []string{fmt.Sprintf("No figures: %s.", strings.TrimSuffix(string(b.Problem), "."))})
	}
	if b.Used == nil {
		add("What is used is unknown, not 0.")
	} else if b.Period.State != "future" && !positive(v1.Figure(b.Used)) && b.Running+b.Unlimited == 0 {
		add("Nothing was used in the period by %s.", Conditions(b.Match))
	}
	if b.Unlimited > 0 {
		add("%s no known time limit, so more may be used than is reserved.", Have(b.Unlimited, "running record"))
	}
	switch {
	case b.Unvalued && b.Energy != nil:
		add("The %s of some running records are not known yet and are not reserved.", b.Unit)
	case b.Unvalued:
		add("Some of what running records may use has no price and is not reserved.")
	}
	for _, u := range b.Unpriced {
		if u.Component == "energy" && b.Energy != nil { // the note about energy says it, once
			continue
		}
		part := v1.MeasureUnpriced{Component: u.Component, Unit: v1.Text(strings.TrimPrefix(u.Unit, "unit"))}
		notes = append(notes, UnpricedNote(v1.Figure(&u.Used), part.UnitText(), u.Component, b.Unit, "what is used")...)
	}
	notes = append(notes, b.Energy.Notes()...)
	return Of("Budget "+b.Name, notes)
}

// SubscriptionNotes are what is in no share of principal investigators, and how complete the
// answer is.
func SubscriptionNotes(s *v1.Subscription) (notes []string) {
	if used := v1.Figure(&s.Unclaimed); positive(used) {
		notes = append(notes, fmt.Sprintf("%s %s were used by groups and users without a principal investigator and are in no share; see bursar directory -unclaimed.", Number(s.Unit, used), s.Unit))
	}
	for _, u := range s.Unpriced {
		notes = append(notes, fmt.Sprintf("%s of %s have no factor and are in no share.", Number("", v1.Figure(&u.Total)), u.Component))
	}
	notes = append(notes, SpanNotes(s.Known, s.Window.From, s.Window.To, s.Zone)...)
	return append(notes, CompleteNotes(&s.Complete, s.Zone)...)
}

// minute is a time in a note by the clock of a zone.
func minute(t v1.Time, zone string) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.In(Zone(zone)).Format(MinuteLayout)
}

// Zone is the zone of a name; UTC where that is not known here.
func Zone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return time.UTC
	}
	return zone
}

// IsPartial reports whether a bucket has figures and is not a whole one.
func IsPartial(a *v1.Usage, bucket int) bool {
	if bucket >= len(a.Partial) || !a.Partial[bucket] {
		return false
	}
	for i := range a.Measures {
		for at := bucket; at < len(a.Measures[i].Values); at += len(a.Partial) {
			if a.Measures[i].Values[at] != nil {
				return true
			}
		}
	}
	return false
}

// PartialLabel is the label of a bucket, marked where it is not a whole one.
func PartialLabel(a *v1.Usage, bucket int) string {
	if IsPartial(a, bucket) {
		return a.Labels[bucket] + PartialMark
	}
	return a.Labels[bucket]
}

// PartialMark ends the label of a bucket that is not a whole one.
const PartialMark = " (partial)"
