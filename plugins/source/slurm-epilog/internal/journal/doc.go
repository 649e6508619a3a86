// Package journal keeps events on disk until what came of them is safe with the
// daemon, and for some days more, so that they can be looked at again.
//
// A journal is a bbolt file. Each entry has a stamp, its key: when it came, in
// microseconds, always greater than all before. A position
// in a journal is a stamp, and means something in another journal too, such as one
// that was restored from a backup or created again: what came later is greater.
package journal
