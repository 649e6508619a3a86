package clusterconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Where the configuration is among the documents of the store.
const (
	space = "config"
	key   = "cluster"
)

// Committed is the configuration that is active.
type Committed struct {
	Document *Document
	Digest   Digest
	// By is the node or the person whose files it comes from, and At when it was
	// committed, by the clock of the node that led.
	By string
	At time.Time

	raw   []byte   // as it is in the store
	parts []string // keys of what raw does not hold
}

// committed is the written form.
type committed struct {
	Format   int             `json:"format"`
	By       string          `json:"by"`
	At       time.Time       `json:"at"`
	Settings json.RawMessage `json:"settings,omitempty"`
}

func (c *Committed) encodeCommitted() []byte {
	return mustJSON(committed{Format: Format, By: c.By, At: c.At.UTC(), Settings: c.Document.settingsOf()})
}

// DecodeCommitted reads what is kept in the store. The error wraps
// [ErrDocument].
func DecodeCommitted(raw []byte) (*Committed, error) {
	var j committed
	err := decodeStrictly(raw, &j)
	d, err := documentOf(j.Format, j.Settings, err)
	if err != nil {
		return nil, err
	}
	return &Committed{Document: d, Digest: d.Digest(), By: j.By, At: j.At, raw: raw}, nil
}

// Documents is what of a view of the store is needed to read the configuration.
type Documents interface {
	Document(space, key string) ([]byte, bool, error)
}

// Read returns the configuration that is committed; nil when none is yet.
func Read(view Documents) (*Committed, error) { return readCommitted(view, nil) }

// readCommitted is Read; it returns last when that is what is committed.
func readCommitted(view Documents, last *Committed) (*Committed, error) {
	raw, ok, err := view.Document(space, key)
	if err != nil || !ok {
		return nil, err
	}
	if last != nil && bytes.Equal(raw, last.raw) {
		return last, nil
	}
	c, err := decodeCommitted(view, raw)
	if err != nil {
		return nil, fmt.Errorf("the configuration in the log: %w", err)
	}
	return c, nil
}

// decodeCommitted reads what is kept in the store, in one value or in parts.
func decodeCommitted(view Documents, raw []byte) (*Committed, error) {
	if h, ok := decodeHead(raw); ok {
		return h.readParts(view, raw)
	}
	return DecodeCommitted(raw)
}

// Commit is the command that puts d, which must be small, in the place of before,
// which is nil when nothing is committed yet. Its result is a [store.DocumentResult]:
// it is not done when something else has been committed meanwhile. [Plan] is for
// documents of any size.
func Commit(d *Document, before *Committed, by string, at time.Time) *store.DocumentCommand {
	was := store.Document{Space: space, Key: key}
	if before != nil {
		was.Value = before.raw
	}
	next := Committed{Document: d, By: by, At: at}
	c := &store.DocumentCommand{Needs: Since, If: []store.Document{was}, Sets: []store.Document{{Space: space, Key: key, Value: next.encodeCommitted()}}}
	c.Sets = append(c.Sets, deletedParts(before)...)
	return c
}

// deletedParts deletes the parts of what is replaced.
func deletedParts(before *Committed) (sets []store.Document) {
	if before != nil {
		for _, part := range before.parts {
			sets = append(sets, store.Document{Space: space, Key: part})
		}
	}
	return sets
}
