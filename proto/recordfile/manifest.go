package recordfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bursar-accounting/bursar/proto/archived"
)

// ManifestFormat is the version of a manifest.
const ManifestFormat = 1

// Manifest says what an archive has. It is written when its files were read back.
type Manifest struct {
	Format  int       `json:"format"`
	Archive string    `json:"archive"` // such as 2024-03, or 2024-03-2 for a supplement
	Cluster string    `json:"cluster"` // its id
	Schema  Schema    `json:"schema"`
	From    time.Time `json:"from"`  // the records stopped then or later,
	To      time.Time `json:"to"`    // and before that
	UpTo    uint64    `json:"up_to"` // the change up to which the store was read
	Written time.Time `json:"written"`
	Content
	Files []Listed `json:"files"`
}

// Listed is a file of an archive.
type Listed struct {
	Name   string `json:"name"` // below the place of the archive
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ReadManifest reads a manifest.
func ReadManifest(text []byte) (m Manifest, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("it is not a manifest: %w", err)
	}
	if m.Format != ManifestFormat {
		return m, fmt.Errorf("its format is %d, and this program knows %d; use a newer one", m.Format, ManifestFormat)
	}
	if len(m.Files) == 0 {
		return m, errors.New("it lists no files")
	}
	return m, nil
}

// Check reads a file and says what differs from what is listed of it. It returns what the
// rows add up to; of AUDITOR's schema, which has not all of a row, only bytes are compared.
func (l *Listed) Check(in io.ReaderAt, size int64, s Schema) (Content, error) {
	if size != l.Bytes {
		return Content{}, fmt.Errorf("%s has %d bytes, want %d", l.Name, size, l.Bytes)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(in, 0, size)); err != nil {
		return Content{}, fmt.Errorf("%s: %w", l.Name, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != l.SHA256 {
		return Content{}, fmt.Errorf("%s has the sha256 %s, want %s", l.Name, got, l.SHA256)
	}
	f, err := Open(in, size)
	if err != nil {
		return Content{}, fmt.Errorf("%s: %w", l.Name, err)
	}
	var t Totals
	if s == Auditor {
		rows := uint64(0)
		err = f.Lines(0, func([]byte) error { rows++; return nil })
		return Content{Records: rows}, err
	}
	if err := f.Rows(func(r *archived.Row) error { t.Row(r); return nil }); err != nil {
		return Content{}, fmt.Errorf("%s: %w", l.Name, err)
	}
	return t.Content(), nil
}

// Differs says in which way what was read differs from what the manifest says; "" where it
// does not.
func (m *Manifest) Differs(c *Content) string {
	switch {
	case c.Records != m.Records:
		return fmt.Sprintf("%d records, want %d", c.Records, m.Records)
	case m.Schema == Auditor || c.Equal(&m.Content):
		return ""
	case c.Digest != m.Digest:
		return fmt.Sprintf("records with the digest %s, want %s", c.Digest, m.Digest)
	}
	return fmt.Sprintf("records that add up to %v, want %v", c.Sums, m.Sums)
}
