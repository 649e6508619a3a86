package cluster

import "sort"

// shape is what is known in memory of each entry in the log: its size and
// whether it is a command. Entries are dense from first on.
type shape struct {
	first uint64
	ends  []int64 // bytes up to and with each entry, from an arbitrary origin
	cmds  []uint64
	base  int64
}

// addEntry notes an entry. One that is not the next replaces what it overlaps and
// forgets what lies before a gap.
func (s *shape) addEntry(index uint64, size int, command bool) {
	next := s.first + uint64(len(s.ends))
	switch {
	case len(s.ends) == 0 || index > next || index < s.first:
		*s = shape{first: index}
	case index < next:
		s.cutTail(index)
	}
	s.ends = append(s.ends, s.totalBytes()+int64(size))
	if command {
		s.cmds = append(s.cmds, index)
	}
}

func (s *shape) totalBytes() int64 {
	if len(s.ends) == 0 {
		return s.base
	}
	return s.ends[len(s.ends)-1]
}

// cutRange forgets the entries from min to max. Raft cuts at the head or the tail.
func (s *shape) cutRange(min, max uint64) {
	next := s.first + uint64(len(s.ends))
	switch {
	case len(s.ends) == 0 || max < s.first || min >= next:
	case min <= s.first && max+1 >= next:
		*s = shape{}
	case min <= s.first:
		s.cutHead(max + 1)
	default:
		s.cutTail(min)
	}
}

// cutHead keeps what is at index and after.
func (s *shape) cutHead(index uint64) {
	n := index - s.first
	s.base = s.ends[n-1]
	s.ends = append([]int64(nil), s.ends[n:]...)
	s.cmds = append([]uint64(nil), s.cmds[s.commandsBefore(index):]...)
	s.first = index
}

// cutTail keeps what is before index.
func (s *shape) cutTail(index uint64) {
	s.ends = s.ends[:index-s.first]
	s.cmds = s.cmds[:s.commandsBefore(index)]
}

func (s *shape) commandsBefore(index uint64) int {
	return sort.Search(len(s.cmds), func(i int) bool { return s.cmds[i] >= index })
}

func (s *shape) bytesAfter(index uint64) int64 {
	if len(s.ends) == 0 || index < s.first {
		return s.totalBytes() - s.base
	}
	if index >= s.first+uint64(len(s.ends)) {
		return 0
	}
	return s.totalBytes() - s.ends[index-s.first]
}

func (s *shape) newestWithin(budget int64) uint64 {
	total := s.totalBytes()
	at := sort.Search(len(s.ends), func(i int) bool { return total-s.ends[i] <= budget })
	if n := len(s.ends) - at; at > 0 || total-s.base > budget {
		return uint64(max(n-1, 0))
	}
	return uint64(len(s.ends))
}

func (s *shape) lastCommand(index uint64) uint64 {
	n := s.commandsBefore(index + 1)
	if n == 0 {
		return 0
	}
	return s.cmds[n-1]
}
