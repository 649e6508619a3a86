//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ZooKeeper is a server of Debian's release, which runs from the cache.
type ZooKeeper struct {
	Address string

	t   testing.TB
	dir string
	srv *server
}

// NewZooKeeper makes a server with an address of 127.0.0.1. It ends with the test, and does not run yet.
func NewZooKeeper(t testing.TB, address string) *ZooKeeper {
	t.Helper()
	z := &ZooKeeper{Address: address, t: t, dir: tempDir(t, "zookeeper")}
	host, port, _ := strings.Cut(address, ":")
	text := fmt.Sprintf("dataDir=%s/data\nclientPortAddress=%s\nclientPort=%s\ntickTime=500\nmaxClientCnxns=0\nadmin.enableServer=false\n", z.dir, host, port)
	if err := os.WriteFile(filepath.Join(z.dir, "zoo.cfg"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Kill)
	return z
}

// Start starts the server and waits until it answers.
func (z *ZooKeeper) Start() {
	z.t.Helper()
	cmd := z.java(context.Background(), "org.apache.zookeeper.server.ZooKeeperServerMain", "zoo.cfg")
	log, err := os.OpenFile(filepath.Join(z.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		z.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if z.srv, err = startTied(cmd); err != nil {
		z.t.Fatalf("rig: start ZooKeeper: %v", err)
	}
	waitFor(z.t, "ZooKeeper", 2*time.Minute, z.ask)
}

// java is a command of a program of ZooKeeper.
func (z *ZooKeeper) java(ctx context.Context, class string, args ...string) *exec.Cmd {
	z.t.Helper()
	var path []string
	for _, name := range []string{"zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "metrics-core", "snappy-java", "commons-cli"} {
		path = append(path, requireInstalled(z.t, filepath.Join(Cache(), "zookeeper-3.8.0/usr/share/java", name+".jar")))
	}
	cmd := exec.CommandContext(ctx, "java", append([]string{"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(path, ":"), class}, args...)...)
	cmd.Dir = z.dir
	return cmd
}

// Command gives commands, each a line, to the client zkCli.sh, and returns what it says.
func (z *ZooKeeper) Command(lines string) string {
	z.t.Helper()
	ctx, stop := context.WithTimeout(z.t.Context(), time.Minute)
	defer stop()
	cmd := z.java(ctx, "org.apache.zookeeper.ZooKeeperMain", "-server", z.Address)
	cmd.Stdin = strings.NewReader(lines + "\n")
	out, err := cmd.CombinedOutput()
	return fmt.Sprint(string(out), err) // of a command that fails
}

// ask asks the server what it is.
func (z *ZooKeeper) ask() error {
	conn, err := net.DialTimeout("tcp", z.Address, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return err
	}
	text, err := io.ReadAll(conn)
	if err == nil && !strings.Contains(string(text), "Mode: standalone") {
		err = errors.New(string(text))
	}
	return err
}

// Kill kills the server with SIGKILL.
func (z *ZooKeeper) Kill() {
	if z.srv == nil {
		return
	}
	z.srv.stop(syscall.SIGKILL, time.Minute)
	z.srv = nil
	if z.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(z.dir, "log"))
		z.t.Logf("ZooKeeper: %s", log[max(0, len(log)-2000):])
	}
}

// Freeze stops the server, and Thaw has it go on.
func (z *ZooKeeper) Freeze() { _ = z.srv.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw has a server go on that Freeze has stopped.
func (z *ZooKeeper) Thaw() { _ = z.srv.cmd.Process.Signal(syscall.SIGCONT) }
