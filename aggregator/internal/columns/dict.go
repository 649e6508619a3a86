package columns

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Entry is an entry of a dictionary as it is stored.
type Entry struct {
	Table Table
	ID    uint32 // 1, 2, … within the table
	Data  []byte
}

// Dict holds the dictionaries of a store. They are replicated state: entries
// get their numbers in the order of Apply, stay for ever unless [Dict.Forget]
// blanks them, and are the same on all nodes. Only [EncodeBlock] adds to them.
//
// An entry costs its bytes and about 100 bytes of memory.
type Dict struct {
	mu     sync.RWMutex // guards the maps and the counters
	index  [numTables]map[string]uint32
	counts counts
	bytes  int

	// current is what readers see: entries are only ever appended, so a copy
	// of the slices is a snapshot.
	current atomic.Pointer[tables]
}

// NewDict returns empty dictionaries.
func NewDict() *Dict {
	d := &Dict{}
	for t := range d.index {
		d.index[t] = map[string]uint32{}
	}
	d.current.Store(&tables{})
	return d
}

// Load adds a stored entry. Entries must come in the order of (Table, ID). The
// error wraps [ErrCorrupt] when one is missing or cannot be.
func (d *Dict) Load(e Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, data := *d.current.Load(), string(e.Data)
	if e.Table == TableSet && strings.HasPrefix(data, blankSet) {
		return d.loadBlank(&t, &e)
	}
	if e.Table < TableKey || e.Table >= numTables || uint64(e.ID) != uint64(len(t[e.Table]))+1 {
		return corruptError("dictionary entry %d of table %d is not the next", e.ID, e.Table)
	}
	if _, twice := d.index[e.Table][data]; twice || !t.checkEntry(e.Table, data) {
		return corruptError("dictionary entry %d of table %d", e.ID, e.Table)
	}
	d.enterEntry(&t, e.Table, data)
	d.current.Store(&t)
	return nil
}

// LoadState sets the counters to what [Encoded.State] was last, nil for a store
// without blocks. It must be called after all entries were loaded.
func (d *Dict) LoadState(data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts.loadCounts(data)
}

// State returns the counters as [Encoded.State] has them.
func (d *Dict) State() []byte {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.counts.appendCounts(nil)
}

// Entries returns all entries in the order of (Table, ID).
func (d *Dict) Entries() []Entry {
	return d.current.Load().entriesSince(&tables{})
}

// entriesSince returns the entries of t that old does not have.
func (t *tables) entriesSince(old *tables) []Entry {
	var out []Entry
	for table := TableKey; table < numTables; table++ {
		for i := len(old[table]); i < len(t[table]); i++ {
			out = append(out, Entry{Table: table, ID: uint32(i + 1), Data: []byte(t[table][i])})
		}
	}
	return out
}

// entryMemory is what an entry costs in memory beside its bytes.
const entryMemory = 64

// enterEntry appends an entry to t and returns its number. d.mu is held.
func (d *Dict) enterEntry(t *tables, table Table, data string) uint32 {
	t[table] = append(t[table], data)
	id := uint32(len(t[table]))
	d.index[table][data] = id
	d.bytes += len(data) + entryMemory
	if table == TablePair {
		d.counts.countPair(data)
	}
	return id
}

// Len returns how many entries a table has.
func (d *Dict) Len(t Table) int { return len(d.current.Load()[t]) }

// Bytes returns about how much memory the dictionaries take.
func (d *Dict) Bytes() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.bytes
}

// KV returns the number of the pair under which blocks that have it are
// posted. Rows may have the pair inline as well: see [Dict.InlineKV].
func (d *Dict) KV(key, value string) (id uint32, ok bool) {
	return d.findPair(key, pair{kind: pairValue, value: value})
}

// EmptyKV returns the number of the pair that stands for key with an empty list
// of values.
func (d *Dict) EmptyKV(key string) (id uint32, ok bool) {
	return d.findPair(key, pair{kind: pairEmpty})
}

// InlineKV returns the number of the marker under which blocks are posted that
// hold values of key in their rows because there are too many. Any value of
// key may be in such a block.
func (d *Dict) InlineKV(key string) (id uint32, ok bool) {
	if id, ok := d.findPair(key, pair{kind: pairInline}); ok {
		return id, true
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if _, known := d.index[TableKey][key]; known {
		return 0, false
	}
	id, ok = d.index[TablePair][string(appendPair(nil, pair{kind: pairInline}))]
	return id, ok
}

// MayHaveKey reports whether a row of a block can have the key: the dictionary has it, or rows
// hold keys that are not in it.
func (d *Dict) MayHaveKey(key string) bool {
	if _, inline := d.InlineKV(key); inline {
		return true
	}
	return d.keyNumber(key) != 0
}

// keyNumber returns the number of a key; 0 is none.
func (d *Dict) keyNumber(key string) uint32 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.index[TableKey][key]
}

func (d *Dict) findPair(key string, p pair) (uint32, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	k, ok := d.index[TableKey][key]
	if !ok {
		return 0, false
	}
	p.key = k
	id, ok := d.index[TablePair][string(appendPair(nil, p))]
	return id, ok
}

// Pair returns the key and value of a pair; false when id is none or a marker,
// or stands for a key without values.
func (d *Dict) Pair(id uint32) (key, value string, ok bool) {
	t := d.current.Load()
	p, ok := t.getPair(uint64(id))
	if !ok || p.kind != pairValue {
		return "", "", false
	}
	key, ok = t.getEntry(TableKey, uint64(p.key))
	return key, p.value, ok
}

// Values calls yield with every value of key that has a number, in the order of
// numbers, until yield returns false; forgotten ones are left out. When [Dict.InlineKV] is there, rows have
// other values as well.
func (d *Dict) Values(key string, yield func(id uint32, value string) bool) {
	d.mu.RLock()
	k, ok := d.index[TableKey][key]
	d.mu.RUnlock()
	if !ok {
		return
	}
	for i, data := range d.current.Load()[TablePair] {
		p, _ := parsePair(data)
		if p.key == k && p.kind == pairValue && d.knowsValue(uint32(i+1)) && !yield(uint32(i+1), p.value) {
			return
		}
	}
}

// Meta returns the pairs of an entry of [TableSet]. inline is true when rows with
// that set hold further values of their own, which are left out here.
func (d *Dict) Meta(set uint32) (m record.Meta, inline, ok bool) {
	t := d.current.Load()
	data, ok := t.getEntry(TableSet, uint64(set))
	if !ok {
		return nil, false, false
	}
	return parseShared(t, data)
}

// Template returns the components of an entry of [TableTemplate], all amounts
// zero.
func (d *Dict) Template(id uint32) ([]record.Component, bool) {
	data, ok := d.current.Load().getEntry(TableTemplate, uint64(id))
	if !ok {
		return nil, false
	}
	return parseTemplate(data)
}
