package accounting

import (
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Plan makes values of the attributes that are wanted.
type Plan struct {
	table  []attribute
	wanted []int
	room   []sdk.Value // for the next lines: one piece of memory for many is less work
}

const roomLines = 64

// NewPlan plans for the attributes that wants names.
func NewPlan(wants func(attribute string) bool, s Site) *Plan {
	p := &Plan{table: s.attributeTable()}
	for i := range p.table {
		if wants(p.table[i].Name) {
			p.wanted = append(p.wanted, i)
		}
	}
	return p
}

func (s *Site) attributeTable() []attribute { return append(s.derivedAttributes(), rawAttributes()...) }

// Attributes are those that a mapping may name.
func Attributes() []sdk.Attribute {
	table := new(Site).attributeTable()
	out := make([]sdk.Attribute, len(table))
	for i := range table {
		out[i] = table[i].Attribute
	}
	return out
}

// Values returns the values of a line in the order of the attributes; those that are not
// wanted, not known or not readable are null. Unread names the wanted ones that cannot be
// read, with the column. It is for one goroutine.
func (p *Plan) Values(l *Line) (values []sdk.Value, unread []sdk.Unread) {
	n := len(p.table)
	if len(p.room) < n {
		p.room = make([]sdk.Value, roomLines*n)
	}
	out := p.room[:n:n]
	p.room = p.room[n:]
	for _, i := range p.wanted {
		v, err := p.table[i].value(l)
		if err != nil {
			unread = append(unread, sdk.Unread{Attribute: p.table[i].Name, Problem: err.Error()})
			continue
		}
		out[i] = v
	}
	return out, unread
}
