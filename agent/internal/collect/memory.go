package collect

import "hash/fnv"

// memory remembers the fingerprints of the runs that were sent, so that a run
// that is collected again unchanged is not sent again. It forgets the oldest:
// then a run is sent again, which does no harm.
type memory struct {
	young, old map[uint64]sent
	// partial: runs were sent that it does not hold.
	partial bool
}

// sent is what was sent of a run.
type sent struct {
	fingerprint uint64
	quarantined bool
	withdrawn   bool
	refused     bool // it was no job, so there is no fingerprint
}

// hasFingerprint reports whether a job with that fingerprint has been dealt with.
func (s sent) hasFingerprint(fingerprint uint64) bool {
	return !s.refused && s.fingerprint == fingerprint
}

// generation is how many runs are kept at least.
const generation = 1 << 16

func newMemory() *memory { return &memory{young: map[uint64]sent{}, old: map[uint64]sent{}} }

func runKey(run string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(run)) // never fails
	return h.Sum64()
}

func (m *memory) findRun(run string) (sent, bool) {
	key := runKey(run)
	if s, ok := m.young[key]; ok {
		return s, true
	}
	s, ok := m.old[key]
	return s, ok
}

func (m *memory) storeRun(run string, s sent) {
	if len(m.young) >= generation {
		m.partial = m.partial || len(m.old) > 0
		m.young, m.old = map[uint64]sent{}, m.young
	}
	m.young[runKey(run)] = s
}
