package report

import "slices"

// wide is how many columns fit on a page of A4 side by side.
const wide = 9

// columnPeriods are the periods of which the table has columns, counted from 1.
func (t *Table) columnPeriods() (list []int) {
	for i := range t.Columns {
		if n := t.Columns[i].Period; n > 0 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// part is a table as it is laid out on a page: with the period where the table is cut
// into one for each, since it is too wide.
type part struct {
	Table
	Period string
	Heads  []head
}

// head spans columns of one period; its title is empty over those of none.
type head struct {
	Title string
	Span  int
}

// pageParts lays a table out: as it is, with a line above the columns that names the
// periods, or cut into one table for each period where it is too wide for a page.
func (t *Table) pageParts(periods []Period) []part {
	of := t.columnPeriods()
	switch {
	case len(of) < 2:
		return []part{{Table: *t}}
	case len(t.Columns) <= wide:
		return []part{{Table: *t, Heads: t.periodHeads(periods)}}
	}
	var out []part
	for _, n := range of {
		out = append(out, part{Table: t.tableOfPeriod(n), Period: periods[n-1].Name})
	}
	return out
}

func (t *Table) periodHeads(periods []Period) (list []head) {
	last := -1
	for i := range t.Columns {
		n := t.Columns[i].Period
		if n == last {
			list[len(list)-1].Span++
			continue
		}
		last = n
		title := ""
		if n > 0 {
			title = periods[n-1].Name
		}
		list = append(list, head{title, 1})
	}
	return list
}

// tableOfPeriod has the columns of a period and those of none. A row of which nothing is
// known in the period is not in it.
func (t *Table) tableOfPeriod(period int) Table {
	out := Table{Name: t.Name, Title: t.Title}
	pick := func(row []Cell) (cells []Cell, some bool) {
		for i, c := range row {
			if n := t.Columns[i].Period; n == 0 || n == period {
				cells, some = append(cells, c), some || n > 0 && c.Known()
			}
		}
		return cells, some
	}
	for _, c := range t.Columns {
		if c.Period == 0 || c.Period == period {
			out.Columns = append(out.Columns, c)
		}
	}
	for _, row := range t.Rows {
		if cells, some := pick(row); some {
			out.Rows = append(out.Rows, cells)
		}
	}
	if len(t.Totals) > 0 {
		out.Totals, _ = pick(t.Totals)
	}
	return out
}
