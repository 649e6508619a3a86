package columns

import "encoding/binary"

// encoder writes the parts of a frame.
type encoder struct {
	codec *codec
	plain bool // blobs are not compressed
	ranks []uint32
	buf   []byte
}

// encodeColumn encodes a column; nil when it is zero. Numbers in ids are encoded by
// the groups of their templates.
func (e *encoder) encodeColumn(c int, v, ids []uint64) []byte {
	if len(v) == 0 || highestOf(v) == 0 {
		return nil
	}
	var group []uint32
	if c >= colNumber && c < colNumber+maxNumbers && len(ids) > 0 {
		if e.ranks == nil {
			e.ranks = rankByAppearance(ids)
		}
		group = e.ranks
	}
	e.buf = e.codec.appendNumbers(e.buf[:0], v, group)
	return append([]byte(nil), e.buf...)
}

// rankByAppearance numbers the values of ids in order of appearance.
func rankByAppearance(ids []uint64) []uint32 {
	ranks := make([]uint32, len(ids))
	seen := map[uint64]uint32{}
	last, lastRank := ids[0]+1, uint32(0)
	for i, id := range ids {
		if id != last {
			r, ok := seen[id]
			if !ok {
				r = uint32(len(seen))
				seen[id] = r
			}
			last, lastRank = id, r
		}
		ranks[i] = lastRank
	}
	return ranks
}

// encodeBlob encodes bytes with their length; nil when there are none.
func (e *encoder) encodeBlob(data []byte) []byte { return e.encodeBytes(data, true) }

// encodeDigits is blob for bytes that are random more often than not.
func (e *encoder) encodeDigits(data []byte) []byte { return e.encodeBytes(data, isPackable(data)) }

func (e *encoder) encodeBytes(data []byte, try bool) []byte {
	if len(data) == 0 {
		return nil
	}
	return e.codec.appendStream(binary.AppendUvarint(nil, uint64(len(data))), data, try && !e.plain)
}

func (e *encoder) encodeEntries(entries []string) []byte {
	e.buf = e.buf[:0]
	for _, s := range entries {
		e.buf = appendField(e.buf, s)
	}
	return e.encodeBlob(e.buf)
}
