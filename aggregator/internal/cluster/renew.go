package cluster

import (
	"context"
	"crypto/x509"
	"log/slog"
	"time"
)

// Certificates judge the certificates of open connections; *identity.Keys does.
type Certificates interface {
	// Follow has end called once the chain, which was verified when a connection was
	// made, is not valid any more, until release is called.
	Follow(chain []*x509.Certificate, end func()) (release func())
	// Generation counts how often the own certificates were renewed.
	Generation() uint64
}

// eternal are certificates of which nothing becomes.
type eternal struct{}

// Follow implements Certificates.
func (eternal) Follow([]*x509.Certificate, func()) func() { return func() {} }

// Generation implements Certificates.
func (eternal) Generation() uint64 { return 0 }

// renewEvery is the pause between two connections of raft that are made again, so
// that a leader is never out of touch with two followers at once.
const renewEvery = time.Second

// followCertificate has a connection end with the certificate of its other end.
func (t *Transport) followCertificate(c *Conn, chain []*x509.Certificate) *Conn {
	c.generation = t.conf.Certificates.Generation()
	c.release = t.conf.Certificates.Follow(chain, func() { hangUp(c) })
	return c
}

// noteDialled notes whom raft has reached by a connection.
func (t *Transport) noteDialled(c *Conn, to Server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.to = to
}

// renewConnections closes the connections of raft, one after the other, that showed an own
// certificate of before: raft makes new ones by itself, and repeats what was under
// way. Connections about images end by themselves, and those of peers by their age.
func (t *Transport) renewConnections() {
	tick := time.NewTicker(t.conf.renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-tick.C:
		}
		if c, to := t.outdatedConnection(); c != nil && t.reachesWithCertificate(to) {
			hangUp(c)
		}
	}
}

// outdatedConnection returns a connection of raft that was made in another generation.
func (t *Transport) outdatedConnection() (*Conn, Server) {
	now := t.conf.Certificates.Generation()
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		if c.to != (Server{}) && c.generation != now {
			return c, c.to
		}
	}
	return nil, Server{}
}

// reachesWithCertificate reports whether a node takes the certificate that is shown now. While it
// does not, the connections of before are better than none.
func (t *Transport) reachesWithCertificate(to Server) bool {
	ctx, cancel := context.WithTimeout(t.ctx, dialLimit)
	defer cancel()
	c, err := t.greetNode(ctx, to, forRaft)
	if err != nil {
		if t.ctx.Err() == nil {
			t.stuck.Tell(t.logger, slog.LevelWarn, "a connection of raft is not made anew with the renewed certificate: the other node cannot be reached, or refuses it", "addr", to.Addr, "error", err)
		}
		return false
	}
	hangUp(c)
	return true
}
