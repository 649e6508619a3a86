package local_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/local"
)

func TestListen_AnyPathAndUmask_ConnectsWithItsModeAndNamesThePeer(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "s"), filepath.Join(long, "api.sock")} {
		for _, mode := range []os.FileMode{0o600, 0o660} {
			if err := os.WriteFile(path, nil, 0o600); err != nil { // what a crash left behind
				t.Fatal(err)
			}
			l, err := local.Listen(path, mode)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode || l.Addr().String() != path {
				t.Errorf("%v at %s, %v; want %s", info.Mode(), l.Addr(), err, mode)
			}
			peers := make(chan int, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					peers <- -1
					return
				}
				uid, err := local.Peer(conn)
				if err != nil {
					uid = -2
				}
				peers <- uid
			}()
			conn, err := local.Dial(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if uid := <-peers; uid != os.Getuid() {
				t.Errorf("peer %d", uid)
			}
			conn.Close()
			// Accept ended, so the next Listen has to find it in use by a dial alone.
			if _, err := local.Listen(path, mode); err == nil {
				t.Error("two processes have one socket")
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if err := l.Close(); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Error("the socket is still there")
			}
		}
	}
}

func TestIsLoopback_HostsOfThisMachine_AreKnown(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.8.0.1": true, "::1": true, "::ffff:127.0.0.1": true, "": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "localhost.example.org": false} {
		if got := local.IsLoopback(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
