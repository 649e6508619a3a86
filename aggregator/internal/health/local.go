package health

import (
	"encoding/json"
	"errors"
	"fmt"
)

// localFormat is the version of what [Local.Encode] writes.
const localFormat = 1

// maxLocal bounds what another node may say of itself.
const maxLocal = 1 << 20

// ErrLocal is wrapped by the errors of [DecodeLocal].
var ErrLocal = errors.New("what a node says of itself cannot be read")

type sentLocal struct {
	Format int `json:"format"`
	Local
}

// Encode writes what the node knows of itself, for the others.
func (l Local) Encode() []byte {
	body, err := json.Marshal(sentLocal{localFormat, l})
	if err != nil {
		return nil // a time outside of the years 0 to 9999; it says nothing then
	}
	return body
}

// DecodeLocal reads what another node has written. Fields that this version does
// not know are left out: a newer node may have more to say.
func DecodeLocal(body []byte) (Local, error) {
	if len(body) > maxLocal {
		return Local{}, fmt.Errorf("%w: %d bytes", ErrLocal, len(body))
	}
	var s sentLocal
	if err := json.Unmarshal(body, &s); err != nil {
		return Local{}, fmt.Errorf("%w: %w", ErrLocal, err)
	}
	if s.Format != localFormat {
		return Local{}, fmt.Errorf("%w: format %d", ErrLocal, s.Format)
	}
	return s.Local, nil
}
