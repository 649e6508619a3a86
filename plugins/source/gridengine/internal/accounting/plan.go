package accounting

import (
	"fmt"

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
func NewPlan(wants func(attribute string) bool, m Memory) *Plan {
	p := &Plan{table: m.table()}
	for i := range p.table {
		if wants(p.table[i].Name) {
			p.wanted = append(p.wanted, i)
		}
	}
	return p
}

func (m *Memory) table() []attribute { return append(m.derived(), raw()...) }

// Attributes are those that a mapping may name.
func Attributes() []sdk.Attribute {
	table := new(Memory).table()
	out := make([]sdk.Attribute, len(table))
	for i := range table {
		out[i] = table[i].Attribute
	}
	return out
}

// Values returns the values of a line in the order of the attributes; those that
// are not wanted or not known are null. The error names the column that cannot be
// read. It is for one goroutine.
func (p *Plan) Values(l *Line) ([]sdk.Value, error) {
	n := len(p.table)
	if len(p.room) < n {
		p.room = make([]sdk.Value, roomLines*n)
	}
	out := p.room[:n:n]
	p.room = p.room[n:]
	for _, i := range p.wanted {
		v, err := p.table[i].value(l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.table[i].Name, err)
		}
		out[i] = v
	}
	return out, nil
}
