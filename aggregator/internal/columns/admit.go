package columns

// The rule of admission keeps out of the dictionaries what is nearly never used
// twice. It counts and nothing else, so all nodes decide alike.

// A table is tight when it has more than floor entries and fewer than ratio
// uses for each of them. (For pairs both are counted for each key.)
var limits = [numTables]struct{ floor, ratio uint64 }{
	TableKey:      {4096, 1 << 20},
	TablePair:     {1024, 8},
	TableSet:      {16384, 4},
	TableTemplate: {1024, 64},
	TableOrigin:   {4096, 64},
	TableEnd:      {1024, 64},
	TableID:       {1024, 64},
}

// A block in which at least manyNew entries are new and are used less than
// twice on average is taken as if the table were tight already. It does not go
// for sets: the first blocks of a store have many new ones.
const manyNew = 64

func isTight(t Table, entries, uses uint64) bool {
	l := limits[t]
	return entries > l.floor && entries*l.ratio > uses
}

func isSudden(t Table, fresh, uses uint64) bool {
	return t != TableSet && t != TableKey && fresh >= manyNew && uses < 2*fresh
}

// usesNeeded is how often a block must use a new entry for a tight table to admit
// it. The more there are, the more: memory stays bounded by the rows.
func usesNeeded(entries uint64) uint64 {
	switch {
	case entries < 1<<18:
		return 4
	case entries < 1<<20:
		return 16
	}
	return 64
}

// candidate is a new entry that the rows of a block use.
type candidate struct {
	data string
	uses uint64
	id   uint32 // 0 until it is admitted
}

// ref is an entry that the rows of a block use: one that the dictionary has, or
// a candidate. The zero ref is none.
type ref struct {
	id    uint32
	fresh *candidate
}

// admittedNumber returns the entry's number after the decision; 0 when it has none.
func (r ref) admittedNumber() uint32 {
	if r.fresh != nil {
		return r.fresh.id
	}
	return r.id
}

// admission collects the candidates of one table, or of one key's pairs, in
// order of first use.
type admission struct {
	table  Table
	fresh  []*candidate
	byData map[string]*candidate
	uses   uint64 // of all entries, those that the dictionary has included
}

func newAdmission(t Table) *admission {
	return &admission{table: t, byData: map[string]*candidate{}}
}

// countUse counts an entry and returns it.
func (a *admission) countUse(d *Dict, data []byte, uses uint64) ref {
	a.uses += uses
	if id, ok := d.index[a.table][string(data)]; ok {
		return ref{id: id}
	}
	if c, ok := a.byData[string(data)]; ok {
		c.uses += uses
		return ref{fresh: c}
	}
	c := &candidate{data: string(data), uses: uses}
	a.byData[c.data] = c
	a.fresh = append(a.fresh, c)
	return ref{fresh: c}
}

// decideAdmissions admits new entries. entries and uses are the counts of before.
func (a *admission) decideAdmissions(d *Dict, t *tables, entries, uses uint64) {
	need, total := uint64(1), uint64(0)
	for _, c := range a.fresh {
		total += c.uses
	}
	if isTight(a.table, entries+uint64(len(a.fresh)), uses+a.uses) || isSudden(a.table, uint64(len(a.fresh)), total) {
		need = usesNeeded(entries)
	}
	for _, c := range a.fresh {
		if c.uses >= need {
			c.id = d.enterEntry(t, a.table, c.data)
		}
	}
}
