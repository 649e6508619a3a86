package journal

// recent remembers the ids of the events that came last.
type recent struct{ young, old map[string]bool }

// generation is how many are remembered at least.
const generation = 1 << 14

func (r *recent) hasID(id string) bool { return r.young[id] || r.old[id] }

func (r *recent) addID(id string) {
	if r.young == nil || len(r.young) >= generation {
		r.young, r.old = map[string]bool{}, r.young
	}
	r.young[id] = true
}
