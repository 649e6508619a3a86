package store

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Archives returns the archives of which the store has no details, and those that are on
// their way, by name.
func (v *View) Archives() []Archive {
	list := make([]Archive, len(v.memory.archives))
	for i, a := range v.memory.archives {
		list[i] = *a
	}
	return list
}

// ArchivesOf names the archives that have records of the time of a query without their
// details.
func (v *View) ArchivesOf(q *Query) (names []string) {
	for _, a := range v.memory.archivesIn(q.timeWindow()) {
		names = append(names, a.Name)
	}
	return names
}

// archivesIn returns the archives with rows that ran, or waited, in the window.
func (m *memory) archivesIn(w Window) (list []*Archive) {
	for _, a := range m.archives {
		if a.State != ArchiveChecking && a.Since < w.To && a.To > w.From {
			list = append(list, a)
		}
	}
	return list
}

// HasKeys returns an error that wraps [ErrArchived] when records that ran, or waited, in
// the window have lost one of the keys, of meta or of [record.EndKeys], to an archive: an
// answer that groups or filters by it would be wrong.
func (v *View) HasKeys(from, to record.Time, keys ...string) error {
	return v.checkKeysKept(Window{From: from, To: to}, keys)
}

func (v *View) checkKeysKept(w Window, keys []string) error {
	var names []string
	var lost string
	for _, a := range v.memory.archivesIn(w) {
		if i := slices.IndexFunc(keys, func(key string) bool { return !a.keepsKey(key) || record.IsEndKey(key) }); i >= 0 {
			names, lost = append(names, a.Name), keys[i]
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("%w: meta key %q is not in the store for %s; ask for other times, restore the archive, or use dimensions, which stay",
		ErrArchived, lost, strings.Join(names, ", "))
}

// metaKeys are the meta keys that the query tests.
func (q *Query) metaKeys() (keys []string) {
	for _, tests := range append(slices.Clone(q.Allowed), q.Meta) {
		for i := range tests {
			keys = append(keys, tests[i].Key)
		}
	}
	if q.Order == ByMeta {
		keys = append(keys, q.By)
	}
	return keys
}

// timeWindow is the time out of which no record of the query has run.
func (q *Query) timeWindow() Window {
	w := Window{From: math.MinInt64, To: math.MaxInt64}
	if q.Running != nil {
		w = *q.Running
	}
	from, to := q.Stop.bounds()
	if from > math.MinInt64 {
		w.From = max(w.From, record.Time(from)-1)
	}
	if to < math.MaxInt64 { // what stops until then began before
		w.To = min(w.To, record.Time(to)+1)
	}
	if _, to := q.Start.bounds(); to < math.MaxInt64 {
		w.To = min(w.To, record.Time(to)+1)
	}
	return w
}
