package host

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func runProgram(ctx context.Context, p sdk.Program) (sdk.Output, error) {
	return RunProgram(ctx, append(p.Arguments, "")[0], p)
}

func sh(text string) sdk.Program { return sdk.Program{Arguments: []string{"/bin/sh", "-c", text}} }

func TestAProgramGetsItsInputAndASmallEnvironment(t *testing.T) {
	t.Setenv("SECRET", "x")
	p := sh("cat; echo $A $SECRET; pwd; echo e >&2; exit 7")
	p.Input, p.Environment = []byte("in "), map[string]string{"A": "b"}
	out, err := runProgram(t.Context(), p)
	if err != nil || out.Status != 7 || string(out.Stdout) != "in b\n/\n" || string(out.Error) != "e\n" {
		t.Errorf("%d %q %q %v", out.Status, out.Stdout, out.Error, err)
	}
}

func TestAProgramThatIsNotStartedIsSaidNotToHaveRun(t *testing.T) {
	for _, arguments := range [][]string{nil, {"true"}, {"/no/such/program"}, {"/"}} {
		if _, err := runProgram(t.Context(), sdk.Program{Arguments: arguments}); !sdk.NotRun(err) {
			t.Errorf("%q: %v", arguments, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runProgram(ctx, sh("true")); !sdk.NotRun(err) {
		t.Error(err)
	}
}

func TestOnlyTheBeginningOfAFloodIsKept(t *testing.T) {
	out, err := runProgram(t.Context(), sh("head -c 3000000 /dev/zero"))
	if err != nil || out.Status != 0 || len(out.Stdout) != 1<<20 {
		t.Errorf("%d, %d bytes, %v", out.Status, len(out.Stdout), err)
	}
}

func TestAProgramIsKilledWithWhatItHasStarted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := runProgram(ctx, sh("exec 3> "+path+"; sleep 600 & echo begun >&3; wait"))
		ended <- err
	}()
	text := make([]byte, 6)
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // while no one writes, it is at its end
		if n, _ := held.Read(text); n == len(text) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it has not begun")
		}
	}
	cancel()
	if err := <-ended; err == nil || sdk.NotRun(err) || !strings.Contains(err.Error(), "was killed") {
		t.Error(err)
	}
	if err := held.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(held); err != nil { // the end comes when no one holds the other side
		t.Error(err)
	}
}

func TestAProgramIsKilledWhenItsTimeIsOver(t *testing.T) {
	p := sh("sleep 600 & wait")
	p.Timeout = 2 * time.Second
	if _, err := runProgram(t.Context(), p); err == nil || sdk.NotRun(err) || !strings.Contains(err.Error(), "was killed") {
		t.Error(err)
	}
}
