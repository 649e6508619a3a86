package columns

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// forgotten begins the values that stand where others were. No value of a record
// begins with it, for these are UTF-8.
const forgotten = "\xff"

// blankSet begins an entry that stands for sets with values that are forgotten: its own
// number and those behind it, as many as it says. No set begins so.
const blankSet = "\x02"

// maxBlank bounds them: what says more is no entry.
const maxBlank = 1 << 28

// Forget takes values out of the dictionary that no block has, and the sets with them:
// their numbers stay and stand for nothing, and who says such a value again gets another
// number. It returns the entries that take their place on disk. In memory the texts stay,
// for views of blocks that were there before.
func (d *Dict) Forget(pairs []uint32) (changed []Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.current.Load()
	for _, id := range pairs {
		data, p, ok := d.liveValue(t, id)
		if !ok {
			continue
		}
		p.value = forgotten + strconv.FormatUint(uint64(id), 10)
		blank := appendPair(nil, p)
		delete(d.index[TablePair], data)
		d.index[TablePair][string(blank)] = id
		changed = append(changed, Entry{Table: TablePair, ID: id, Data: blank})
	}
	return append(changed, d.forgetSets(t, changed)...)
}

// forgetSets takes out the sets that have any of the pairs. Neighbours that are blank
// become one entry; those that go have no data. d.mu is held.
func (d *Dict) forgetSets(t *tables, pairs []Entry) (changed []Entry) {
	if len(pairs) == 0 {
		return nil
	}
	gone := make(map[uint64]bool, len(pairs))
	for i := range pairs {
		gone[uint64(pairs[i].ID)] = true
	}
	first, fresh := 0, false // of the blank ones before i, and whether any of them is new
	for i := range len(t[TableSet]) + 1 {
		if i < len(t[TableSet]) {
			set, id := t[TableSet][i], uint32(i+1)
			if d.index[TableSet][set] == id && hasAny(set, gone) {
				delete(d.index[TableSet], set)
				changed, fresh = append(changed, Entry{Table: TableSet, ID: id}), true
			}
			if d.index[TableSet][set] != id {
				continue
			}
		}
		if fresh {
			changed = mergeBlank(changed, uint32(first+1), uint32(i))
		}
		first, fresh = i+1, false
	}
	return changed
}

// mergeBlank makes one entry of the blank sets from first to last, of which some are
// the last of changed.
func mergeBlank(changed []Entry, first, last uint32) []Entry {
	for len(changed) > 0 && changed[len(changed)-1].Table == TableSet && changed[len(changed)-1].ID >= first {
		changed = changed[:len(changed)-1]
	}
	changed = append(changed, Entry{Table: TableSet, ID: first, Data: binary.AppendUvarint([]byte(blankSet), uint64(last-first+1))})
	for id := first + 1; id <= last; id++ {
		changed = append(changed, Entry{Table: TableSet, ID: id})
	}
	return changed
}

// loadBlank loads an entry that stands for blank sets.
func (d *Dict) loadBlank(t *tables, e *Entry) error {
	n, size := binary.Uvarint(e.Data[len(blankSet):])
	if size <= 0 || size != len(e.Data)-len(blankSet) || n == 0 || n > maxBlank || uint64(e.ID) != uint64(len(t[TableSet]))+1 {
		return corruptError("dictionary entry %d of table %d is not the next, or no blank one", e.ID, e.Table)
	}
	for range n {
		t[TableSet] = append(t[TableSet], "")
	}
	d.current.Store(t)
	return nil
}

// hasAny reports whether a set has any of the pairs.
func hasAny(set string, pairs map[uint64]bool) bool {
	r := readText(set)
	for r.readByte(); r.bytesLeft() > 0 && !r.bad; {
		if pairs[r.readUvarint()>>1] {
			return true
		}
	}
	return false
}

// ValuePairs returns the numbers of all values that are not forgotten.
func (d *Dict) ValuePairs() (ids []uint32) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	t := d.current.Load()
	for i := range t[TablePair] {
		if _, _, ok := d.liveValue(t, uint32(i+1)); ok {
			ids = append(ids, uint32(i+1))
		}
	}
	return ids
}

// liveValue returns a pair that is a value and not forgotten. d.mu is held.
func (d *Dict) liveValue(t *tables, id uint32) (data string, p pair, ok bool) {
	if data, ok = t.getEntry(TablePair, uint64(id)); !ok || d.index[TablePair][data] != id {
		return "", pair{}, false
	}
	p, ok = parsePair(data)
	return data, p, ok && p.kind == pairValue && !strings.HasPrefix(p.value, forgotten)
}

// knowsValue reports whether a value of that number is not forgotten.
func (d *Dict) knowsValue(id uint32) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	_, _, ok := d.liveValue(d.current.Load(), id)
	return ok
}
