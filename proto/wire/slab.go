package wire

// slab hands out small slices cut from larger ones, so that a thousand records
// cost a few allocations. What was handed out is never reused.
type slab[T any] struct{ free []T }

// slabSize is how many elements are allocated at once. It grows with use, so
// that a single record does not pay for a thousand.
const (
	slabFirst = 8
	slabMost  = 512
)

// keep returns a copy of s; nil when s is empty.
func (a *slab[T]) keep(s []T) []T {
	if len(s) == 0 {
		return nil
	}
	if len(s) > cap(a.free)-len(a.free) {
		size := min(max(2*cap(a.free), slabFirst), slabMost)
		a.free = make([]T, 0, max(size, len(s)))
	}
	n := len(a.free)
	a.free = append(a.free, s...)
	return a.free[n:len(a.free):len(a.free)]
}
