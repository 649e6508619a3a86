package erasure

import (
	"encoding/json"
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// State is what the cluster remembers of the removal of names.
type State struct {
	Format int `json:"format"`
	// Last is when names were last removed, to the end; None before the first time.
	Last record.Time `json:"last"`
	// Records lost their names by then since the time before, and Total in all.
	Records int64 `json:"records"`
	Total   int64 `json:"total"`
	// Quarantined jobs were dropped then.
	Quarantined int `json:"quarantined"`
	// Archived records kept their names then.
	Archived int `json:"archived"`
	// Keys are secrets by calendar month, from which what takes the place of a name follows: a
	// person is one person in all records of a month. There are none but while names are
	// removed, so that nothing leads from a name to what took its place afterwards.
	Keys map[string][]byte `json:"keys,omitempty"`
}

const (
	stateSpace  = "retention"
	stateKey    = "state"
	stateFormat = 1
)

// Documents has the documents of the replicated state.
type Documents interface {
	Document(space, key string) ([]byte, bool, error)
}

// ReadState returns what is remembered.
func ReadState(from Documents) (*State, error) {
	s := &State{Format: stateFormat, Last: record.None}
	text, ok, err := from.Document(stateSpace, stateKey)
	if err != nil || !ok {
		return s, err
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read what is known of the removal of names: %w", err)
	}
	if s.Format != stateFormat {
		return nil, fmt.Errorf("read what is known of the removal of names: format %d, this program knows %d; upgrade it", s.Format, stateFormat)
	}
	return s, nil
}

// writeCommand is the command that writes the state.
func (s *State) writeCommand() (*store.DocumentCommand, error) {
	text, err := json.Marshal(s)
	return &store.DocumentCommand{Sets: []store.Document{{Space: stateSpace, Key: stateKey, Value: text}}}, err
}
