package api

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// PerAddress is how many connections an address may have at once.
const PerAddress = 64

// Conns bounds connections by the address they come from. An address of IPv6
// counts by its first 64 bits, since a single machine has all the others.
type Conns struct {
	most int

	mu    sync.Mutex
	open  map[netip.Addr]int
	total atomic.Int64

	refused prometheus.Counter
}

// NewConns makes a bound of most connections an address, with its metrics.
func NewConns(most int, reg prometheus.Registerer) *Conns {
	c := &Conns{most: most, open: map[netip.Addr]int{}}
	c.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "bursar_http_connections_refused_total", Help: "Connections that were closed because their address had too many."})
	reg.MustRegister(c.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bursar_http_connections", Help: "Connections of clients that are open."}, func() float64 { return float64(c.total.Load()) }))
	return c
}

// Listener returns l without the connections that are too many: they are closed
// at once. Those of this machine are not bounded.
func (c *Conns) Listener(l net.Listener) net.Listener { return &listener{l, c} }

type listener struct {
	net.Listener

	conns *Conns
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := addressOf(conn.RemoteAddr())
		if l.conns.admitAddress(from) {
			return &countedConn{Conn: conn, leave: func() { l.conns.releaseAddress(from) }}, nil
		}
		l.conns.refused.Inc()
		conn.Close()
	}
}

// addressOf is what connections are counted by; the zero address for those that are
// not bounded.
func addressOf(a net.Addr) netip.Addr {
	from, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{} // a test's pipe
	}
	ip := from.Addr().Unmap().WithZone("")
	if ip.IsLoopback() {
		return netip.Addr{}
	}
	if ip.Is6() {
		net, err := ip.Prefix(64)
		if err != nil {
			return ip
		}
		return net.Addr()
	}
	return ip
}

func (c *Conns) admitAddress(from netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if from.IsValid() {
		if c.open[from] >= c.most {
			return false
		}
		c.open[from]++
	}
	c.total.Add(1)
	return true
}

func (c *Conns) releaseAddress(from netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Add(-1)
	if !from.IsValid() {
		return
	}
	if c.open[from]--; c.open[from] == 0 {
		delete(c.open, from)
	}
}

// countedConn is a connection that is counted until it is closed.
type countedConn struct {
	net.Conn

	once  sync.Once
	leave func()
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// Uncount no longer counts a connection that [Conns.Listener] has let in, because it turned
// out to be none of a client's.
func Uncount(conn net.Conn) {
	if c, ok := conn.(*countedConn); ok {
		c.once.Do(c.leave)
	}
}

// NetConn returns the connection itself.
func (c *countedConn) NetConn() net.Conn { return c.Conn }

// Slots bounds what is worked on at once.
type Slots struct {
	free chan struct{}
}

// NewSlots makes n slots.
func NewSlots(n int) *Slots { return &Slots{make(chan struct{}, n)} }

// Take takes a slot, without waiting; false when there is none. Who has one gives
// it back by [Slots.Give].
func (s *Slots) Take() bool {
	select {
	case s.free <- struct{}{}:
		return true
	default:
		return false
	}
}

// Give gives a slot back.
func (s *Slots) Give() { <-s.free }
