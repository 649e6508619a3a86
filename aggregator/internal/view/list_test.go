package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// shownText is a list as text: a line for each row, notice and note, and what is not known as "?".
func shownText(l view.List) string {
	var b strings.Builder
	line := func(row []v1.Cell) {
		for i := range row {
			text := "?"
			if row[i].Known() {
				text = l.ShowAt(row, i, time.UTC)
			}
			fmt.Fprintf(&b, "%s|", text)
		}
		b.WriteString(string(l.RowTone(row)) + "\n")
	}
	for _, row := range l.Rows {
		line(row)
	}
	if len(l.Rows) == 0 {
		b.WriteString("empty: " + l.Empty + "\n")
	}
	for i := range l.Notices {
		n := &l.Notices[i]
		fmt.Fprintf(&b, "%s: %s [%s]\n", n.Tone, n.Text(time.UTC), n.Do)
	}
	for _, note := range l.Notes {
		b.WriteString("note: " + note + "\n")
	}
	for _, below := range l.Below {
		b.WriteString(below.Title + ":\n" + shownText(below))
	}
	return b.String()
}

// compareList compares a list with its text, see [shownText].
func compareList(t *testing.T, l view.List, want string) {
	t.Helper()
	if got := shownText(l); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%s is\n%s\nwant\n%s", l.Name, got, want)
	}
}

// joinedRows are rows to the digit.
func joinedRows(list [][]v1.Cell) (rows []string) {
	for _, row := range list {
		var cells []string
		for i := range row {
			cells = append(cells, row[i].String())
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	return rows
}

// heads are the titles and units of the columns of a list.
func heads(l view.List) string {
	var names []string
	for i := range l.Columns {
		names = append(names, strings.TrimSpace(l.Columns[i].Title+" "+l.Columns[i].Unit))
	}
	return strings.Join(names, "|")
}

// spellOutList is a list as text: its heads, its rows with their exact cells, what it says when it
// is empty, its notices and its notes.
func spellOutList(l view.List) string {
	var lines []string
	add := func(cells []string) { lines = append(lines, strings.Join(cells, "|")) }
	var head []string
	for i := range l.Columns {
		head = append(head, l.Columns[i].Name)
	}
	add(head)
	for _, row := range l.Rows {
		var cells []string
		for i := range row {
			cells = append(cells, row[i].String())
		}
		add(cells)
	}
	if len(l.Rows) == 0 {
		lines = append(lines, l.Empty)
	}
	for i := range l.Notices {
		lines = append(lines, fmt.Sprintf("%s: %s [%s]", l.Notices[i].Tone, l.Notices[i].Text(time.UTC), l.Notices[i].Do))
	}
	return strings.Join(append(lines, l.Notes...), "\n")
}

// wantExactList compares a list, spelled out, with what is wanted.
func wantExactList(t *testing.T, got view.List, want string) {
	t.Helper()
	if text := spellOutList(got); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// march is an hour of March 1, 2026.
func march(hour int) v1.Time { return v1.Time{Time: time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC)} }
