package archive

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// The document in the replicated state that tells the lives of a cluster apart.
const (
	incarnationSpace  = "cluster"
	incarnationKey    = "incarnation"
	incarnationFormat = 1
)

// Incarnation is one life of a cluster. It ends with a restore, which takes the
// cluster back to what it was; what had been told about the time after that is
// no longer so. A cluster that was never restored has the zero Incarnation.
type Incarnation struct {
	Format int `json:"format"`
	// ID is random.
	ID string `json:"id"`
	// Restores counts how often this history was taken back.
	Restores int `json:"restores"`
	// From is the archive's index, Hash its state hash and Made its time.
	From uint64    `json:"from"`
	Hash string    `json:"hash"`
	Made time.Time `json:"made"`
	// Restored is when, by the clock of the node that took the archive.
	Restored time.Time `json:"restored"`
}

// nextIncarnation is the incarnation that a restore of the archive begins.
func (i Incarnation) nextIncarnation(m *Meta, now time.Time) Incarnation {
	return Incarnation{
		Format: incarnationFormat, ID: rand.Text(), Restores: i.Restores + 1,
		From: m.Index, Hash: m.Hash, Made: m.Made, Restored: now.UTC().Truncate(time.Millisecond),
	}
}

// documents is what a [store.View] and a [store.Image] have.
type documents interface {
	Document(space, key string) ([]byte, bool, error)
}

// IncarnationDocument is the space and key of what changes with the incarnation.
func IncarnationDocument() store.Document {
	return store.Document{Space: incarnationSpace, Key: incarnationKey}
}

// ReadIncarnation returns the incarnation of a state.
func ReadIncarnation(from documents) (Incarnation, error) {
	raw, ok, err := from.Document(incarnationSpace, incarnationKey)
	if err != nil || !ok {
		return Incarnation{}, err
	}
	return decodeIncarnation(raw)
}

// Epoch names the history of a cluster that a view is the present of: it is another one in
// a cluster that was founded anew, and after each restore. Numbers of changes of one epoch say
// nothing in another.
func Epoch(v *store.View) (string, error) {
	life, err := ReadIncarnation(v)
	if err != nil || life.ID != "" {
		return life.ID, err
	}
	id, _ := v.Cluster()
	return id, nil
}

func decodeIncarnation(raw []byte) (i Incarnation, err error) {
	if err := json.Unmarshal(raw, &i); err != nil {
		return Incarnation{}, fmt.Errorf("incarnation of the cluster: %w", err)
	}
	if i.Format != incarnationFormat || i.ID == "" {
		return Incarnation{}, fmt.Errorf("incarnation of the cluster: %w: %d", ErrFormat, i.Format)
	}
	return i, nil
}

// asCommand is what makes i the incarnation of a state, with other changes.
func (i Incarnation) asCommand(others []store.Document) (store.Command, error) {
	raw, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	sets := append(slices.Clone(others), store.Document{Space: incarnationSpace, Key: incarnationKey, Value: raw})
	return &store.DocumentCommand{Sets: sets}, nil
}

// beginIn makes i the incarnation of the image in dir, with other changes.
func (i Incarnation) beginIn(dir string, others []store.Document) error {
	cmd, err := i.asCommand(others)
	if err != nil {
		return err
	}
	result, err := store.ChangeImage(dir, cmd)
	if err != nil {
		return err
	}
	if done, ok := result.(store.DocumentResult); !ok || !done.Done {
		return errors.New("the image did not take its new incarnation")
	}
	return nil
}
