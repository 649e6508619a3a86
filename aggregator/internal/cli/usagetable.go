package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// apiUsage is an answer of GET /v1/usage.
type apiUsage struct {
	Window   apiSpan      `json:"window"`
	Compared *apiSpan     `json:"compared_with"`
	Zone     string       `json:"zone"`
	Bucket   *string      `json:"bucket"`
	Credit   string       `json:"credit"`
	By       []string     `json:"by"`
	Several  int64        `json:"several"`
	Records  int64        `json:"records"`
	Labels   []string     `json:"labels"`
	Groups   []apiGroup   `json:"groups"`
	Measures []apiMeasure `json:"measures"`
	Complete apiComplete  `json:"complete"`

	unit string // that was asked for
}

type apiSpan struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type apiGroup struct {
	Values []*string `json:"values"`
	Others int       `json:"others"`
}

type apiMeasure struct {
	Name      string     `json:"name"`
	Component *string    `json:"component"`
	Score     *string    `json:"score"`
	Kind      string     `json:"kind"`
	Unit      *string    `json:"unit"`
	Values    []*float64 `json:"values"`
	Totals    []*float64 `json:"totals"`
	Total     *float64   `json:"total"`
	Lacking   *struct {
		Total float64 `json:"total"`
	} `json:"lacking"`
	Unpriced []struct {
		Component string  `json:"component"`
		Unit      *string `json:"unit"`
		Total     float64 `json:"total"`
	} `json:"unpriced"`
	Without  *int64 `json:"without"`
	Shared   bool   `json:"shared"`
	Compared *struct {
		Before   []*float64 `json:"before"`
		Relative []*float64 `json:"relative"`
	} `json:"compared"`
}

type apiComplete struct {
	CompleteTo *string `json:"complete_to"`
	Limited    bool    `json:"limited"`
	Sources    []struct {
		Source     string  `json:"source"`
		CompleteTo *string `json:"complete_to"`
		Silent     bool    `json:"silent"`
	} `json:"sources"`
	Gaps []struct {
		Source string  `json:"source"`
		From   *string `json:"from"`
		To     *string `json:"to"`
		Reason string  `json:"reason"`
	} `json:"gaps"`
	Missing []struct {
		Source string `json:"source"`
		From   string `json:"from"`
		To     string `json:"to"`
		Runs   int64  `json:"runs"`
	} `json:"missing"`
	Unknown []struct {
		Source string `json:"source"`
		Reason string `json:"reason"`
		Days   int64  `json:"days"`
	} `json:"unknown"`
	Open        int64  `json:"open"`
	Quarantined *int64 `json:"quarantined"`
}

// table is the answer for people, with bars where a terminal has room for them.
func (u *apiUsage) table(width int) *table {
	t := newTable(u.head()...)
	var lengths []*float64 // what the bars show
	for g := range u.Groups {
		for b := range u.Labels {
			if u.nothing(g, b) {
				continue
			}
			t.add(u.row(g, b)...)
			if m := u.shown(); m != nil {
				lengths = append(lengths, m.Values[g*len(u.Labels)+b])
			}
		}
	}
	if n := width - total(t.fit(width)) - len(gap); n >= leastBar && len(lengths) == len(t.rows) {
		t.bars(lengths, min(n, mostBar))
	}
	if len(t.rows) > 1 {
		t.add(u.totalRow(len(t.head))...)
	}
	return t
}

// shown is the measure of the bars and of the comparison: the first component.
func (u *apiUsage) shown() *apiMeasure {
	for i := range u.Measures {
		if u.Measures[i].Component != nil {
			return &u.Measures[i]
		}
	}
	if len(u.Measures) == 0 {
		return nil
	}
	return &u.Measures[0]
}

func (u *apiUsage) head() []string {
	var head []string
	for _, key := range u.By {
		head = append(head, strings.ToUpper(strings.TrimSuffix(key, "_id")))
	}
	if u.Bucket != nil {
		head = append(head, strings.ToUpper(*u.Bucket))
	}
	for i := range u.Measures {
		m, leave := &u.Measures[i], ""
		if i > 0 && m != u.shown() {
			leave = "?"
		}
		head = append(head, leave+">"+m.title())
		if u.compares(m) {
			head = append(head, "?>BEFORE", ">CHANGE")
		}
	}
	return head
}

// compares reports whether lines have the other window, which is compared as a whole:
// of one measure, since more have no room.
func (u *apiUsage) compares(m *apiMeasure) bool {
	return u.Compared != nil && u.Bucket == nil && m == u.shown()
}

// title is a measure with its unit: what is a rate in hours is Cores h.
func (m *apiMeasure) title() string {
	name := m.Name
	if m.Component == nil {
		name = strings.ToUpper(name)
	}
	switch {
	case m.Kind == "worth" && !strings.EqualFold(*m.Unit, m.Name):
		name += " " + *m.Unit
	case m.Unit != nil && (m.Component != nil || m.Kind == "capacity" && *m.Unit != "SU"):
		name += " " + (*m.Unit)[:1]
	}
	return name
}

// nothing reports whether a line of several would be empty.
func (u *apiUsage) nothing(g, b int) bool {
	if len(u.Labels) == 1 || len(u.By) == 0 {
		return false
	}
	return !slices.ContainsFunc(u.Measures, func(m apiMeasure) bool { v := m.Values[g*len(u.Labels)+b]; return v != nil && *v != 0 })
}

func (u *apiUsage) row(g, b int) []string {
	cells := u.name(g)
	if u.Bucket != nil {
		cells = append(cells, u.Labels[b])
	}
	for i := range u.Measures {
		m := &u.Measures[i]
		cells = append(cells, m.text(m.Values[g*len(u.Labels)+b]))
		if u.compares(m) {
			cells = append(cells, m.text(m.Compared.Before[g]), change(m.Compared.Relative[g]))
		}
	}
	return cells
}

// name are the values of a group.
func (u *apiUsage) name(g int) []string {
	group := &u.Groups[g]
	if group.Others > 0 {
		cells := make([]string, len(u.By))
		cells[0] = fmt.Sprintf("(%d others)", group.Others)
		return cells
	}
	var cells []string
	for _, v := range group.Values {
		if v == nil {
			cells = append(cells, "(none)")
			continue
		}
		cells = append(cells, *v)
	}
	return cells
}

func (u *apiUsage) totalRow(columns int) []string {
	cells := make([]string, len(u.By))
	if u.Bucket != nil {
		cells = append(cells, "")
	}
	if len(cells) > 0 {
		cells[0] = "TOTAL"
	}
	for i := range u.Measures {
		cells = append(cells, u.Measures[i].text(u.Measures[i].Total))
		if u.compares(&u.Measures[i]) {
			cells = append(cells, "", "")
		}
	}
	for len(cells) < columns {
		cells = append(cells, "")
	}
	return cells
}

// text is a figure for people.
func (m *apiMeasure) text(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case m.Kind == "count":
		return strconv.FormatFloat(*v, 'f', 0, 64)
	case m.Kind == "mean":
		s := int64(math.Round(*v))
		r := apiRecord{Runtime: &s}
		return r.runtime()
	case m.Kind == "ratio":
		return fmt.Sprintf("%.1f %%", 100**v)
	}
	return short(*v)
}

// short writes a number with as many digits as people read.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 0.01:
		return "<0.01"
	case a < 100:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 100_000:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// change is a relative difference.
func change(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100**v)
}

// Bars have at least and at most as many columns.
const (
	leastBar = 8
	mostBar  = 40
)

// bars adds a column with a bar for each row, the longest of a width.
func (t *table) bars(values []*float64, width int) {
	longest := 0.0
	for _, v := range values {
		if v != nil {
			longest = max(longest, *v)
		}
	}
	t.head, t.look = append(t.head, ""), append(t.look, column{leave: true})
	for i, v := range values {
		text := ""
		if v != nil && longest > 0 && *v > 0 {
			text = blocks(*v/longest, width)
		}
		t.rows[i] = append(t.rows[i], text)
	}
}

// blocks draws a part of a width, to an eighth of a column; the smallest part shows.
func blocks(part float64, width int) string {
	eighths := max(1, int(math.Round(part*float64(8*width))))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
