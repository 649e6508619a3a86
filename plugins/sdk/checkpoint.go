package sdk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// maxCheckpoint bounds a checkpoint that is read; the daemon keeps smaller ones.
const maxCheckpoint = 4 << 20

// EncodeCheckpoint writes a checkpoint, a struct of texts and numbers, as JSON. Its
// version is a member "v" (or "format").
func EncodeCheckpoint(c any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		panic(fmt.Sprintf("sdk: a checkpoint that is not JSON: %v", err))
	}
	return bytes.TrimSpace(out.Bytes())
}

// DecodeCheckpoint reads what EncodeCheckpoint wrote of that version into c, a pointer,
// and calls Check of c, if it has it. Nothing leaves c as it is; a checkpoint that cannot
// be understood is an error, because to start over and to skip are both wrong.
func DecodeCheckpoint(data []byte, version int, c any) error {
	if len(data) == 0 {
		return nil
	}
	if len(data) > maxCheckpoint {
		return fmt.Errorf("checkpoint: %d bytes are too many", len(data))
	}
	var is struct{ V, Format int }
	if err := json.Unmarshal(data, &is); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if got := cmp.Or(is.V, is.Format); got != version {
		return fmt.Errorf("checkpoint: version %d is not known, only %d; upgrade the plugin", got, version)
	}
	err := json.Unmarshal(data, c)
	if check, ok := c.(interface{ Check() error }); ok && err == nil {
		err = check.Check()
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
