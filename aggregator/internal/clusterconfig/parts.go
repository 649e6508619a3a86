package clusterconfig

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// A document that does not fit into an entry of the log is kept in parts, and what is
// under the key of the configuration says which ones: the head.
const (
	formatParts = 2
	// inline bounds what is kept in one value: a commit has it, and what it replaces.
	inline = 96 << 10
	// partBytes are as many as a part has, but the last.
	partBytes = 256 << 10
	// MaxBytes bounds an encoded document.
	MaxBytes = 16 << 20
	// draftKey is where it is noted whose parts are being written.
	draftKey = "draft"
)

// ErrTooLarge says that a document is larger than a cluster takes.
var ErrTooLarge = errors.New("the configuration of the cluster is too large")

// Fits returns [ErrTooLarge] for a document that cannot be committed.
func (d *Document) Fits() error {
	if n := len(d.Encode()); n > MaxBytes {
		return fmt.Errorf("%w: its text is %d bytes, at most %d are possible; a directory of people may be split among sources, or leave out names and addresses", ErrTooLarge, n, MaxBytes)
	}
	return nil
}

// head stands in the place of a document that is kept in parts.
type head struct {
	Format int       `json:"format"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	// Digest is that of the document, and Parts how many it has.
	Digest string `json:"digest"`
	Parts  int    `json:"parts"`
}

// decodeHead reads a head; false when it is none.
func decodeHead(raw []byte) (h head, ok bool) {
	if err := decodeStrictly(raw, &h); err != nil || h.Format != formatParts || h.Parts < 1 || h.Parts > MaxBytes/partBytes {
		return head{}, false
	}
	_, err := ParseDigest(h.Digest)
	return h, err == nil
}

// partKeys are those of the parts.
func (h *head) partKeys() []string {
	list := make([]string, h.Parts)
	for i := range list {
		list[i] = fmt.Sprintf("part/%s/%03d", h.Digest, i)
	}
	return list
}

// readParts puts the parts together.
func (h *head) readParts(view Documents, raw []byte) (*Committed, error) {
	var text []byte
	for _, key := range h.partKeys() {
		part, ok, err := view.Document(space, key)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%w: the part %s is missing", ErrDocument, key)
		}
		text = append(text, part...)
	}
	if got := Digest(sha256.Sum256(text)); got.String() != h.Digest {
		return nil, fmt.Errorf("%w: its parts have the digest %s, want %s", ErrDocument, got, h.Digest)
	}
	d, err := Decode(text)
	if err != nil {
		return nil, err
	}
	return &Committed{Document: d, Digest: d.Digest(), By: h.By, At: h.At, raw: raw, parts: h.partKeys()}, nil
}

// Plan returns the commands, one after the other, that put d in the place of before,
// as [Commit] does; [Execute] has them done. Until the last one is, nothing changes for
// who reads. The error is [ErrTooLarge], or of the view.
func Plan(view Documents, d *Document, before *Committed, by string, at time.Time) ([]*store.DocumentCommand, error) {
	text := d.Encode()
	switch {
	case len(text) <= inline:
		return []*store.DocumentCommand{Commit(d, before, by, at)}, nil
	case len(text) > MaxBytes:
		return nil, d.Fits()
	}
	h := head{formatParts, by, at.UTC(), d.Digest().String(), (len(text) + partBytes - 1) / partBytes}
	mine := mustJSON(h)
	draft, steps, err := beginParts(view, &h, before, mine)
	if err != nil {
		return nil, err
	}
	i := 0
	for part := range slices.Chunk(text, partBytes) {
		steps = append(steps, &store.DocumentCommand{Needs: Since, If: []store.Document{draft}, Sets: []store.Document{{Space: space, Key: h.partKeys()[i], Value: part}}})
		i++
	}
	last := &store.DocumentCommand{
		Needs: Since,
		If:    []store.Document{{Space: space, Key: key}, draft},
		Sets:  []store.Document{{Space: space, Key: key, Value: mine}, {Space: space, Key: draftKey}},
	}
	if before != nil {
		last.If[0].Value = before.raw
		if !slices.Equal(before.parts, h.partKeys()) {
			last.Sets = append(last.Sets, deletedParts(before)...)
		}
	}
	return append(steps, last), nil
}

// beginParts notes whose parts are written from now on. Those that someone else has
// begun to write, and will never finish now, go.
func beginParts(view Documents, h *head, before *Committed, mine []byte) (store.Document, []*store.DocumentCommand, error) {
	draft := store.Document{Space: space, Key: draftKey, Value: mine}
	other, _, err := view.Document(space, draftKey)
	if err != nil {
		return draft, nil, err
	}
	c := &store.DocumentCommand{Needs: Since, If: []store.Document{{Space: space, Key: draftKey, Value: other}}, Sets: []store.Document{draft}}
	if o, ok := decodeHead(other); ok && o.Digest != h.Digest && (before == nil || !slices.Equal(o.partKeys(), before.parts)) {
		c.Sets = append(c.Sets, deletedParts(&Committed{parts: o.partKeys()})...)
	}
	return draft, []*store.DocumentCommand{c}, nil
}

// Execute has commands done, one after the other; false when one was not, because
// something else was committed meanwhile.
func Execute(ctx context.Context, write func(context.Context, store.Command) (any, error), steps []*store.DocumentCommand) (bool, error) {
	for _, c := range steps {
		result, err := write(ctx, c)
		if err != nil {
			return false, err
		}
		if r, ok := result.(store.DocumentResult); !ok || !r.Done {
			return false, nil
		}
	}
	return true, nil
}
