package cluster

import (
	"errors"
	"fmt"
	"io"
)

// What a connection of the raft protocol is for; the byte is part of the
// greeting.
const (
	forRaft  byte = 'R' // messages of raft
	forOffer byte = 'O' // the caller has an image to keep
	forFetch byte = 'F' // the caller wants an image
	// forHistory: the caller leads and tells its history.
	forHistory byte = 'H'
)

// greetingFormat is the first byte of a greeting and of its answer.
const greetingFormat = 1

// maxID is the greatest length of a node's id.
const maxID = 64

// greeting opens every connection of the raft protocol. It names the node that
// is meant, so that an address which now belongs to another node never mixes
// the two: `01 | for | len | id meant | len | id of the caller`.
type greeting struct {
	use         byte
	meant, from string
}

// Answers to a greeting.
const (
	answerYes   byte = 0
	answerOther byte = 1 // another node is meant
	answerNo    byte = 2 // the node takes no such connection now
)

// answer is what the other node says: `01 | what | len | id of the answering node`.
type answer struct {
	what byte
	id   string
}

var errGreeting = errors.New("unfit greeting")

func (g greeting) encodeGreeting() []byte {
	out := []byte{greetingFormat, g.use}
	return appendID(appendID(out, g.meant), g.from)
}

func (a answer) encodeAnswer() []byte { return appendID([]byte{greetingFormat, a.what}, a.id) }

func appendID(to []byte, id string) []byte { return append(append(to, byte(len(id))), id...) }

// readGreeting reads a greeting and not a byte more.
func readGreeting(r io.Reader) (g greeting, err error) {
	if g.use, err = readHead(r); err != nil {
		return g, err
	}
	switch g.use {
	case forRaft, forOffer, forFetch, forHistory:
	default:
		return g, fmt.Errorf("%w: it asks for %q", errGreeting, g.use)
	}
	if g.meant, err = readID(r); err != nil {
		return g, err
	}
	g.from, err = readID(r)
	return g, err
}

// readAnswer reads an answer and not a byte more.
func readAnswer(r io.Reader) (a answer, err error) {
	if a.what, err = readHead(r); err != nil {
		return a, err
	}
	if a.what > answerNo {
		return a, fmt.Errorf("%w: the answer is %d", errGreeting, a.what)
	}
	a.id, err = readID(r)
	return a, err
}

func readHead(r io.Reader) (byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	if head[0] != greetingFormat {
		return 0, fmt.Errorf("%w: greeting format %d, this program knows %d", ErrFormat, head[0], greetingFormat)
	}
	return head[1], nil
}

func readID(r io.Reader) (string, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", err
	}
	id := make([]byte, n[0])
	if _, err := io.ReadFull(r, id); err != nil {
		return "", err
	}
	return string(id), checkID(string(id))
}

// checkID returns an error when id cannot name a node.
func checkID(id string) error {
	if id == "" || len(id) > maxID {
		return fmt.Errorf("%w: an id of %d bytes", errGreeting, len(id))
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' || c == '@' {
			return fmt.Errorf("%w: unfit id %q", errGreeting, id)
		}
	}
	return nil
}
