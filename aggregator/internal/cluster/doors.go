package cluster

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// doors counts the callers that have not proved who they are yet, so that
// strangers who connect and say nothing keep no peer out.
type doors struct {
	mu    *sync.Mutex
	all   int
	hosts map[string]int
}

func newDoors() doors { return doors{mu: new(sync.Mutex), hosts: map[string]int{}} }

// enter lets a caller in unless there are too many, and returns what to call
// when it has proved itself or gone.
func (d *doors) enter(from net.Addr) (leave func(), ok bool) {
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
	return func() { d.leave(host) }, true
}

func (d *doors) leave(host string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all--
	if d.hosts[host]--; d.hosts[host] == 0 {
		delete(d.hosts, host)
	}
}

// complaint logs one kind of event at most once in complainEvery, and then says
// how many it has kept quiet about.
type complaint struct {
	mu     sync.Mutex
	last   time.Time
	silent int
}

func (c *complaint) tell(log *slog.Logger, what string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.last) >= complainEvery {
		log.Warn(what, append(args, "not_told", c.silent)...) //nolint:sloglint // what and its keys are constant where it is called
		c.last, c.silent = now, 0
		return
	}
	c.silent++
}
