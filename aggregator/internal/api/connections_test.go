package api

import (
	"errors"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// from is a listener of connections from addresses that the test makes up.
type from struct {
	net.Listener

	next chan string
}

// addressed is a connection that says where it comes from.
type addressed struct {
	net.Conn

	addr   *net.TCPAddr
	closed chan struct{}
}

func (a *addressed) RemoteAddr() net.Addr { return a.addr }

func (a *addressed) Close() error { close(a.closed); return nil }

var errEnd = errors.New("end")

func (f *from) Accept() (net.Conn, error) {
	ip, ok := <-f.next
	if !ok {
		return nil, errEnd
	}
	return &addressed{addr: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}, closed: make(chan struct{})}, nil
}

// accept lets connections in from addresses and returns those that came through.
func accept(t *testing.T, c *Conns, addrs ...string) (got []net.Conn) {
	t.Helper()
	f := &from{next: make(chan string, len(addrs))}
	for _, a := range addrs {
		f.next <- a
	}
	close(f.next)
	l := c.Listener(f)
	for {
		conn, err := l.Accept()
		if err != nil {
			return got
		}
		got = append(got, conn)
	}
}

func TestAnAddressHasSoManyConnectionsAndNoMore(t *testing.T) {
	c := NewConns(2, prometheus.NewRegistry())
	got := accept(t, c, "192.0.2.1", "192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2", "127.0.0.1", "127.0.0.1", "127.0.0.1", "::1",
		"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1")
	if len(got) != 2+1+4+2+1 {
		t.Errorf("%d connections came through", len(got))
	}
	for range 2 { // closing twice counts once
		if err := got[0].Close(); err != nil {
			t.Error(err)
		}
		got[0].(*countedConn).Conn.(*addressed).closed = make(chan struct{})
	}
	if again := accept(t, c, "192.0.2.1", "192.0.2.1"); len(again) != 1 {
		t.Errorf("after one was closed %d came through", len(again))
	}
	if n := c.total.Load(); n != 10 {
		t.Errorf("%d are counted", n)
	}
}

func TestSlotsAreTakenAndGivenBack(t *testing.T) {
	s := NewSlots(2)
	for i, want := range []bool{true, true, false} {
		if s.Take() != want {
			t.Error("there are not two: ", i)
		}
	}
	s.Give()
	if !s.Take() {
		t.Error("one that was given back is lost")
	}
}
