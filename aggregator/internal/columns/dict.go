package columns

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
)

// Entry is an entry of a dictionary as it is stored.
type Entry struct {
	Table Table
	ID    uint32 // 1, 2, … within the table
	Data  []byte
}

// Dict holds the dictionaries of a store. They are replicated state: entries
// get their numbers in the order of Apply, stay for ever, and are the same on
// all nodes. Only [EncodeBlock] adds to them.
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
	if e.Table < TableKey || e.Table >= numTables || uint64(e.ID) != uint64(len(t[e.Table]))+1 {
		return corrupt("dictionary entry %d of table %d is not the next", e.ID, e.Table)
	}
	if _, twice := d.index[e.Table][data]; twice || !t.check(e.Table, data) {
		return corrupt("dictionary entry %d of table %d", e.ID, e.Table)
	}
	d.enter(&t, e.Table, data)
	d.current.Store(&t)
	return nil
}

// LoadState sets the counters to what [Encoded.State] was last, nil for a store
// without blocks. It must be called after all entries were loaded.
func (d *Dict) LoadState(data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts.load(data)
}

// State returns the counters as [Encoded.State] has them.
func (d *Dict) State() []byte {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.counts.append(nil)
}

// Entries returns all entries in the order of (Table, ID).
func (d *Dict) Entries() []Entry {
	return d.current.Load().since(&tables{})
}

// since returns the entries of t that old does not have.
func (t *tables) since(old *tables) []Entry {
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

// enter appends an entry to t and returns its number. d.mu is held.
func (d *Dict) enter(t *tables, table Table, data string) uint32 {
	t[table] = append(t[table], data)
	id := uint32(len(t[table]))
	d.index[table][data] = id
	d.bytes += len(data) + entryMemory
	if table == TablePair {
		d.counts.pair(data)
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
	return d.find(key, pair{kind: pairValue, value: value})
}

// EmptyKV returns the number of the pair that stands for key with an empty list
// of values.
func (d *Dict) EmptyKV(key string) (id uint32, ok bool) {
	return d.find(key, pair{kind: pairEmpty})
}

// InlineKV returns the number of the marker under which blocks are posted that
// hold values of key in their rows because there are too many. Any value of
// key may be in such a block.
func (d *Dict) InlineKV(key string) (id uint32, ok bool) {
	if id, ok := d.find(key, pair{kind: pairInline}); ok {
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

func (d *Dict) find(key string, p pair) (uint32, bool) {
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
	p, ok := t.pair(uint64(id))
	if !ok || p.kind != pairValue {
		return "", "", false
	}
	key, ok = t.get(TableKey, uint64(p.key))
	return key, p.value, ok
}

// Values calls yield with every value of key that has a number, in the order of
// numbers, until yield returns false. When [Dict.InlineKV] is there, rows have
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
		if p.key == k && p.kind == pairValue && !yield(uint32(i+1), p.value) {
			return
		}
	}
}

// counts is what the rule of admission counts; see DESIGN.md.
type counts struct {
	rows   [numTables]uint64 // uses of the table's entries
	uses   []uint64          // by key: uses of its values
	values []uint64          // by key: values that have a number; not stored
}

func (c *counts) pair(data string) {
	p, _ := parsePair(data)
	c.grow(p.key)
	if p.kind == pairValue {
		c.values[p.key]++
	}
}

func (c *counts) grow(key uint32) {
	for uint32(len(c.values)) <= key {
		c.values = append(c.values, 0)
	}
	for uint32(len(c.uses)) <= key {
		c.uses = append(c.uses, 0)
	}
}

func (c *counts) append(b []byte) []byte {
	b = append(b, format)
	for _, n := range c.rows {
		b = binary.AppendUvarint(b, n)
	}
	uses := c.uses
	for len(uses) > 0 && uses[len(uses)-1] == 0 {
		uses = uses[:len(uses)-1] // nodes that restarted have fewer
	}
	for _, n := range uses {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func (c *counts) load(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if data[0] != format {
		return fmt.Errorf("state of the dictionary: %w %d", ErrFormat, data[0])
	}
	r := reader{b: data[1:]}
	for t := range c.rows {
		c.rows[t] = r.uvarint()
	}
	c.uses = c.uses[:0]
	for r.left() > 0 {
		c.uses = append(c.uses, r.uvarint())
	}
	c.grow(uint32(max(len(c.values), len(c.uses), 1) - 1))
	if r.bad {
		return corrupt("state of the dictionary")
	}
	return nil
}
