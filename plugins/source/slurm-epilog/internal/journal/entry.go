package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
)

// Entry is an event with the time at which it came, see package journal. Its written
// form is the CRC32C of what follows, in hexadecimal digits, a blank, and the entry as
// JSON.
type Entry struct {
	Stamp int64 `json:"stamp"`
	event.Event
}

const sumLength = 8

func encodeEntry(e *Entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%s ", lineChecksum(text)), text...), nil
}

func lineChecksum(text []byte) []byte {
	return fmt.Appendf(nil, "%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

func parseEntry(line []byte) (e Entry, err error) {
	if len(line) <= sumLength+1 || line[sumLength] != ' ' {
		return Entry{}, fmt.Errorf("invalid entry %.40q", line)
	}
	if text := line[sumLength+1:]; !bytes.Equal(line[:sumLength], lineChecksum(text)) {
		return Entry{}, fmt.Errorf("wrong checksum of %.40q", line)
	} else if err := json.Unmarshal(text, &e); err != nil {
		return Entry{}, err
	}
	if e.Stamp <= 0 {
		return Entry{}, fmt.Errorf("invalid stamp %d", e.Stamp)
	}
	return e, e.Check()
}
