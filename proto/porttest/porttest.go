// Package porttest finds ports for tests that close a listener and open it again.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Free returns an address of the loopback interface that nobody listens on, and that
// nobody else who asks on this machine gets while the test runs. Its port is below
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
		l, err := net.Listen("tcp", addr)
		if err != nil {
			mine.Close()
			continue
		}
		l.Close()
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
