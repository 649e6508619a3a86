package clusterconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/bursar-accounting/bursar/hcl"
)

// Format is the version of an encoded document. Programs of command version [Since] and
// newer read it.
const (
	Format = 3
	Since  = 4
)

// ErrDocument is wrapped by the errors of [Decode] and [DecodeCommitted]: the
// bytes are no document, or a newer program wrote them.
var ErrDocument = errors.New("not a configuration of a cluster")

// Document is the part of a configuration that the whole cluster shares.
type Document struct {
	// Settings are an object of JSON in canonical form: compact, the members of objects
	// in the order of their names. Empty is an empty object.
	Settings json.RawMessage
	// Written says where files have them; it does not travel.
	Written []hcl.Member
}

// Digest identifies what a document says, wherever it is written.
type Digest [sha256.Size]byte

// String returns the digest as 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest reads what [Digest.String] wrote.
func ParseDigest(s string) (d Digest, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) {
		return d, fmt.Errorf("invalid digest %q: want %d hexadecimal digits", s, 2*len(d))
	}
	return Digest(b), nil
}

// Digest returns the digest of the document.
func (d *Document) Digest() Digest { return sha256.Sum256(d.Encode()) }

// Encode returns the canonical bytes: documents that say the same have the same.
func (d *Document) Encode() []byte {
	return fmt.Appendf(nil, `{"format":%d,"settings":%s}`, Format, d.settingsOf())
}

func (d *Document) settingsOf() json.RawMessage {
	if len(d.Settings) == 0 {
		return json.RawMessage("{}")
	}
	return d.Settings
}

// mustJSON writes what is JSON already or strings, which cannot fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("shared: encode: %v", err))
	}
	return b
}

// Decode reads what [Document.Encode] wrote, or what a person wrote like it. The error
// wraps [ErrDocument].
func Decode(text []byte) (*Document, error) {
	var e struct {
		Format   int             `json:"format"`
		Settings json.RawMessage `json:"settings"`
	}
	err := decodeStrictly(text, &e)
	return documentOf(e.Format, e.Settings, err)
}

// documentOf makes a document of what was decoded with this error. Another format is named
// in place of what is unknown in it.
func documentOf(format int, encoded json.RawMessage, err error) (*Document, error) {
	if format != Format && (format != 0 || err == nil) {
		err = fmt.Errorf("%w: format version %d, this program knows %d", ErrDocument, format, Format)
	}
	if err != nil {
		return nil, err
	}
	var settings map[string]any
	dec := json.NewDecoder(bytes.NewReader(encoded))
	dec.UseNumber()
	if err = dec.Decode(&settings); err == nil && settings == nil {
		err = errors.New("settings is null")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDocument, err)
	}
	return &Document{Settings: mustJSON(settings)}, nil
}

// decodeStrictly decodes JSON that holds nothing unknown and nothing behind it.
func decodeStrictly(text []byte, into any) error {
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
