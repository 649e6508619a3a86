package store

import (
	"encoding/binary"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"

	"github.com/bursar-accounting/bursar/proto/record"
)

// The tables: the first byte of every key. DESIGN.md says what is in them.
const (
	tableBlock      byte = 'b' // first seq: a columnar block
	tableZone       byte = 'y' // first seq: the block's zone
	tableWaiting    byte = 'p' // seq: a closed row or tombstone that no block has yet
	tableOpen       byte = 'o' // seq: a row whose run goes on
	tableIndex      byte = 'r' // record id: where its shown row is
	tableHeld       byte = 'h' // record id: what is held beyond the shown row
	tablePosting    byte = 'm' // kv, first seq: rows of the block that have it
	tableDict       byte = 'd' // dictionary entries
	tableDictState  byte = 'e' // the counters of the dictionary
	tableDead       byte = 'x' // first seq: bitmap of superseded rows
	tableConflict   byte = 'c' // record id
	tableStop       byte = 'w' // record id: a stop that waits for its body
	tableLeft       byte = 'l' // record id: what is held beside the shown row has a body that lost details
	tableCursor     byte = 'a' // agent
	tableQuarantine byte = 'q' // source, id
	tableGap        byte = 'g' // source, from, to, reason
	tableCounter    byte = 'k' // source
	tableStage      byte = 's' // upload, part
	tableStageHead  byte = 't' // upload
	tableFact       byte = 'n' // kind, source, at of those of which there are several
	tableDocument   byte = 'v' // space, key
	tableSum        byte = 'u' // first seq: what the live rows of the block add up to; alone: sums of the index and the lists
	tableState      byte = 'z' // the one value of everything small
)

var stateKey = []byte{tableState}

func seqKey(table byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{table}, seq)
}

func keySeq(key []byte) uint64 { return binary.BigEndian.Uint64(key[1:]) }

func textKey(table byte, id string) []byte {
	return append(append(make([]byte, 0, 1+len(id)), table), id...)
}

func keyText(key []byte) string { return string(key[1:]) }

// appendKeyText keeps the parts of a key apart; keys of one part sort together,
// not in the order of the text.
func appendKeyText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func appendKeyOrigin(b []byte, o record.Origin) []byte {
	return appendKeyText(appendKeyText(appendKeyText(b, o.Agent), o.Type), o.Label)
}

func sourceKey(table byte, o record.Origin) []byte { return appendKeyOrigin([]byte{table}, o) }

func quarantineKey(o record.Origin, id string) []byte {
	return append(sourceKey(tableQuarantine, o), id...)
}

func gapKey(g *Gap) []byte {
	b := sourceKey(tableGap, g.Source)
	b = appendKeyTime(appendKeyTime(b, g.From), g.To)
	return append(b, g.Reason...)
}

// appendKeyTime keeps the order of times, also of those before 1970.
func appendKeyTime(b []byte, t record.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t)^1<<63)
}

func factKey(f *Fact) []byte {
	b := appendKeyOrigin([]byte{tableFact, byte(f.Kind)}, f.Source)
	if f.Kind == FactCapacity || f.Kind == FactCount {
		b = appendKeyTime(b, f.At)
	}
	return b
}

func documentKey(space, key string) []byte {
	return append(appendKeyText([]byte{tableDocument}, space), key...)
}

func stageKey(u Upload, part uint32) []byte {
	return binary.BigEndian.AppendUint32(append([]byte{tableStage}, u[:]...), part)
}

func stageHeadKey(u Upload) []byte { return append([]byte{tableStageHead}, u[:]...) }

func postingKey(kv uint32, first uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32([]byte{tablePosting}, kv), first)
}

// prefixEnd returns the first key that does not begin with prefix.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// dictStateKey holds the counters of the dictionary.
var dictStateKey = []byte{tableDictState}

func dictKey(e *columns.Entry) []byte {
	return binary.BigEndian.AppendUint32([]byte{tableDict, byte(e.Table)}, e.ID)
}

func splitDictKey(key []byte) (columns.Table, uint32) {
	return columns.Table(key[1]), binary.BigEndian.Uint32(key[2:])
}
