package cluster

import (
	"net"
	"sync"
)

// handshakeLimiter counts the callers that have not proved who they are yet, so that
// strangers who connect and say nothing keep no peer out.
type handshakeLimiter struct {
	mu    *sync.Mutex
	all   int
	hosts map[string]int
}

func newHandshakeLimiter() handshakeLimiter {
	return handshakeLimiter{mu: new(sync.Mutex), hosts: map[string]int{}}
}

// enterHandshake lets a caller in unless there are too many, and returns what to call
// when it has proved itself or gone.
func (d *handshakeLimiter) enterHandshake(from net.Addr) (leave func(), ok bool) {
	host, _, err := net.SplitHostPort(from.String())
	if err != nil {
		host = from.String()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all >= maxHandshakes || d.hosts[host] >= maxFromHost {
		return nil, false
	}
	d.all++
	d.hosts[host]++
	return func() { d.leaveHandshake(host) }, true
}

func (d *handshakeLimiter) leaveHandshake(host string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all--
	if d.hosts[host]--; d.hosts[host] == 0 {
		delete(d.hosts, host)
	}
}
