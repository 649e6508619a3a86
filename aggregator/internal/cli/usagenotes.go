package cli

import (
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// notes are what people must know of an answer to read its table rightly.
func (u *usageAnswer) notes() []string {
	notes := []string{u.windowNote()}
	if note := report.KnownNote(&u.UsageAbout); note != "" {
		notes = append(notes, note)
	}
	notes = append(append(notes, u.lackNotes()...), u.Energy.Notes()...)
	if u.Several > 0 {
		notes = append(notes, fmt.Sprintf("%s more than one value for %s: the first counts.", have(int64(u.Several), "record"), strings.Join(u.By, " or ")))
	}
	return append(notes, report.Remarks(&u.Complete, u.Zone)...)
}

func (u *usageAnswer) windowNote() string {
	text := fmt.Sprintf("From %s to %s", instantIn(u.Window.From, u.Zone), instantIn(u.Window.To, u.Zone))
	if u.ComparedWith != nil {
		text += fmt.Sprintf(", compared with %s to %s", instantIn(u.ComparedWith.From, u.Zone), instantIn(u.ComparedWith.To, u.Zone))
		if u.Bucket != "" {
			text += " (the table has the difference without -bucket)"
		}
	}
	text += " " + u.Zone
	if u.Credit == "stop" {
		text += "; all of a run is credited to its stop"
	}
	if len(u.Groups) == 0 {
		text += ": nothing ran"
	}
	return text + "."
}

// lackNotes are about components that some records lack, and scores.
func (u *usageAnswer) lackNotes() (notes []string) {
	var without []string
	for i := range u.Measures {
		m := &u.Measures[i]
		for _, part := range m.Unpriced {
			if part.Component == "energy" && u.Energy != nil { // the note about energy says it, once
				continue
			}
			notes = append(notes, fmt.Sprintf("%s of %s have no %s and are not in %s.", strings.TrimSpace(rounded("", v1.Figure(&part.Total))+" "+part.UnitText()), part.Component, report.Unvalued(string(m.Unit), part.Component), m.Name))
		}
		if m.Kind == "ratio" && m.Lacking != nil {
			notes = append(notes, fmt.Sprintf("%s %s are not in %s: no capacity configured or reported for that time and cluster; see bursar capacity.", rounded("", v1.Figure(&m.Lacking.Total)), m.LackingUnit(or(u.unit, "hour")), m.Name))
		}
		if m.Shared && m.Kind == "ratio" {
			notes = append(notes, report.SharedNote(m.Name, strings.Join(u.By, ", ")))
		}
		switch {
		case m.Component == "" || m.Without == nil || *m.Without == 0:
		case m.Score == "":
			without = append(without, fmt.Sprintf("%d without %s", *m.Without, m.Name))
		default:
			notes = append(notes, lackNote(m))
		}
	}
	if without != nil {
		notes = append([]string{fmt.Sprintf("Of %s: %s.", plural(int(u.Records), "record"), strings.Join(without, ", "))}, notes...)
	}
	return notes
}

// lackNote says what is not in a measure, since it has no score.
func lackNote(m *v1.Measure) string {
	much := ""
	if m.Lacking != nil {
		much = ": " + rounded("", v1.Figure(&m.Lacking.Total))
		if unit := m.LackingUnit(""); unit != "" {
			much += " " + unit
		}
		much += " are not in " + m.Name
	}
	return fmt.Sprintf("%s %s but no score %s%s.", have(int64(*m.Without), "record"), m.Component, m.Score, much)
}

// have and are begin a sentence about a number of things.
func have(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing + " has"
	}
	return fmt.Sprintf("%d %ss have", n, thing)
}

func are(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return fmt.Sprintf("%d %ss are", n, thing)
}
