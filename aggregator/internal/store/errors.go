package store

import (
	"errors"
	"fmt"
)

// Errors of this package, matched with errors.Is.
var (
	// ErrCorrupt: what is on disk does not read. The node must be rebuilt from
	// its peers or a snapshot.
	ErrCorrupt = errors.New("store: damaged data")
	// ErrFormat: a newer program wrote the store.
	ErrFormat = errors.New("store: unknown format version")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("store: closed")
	// ErrQuery: a query that does not make sense, for example a page token of
	// another query.
	ErrQuery = errors.New("store: bad query")
	// ErrArchived: a question about a meta key that an archive took out of the store.
	ErrArchived = errors.New("details are archived")
	// ErrDetails: details of records cannot be read from the files of their archive.
	ErrDetails = errors.New("archived details cannot be read")
	// ErrSpill: a query that sorts more than fits into its memory may not write to
	// the disk now, or cannot.
	ErrSpill = errors.New("store: no room on disk to sort")
)

// checkFormat reads the leading format version of a stored value.
func (d *decoder) checkFormat(known byte) { //nolint:unparam // each format has a number of its own, and all are at their first
	if v := d.readByte(); d.err == nil && v != known {
		d.err = fmt.Errorf("%w: %d, this program knows %d", ErrFormat, v, known)
		d.b = nil
	}
}
