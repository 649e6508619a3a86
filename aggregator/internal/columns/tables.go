package columns

import (
	"encoding/binary"
	"math"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Table names one of the dictionaries. Its number is part of the stored formats.
type Table uint8

// The tables, in the order in which they must be loaded: an entry refers to
// entries of tables before its own only.
const (
	TableKey      Table = 1 // keys of meta
	TablePair     Table = 2 // pairs of key and value, and markers; see [Dict.KV]
	TableSet      Table = 3 // metas: lists of pairs
	TableTemplate Table = 4 // components without their amounts
	TableOrigin   Table = 5 // origins with their rank
	TableEnd      Table = 6 // end state and exit
	TableID       Table = 7 // record ids without what differs

	numTables = 8
)

// What a pair holds.
const (
	pairValue  = 0 // a value of the key
	pairEmpty  = 1 // the key has no values
	pairInline = 2 // marker: the value is in the row
)

// tables holds the entries of all dictionaries as they are stored; the id of an
// entry is its index plus one, and 0 is none. All entries have been checked.
type tables [numTables][]string

func (t *tables) getEntry(table Table, id uint64) (string, bool) {
	if id == 0 || id > uint64(len(t[table])) {
		return "", false
	}
	return t[table][id-1], true
}

// pair is an entry of TablePair.
type pair struct {
	key   uint32
	kind  byte
	value string
}

func appendPair(b []byte, p pair) []byte {
	b = append(binary.AppendUvarint(b, uint64(p.key)), p.kind)
	return append(b, p.value...)
}

func parsePair(data string) (pair, bool) {
	r := readText(data)
	key, kind := r.readUvarint(), r.readByte()
	return pair{key: uint32(key), kind: kind, value: data[len(data)-r.bytesLeft():]},
		!r.bad && kind <= pairInline && key <= math.MaxUint32 && (kind == pairValue || r.bytesLeft() == 0)
}

func (t *tables) getPair(id uint64) (pair, bool) {
	data, ok := t.getEntry(TablePair, id)
	if !ok {
		return pair{}, false
	}
	return parsePair(data)
}

// checkEntry reports whether data can be the next entry of the table.
func (t *tables) checkEntry(table Table, data string) bool {
	switch table {
	case TableKey:
		return true
	case TablePair:
		p, ok := parsePair(data)
		return ok && (p.key == 0 && p.kind == pairInline || p.key != 0 && uint64(p.key) <= uint64(len(t[TableKey])))
	case TableSet:
		return t.checkSet(data)
	case TableTemplate:
		_, ok := parseTemplate(data)
		return ok
	case TableOrigin:
		_, _, ok := parseOrigin(data)
		return ok
	case TableEnd:
		_, _, ok := parseEnd(data)
		return ok
	case TableID:
		_, ok := shapeOf(data)
		return ok
	}
	return false
}

// A set is 0 for an absent meta, or 1 and its items: pair << 1 | whether the
// item goes on with the key of the item before.
func (t *tables) checkSet(data string) bool {
	r := readText(data)
	present := r.readByte()
	if r.bad || present > 1 || present == 0 && r.bytesLeft() > 0 {
		return false
	}
	for r.bytesLeft() > 0 {
		if id := r.readUvarint() >> 1; id == 0 || id > uint64(len(t[TablePair])) {
			return false
		}
	}
	return !r.bad
}

// template is a parsed entry of TableTemplate.
type template []record.Component

func appendTemplate(b []byte, components []record.Component) []byte {
	b = binary.AppendUvarint(b, uint64(len(components)))
	for i := range components {
		c := &components[i]
		b = append(appendField(b, c.Name), byte(c.Kind))
		b = appendCount(b, len(c.Scores), c.Scores == nil)
		for _, s := range c.Scores {
			b = binary.LittleEndian.AppendUint64(appendField(b, s.Name), math.Float64bits(s.Value))
		}
	}
	return b
}

// appendCount keeps a slice that is nil (0) and an empty one (1) apart.
func appendCount(b []byte, n int, absent bool) []byte {
	if absent {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(n)+1)
}

// readCount reads the number of elements that take at least one byte each.
func (r *reader) readCount() (n int, absent bool) {
	u := r.readUvarint()
	if u == 0 {
		return 0, true
	}
	if u-1 > uint64(r.bytesLeft()) {
		r.failReading()
		return 0, false
	}
	return int(u - 1), false
}

func parseTemplate(data string) (template, bool) {
	r := readText(data)
	t := r.readComponents()
	return t, r.isDone()
}

func (r *reader) readComponents() template {
	n := r.readUvarint()
	if n > uint64(r.bytesLeft()) {
		r.failReading()
		return nil
	}
	t := make(template, 0, min(n, 64))
	for range n {
		c := record.Component{Name: r.readText(), Kind: record.Kind(r.readByte())}
		c.Scores = r.readScores()
		if r.bad {
			return nil
		}
		t = append(t, c)
	}
	return t
}

func (r *reader) readScores() []record.Score {
	n, absent := r.readCount()
	if absent || r.bad {
		return nil
	}
	scores := make([]record.Score, 0, min(n, 64))
	for range n {
		s := record.Score{Name: r.readText(), Value: math.Float64frombits(r.uint64())}
		if r.bad {
			return nil
		}
		scores = append(scores, s)
	}
	return scores
}

func appendOrigin(b []byte, o record.Origin, rank record.Rank) []byte {
	b = appendField(append(b, byte(rank)), o.Agent)
	return appendField(appendField(b, o.Type), o.Label)
}

func parseOrigin(data string) (record.Origin, record.Rank, bool) {
	r := readText(data)
	rank := record.Rank(r.readByte())
	o := record.Origin{Agent: r.readText(), Type: r.readText(), Label: r.readText()}
	return o, rank, r.isDone()
}

func appendEnd(b []byte, state string, exit record.Exit) []byte {
	b = appendBool(appendField(b, state), exit.Known)
	b = binary.AppendVarint(b, int64(exit.Code))
	return binary.AppendVarint(b, int64(exit.Signal))
}

func parseEnd(data string) (string, record.Exit, bool) {
	r := readText(data)
	state, known := r.readText(), r.readByte()
	code, signal := r.readVarint(), r.readVarint()
	return state, record.Exit{Known: known == 1, Code: int32(code), Signal: int32(signal)},
		r.isDone() && known <= 1 && code == int64(int32(code)) && signal == int64(int32(signal))
}
