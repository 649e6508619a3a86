package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"github.com/bursar-accounting/bursar/proto/durable"
	"hash/crc32"
	"io/fs"
	"os"
)

// castagnoli is the polynomial of every CRC in this package.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Format versions of sealed files, which have the same form.
const (
	sealedFormat        = 1
	sealedJournalFormat = 2 // of raft.generation while a journal may hold entries
)

// sealed is a small JSON file that notices when it is damaged.
type sealed struct {
	Format int             `json:"format"`
	CRC32C string          `json:"crc32c"`
	Body   json.RawMessage `json:"body"`
}

func sumOf(b []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)) }

// writeSealed replaces the file at path by body, durably and as a whole.
func writeSealed(path string, body any) error { return writeSealedAs(path, sealedFormat, body) }

func writeSealedAs(path string, format int, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	file, err := json.Marshal(sealed{Format: format, CRC32C: sumOf(raw), Body: raw})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return durable.Replace(path, append(file, '\n'))
}

// readSealed reads what writeSealed wrote. The error is fs.ErrNotExist when
// there is no such file.
func readSealed(path string, body any) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return openSealed(path, file, body)
}

func openSealed(path string, file []byte, body any) error {
	var s sealed
	if err := json.Unmarshal(file, &s); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, path, err)
	}
	if s.Format != sealedFormat && s.Format != sealedJournalFormat {
		return fmt.Errorf("%w: %s: format %d, this program knows %d and %d", ErrFormat, path, s.Format, sealedFormat, sealedJournalFormat)
	}
	if sumOf(s.Body) != s.CRC32C {
		return fmt.Errorf("%w: %s: its checksum does not match", ErrCorrupt, path)
	}
	if err := json.Unmarshal(s.Body, body); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, path, err)
	}
	return nil
}

func fileExists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
