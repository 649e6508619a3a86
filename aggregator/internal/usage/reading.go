package usage

import "slices"

// reading is what the columns say of one group of the base, phase after phase.
type reading struct {
	*plan

	values []string // of the group
	lacks  []bool

	have     []string // by column
	missing  []bool
	from     []string // for one column
	fromLack []bool
}

// readPhase reads the columns in a phase. Phases come one after the other from 0 on: what
// does not change stays.
func (r *reading) readPhase(phase int) {
	if r.have == nil {
		r.have, r.missing = make([]string, len(r.columns)), make([]bool, len(r.columns))
	}
	at := r.phases[phase]
	for i := range r.columns {
		c := &r.columns[i]
		switch {
		case c.key == nil && phase == 0:
			r.have[i], r.missing[i] = r.values[c.from[0]], r.lacks[c.from[0]]
		case c.key == nil:
		case phase > 0 && !slices.Contains(c.key.Cuts, at):
		default:
			r.gatherValues(c.from)
			value, has := c.key.Of(r.from, r.fromLack, at)
			if !has {
				value = ""
			}
			r.have[i], r.missing[i] = value, !has
		}
	}
}

// gatherValues sets from to values of the group.
func (r *reading) gatherValues(places []int) {
	r.from, r.fromLack = r.from[:0], r.fromLack[:0]
	for _, k := range places {
		r.from, r.fromLack = append(r.from, r.values[k]), append(r.fromLack, r.lacks[k])
	}
}

// pickColumns sets from to what columns have.
func (r *reading) pickColumns(columns []int) {
	r.from, r.fromLack = r.from[:0], r.fromLack[:0]
	for _, k := range columns {
		r.from, r.fromLack = append(r.from, r.have[k]), append(r.fromLack, r.missing[k])
	}
}

// meetsConditions reports whether all conditions hold.
func (r *reading) meetsConditions() bool {
	for i, column := range r.having {
		if !slices.Contains(r.q.Having[i].Values, r.have[column]) {
			return false
		}
	}
	return true
}
