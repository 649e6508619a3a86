package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Line is one measured number.
type Line struct {
	Name string `json:"name"`
	What string `json:"what"`
	// Target is what the design promises, for people; empty when nothing is.
	Target string `json:"target,omitempty"`
	Unit   string `json:"unit"`
	// Measured is the median of the runs, or what What says.
	Measured float64 `json:"measured"`
	// Low and High are the spread: the least and the greatest of the runs, or
	// the percentiles that Spread names.
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Spread string  `json:"spread,omitempty"`
	Runs   int     `json:"runs"`
	// Reached says whether the target is; nil without one.
	Reached *bool `json:"reached,omitempty"`
	// Skipped is why nothing was measured.
	Skipped string `json:"skipped,omitempty"`
	Note    string `json:"note,omitempty"`
}

// goal is a target: a bound from below or from above.
type goal struct {
	least, most float64
}

func atLeast(v float64) goal   { return goal{least: v, most: math.Inf(1)} }
func goalUnder(v float64) goal { return goal{least: math.Inf(-1), most: v} }

// overRuns makes a line of the results of several runs.
func overRuns(name, what, unit string, g goal, values []float64) Line {
	l := Line{Name: name, What: what, Unit: unit, Runs: len(values), Spread: "min–max of runs"}
	if len(values) == 0 {
		l.Skipped = "nothing was measured"
		return l
	}
	sorted := slices.Sorted(slices.Values(values))
	l.Measured, l.Low, l.High = sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1]
	return l.compareTo(g)
}

// compareTo compares the line with its target.
func (l Line) compareTo(g goal) Line {
	switch {
	case g == goal{}:
		return l
	case math.IsInf(g.most, 1):
		l.Target = "≥ " + formatNumber(g.least, l.Unit)
	default:
		l.Target = "< " + formatNumber(g.most, l.Unit)
	}
	reached := l.Measured >= g.least && l.Measured <= g.most
	l.Reached = &reached
	return l
}

// addNote adds a note.
func (l Line) addNote(format string, args ...any) Line {
	l.Note = fmt.Sprintf(format, args...)
	return l
}

// formatNumber writes a value for people.
func formatNumber(v float64, unit string) string {
	text := strconv.FormatFloat(v, 'f', fractionDigits(v), 64)
	if whole, _, _ := strings.Cut(text, "."); len(whole) > 4 {
		for at := len(whole) - 3; at > 0; at -= 3 {
			text = text[:at] + " " + text[at:]
		}
	}
	return text + " " + unit
}

func fractionDigits(v float64) int {
	switch v = math.Abs(v); {
	case v >= 100 || v == math.Trunc(v):
		return 0
	case v >= 10:
		return 1
	}
	return 2
}

// Report is all that one call of the program prints.
type Report struct {
	Conditions Conditions `json:"conditions"`
	Lines      []Line     `json:"lines"`
}

func (r *Report) writeReport(w io.Writer, format string) error {
	if format == "json" {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	if err := r.Conditions.writeConditions(w); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tTARGET\tMEASURED\tSPREAD\tNOTE")
	for i := range r.Lines {
		fmt.Fprintln(table, r.Lines[i].formatRow())
	}
	return table.Flush()
}

func (l *Line) formatRow() string {
	if l.Skipped != "" {
		return strings.Join([]string{l.What, l.Target, "skipped", "", l.Skipped}, "\t")
	}
	measured := formatNumber(l.Measured, l.Unit)
	if l.Reached != nil && !*l.Reached {
		measured += " ✗"
	}
	spread := "one run"
	if l.Runs > 1 || l.Low != l.High {
		spread = fmt.Sprintf("%s–%s", strings.TrimSuffix(formatNumber(l.Low, ""), " "), strings.TrimSuffix(formatNumber(l.High, ""), " "))
		if !strings.HasPrefix(l.Spread, "min") {
			spread += " (" + l.Spread + ")"
		}
	}
	return strings.Join([]string{l.What, l.Target, measured, spread, l.Note}, "\t")
}
