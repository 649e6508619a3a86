package cluster

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	identityFile = "node.id"
	markerFile   = "raft.generation"
)

// identity is the body of node.id.
type identity struct {
	ID string `json:"id"`
}

// marker is the body of raft.generation. It lies outside the raft directory and
// says that the node with this id has voted or stored entries, so that a lost
// raft.db is told from a new node. Generation counts the raft.db files that the
// node has had with an operator's consent.
type marker struct {
	Node       string `json:"node"`
	Generation int    `json:"generation"`
}

// Identity returns the id of the node whose data directory is dataDir: a random
// UUID, made and stored durably in node.id at the first call. A directory that
// belonged to a member but has lost its node.id gets no new one: ErrForgotten.
func Identity(dataDir string) (string, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", fmt.Errorf("cluster: data directory: %w", err)
	}
	path := filepath.Join(dataDir, identityFile)
	var got identity
	err := readSealed(path, &got)
	if errors.Is(err, fs.ErrNotExist) {
		return newIdentity(dataDir, path)
	}
	if err == nil && got.ID == "" {
		err = fmt.Errorf("%w: %s: it names no id", ErrCorrupt, path)
	}
	if err != nil {
		return "", fmt.Errorf("cluster: node id: %w", err)
	}
	return got.ID, nil
}

func newIdentity(dataDir, path string) (string, error) {
	member, err := fileExists(filepath.Join(dataDir, markerFile))
	if err != nil {
		return "", fmt.Errorf("cluster: node id: %w", err)
	}
	if member {
		return "", fmt.Errorf("%w: %s is missing; put it back from a backup of %s, or move that directory away to start as a new node",
			ErrForgotten, path, dataDir)
	}
	id := newUUID()
	if err := writeSealed(path, identity{ID: id}); err != nil {
		return "", fmt.Errorf("cluster: node id: %w", err)
	}
	return id, nil
}

// newUUID returns a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// readMarker reports whether the node has been a member of a cluster.
func readMarker(dataDir, id string) (bool, error) {
	path := filepath.Join(dataDir, markerFile)
	var m marker
	err := readSealed(path, &m)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cluster: %w", err)
	}
	if m.Node != id {
		return false, fmt.Errorf("%w: %s is of node %s, %s of node %s; files of two nodes are mixed here",
			ErrMismatch, path, m.Node, identityFile, id)
	}
	return true, nil
}

// writeMarker notes that the node is a member, whose journal is open.
func writeMarker(dataDir, id string) error {
	err := writeSealedAs(filepath.Join(dataDir, markerFile), sealedJournalFormat, marker{Node: id, Generation: 1})
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// usesJournal reports whether the node ended, if it has, while its journal was open.
func usesJournal(dataDir string) (bool, error) {
	file, err := os.ReadFile(filepath.Join(dataDir, markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var s sealed
	if err == nil {
		err = json.Unmarshal(file, &s)
	}
	if err != nil {
		return false, fmt.Errorf("cluster: %s: %w", filepath.Join(dataDir, markerFile), err)
	}
	return s.Format == sealedJournalFormat, nil
}

// rewriteMarker writes the marker, if there is one, in another format: that of a node whose
// journal may hold entries, or the first one.
func rewriteMarker(dataDir string, format int) error {
	path := filepath.Join(dataDir, markerFile)
	var m marker
	err := readSealed(path, &m)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = writeSealedAs(path, format, m)
	}
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// raftFileLost says what an operator can do about a lost file of the raft log.
func raftFileLost(c Config, lost, id string) error {
	return fmt.Errorf(`%w: %s is missing or empty, but %s says that node %s has been a member.
Without it the node has forgotten its votes and what it has confirmed, and committed data could be lost if it took part again.
Either stop here and put %s back exactly as it was (a file system that is not mounted?),
or give this node up: move %s away as a whole and start again. It then has a new id;
in a cluster of three it joins as a new member, and a node alone starts empty and is filled from a snapshot and from its agents`,
		ErrForgotten, lost, filepath.Join(c.DataDir, markerFile), id, c.raftDir(), c.DataDir)
}
