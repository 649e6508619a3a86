package source

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// unprivileged calls do as someone who may not read what is closed to all, also
// where the test is root.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Setfsuid(0); err != nil {
				t.Error(err)
			}
		}()
	}
	do()
}

func TestAFileThatMayNotBeReadIsAnErrorAndCostsNothing(t *testing.T) {
	s := newSite(t)
	s.jobsOf(3)
	s.must(os.Chmod(s.path, 0))
	unprivileged(t, func() {
		if err := s.collect(sdk.Start{}); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Error(err)
		}
	})
	s.must(os.Chmod(s.path, 0o600))
	s.poll()
	s.wantAll()
}
