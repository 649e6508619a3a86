package wire

import "github.com/bursar-accounting/bursar/proto/poison"

// slab hands out small slices cut from larger ones, so that a thousand records
// cost a few allocations. What was handed out is not reused until reset. A slice is
// built with next and handed out with take; one at a time.
type slab[T any] struct {
	buf  []T // what was handed out and what is being built
	from int // where that begins
	full int // elements in slices before buf, since the last reset
}

// The number of elements that are allocated at once grows with use, so that a
// single record does not pay for a thousand.
const (
	slabFirst = 8
	slabMost  = 512 // below 32 KiB, from where allocating is slower
)

// nextElement puts a zero element behind what is being built and returns where it lies
// until the next one. All of buf beyond its length is zero.
func (a *slab[T]) nextElement() *T {
	n := len(a.buf)
	if n == cap(a.buf) {
		a.growSlab()
		n = len(a.buf)
	}
	a.buf = a.buf[:n+1]
	return &a.buf[n]
}

// growSlab moves what is being built to the start of a larger slice.
func (a *slab[T]) growSlab() {
	building := a.buf[a.from:]
	size := max(2*len(building), min(2*cap(a.buf), slabMost), slabFirst)
	a.full += a.from
	a.buf = append(make([]T, 0, size), building...)
	a.from = 0
}

// resetSlab takes back all that was handed out. The next slice has room for as much
// again.
func (a *slab[T]) resetSlab(dead T) {
	poison.Slice(a.buf, dead)
	if total := a.full + len(a.buf); total > cap(a.buf) || poison.Enabled {
		a.buf = make([]T, 0, total)
	}
	clear(a.buf)
	a.buf, a.from, a.full = a.buf[:0], 0, 0
}

// builtElements hands out what was built; nil when that is nothing.
func (a *slab[T]) builtElements() []T {
	from, to := a.from, len(a.buf)
	if from == to {
		return nil
	}
	a.from = to
	return a.buf[from:to:to]
}

// dropBuilt forgets what was being built.
func (a *slab[T]) dropBuilt() {
	clear(a.buf[a.from:])
	a.buf = a.buf[:a.from]
}
