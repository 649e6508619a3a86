package identity

import (
	"crypto/x509"
	"net"
	"sync"
	"time"
)

// Grace is how long an open connection goes on whose other end would not be let in
// any more. New ones are refused at once; peers whose certificates were renewed
// have the time to make one, and what was asked on the old one is answered.
const Grace = 30 * time.Second

// ties are the connections that are followed.
type ties struct {
	mu  sync.Mutex
	all map[*tie]struct{}
}

// tie is an open connection.
type tie struct {
	chain  []*x509.Certificate // of the other end
	end    func()
	broken time.Time // since when the chain is not valid; zero while it is
}

// Follow has end called, once, by [Keys.Run] when the other end of an open
// connection has not been worth trusting for half a minute: its certificate ended,
// or its authority is not trusted any more. chain was verified when the connection
// was made. The caller calls release when the connection has ended.
func (k *Keys) Follow(chain []*x509.Certificate, end func()) (release func()) {
	t := &tie{chain: chain, end: end}
	k.ties.mu.Lock()
	defer k.ties.mu.Unlock()
	if k.ties.all == nil {
		k.ties.all = map[*tie]struct{}{}
	}
	k.ties.all[t] = struct{}{}
	return func() { k.ties.dropTie(t) }
}

func (t *ties) dropTie(one *tie) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, one)
}

func (t *ties) listTies() []*tie {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*tie, 0, len(t.all))
	for one := range t.all {
		list = append(list, one)
	}
	return list
}

// Guard returns conn, which [Keys.Run] closes when Follow would end it.
func (k *Keys) Guard(conn net.Conn, chain []*x509.Certificate) net.Conn {
	return &guarded{Conn: conn, release: k.Follow(chain, func() { _ = conn.Close() })} // its reader is told
}

// guarded is a connection that is followed until it is closed.
type guarded struct {
	net.Conn

	release func()
}

// Close closes the connection.
func (g *guarded) Close() error {
	g.release()
	return g.Conn.Close()
}

// sweepConnections ends the connections that have been broken for long enough, and calls told
// for each. Only Run calls it, so that no one else touches when a tie broke.
func (k *Keys) sweepConnections(now time.Time, told func(*x509.Certificate, error)) {
	for _, t := range k.ties.listTies() {
		err := k.Valid(t.chain)
		switch {
		case err == nil:
			t.broken = time.Time{}
		case t.broken.IsZero():
			t.broken = now
		case now.Sub(t.broken) >= Grace:
			k.ties.dropTie(t)
			told(t.chain[0], err)
			go t.end() // the other end may not read its farewell
		}
	}
}

// Generation counts how often the content of the files was taken. A connection
// that was made in another generation shows a certificate of old.
func (k *Keys) Generation() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.followFiles()
	return k.generation
}
