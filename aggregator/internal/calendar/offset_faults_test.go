//go:build faults

package calendar_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
)

const withFaults = true

func TestTheClockJumpsWhenItsFileChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "offset")
	t.Setenv(calendar.OffsetVariable, "@"+name)
	at := time.Now()
	for text, want := range map[string]time.Duration{"": 0, "1h\n": time.Hour, "-30s": -30 * time.Second, "soon": 0} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := calendar.ByClock(at).Sub(at); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
