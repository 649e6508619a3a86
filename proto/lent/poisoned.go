//go:build poison || race

package lent

// Poisoned says that memory which is taken back is overwritten.
const Poisoned = true
