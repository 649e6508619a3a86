//go:build e2e

package faults

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Link is what a network does with what goes from one daemon to another.
type Link struct {
	// Held keeps what is sent until the link heals, as a network does with TCP
	// that loses every packet for a while.
	Held bool
	// Delay is added to every piece.
	Delay time.Duration
}

// Network knows the links between all daemons of a site, by name. A link that was
// not set is a good one.
type Network struct {
	mu      sync.Mutex
	links   map[[2]string]Link
	changed chan struct{}
	proxies []*Proxy
}

// NewNetwork makes a network without faults.
func NewNetwork() *Network {
	return &Network{links: map[[2]string]Link{}, changed: make(chan struct{})}
}

// Set changes the link from one daemon to another, that direction alone.
func (n *Network) Set(from, to string, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[[2]string{from, to}] = l
	close(n.changed)
	n.changed = make(chan struct{})
}

// Heal makes all links good again.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.links)
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Network) linkState(from, to string) (Link, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.links[[2]string{from, to}], n.changed
}

// awaitOpen returns once something may go over the link, or quit is closed.
func (n *Network) awaitOpen(from, to string, quit <-chan struct{}) bool {
	for {
		l, changed := n.linkState(from, to)
		switch {
		case l.Held:
			select {
			case <-changed:
			case <-quit:
				return false
			}
		case l.Delay > 0:
			select {
			case <-time.After(l.Delay):
			case <-quit:
				return false
			}
			if l, _ = n.linkState(from, to); !l.Held {
				return true
			}
		default:
			return true
		}
	}
}

// Reset breaks all connections of a daemon, in both directions.
func (n *Network) Reset(name string) {
	n.mu.Lock()
	proxies := n.proxies
	n.mu.Unlock()
	for _, p := range proxies {
		p.resetCrossings(name)
	}
}

// Close ends all proxies.
func (n *Network) Close() {
	for _, p := range n.proxies {
		p.stopProxy()
	}
}

// Proxy stands before one address of a daemon. Who has dialled it is found by the
// process that owns the other end, so all the others know the daemon by the same
// address.
type Proxy struct {
	Addr string

	network *Network
	name    string // whose address it is
	target  string
	who     func(dialler *net.TCPAddr) string
	lis     net.Listener
	done    sync.WaitGroup

	mu    sync.Mutex
	conns map[*crossing]struct{}
	ended bool
}

// crossing is one connection through a proxy.
type crossing struct {
	from string
	a, b net.Conn // the dialler's, the target's
	quit chan struct{}
	once sync.Once
}

func (c *crossing) end() {
	c.once.Do(func() {
		close(c.quit)
		for _, conn := range []net.Conn{c.a, c.b} {
			_ = conn.(*net.TCPConn).SetLinger(0) // a reset, not an end in good order
			conn.Close()
		}
	})
}

// Proxy starts one on addr before target, an address of the daemon of that name.
func (n *Network) Proxy(name, addr, target string, who func(*net.TCPAddr) string) (*Proxy, error) {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("proxy of %s: %w", name, err)
	}
	p := &Proxy{Addr: lis.Addr().String(), network: n, name: name, target: target, who: who, lis: lis, conns: map[*crossing]struct{}{}}
	n.mu.Lock()
	n.proxies = append(n.proxies, p)
	n.mu.Unlock()
	p.done.Go(p.acceptConns)
	return p, nil
}

func (p *Proxy) acceptConns() {
	for {
		conn, err := p.lis.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.carryConn(conn) })
	}
}

// carryConn copies both directions of one connection until both have ended.
func (p *Proxy) carryConn(conn net.Conn) {
	from := p.who(conn.RemoteAddr().(*net.TCPAddr))
	target, err := net.DialTimeout("tcp", p.target, 10*time.Second)
	if err != nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
		return
	}
	c := &crossing{from: from, a: conn, b: target, quit: make(chan struct{})}
	if !p.addCrossing(c) {
		c.end()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copyDirection(c, c.b, c.a, from, p.name) })
	both.Go(func() { p.copyDirection(c, c.a, c.b, p.name, from) })
	both.Wait()
	c.end()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

func (p *Proxy) addCrossing(c *crossing) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.conns[c] = struct{}{}
	}
	return !p.ended
}

// copyDirection carries one direction. An end in good order crosses as such, when the link
// lets it; anything else breaks the connection.
func (p *Proxy) copyDirection(c *crossing, to, from net.Conn, src, dst string) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if !p.network.awaitOpen(src, dst, c.quit) {
			return
		}
		if n > 0 {
			if _, err := to.Write(piece[:n]); err != nil {
				c.end()
				return
			}
		}
		if err == io.EOF { //nolint:errorlint // a connection's end is the very value
			_ = to.(*net.TCPConn).CloseWrite() // the other end may be gone
			return
		}
		if err != nil {
			c.end()
			return
		}
	}
}

func (p *Proxy) resetCrossings(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if p.name == name || c.from == name {
			c.end()
		}
	}
}

func (p *Proxy) stopProxy() {
	p.lis.Close()
	p.mu.Lock()
	p.ended = true
	for c := range p.conns {
		c.end()
	}
	p.mu.Unlock()
	p.done.Wait()
}
