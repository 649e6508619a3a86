package action

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Views gives pictures of this node's store.
type Views interface{ View() (*store.View, error) }

// Writer commits commands. An error leaves the outcome unknown.
type Writer interface {
	Write(ctx context.Context, c store.Command) (any, error)
}

// Documents is what a picture of the store has.
type Documents interface {
	Document(space, key string) ([]byte, bool, error)
	Documents(space, prefix string, yield func(store.Document) error) error
}

// Errors of the ledger.
var (
	// ErrChanged says that something else was written at the same moment.
	ErrChanged = errors.New("it has changed meanwhile")
	// ErrNone says that there is no such action, run or effect.
	ErrNone = errors.New("there is no such thing")
)

// held is a document with the bytes that were read, which are the condition of a
// change; nil bytes: it is not there.
type held[T any] struct {
	value *T
	space string
	key   string
	raw   []byte
}

func readDocument[T interface{ formatVersion() int }](from Documents, space, key string) (held[T], error) {
	h := held[T]{space: space, key: key}
	raw, ok, err := from.Document(space, key)
	if err != nil || !ok {
		return h, err
	}
	h.raw = raw
	if h.value, err = decodeDocument[T](raw); err != nil {
		return h, fmt.Errorf("%s %s: %w", space, key, err)
	}
	return h, nil
}

// unchangedCondition is the condition that the document is as it was read.
func (h *held[T]) unchangedCondition() store.Document { return newDocument(h.space, h.key, h.raw) }

// changedTo is the document with another value.
func (h *held[T]) changedTo(v *T) store.Document {
	return newDocument(h.space, h.key, encodeDocument(v))
}

func readActionState(from Documents, name Name) (held[State], error) {
	return readDocument[State](from, actionSpace, name.String())
}

func readRun(from Documents, name Name, run uint64) (held[Run], error) {
	return readDocument[Run](from, runSpace, name.runKey(run))
}

func readEffect(from Documents, name Name, run uint64, effect int) (held[Effect], error) {
	return readDocument[Effect](from, effectSpace, name.effectKey(run, effect))
}

// readContent puts the parts of an effect's bytes together and checks them.
func readContent(from Documents, name Name, run uint64, effect int, e *Effect) (*content, error) {
	var all []byte
	for part := range e.Parts {
		raw, ok, err := from.Document(payloadSpace, name.partKey(run, effect, part))
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("the bytes of effect %d of run %d of %s are not there", effect, run, name)
		}
		all = append(all, raw...)
	}
	c, err := decodeDocument[content](all)
	if err != nil {
		return nil, err
	}
	if digestOf(c.Payload) != e.Digest {
		return nil, fmt.Errorf("the bytes of effect %d of run %d of %s are damaged", effect, run, name)
	}
	return c, nil
}

func digestOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// commitDocuments writes a command; ErrChanged when a condition did not hold. It returns the
// command's index of the log.
func commitDocuments(ctx context.Context, w Writer, c *store.DocumentCommand) (uint64, error) {
	result, err := w.Write(ctx, c)
	if err != nil {
		return 0, err
	}
	done, ok := result.(store.DocumentResult)
	switch {
	case !ok:
		return 0, fmt.Errorf("the store answered with %T", result)
	case !done.Done:
		return 0, ErrChanged
	}
	return done.Index, nil
}
