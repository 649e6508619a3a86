// Package poison takes back memory that a function has lent to its caller.
//
// Memory is lent where copying costs too much: the caller must not use it after the
// moment that the contract names, because its owner writes something else there. A
// caller that keeps it reads wrong texts, and nothing else shows the mistake. So the
// owner calls this package at that moment. Built with the tag "poison", or for the race
// detector, the memory is overwritten at once, and every test of such a caller fails.
// Otherwise the functions do nothing.
//
// Types say what is lent: wire.Lender, store.Query with its field Lent, columns.Block
// with its method Lend, follow.Line, job.Lender of the HTCondor source, and functions that
// hand what they lend to another function until that returns. Everything else that the
// project's functions return belongs to the caller, and so does all that the plugins' SDK
// returns.
package poison

// Text is what a text that was taken back says.
const Text = "\xdb\xdblent memory was used after it was taken back\xdb\xdb"

// Bytes takes back b with all of its capacity.
func Bytes(b []byte) {
	if Enabled {
		b = b[:cap(b)]
		for i := range b {
			b[i] = Text[i%len(Text)]
		}
	}
}

// Slice takes back s: every element becomes dead.
func Slice[T any](s []T, dead T) {
	if Enabled {
		for i := range s {
			s[i] = dead
		}
	}
}
