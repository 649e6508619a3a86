// Package porttest finds ports for tests that close a listener and open it again.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"
)

// Free returns an address of the loopback interface that no one listens on, and that
// no one else who asks on this machine gets while the test runs. Its port is below
// those that the kernel gives to connections, so that who was down finds it free
// when it comes back.
func Free(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(22_000)
		mine, err := net.Listen("unix", fmt.Sprintf("@bursar-test-port-%d", port))
		if err != nil {
			continue
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		// It is asked and not listened on: a process that starts at that moment would have the
		// listener too, and the port would be taken until it runs its own program.
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			mine.Close()
			continue
		}
		t.Cleanup(func() { mine.Close() })
		return addr
	}
	t.Fatal("no port is free")
	return ""
}

// Listen listens on an address of [Free].
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", Free(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Again listens on an address that was listened on before. It waits a while for the
// address: a process that another test starts at that moment has the closed listener
// too, until it runs its own program.
func Again(t testing.TB, addr string) net.Listener {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l, err := net.Listen("tcp", addr)
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
