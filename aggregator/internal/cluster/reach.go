package cluster

import (
	"context"
	"fmt"
	"time"
)

// headStart is how long the address that the configuration has for a node may take to
// answer before that of the members' list is tried beside it.
const headStart = 250 * time.Millisecond

// addressesOf are those at which a node may be: first that of the configuration, which whoever
// moves nodes changes before they start, then that of the members' list, which only a leader
// changes.
func (t *Transport) addressesOf(of Server) []string {
	_, configured := t.conf.Configured(of.ID)
	if configured == "" || configured == of.Addr {
		return []string{of.Addr}
	}
	return []string{configured, of.Addr}
}

// dialling is what became of a try.
type dialling struct {
	conn *Conn
	err  error
}

// reachNode calls dial with the addresses of a node, one after the other as they fail or take
// longer than headStart, and returns the first connection. dial makes sure that the node is
// the one that is meant: an address may be another node's by now.
func (t *Transport) reachNode(ctx context.Context, to Server, dial func(ctx context.Context, addr string) (*Conn, error)) (*Conn, error) {
	left := t.addressesOf(to)
	if len(left) == 1 {
		return dial(ctx, left[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan dialling)
	next := func() {
		addr := left[0]
		left = left[1:]
		go func() { offerDial(ctx, answers, dial, addr) }()
	}
	next()
	var failed error
	for late, tries := time.After(headStart), len(left)+1; tries > 0; {
		select {
		case a := <-answers:
			if a.err == nil {
				return a.conn, nil
			}
			tries--
			failed = alsoFailed(failed, a.err)
		case <-late:
			late = nil
		case <-ctx.Done():
			return nil, alsoFailed(failed, ctx.Err())
		}
		if len(left) > 0 {
			next()
		}
	}
	return nil, failed
}

// offerDial dials and hands on what became of it, unless ctx has ended.
func offerDial(ctx context.Context, to chan<- dialling, dial func(ctx context.Context, addr string) (*Conn, error), addr string) {
	c, err := dial(ctx, addr)
	select {
	case to <- dialling{c, err}:
	case <-ctx.Done():
		if err == nil {
			hangUp(c)
		}
	}
}

// alsoFailed adds an error to those of before.
func alsoFailed(before, err error) error {
	if before == nil {
		return err
	}
	return fmt.Errorf("%w; %w", before, err)
}
