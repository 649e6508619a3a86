package usage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// answerUsed turns accounts into columns. It goes through them in the order of
// groups and shapes, so that sums of floats are the same on all nodes.
func (t *tally) answerUsed(a *Answer, place []int) {
	accounts := make([]*account, 0, len(t.used))
	for _, acc := range t.used { // sorted below
		accounts = append(accounts, acc)
	}
	slices.SortFunc(accounts, func(x, y *account) int {
		return cmp.Or(cmp.Compare(place[x.group], place[y.group]), strings.Compare(x.shape.key, y.shape.key), cmp.Compare(x.group, y.group))
	})
	n := len(a.Groups) * t.buckets
	if t.q.CPU != "" && t.q.Cores != "" {
		a.CPU, a.Cores = make([]Sum, n), make([]Sum, n)
	}
	t.head(a)
	for _, acc := range accounts {
		at := place[acc.group] * t.buckets
		t.fold(a, acc, at)
		t.efficiency(a, acc, at)
	}
}

// head makes the answer's components, with empty columns.
func (t *tally) head(a *Answer) {
	n := len(a.Groups) * t.buckets
	for _, sh := range t.shapes.list {
		for i := range sh.parts {
			p := &sh.parts[i]
			if !t.asked(p.name) {
				continue
			}
			c, ok := a.find(p.name, p.kind)
			if !ok {
				a.Components = append(a.Components, Component{Name: p.name, Kind: p.kind, Used: make([]Sum, n)})
				c = &a.Components[len(a.Components)-1]
			}
			for _, s := range p.scores {
				if !slices.ContainsFunc(c.Scores, func(o Score) bool { return o.Name == s.Name }) {
					c.Scores = append(c.Scores, Score{Name: s.Name, Used: make([]float64, n), Lacking: make([]Sum, n)})
				}
			}
		}
	}
	slices.SortFunc(a.Components, func(x, y Component) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), cmp.Compare(x.Kind, y.Kind))
	})
	for i := range a.Components {
		slices.SortFunc(a.Components[i].Scores, func(x, y Score) int { return strings.Compare(x.Name, y.Name) })
	}
}

func (t *tally) asked(name string) bool {
	return t.q.Components == nil || slices.Contains(t.q.Components, name)
}

func (a *Answer) find(name string, kind record.Kind) (*Component, bool) {
	for i := range a.Components {
		if c := &a.Components[i]; c.Name == name && c.Kind == kind {
			return c, true
		}
	}
	return nil, false
}

// fold adds an account to the columns from at on.
func (t *tally) fold(a *Answer, acc *account, at int) {
	for k := range acc.shape.parts {
		p := &acc.shape.parts[k]
		c, ok := a.find(p.name, p.kind)
		if !ok {
			continue
		}
		used := acc.used[k*t.buckets : (k+1)*t.buckets]
		for b, u := range used {
			c.Used[at+b] = c.Used[at+b].Add(u)
		}
		for i := range c.Scores {
			c.Scores[i].fold(p, used, at)
		}
	}
}

func (s *Score) fold(p *part, used []Sum, at int) {
	value, has := p.score(s.Name)
	for b, u := range used {
		if has {
			s.Used[at+b] += value * u.Float()
		} else {
			s.Lacking[at+b] = s.Lacking[at+b].Add(u)
		}
	}
}

// score returns the first score of a name.
func (p *part) score(name string) (float64, bool) {
	for i := range p.scores {
		if p.scores[i].Name == name {
			return p.scores[i].Value, true
		}
	}
	return 0, false
}

// efficiency adds an account that has both of the question's components.
func (t *tally) efficiency(a *Answer, acc *account, at int) {
	if a.CPU == nil {
		return
	}
	cpu := slices.IndexFunc(acc.shape.parts, func(p part) bool { return p.name == t.q.CPU && p.kind == record.Total })
	cores := slices.IndexFunc(acc.shape.parts, func(p part) bool { return p.name == t.q.Cores && p.kind == record.Rate })
	if cpu < 0 || cores < 0 {
		return
	}
	for b := range t.buckets {
		a.CPU[at+b] = a.CPU[at+b].Add(acc.used[cpu*t.buckets+b])
		a.Cores[at+b] = a.Cores[at+b].Add(acc.used[cores*t.buckets+b])
	}
}
