package report

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// second is the unit of what adds up over time.
const second = "second"

// addsOverTime reports whether a measure adds up over time.
func addsOverTime(m *v1.Measure) bool { return m.Unit == second && m.Kind != "mean" }

// hourlyUnit is the unit in which a summary has a measure: hours of what adds up over time.
func hourlyUnit(m *v1.Measure) string {
	if addsOverTime(m) {
		in := *m
		in.Unit = "hour"
		return in.UnitText()
	}
	return m.UnitText()
}

// meanUnit is the unit of the mean of a measure, see [meanOf].
func meanUnit(m *v1.Measure) string {
	switch {
	case !addsOverTime(m):
		return m.UnitText()
	case m.Score != "":
		return string(m.Score)
	case m.Component == "Cores" || m.Kind == "capacity" && m.Name == "capacity":
		return "cores"
	}
	return v1.AmountUnit(string(m.Component))
}

// inHours is a figure of a measure, in hours when it is one over time.
func inHours(m *v1.Measure, n *json.Number) Cell {
	c := v1.Figure(n)
	if !addsOverTime(m) || c.Number() == nil {
		return c
	}
	return v1.Rat(new(big.Rat).Quo(c.Number(), big.NewRat(3600, 1)))
}

// coveredLength is how much of a bucket is known from its start on; 0 where its start is not,
// since runs that are known used something there too.
func coveredLength(a *v1.Usage, bucket int) time.Duration {
	from, to := a.Edges[bucket].Time, a.Edges[bucket+1].Time
	if a.Known == nil || a.Known.From.After(from) {
		return 0
	}
	if a.Known.To.Before(to) {
		to = a.Known.To.Time
	}
	return to.Sub(from)
}

// meanOf is a figure of a bucket: of what adds up over time, what there was of it in the
// mean up to now; of anything else all of it.
func meanOf(a *v1.Usage, m *v1.Measure, g, bucket int) Cell {
	c := figureAt(m.Values, g*len(a.Labels)+bucket)
	if !addsOverTime(m) || c.Number() == nil || bucket+1 >= len(a.Edges) {
		return c
	}
	length := coveredLength(a, bucket)
	if length <= 0 {
		return Cell{}
	}
	return v1.Rat(new(big.Rat).Quo(c.Number(), big.NewRat(int64(length/time.Microsecond), int64(time.Second/time.Microsecond))))
}

func keyColumns(keys []string) (out []Column) {
	for _, key := range keys {
		out = append(out, Column{Name: key, Title: key, Kind: Text})
	}
	return out
}

// groupID tells tuples apart.
func groupID(g *v1.UsageGroup) string {
	if g.Others > 0 {
		return "\x00others" // how many they are differs from period to period
	}
	var b strings.Builder
	for _, v := range g.Values {
		if v != nil {
			b.WriteString("\x01" + *v)
		}
		b.WriteByte(0)
	}
	return b.String()
}

// groupCells are the values of a tuple.
func groupCells(g *v1.UsageGroup, n int) (out []Cell) {
	for _, value := range view.GroupValues(g, n) {
		cell := Cell{}
		if value != "" || g.Others == 0 {
			cell = v1.Words(value)
		}
		out = append(out, cell)
	}
	return out
}

// groupFirst is the value of the first key.
func groupFirst(g *v1.UsageGroup) string { return groupCells(g, 1)[0].String() }

// personColumns adds what the directory knows to lines.
type personColumns struct {
	people      *directory
	user, group int // the places of the keys; -1: not among them
	columns     []Column
}

// newPersonColumns makes those of lines by keys: it has columns where something is known.
func (s *summary) newPersonColumns(keys []string, answers []*v1.Usage) *personColumns {
	w := &personColumns{people: s.people, user: -1, group: -1}
	named, claimed := false, false
	apart := slices.Contains(keys, "project") // it says so itself, and of each instant
	for i, key := range keys {
		switch key {
		case s.people.Keys.User:
			w.user = i
		case s.people.Keys.Group:
			w.group = i
		}
	}
	for _, a := range answers {
		for g := range a.Groups {
			p, project := w.personOf(&a.Groups[g])
			named = named || (p != nil && (p.Name != "" || p.Email != ""))
			claimed = claimed || (project != "" && !apart)
		}
	}
	if named {
		w.columns = append(w.columns, Column{Name: "name", Title: "Name", Kind: Text}, Column{Name: "email", Title: "E-mail", Kind: Text})
	}
	if claimed {
		w.columns = append(w.columns, Column{Name: "project", Title: "Project", Kind: Text})
	}
	for i := range w.columns {
		for _, key := range keys {
			if key == w.columns[i].Name {
				w.columns[i].Name += " (directory)"
			}
		}
	}
	return w
}

// personOf returns whom a group is of, and the project.
func (w *personColumns) personOf(g *v1.UsageGroup) (*v1.Person, v1.Text) {
	value := func(i int) string {
		if i < 0 || i >= len(g.Values) || g.Others > 0 || g.Values[i] == nil {
			return ""
		}
		return *g.Values[i]
	}
	user, group := value(w.user), value(w.group)
	return w.people.byID[user], w.people.projectOf(user, group)
}

// personCells are the cells of a group in these columns.
func (w *personColumns) personCells(g *v1.UsageGroup) (out []Cell) {
	p, project := w.personOf(g)
	if p == nil {
		p = &v1.Person{}
	}
	for _, c := range w.columns {
		switch c.Title {
		case "Name":
			out = append(out, textCell(p.Name))
		case "E-mail":
			out = append(out, textCell(p.Email))
		default:
			out = append(out, textCell(project))
		}
	}
	return out
}
