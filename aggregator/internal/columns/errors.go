package columns

import (
	"errors"
	"fmt"
)

// ErrCorrupt is wrapped by the errors of all decoding: the bytes are not what
// this package wrote, or not against this dictionary.
var ErrCorrupt = errors.New("corrupt")

// ErrFormat is wrapped when the bytes have a format version that this release
// does not know.
var ErrFormat = errors.New("unknown format version")

// ErrRows is wrapped by [EncodeBlock] when the parts cannot make a block: no
// rows, more than [MaxRows], or numbers that do not ascend.
var ErrRows = errors.New("rows make no block")

func corruptError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
