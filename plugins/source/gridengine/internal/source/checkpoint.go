package source

import (
	"fmt"
	"maps"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/follow"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// checkpoint is how far the source has come.
type checkpoint struct {
	Version int              `json:"v"`
	Cells   map[string]cell  `json:"cells,omitempty"`
	Import  *follow.Imported `json:"import,omitempty"`
	Told    facts.Told       `json:"told,omitzero"`
}

// cell is how far the accounting file of a cell was read.
type cell struct {
	follow.State
	follow.LastEnd
}

const checkpointVersion = 1

func (c checkpoint) encodeVersioned() []byte {
	c.Version = checkpointVersion
	return sdk.EncodeCheckpoint(c)
}

// withCell is c with another state of a cell.
func (c checkpoint) withCell(name string, s cell) checkpoint {
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
	return c.Import.Check()
}
