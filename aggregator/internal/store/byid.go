package store

import (
	"encoding/binary"
	"slices"
	"strings"
)

// plainIndex is an id that shows the closed row of that number.
type plainIndex struct {
	id  string
	seq uint64
}

// heading is an entry of a list by the eight bytes behind what all ids begin
// with.
type heading struct {
	head uint64
	at   int32
}

// sortByID sorts by id: first by headings, and by the rest only where these are
// equal.
func sortByID(list []plainIndex) {
	if len(list) < 2 {
		return
	}
	common := commonStart(list)
	order := make([]heading, len(list))
	for i := range list {
		order[i] = heading{prefixNumber(list[i].id[common:]), int32(i)}
	}
	order = sortByHead(order)
	sorted := make([]plainIndex, len(list))
	for i, h := range order {
		sorted[i] = list[h.at]
	}
	copy(list, sorted)
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && order[to].head == order[from].head {
			to++
		}
		if to-from > 1 {
			slices.SortFunc(list[from:to], func(a, b plainIndex) int { return strings.Compare(a.id, b.id) })
		}
		from = to
	}
}

// sortByHead sorts byte by byte, from the last to the first, those in which the
// headings differ.
func sortByHead(list []heading) []heading {
	other, differ := make([]heading, len(list)), uint64(0)
	for _, h := range list {
		differ |= h.head ^ list[0].head
	}
	for shift := 0; shift < 64; shift += 8 {
		if byte(differ>>shift) == 0 {
			continue
		}
		var start [257]int32
		for _, h := range list {
			start[int(byte(h.head>>shift))+1]++
		}
		for k := 1; k < len(start); k++ {
			start[k] += start[k-1]
		}
		for _, h := range list {
			k := byte(h.head >> shift)
			other[start[k]] = h
			start[k]++
		}
		list, other = other, list
	}
	return list
}

// commonStart returns how many bytes all ids begin with.
func commonStart(list []plainIndex) int {
	first, n := list[0].id, len(list[0].id)
	for i := range list {
		id := list[i].id
		n = min(n, len(id))
		for id[:n] != first[:n] {
			n--
		}
	}
	return n
}

// prefixNumber returns the first eight bytes of s as a number; a shorter s is filled up
// with zeros.
func prefixNumber(s string) uint64 {
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}
