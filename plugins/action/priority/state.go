package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// format is the version of what is kept on the cluster.
const format = 1

// state is what was set last where it cannot be read back, by group.
type state struct {
	Format int             `json:"format"`
	Set    map[string]last `json:"set"`
}

// last says when which commands have run.
type last struct {
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
}

const maxState = 64 << 10

// readState reads a state; nil is that of a new action.
func readState(b []byte) (state, error) {
	s := state{Format: format, Set: map[string]last{}}
	if len(b) == 0 {
		return s, nil
	}
	if err := readJSON(b, &s, &s.Format); err != nil {
		return s, fmt.Errorf("the state of the action: %w", err)
	}
	return s, nil
}

func (s *state) encodeState() ([]byte, error) {
	text, err := json.Marshal(s)
	if err == nil && len(text) > maxState {
		return nil, errors.New("what was set last is too much to be kept; configure read, so that nothing has to be kept")
	}
	return text, err
}

// payload is all that sets the priority of a group.
type payload struct {
	Format   int        `json:"format"`
	Priority int64      `json:"priority"`
	Commands [][]string `json:"commands"`
	Read     []string   `json:"read,omitempty"`
	Pattern  string     `json:"pattern,omitempty"`
}

func readPayload(b []byte) (payload, error) {
	var p payload
	if err := readJSON(b, &p, &p.Format); err != nil {
		return p, fmt.Errorf("the effect: %w", err)
	}
	return p, nil
}

// readJSON reads what has a format.
func readJSON(b []byte, to any, version *int) error {
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	if *version != format {
		return fmt.Errorf("it has format %d, and this plugin knows %d; run the newer plugin", *version, format)
	}
	return nil
}

// payloadDigest is the same for the same commands.
func (p *payload) payloadDigest() string {
	text, _ := json.Marshal(p) //nolint:errchkjson // of texts and numbers
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
