package clusterconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Format is the version of an encoded document.
const Format = 1

// ErrDocument is wrapped by the errors of [Decode] and [DecodeCommitted]: the
// bytes are no document, or a newer program wrote them.
var ErrDocument = errors.New("not a configuration of a cluster")

// Document is the part of a configuration that the whole cluster shares.
// Blocks of one type and the same labels are there once, see [New].
type Document struct {
	Blocks []Block
}

// Block is a block of the configuration with what is written in it, evaluated.
type Block struct {
	Type   string
	Labels []string
	// Values are the attributes as compact JSON; [Block.Set] adds one. What is
	// not written and has no effect is left out.
	Values map[string]json.RawMessage
	// Blocks stand in this one. Their order is kept.
	Blocks []Block

	// At is where the block is written, as file:line, and Places where its values
	// are. They do not travel.
	At     string
	Places map[string]string
}

// Set adds a value that is written at place. It panics when JSON cannot express
// the value: values are strings, numbers, booleans, and lists and maps of them.
func (b *Block) Set(name string, value any, place string) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("shared: value %s of %s: %v", name, b.Name(), err))
	}
	if b.Values == nil {
		b.Values, b.Places = map[string]json.RawMessage{}, map[string]string{}
	}
	b.Values[name], b.Places[name] = text, place
}

// Text reads a value that is a string; "" when there is none.
func (b *Block) Text(name string) (string, error) {
	raw, ok := b.Values[name]
	if !ok {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("%s: %s is no text: %s", b.Name(), name, raw)
	}
	return s, nil
}

// Name is how people write the block: its type and its labels.
func (b *Block) Name() string {
	var s strings.Builder
	s.WriteString(b.Type)
	for _, l := range b.Labels {
		s.WriteByte(' ')
		s.WriteString(strconv.Quote(l))
	}
	return s.String()
}

// compare orders blocks by type and labels.
func (b *Block) compare(o *Block) int {
	if c := strings.Compare(b.Type, o.Type); c != 0 {
		return c
	}
	return slices.Compare(b.Labels, o.Labels)
}

// New makes a document of blocks in any order. Of blocks that are there twice
// the first counts: who reads files reports them.
func New(blocks ...Block) *Document {
	list := slices.Clone(blocks)
	slices.SortStableFunc(list, func(a, b Block) int { return a.compare(&b) })
	return &Document{Blocks: slices.CompactFunc(list, func(a, b Block) bool { return a.compare(&b) == 0 })}
}

// Find returns the block of that type and those labels; nil when there is none.
func (d *Document) Find(typ string, labels ...string) *Block {
	want := &Block{Type: typ, Labels: labels}
	i, ok := slices.BinarySearchFunc(d.Blocks, want, func(b Block, want *Block) int { return b.compare(want) })
	if !ok {
		return nil
	}
	return &d.Blocks[i]
}

// Digest identifies what a document says, wherever it is written.
type Digest [sha256.Size]byte

// String returns the digest as 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest reads what [Digest.String] wrote.
func ParseDigest(s string) (d Digest, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) {
		return d, fmt.Errorf("%q is no digest: want %d hexadecimal digits", s, 2*len(d))
	}
	return Digest(b), nil
}

// Digest returns the digest of the document.
func (d *Document) Digest() Digest { return sha256.Sum256(d.Encode()) }

// The written form of a document.
type (
	jsonDocument struct {
		Format int         `json:"format"`
		Blocks []jsonBlock `json:"blocks"`
	}
	jsonBlock struct {
		Type   string                     `json:"type"`
		Labels []string                   `json:"labels,omitempty"`
		Values map[string]json.RawMessage `json:"values,omitempty"`
		Blocks []jsonBlock                `json:"blocks,omitempty"`
	}
)

// Encode returns the canonical bytes: documents that say the same have the same.
func (d *Document) Encode() []byte {
	return mustJSON(jsonDocument{Format, toJSON(d.Blocks)})
}

// mustJSON writes what is JSON already or strings, which cannot fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("shared: encode: %v", err))
	}
	return b
}

func toJSON(blocks []Block) []jsonBlock {
	list := make([]jsonBlock, len(blocks))
	for i := range blocks {
		b := &blocks[i]
		list[i] = jsonBlock{b.Type, b.Labels, b.Values, toJSON(b.Blocks)}
	}
	return list
}

// Decode reads what [Document.Encode] wrote, or what a person wrote like it.
// The error wraps [ErrDocument].
func Decode(text []byte) (*Document, error) {
	var j jsonDocument
	if err := strict(text, &j); err != nil {
		return nil, err
	}
	return fromJSON(j.Format, j.Blocks)
}

// strict decodes JSON that holds nothing unknown and nothing behind it.
func strict(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrDocument, err)
	}
	if dec.More() {
		return fmt.Errorf("%w: something stands behind it", ErrDocument)
	}
	return nil
}

func fromJSON(format int, list []jsonBlock) (*Document, error) {
	if format != Format {
		return nil, fmt.Errorf("%w: format version %d, this program knows %d", ErrDocument, format, Format)
	}
	blocks, err := blocksOf(list)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDocument, err)
	}
	d := New(blocks...)
	if len(d.Blocks) != len(blocks) {
		return nil, fmt.Errorf("%w: duplicate block", ErrDocument)
	}
	return d, nil
}

func blocksOf(list []jsonBlock) ([]Block, error) {
	blocks := make([]Block, len(list))
	for i, j := range list {
		if j.Type == "" {
			return nil, errors.New("a block has no type")
		}
		b := Block{Type: j.Type, Labels: j.Labels}
		for name, raw := range j.Values {
			value, err := canonical(raw)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", b.Name(), name, err)
			}
			b.Set(name, value, "")
		}
		inner, err := blocksOf(j.Blocks)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		b.Blocks = inner
		blocks[i] = b
	}
	return blocks, nil
}

// canonical reads a value so that it is written the same whoever wrote it.
func canonical(raw json.RawMessage) (value any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	if value == nil {
		return nil, errors.New("null is no value")
	}
	return value, nil
}
