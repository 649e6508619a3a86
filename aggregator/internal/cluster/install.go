package cluster

import (
	"context"
	"errors"
)

// Install has all nodes replace their State by the image in dir, in order with
// all commands. It works on the leader only.
func (n *Node) Install(_ context.Context, _ string) error {
	if !n.IsLeader() {
		return ErrNotLeader
	}
	return errors.ErrUnsupported
}

// serveImages begins, or ends, to hand images to the peers.
func (n *Node) serveImages(serve func(greeting, *Conn)) {
	if s, ok := n.conf.Stream.(*raftStream); ok {
		s.t.serveImages(serve)
	}
}
