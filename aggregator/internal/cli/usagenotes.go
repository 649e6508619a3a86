package cli

import (
	"fmt"
	"strings"
)

// notes are what people must know of an answer to read its table rightly.
func (u *apiUsage) notes() []string {
	notes := []string{u.windowNote()}
	notes = append(notes, u.lackNotes()...)
	if u.Several > 0 {
		notes = append(notes, fmt.Sprintf("%s more than one value for %s: the first counts.", have(u.Several, "record"), strings.Join(u.By, " or ")))
	}
	return append(notes, u.Complete.notes()...)
}

func (u *apiUsage) windowNote() string {
	text := fmt.Sprintf("From %s to %s", instant(&u.Window.From), instant(&u.Window.To))
	if u.Compared != nil {
		text += fmt.Sprintf(", compared with %s to %s", instant(&u.Compared.From), instant(&u.Compared.To))
		if u.Bucket != nil {
			text += " (the table has the difference without -bucket)"
		}
	}
	text += " UTC"
	if u.Bucket != nil && u.Zone != "UTC" {
		text += "; " + *u.Bucket + "s are those of " + u.Zone
	}
	if u.Credit == "stop" {
		text += "; all of a run is credited to its stop"
	}
	if len(u.Groups) == 0 {
		text += ": nothing ran"
	}
	return text + "."
}

// lackNotes are about scores that some of a component lacks.
func (u *apiUsage) lackNotes() (notes []string) {
	for i := range u.Measures {
		m := &u.Measures[i]
		if m.Lacking == nil || m.Component == nil || m.Score == nil {
			continue
		}
		unit := ""
		if m.Unit != nil {
			unit = " " + *m.Unit + "s"
		}
		notes = append(notes, fmt.Sprintf("%s%s of %s have no score %s and are not in %s.", short(m.Lacking.Total), unit, *m.Component, *m.Score, m.Name))
	}
	return notes
}

func (c *apiComplete) notes() (notes []string) {
	if c.Open > 0 {
		notes = append(notes, fmt.Sprintf("%s not ended and count up to now, or as far as their source is known.", have(c.Open, "record")))
	}
	if c.Limited {
		return append(notes, "These are the records that you may see; how complete they are is not told.")
	}
	if c.CompleteTo != nil {
		notes = append(notes, "The records are complete to "+instant(c.CompleteTo)+" UTC.")
	}
	for _, s := range c.Sources {
		if s.Silent {
			notes = append(notes, fmt.Sprintf("Silent: %s, complete to %s.", s.Source, instant(s.CompleteTo)))
		}
	}
	for _, g := range c.Gaps {
		notes = append(notes, fmt.Sprintf("Missing: what %s had from %s to %s: %s.", g.Source, instant(g.From), instant(g.To), g.Reason))
	}
	if c.Quarantined != nil && *c.Quarantined > 0 {
		notes = append(notes, fmt.Sprintf("%s in quarantine and %s counted: see bursar quarantine list.", are(*c.Quarantined, "job"), map[bool]string{true: "is not", false: "are not"}[*c.Quarantined == 1]))
	}
	return notes
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
