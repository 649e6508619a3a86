package store

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/record"
)

var update = flag.Bool("update", false, "write the golden files of the present formats")

// golden is something that is kept or sent: its bytes, and how they are read.
type golden struct {
	name  string
	bytes []byte
	again func([]byte) ([]byte, error) // decodes and encodes; nil for what is only written
}

var (
	goldenRow = columns.Row{Record: sample("a", 1), Origin: slurm, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: 3}, Stop: record.None}
	goldenGap = Gap{Source: slurm, From: -1, To: t0, Reason: "lost", Noticed: t0 + 1}
)

// goldenArchive is an archive with all that it can have.
var goldenArchive = Archive{
	ArchiveStatement: ArchiveStatement{
		Name: "2026-03", From: t0, To: t0 + record.Day, UpTo: 300, Rows: archived.Sum{Count: 2, Hi: 3, Lo: 4}, Keep: []string{"group_id", "user_id"},
		Location: "/archive", Manifest: "2026/03.json", SHA256: "ab", Sums: []ArchiveTotal{{"Cores", "12"}},
	},
	State: ArchiveRemoving, Removed: 1, Since: t0 - 1, after: 7, seen: archived.Sum{Count: 1, Hi: 2, Lo: 3},
}

func goldenFact() *Fact { return &Fact{FactCapacity, slurm, -1, []byte("f")} }

// goldens has everything that is kept or sent.
func goldens() []golden {
	list := goldenCommands()
	list = append(list, goldenValues()...)
	list = append(list, goldenRecords()...)
	return append(list, goldenKeys()...)
}

func goldenCommands() (list []golden) {
	for _, c := range everyCommand() {
		name := strings.TrimPrefix(fmt.Sprintf("%T", c), "*store.")
		if d, ok := c.(*DocumentCommand); ok && d.Needs > 0 {
			name += fmt.Sprintf(" of version %d", d.Needs)
		}
		if a, ok := c.(*ArchiveCommand); ok && a.Op == ArchiveRestore {
			name += " that restores"
		}
		list = append(list, golden{name, Encode(c), func(b []byte) ([]byte, error) {
			c, err := Decode(b)
			if err != nil {
				return nil, err
			}
			return Encode(c), nil
		}})
	}
	return list
}

// again is the way back of a value whose decoder and encoder these are.
func again[T any](decode func([]byte) (T, error), encode func(T) []byte) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) {
		v, err := decode(b)
		if err != nil {
			return nil, err
		}
		return encode(v), nil
	}
}

func ownZone(b []byte) (*zone, error) { return decodeZone(1, b) }

// againPacked is the way back of a value that has one list of its fields.
func againPacked[T any, P interface {
	*T
	stored
}](format byte) func([]byte) ([]byte, error) {
	return again(func(b []byte) (T, error) { return decodeNew[T, P](b, format, "value") }, func(v T) []byte { return encodeValue(format, P(&v)) })
}

// Ways back of the stored values, by which also the fuzzing goes.
var (
	indexAgain       = again(decodeIndex, func(x index) []byte { return x.encodeIndex() })
	cursorAgain      = againPacked[Cursor](cursorFormat)
	stateAgain       = againPacked[state](stateFormat)
	zoneAgain        = again(ownZone, func(z *zone) []byte { return encodeValue(zoneFormat, z) })
	sumsAgain        = againPacked[summed](sumsFormat)
	blockSumAgain    = againPacked[Hash](sumsFormat)
	quarantinedAgain = againPacked[Quarantined](smallFormat)
	countsAgain      = again(decodeCounts, func(c Counts) []byte { return c.encodeCounts() })
	uploadAgain      = againPacked[stageHead](smallFormat)
	gapAgain         = againPacked[Gap](smallFormat)
	factAgain        = againPacked[Fact](smallFormat)
	archiveAgain     = againPacked[Archive](archiveFormat)
	waitingAgain     = again(decodeWaiting, (*waitingRow).encodeWaiting)
	openAgain        = again(columns.DecodeRow, func(r columns.Row) []byte { return columns.AppendRow(nil, &r) })
	heldAgain        = againHeld(&goldenRow)
	heldAloneAgain   = againHeld(nil)
)

func againHeld(row *columns.Row) func([]byte) ([]byte, error) {
	return again(func(b []byte) ([]record.Holding, error) { return decodeHeld("a", b, row) },
		func(hs []record.Holding) []byte { return encodeHeld(&record.Entry{ID: "a", Holdings: hs}, row) })
}

func goldenValues() []golden {
	return []golden{
		{"index", (&index{Seq: 300}).encodeIndex(), indexAgain},
		{"index with flags", (&index{Seq: 300, Open: true, Hidden: true, Held: true, Deleted: true, By: "me", At: t0}).encodeIndex(), indexAgain},
		{"index of an open row behind a tombstone", (&index{Seq: 300, Open: true, Tombstone: 299}).encodeIndex(), indexAgain},
		{"cursor", encodeValue(cursorFormat, &Cursor{Agent: "a", Epoch: Epoch{1}, Seq: 3, Digest: Chain{2}, Observed: 4, Pulled: t0,
			Checkpoints: []Checkpoint{{slurm, []byte("c")}}, Watermarks: []Watermark{{slurm, t0}}}), cursorAgain},
		{"state", encodeValue(stateFormat, &state{Cluster: "c", Version: 1, Index: 2, Term: 3, Next: 5, Clock: 6, Shown: 7, Rows: 8, Hash: Hash{9, 10}}), stateAgain},
		{"zone", encodeValue(zoneFormat, &zone{First: 1, Last: 2, Rows: 3, Dead: 1, Tombstones: 1, MinStart: t0, MaxStart: t0, MinStop: t0, MaxStop: t0, Bytes: 9}), zoneAgain},
		{"sums", (&memory{state: state{Index: 2}, sums: sums{Seqs: 5, Marks: Hash{6, 7}, Floor: 8, FeedFloor: 9}}).encodeSums(), sumsAgain},
		{"sum of a block", encodeValue(sumsFormat, &Hash{1, 2}), blockSumAgain},
		{"quarantined", encodeValue(smallFormat, &Quarantined{Source: slurm, ID: "q", Reason: "mapping", Raw: []byte("{}"), First: t0, Last: t0, Count: 1}), quarantinedAgain},
		{"counts", (&Counts{Pulled: 9, Added: 1, Merged: 2, Unchanged: 3, Quarantined: 3}).encodeCounts(), countsAgain},
		{"upload", encodeValue(smallFormat, &stageHead{Begun: t0, Parts: 2}), uploadAgain},
		{"gap", encodeValue(smallFormat, &goldenGap), gapAgain},
		{"fact", encodeValue(smallFormat, goldenFact()), factAgain},
		{"archive", encodeValue(archiveFormat, &goldenArchive), archiveAgain},
	}
}

func goldenRecords() []golden {
	row, open := goldenRow, goldenRow
	open.Record.Stop = record.None
	e := record.Entry{ID: "a", Holdings: []record.Holding{row.Holding(), {Origin: record.Pushed, Rank: record.RankPush, Version: record.Version{Observed: 1},
		Record: &record.Record{ID: "a", Start: t0, Stop: record.None, Submit: record.None}, Stop: t0, StopObserved: 9}}}
	numbered := row
	numbered.Seq = 1
	dict := columns.NewDict()
	block, err := columns.EncodeBlock(dict, columns.Part{Rows: []columns.Row{numbered}})
	if err != nil {
		panic(err)
	}
	h := rowHasher{}
	hash := h.hashRow(&row)
	return []golden{
		{"held", encodeHeld(&e, &row), heldAgain},
		{"held alone", encodeHeld(&e, nil), heldAloneAgain},
		{"waiting row", (&waitingRow{row: row, dead: true}).encodeWaiting(), waitingAgain},
		{"open row", columns.AppendRow(nil, &open), openAgain},
		{"dictionary state", block.State, againDict(block.Entries)},
		{"hash of a row", []byte(hash.String()), nil},
	}
}

func againDict(entries []columns.Entry) func([]byte) ([]byte, error) {
	return func(b []byte) ([]byte, error) {
		d := columns.NewDict()
		for _, e := range entries {
			if err := d.Load(e); err != nil {
				return nil, err
			}
		}
		err := d.LoadState(b)
		return d.State(), err
	}
}

func goldenKeys() []golden {
	seq := func(table byte) golden {
		return golden{"key " + string(table), seqKey(table, 300), func(b []byte) ([]byte, error) { return seqKey(b[0], keySeq(b)), nil }}
	}
	text := func(table byte) golden {
		return golden{"key " + string(table), textKey(table, "job"), func(b []byte) ([]byte, error) { return textKey(b[0], keyText(b)), nil }}
	}
	return []golden{
		seq(tableBlock), seq(tableZone), seq(tableWaiting), seq(tableOpen), seq(tableDead), seq(tableSum),
		text(tableIndex), text(tableHeld), text(tableConflict), text(tableStop), text(tableCursor),
		{"key m", postingKey(7, 300), nil},
		{"key d", dictKey(&columns.Entry{Table: columns.TableKey, ID: 5}), func(b []byte) ([]byte, error) {
			table, id := splitDictKey(b)
			return dictKey(&columns.Entry{Table: table, ID: id}), nil
		}},
		{"key e", dictStateKey, nil},
		{"key q", quarantineKey(slurm, "job"), nil},
		{"key g", gapKey(&goldenGap), nil},
		{"key k", sourceKey(tableCounter, slurm), func(b []byte) ([]byte, error) {
			o, err := keyOrigin(b[1:])
			return sourceKey(b[0], o), err
		}},
		{"key s", stageKey(Upload{1}, 2), nil},
		{"key t", stageHeadKey(Upload{1}), nil},
		{"key n", factKey(goldenFact()), nil},
		{"key n of a census", factKey(&Fact{Kind: FactCensus, Source: slurm, At: t0}), nil},
		{"key v", documentKey("space", "key"), nil},
		{"key u alone", sumsKey, nil},
		{"key z", stateKey, nil},
	}
}

const goldenFile = "testdata/formats-1.golden"

func TestFormatsAreThoseThatWereReleased(t *testing.T) {
	list := goldens()
	if *update {
		writeGoldens(t, list)
	}
	lines := goldenLines(t)
	if len(lines) != len(list) {
		t.Errorf("%d formats, %d in the golden file", len(list), len(lines))
	}
	for _, g := range list {
		if want, ok := lines[g.name]; !ok || !bytes.Equal(g.bytes, want) {
			t.Errorf("%s\ngot  %x\nwant %x", g.name, g.bytes, want)
		}
	}
}

func TestWhatWasReleasedIsReadAndWrittenAsItWas(t *testing.T) {
	lines := goldenLines(t)
	for _, g := range goldens() {
		if g.again == nil {
			continue
		}
		if got, err := g.again(lines[g.name]); err != nil || !bytes.Equal(got, lines[g.name]) {
			t.Errorf("%s: %v\ngot  %x\nwant %x", g.name, err, got, lines[g.name])
		}
	}
}

func writeGoldens(t *testing.T, list []golden) {
	t.Helper()
	var text strings.Builder
	for _, g := range list {
		fmt.Fprintf(&text, "%s\t%s\n", g.name, hex.EncodeToString(g.bytes))
	}
	err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(goldenFile, []byte(text.String()), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

func goldenLines(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if lines[name], err = hex.DecodeString(value); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

func FuzzStoredValues(f *testing.F) {
	for _, g := range goldens() {
		f.Add(g.bytes)
	}
	ways := map[string]func([]byte) ([]byte, error){"index": indexAgain, "cursor": cursorAgain, "state": stateAgain, "zone": zoneAgain,
		"sums": sumsAgain, "sum of a block": blockSumAgain,
		"quarantined": quarantinedAgain, "counts": countsAgain, "upload": uploadAgain, "gap": gapAgain, "fact": factAgain,
		"waiting": waitingAgain, "open": openAgain, "held": heldAgain, "held alone": heldAloneAgain}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, way := range ways {
			once, err := way(data)
			if err != nil {
				continue
			}
			if twice, err := way(once); err != nil || !bytes.Equal(once, twice) {
				t.Errorf("%s: what was read of %x and written as %x is read as %x, %v", name, data, once, twice, err)
			}
		}
		_, _ = keyOrigin(data)
	})
}
