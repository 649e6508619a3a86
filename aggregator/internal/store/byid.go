package store

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// plainIndex is an id that shows the closed row of that number.
type plainIndex struct {
	id  string
	seq uint64
}

// sortByID sorts by id. It compares the eight bytes behind what all ids begin
// with as numbers, and the rest only where these are equal.
func sortByID(list []plainIndex) {
	if len(list) < 2 {
		return
	}
	type place struct {
		head uint64
		at   int32
	}
	common := commonStart(list)
	places := make([]place, len(list))
	for i := range list {
		places[i] = place{head(list[i].id[common:]), int32(i)}
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return strings.Compare(list[a.at].id, list[b.at].id)
	})
	sorted := make([]plainIndex, len(list))
	for i, p := range places {
		sorted[i] = list[p.at]
	}
	copy(list, sorted)
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

// head returns the first eight bytes of s as a number; a shorter s is filled up
// with zeros.
func head(s string) uint64 {
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}
