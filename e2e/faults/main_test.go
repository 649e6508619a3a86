//go:build e2e

package faults_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/faults"
)

var (
	seed   = flag.Uint64("seed", 1, "seed of the schedules of faults")
	cycles = flag.Int("cycles", 25, "cycles of faults")
	nodes  = flag.Int("nodes", 3, "aggregators of a site")
	flips  = flag.Int("flips", 25, "cycles of the test of damaged files")
	only   = flag.String("only", "", "the name of the one fault that the cycles have")
)

// inside marks the process that has the mount namespace.
const inside = "BURSAR_FAULTS_INSIDE"

// TestMain runs the tests in a mount namespace of their own. It is also the
// program that lies about syncs: see [faults.Liar].
func TestMain(m *testing.M) {
	if faults.IsLiar() {
		faults.RunLiar()
	}
	if os.Getenv(inside) != "" {
		flag.Parse()
		_ = flag.Set("test.parallel", "2") // sites, whatever -parallel says: each is a handful of daemons under load
		os.Exit(m.Run())
	}
	os.Exit(outside())
}

func outside() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "faults: a mount namespace (needs root):", err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	if err := cmd.Wait(); err != nil {
		return max(1, cmd.ProcessState.ExitCode())
	}
	return 0
}
