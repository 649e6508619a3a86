package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
)

// state is which mails and pages were planned: digests of their ids, the newest last; behind
// that of a page is the digest of what it shows. An action that sends at most once keeps it as
// soon as the run is planned, so no later run plans one of them again.
type state struct {
	known [][]byte
	now   int // the last ones of known that this run has met or added
}

const (
	stateVersion = 1
	digestBytes  = 8
	// maxKnown is how many there are, below what a daemon keeps; one run plans fewer.
	maxKnown   = 8000
	maxEffects = 4000
)

func readState(b []byte) (state, error) {
	var s state
	if len(b) == 0 {
		return s, nil
	}
	if b[0] != stateVersion || len(b)%digestBytes != 1 {
		return s, errors.New("the state of the action has another format; run the newer plugin")
	}
	s.known = slices.Collect(slices.Chunk(bytes.Clone(b[1:]), digestBytes))
	return s, nil
}

// markRecent puts the mail with that id among the newest, where it was planned before.
func (s *state) markRecent(id string) {
	if i := s.findID(id); i >= 0 {
		s.known = append(slices.Delete(s.known, i, i+1), idDigest(id))
		s.now++
	}
}

func (s *state) hasMail(id string) bool { return s.findID(id) >= 0 }

// isFull reports whether that many more mails, with a page, would have another of the same run
// forgotten.
func (s *state) isFull(mails int) bool { return s.now+mails+2 > maxKnown }

// findID returns where an id is; -1 where it is not.
func (s *state) findID(id string) int {
	d := idDigest(id)
	return slices.IndexFunc(s.known, func(k []byte) bool { return bytes.Equal(k, d) })
}

func (s *state) addMail(id string) {
	s.known = append(s.known, idDigest(id))
	s.now++
}

// hasPage reports whether the page with that id was planned last with that content.
func (s *state) hasPage(id string, content []byte) bool {
	i := s.findID(id)
	return i >= 0 && i+1 < len(s.known) && bytes.Equal(s.known[i+1], idDigest(string(content)))
}

// storePage puts what a page shows into the place of what it showed; not where mails need the
// room: a page may be written again.
func (s *state) storePage(id string, content []byte) {
	if i := s.findID(id); i >= 0 {
		s.known = slices.Delete(s.known, i, min(i+2, len(s.known)))
	}
	if s.isFull(0) {
		return
	}
	s.known = append(s.known, idDigest(id), idDigest(string(content)))
	s.now += 2
}

// encodeState writes the state; what is oldest goes first.
func (s *state) encodeState() []byte {
	newest := s.known[max(0, len(s.known)-maxKnown):]
	return append([]byte{stateVersion}, bytes.Join(newest, nil)...)
}

func idDigest(id string) []byte {
	sum := sha256.Sum256([]byte(id))
	return sum[:digestBytes]
}
