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
	Schedds map[string]reach `json:"schedds,omitempty"` // by their names in the configuration
	Import  *follow.Imported `json:"import,omitempty"`
	Told    facts.Told       `json:"told,omitzero"`
}

// reach is how far the ads of a schedd were read.
type reach struct {
	History *follow.State `json:"history,omitempty"`
	Epochs  *follow.State `json:"epochs,omitempty"`
	Jobs    *folder       `json:"jobs,omitempty"`  // files of one job each
	Runs    *folder       `json:"runs,omitempty"`  // files of the epochs of one job each
	Asked   *mark         `json:"asked,omitempty"` // what condor_history gave last
	AskedOf *mark         `json:"epoch,omitempty"` // what condor_history -epochs gave last
	follow.LastEnd
}

const checkpointVersion = 1

func (c checkpoint) encodeVersioned() []byte {
	c.Version = checkpointVersion
	return sdk.EncodeCheckpoint(c)
}

// withReach is c with another reach of a schedd.
func (c checkpoint) withReach(name string, r reach) checkpoint {
	c.Schedds = maps.Clone(c.Schedds)
	if c.Schedds == nil {
		c.Schedds = map[string]reach{}
	}
	c.Schedds[name] = r
	return c
}

// decodeCheckpoint reads what encode wrote. Nothing gives the zero checkpoint.
func decodeCheckpoint(b []byte) (c checkpoint, err error) {
	err = sdk.DecodeCheckpoint(b, checkpointVersion, &c)
	return c, err
}

// Check says what no plugin has written.
func (c *checkpoint) Check() error {
	for name, r := range c.Schedds {
		for _, s := range []*follow.State{r.History, r.Epochs} {
			if s == nil {
				continue
			}
			if err := s.Check(); err != nil {
				return fmt.Errorf("the schedd %s: %w", name, err)
			}
		}
		for _, f := range []*folder{r.Jobs, r.Runs} {
			if f == nil {
				continue
			}
			if err := f.Check(); err != nil {
				return fmt.Errorf("the schedd %s: %w", name, err)
			}
		}
	}
	return c.Import.Check()
}

// logState is how far the files of a kind were read.
func (r *reach) logState(of kind) follow.State {
	if s := [...]*follow.State{epochs: r.Epochs, history: r.History}[of]; s != nil {
		return *s
	}
	return follow.State{}
}

func (r *reach) setLog(of kind, s follow.State) {
	*[...]**follow.State{epochs: &r.Epochs, history: &r.History}[of] = &s
}

// folderState is how far the files of one job each were read.
func (r *reach) folderState(of kind) folder {
	if f := [...]*folder{epochs: r.Runs, history: r.Jobs}[of]; f != nil {
		return *f
	}
	return folder{}
}

func (r *reach) setFolder(of kind, f *folder) {
	*[...]**folder{epochs: &r.Runs, history: &r.Jobs}[of] = f
}
