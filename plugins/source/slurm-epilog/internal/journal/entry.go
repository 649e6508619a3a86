package journal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
)

// Entry is an event with the time at which it came, see package journal.
type Entry struct {
	Stamp int64
	event.Event
}

// A segment begins with the header. Each line behind it is the CRC32C of what
// follows, in hexadecimal digits, a blank, and an entry as JSON.
const header = "bursar-epilog-journal 1\n"

const sumLength = 8

type entryLine struct {
	Stamp int64 `json:"stamp"`
	event.Event
}

func appendEntry(b []byte, e *Entry) ([]byte, error) {
	text, err := json.Marshal(entryLine{e.Stamp, e.Event})
	if err != nil {
		return b, err
	}
	b = fmt.Appendf(b, "%08x ", sum(text))
	b = append(b, text...)
	return append(b, '\n'), nil
}

func sum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// parseEntry reads a line without its newline.
func parseEntry(line []byte) (Entry, error) {
	if len(line) <= sumLength+1 || line[sumLength] != ' ' {
		return Entry{}, fmt.Errorf("%.40q is no entry", line)
	}
	text := line[sumLength+1:]
	want, err := hex.DecodeString(string(line[:sumLength]))
	if err != nil || !bytes.Equal(want, sumBytes(text)) {
		return Entry{}, fmt.Errorf("the sum of %.40q is wrong", line)
	}
	var l entryLine
	if err := json.Unmarshal(text, &l); err != nil {
		return Entry{}, err
	}
	if l.Stamp <= 0 {
		return Entry{}, fmt.Errorf("%d is no stamp", l.Stamp)
	}
	if err := l.Check(); err != nil {
		return Entry{}, err
	}
	return Entry(l), nil
}

func sumBytes(text []byte) []byte {
	n := sum(text)
	return []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}
