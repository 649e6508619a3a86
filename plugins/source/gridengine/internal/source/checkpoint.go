package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/follow"
)

// checkpoint is how far the source has come.
type checkpoint struct {
	Version int             `json:"v"`
	Cells   map[string]cell `json:"cells,omitempty"`
	Import  *imported       `json:"import,omitempty"`
	Told    told            `json:"told,omitzero"`
}

// cell is how far the accounting file of a cell was read.
type cell struct {
	follow.State

	At int64 `json:"at,omitempty"` // the latest end of a run that was read, milliseconds; 0: none
}

// told are the digests of the facts that were sent last; "" for none.
type told struct {
	Capacity  string `json:"capacity,omitempty"`
	Directory string `json:"directory,omitempty"`
}

// imported is how far the files of an import were read.
type imported struct {
	Path   string `json:"path"` // of the file that was read last; those before it are done
	Offset int64  `json:"offset"`
}

const (
	checkpointVersion = 1
	maxCheckpoint     = 256 << 10
)

// encode writes c.
func (c checkpoint) encode() []byte {
	c.Version = checkpointVersion
	text, err := json.Marshal(c)
	if err != nil { // cannot be: text and numbers
		return nil
	}
	return text
}

// with is c with another state of a cell.
func (c checkpoint) with(name string, s cell) checkpoint {
	c.Cells = maps.Clone(c.Cells)
	if c.Cells == nil {
		c.Cells = map[string]cell{}
	}
	c.Cells[name] = s
	return c
}

// decodeCheckpoint reads what encode wrote. Nothing gives the zero checkpoint; a
// checkpoint that cannot be understood is an error, because to start over or to
// skip are both wrong.
func decodeCheckpoint(b []byte) (checkpoint, error) {
	var c checkpoint
	if len(b) == 0 {
		return c, nil
	}
	if len(b) > maxCheckpoint {
		return c, fmt.Errorf("checkpoint: %d bytes are too many", len(b))
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	if c.Version != checkpointVersion {
		return checkpoint{}, fmt.Errorf("checkpoint: version %d is not known, only %d", c.Version, checkpointVersion)
	}
	for name, s := range c.Cells {
		if err := s.Check(); err != nil {
			return checkpoint{}, fmt.Errorf("checkpoint of the cell %s: %w", name, err)
		}
	}
	if c.Import != nil && c.Import.Offset < 0 {
		return checkpoint{}, fmt.Errorf("checkpoint: %d is not an offset", c.Import.Offset)
	}
	return c, nil
}

// last is the latest end of a run that was read; the zero time for none.
func (s *cell) last() time.Time {
	if s.At == 0 {
		return time.Time{}
	}
	return time.UnixMilli(s.At).UTC()
}

// seen notes the end of a run. Those in the future, of a wrong clock, do not count.
func (s *cell) seen(end, now time.Time) {
	if end.Before(now.Add(time.Hour)) {
		s.At = max(s.At, end.UnixMilli())
	}
}
