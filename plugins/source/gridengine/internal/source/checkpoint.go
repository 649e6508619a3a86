package source

import (
	"fmt"
	"maps"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// checkpoint is how far the source has come.
type checkpoint struct {
	Version int             `json:"v"`
	Cells   map[string]cell `json:"cells,omitempty"`
	Import  *imported       `json:"import,omitempty"`
	Told    facts.Told      `json:"told,omitzero"`
}

// cell is how far the accounting file of a cell was read.
type cell struct {
	follow.State

	At int64 `json:"at,omitempty"` // the latest end of a run that was read, milliseconds; 0: none
}

// imported is how far the files of an import were read.
type imported struct {
	Path   string `json:"path"` // of the file that was read last; those before it are done
	Offset int64  `json:"offset"`
}

const checkpointVersion = 1

func (c checkpoint) encode() []byte {
	c.Version = checkpointVersion
	return sdk.EncodeCheckpoint(c)
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

// decodeCheckpoint reads what encode wrote. Nothing gives the zero checkpoint.
func decodeCheckpoint(b []byte) (c checkpoint, err error) {
	err = sdk.DecodeCheckpoint(b, checkpointVersion, &c)
	return c, err
}

// Check says what no plugin has written.
func (c *checkpoint) Check() error {
	for name, s := range c.Cells {
		if err := s.Check(); err != nil {
			return fmt.Errorf("the cell %s: %w", name, err)
		}
	}
	if c.Import != nil && c.Import.Offset < 0 {
		return fmt.Errorf("%d is not an offset", c.Import.Offset)
	}
	return nil
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
