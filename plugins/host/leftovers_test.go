package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// dies waits until the process whose number is in a file is gone, or waits only to be
// looked at by its parent.
func dies(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d lives", pid)
}

func TestAProgramThatEndsLeavesNothingBehind(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	script := `(sh -c 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 3600' sh "$1" &)
while ! test -e "$1"; do sleep 0.01; done
echo well; exit 7`
	out, err := runProgram(t.Context(), sdk.Program{Arguments: []string{"/bin/sh", "-c", script, "sh", file}, Timeout: time.Hour})
	if err != nil || out.Status != 7 || string(out.Stdout) != "well\n" {
		t.Error(out, err)
	}
	dies(t, file)
}
