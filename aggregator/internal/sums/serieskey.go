package sums

import (
	"encoding/binary"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// seriesKey is what parts of runs are added up together in the index: a name and a kind
// with the same scores, beside the same names of the other kind. These are there for
// the efficiency, which is of runs that have both of two components. So what else a
// run has does not split its sums.
type seriesKey struct {
	n int // its number, from 0 on
	part
	mates []string // names of the other kind in the same run, in their order
	again bool     // a part before it has the same name and kind
}

// seriesKeys gives the parts of layouts their keys.
type seriesKeys struct {
	list  []*seriesKey
	of    map[string]*seriesKey
	known map[*layout][]*seriesKey
}

func newSeriesKeys() *seriesKeys {
	return &seriesKeys{of: map[string]*seriesKey{}, known: map[*layout][]*seriesKey{}}
}

// ofLayout has a key for each part.
func (s *seriesKeys) ofLayout(sh *layout) []*seriesKey {
	list, ok := s.known[sh]
	if !ok {
		for k := range sh.parts {
			list = append(list, s.addKey(seriesKeyOf(sh, k)))
		}
		s.known[sh] = list
	}
	return list
}

func seriesKeyOf(sh *layout, k int) *seriesKey {
	st := &seriesKey{part: sh.parts[k]}
	for i := range sh.parts {
		switch o := &sh.parts[i]; {
		case o.kind != st.kind:
			st.mates = append(st.mates, o.name)
		case i < k && o.name == st.name:
			st.again = true
		}
	}
	slices.Sort(st.mates)
	st.mates = slices.Compact(st.mates)
	return st
}

// addKey returns the key that is equal, which is st when there was none.
func (s *seriesKeys) addKey(st *seriesKey) *seriesKey {
	key := string(st.mapKey())
	old, ok := s.of[key]
	if ok {
		return old
	}
	st.n = len(s.list)
	s.of[key] = st
	s.list = append(s.list, st)
	return st
}

// mapKey is equal for equal series keys.
func (st *seriesKey) mapKey() []byte {
	b := layoutKey(nil, []record.Component{{Name: st.name, Kind: st.kind, Scores: st.scores}})
	b = binary.AppendUvarint(b, uint64(len(st.mates)))
	for _, name := range st.mates {
		b = appendText(b, name)
	}
	if st.again {
		return append(b, 1)
	}
	return append(b, 0)
}

// countsInEfficiency reports whether the series counts in the efficiency of a total of CPU
// seconds and a rate of cores.
func (st *seriesKey) countsInEfficiency(cpu, cores string) bool {
	if cpu == "" || cores == "" || st.again {
		return false
	}
	if st.kind == record.Total {
		return st.name == cpu && slices.Contains(st.mates, cores)
	}
	return st.name == cores && slices.Contains(st.mates, cpu)
}
