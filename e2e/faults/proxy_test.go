//go:build e2e

package faults_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/faults"
)

// echo is a server that sends back what it gets, behind a proxy of the name "b";
// whoever dials is "a".
func echo(t *testing.T) (*faults.Network, net.Conn) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	go func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	n := faults.NewNetwork()
	t.Cleanup(n.Close)
	p, err := n.Proxy("b", "127.0.0.1:0", lis.Addr().String(), func(*net.TCPAddr) string { return "a" })
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return n, conn
}

// answers says whether what is sent comes back within a time.
func answers(t *testing.T, conn net.Conn, within time.Duration) bool {
	t.Helper()
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	return arrives(t, conn, within)
}

func arrives(t *testing.T, conn net.Conn, within time.Duration) bool {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(within))
	_, err := io.ReadFull(conn, make([]byte, 1))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return err == nil
}

func TestProxy_HeldLink_LosesNothing(t *testing.T) {
	for _, way := range [][2]string{{"a", "b"}, {"b", "a"}} {
		n, conn := echo(t)
		if !answers(t, conn, time.Minute) {
			t.Fatal("a good link does not carry")
		}
		n.Set(way[0], way[1], faults.Link{Held: true})
		if answers(t, conn, 100*time.Millisecond) {
			t.Errorf("the link from %s to %s was held and carries", way[0], way[1])
		}
		n.Heal()
		if !arrives(t, conn, time.Minute) {
			t.Error("a healed link has lost what was sent")
		}
	}
}

func TestProxy_Reset_BreaksConnection(t *testing.T) {
	n, conn := echo(t)
	if !answers(t, conn, time.Minute) {
		t.Fatal("a good link does not carry")
	}
	n.Reset("a")
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
