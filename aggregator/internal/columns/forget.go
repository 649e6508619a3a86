package columns

import (
	"strconv"
	"strings"
)

// forgotten begins the values that stand where others were. No value of a record
// begins with it, for these are UTF-8.
const forgotten = "\xff"

// Forget takes values out of the dictionary that no block has: their numbers stay
// and stand for nothing, and who says such a value again gets another number. It
// returns the entries that take their place on disk. In memory the texts stay, for
// views of blocks that were there before.
func (d *Dict) Forget(pairs []uint32) (changed []Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.current.Load()
	for _, id := range pairs {
		data, p, ok := d.value(t, id)
		if !ok {
			continue
		}
		p.value = forgotten + strconv.FormatUint(uint64(id), 10)
		blank := appendPair(nil, p)
		delete(d.index[TablePair], data)
		d.index[TablePair][string(blank)] = id
		changed = append(changed, Entry{Table: TablePair, ID: id, Data: blank})
	}
	return changed
}

// ValuePairs returns the numbers of all values that are not forgotten.
func (d *Dict) ValuePairs() (ids []uint32) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.current.Load()
	for i := range t[TablePair] {
		if _, _, ok := d.value(t, uint32(i+1)); ok {
			ids = append(ids, uint32(i+1))
		}
	}
	return ids
}

// value returns a pair that is a value and not forgotten. d.mu is held.
func (d *Dict) value(t *tables, id uint32) (data string, p pair, ok bool) {
	if data, ok = t.get(TablePair, uint64(id)); !ok || d.index[TablePair][data] != id {
		return "", pair{}, false
	}
	p, ok = parsePair(data)
	return data, p, ok && p.kind == pairValue && !strings.HasPrefix(p.value, forgotten)
}

// knows reports whether a value of that number is not forgotten.
func (d *Dict) knows(id uint32) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, _, ok := d.value(d.current.Load(), id)
	return ok
}
