//go:build e2e

package rig_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
)

// holdEnv makes TestRig_HeldForTheTestThatKills_Waits start a cluster and wait.
const holdEnv = "BURSAR_E2E_HOLD"

func TestRig_HeldForTheTestThatKills_Waits(t *testing.T) {
	t.Parallel()
	if os.Getenv(holdEnv) == "" {
		return
	}
	c := rig.Slurm(t, rig.Chroot)
	c.WaitState(c.Submit(rig.Alice, "--wrap", "sleep 600"), "RUNNING")
	fmt.Printf("holding %s\n", c.Dir())
	select {}
}

func TestRig_TestKilled_LeavesNothing(t *testing.T) {
	t.Parallel()
	holder := exec.Command(os.Args[0], "-test.run=^TestRig_HeldForTheTestThatKills_Waits$")
	holder.Env = append(os.Environ(), holdEnv+"=1")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	dir := heldDir(bufio.NewScanner(out))
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	if dir == "" {
		t.Fatal("the other test started no cluster")
	}
	for deadline := time.Now().Add(time.Minute); len(processesOf(dir)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still running: %q", processesOf(dir))
		}
	}
	rig.Postgres(t) // whatever starts next clears the directory
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("directory %s is still there: %v", dir, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), filepath.Base(dir)) {
		t.Errorf("mounts are left or unknown: %v", err)
	}
}

func heldDir(lines *bufio.Scanner) string {
	for lines.Scan() {
		if dir, ok := strings.CutPrefix(lines.Text(), "holding "); ok {
			return dir
		}
	}
	return ""
}

// processesOf are the command lines that name dir.
func processesOf(dir string) []string {
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, _ := os.ReadFile(path)
		if strings.Contains(string(line), dir) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
