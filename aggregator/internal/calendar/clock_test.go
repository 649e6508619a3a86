package calendar_test

import (
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
)

func TestWithoutFaultsTheClockIsTheMachinesWhateverTheEnvironmentSays(t *testing.T) {
	t.Setenv("BURSAR_TEST_CLOCK_OFFSET", "1000h")
	at := time.Now()
	if got := calendar.ByClock(at); withFaults != (got.Sub(at) == 1000*time.Hour) || !withFaults && !got.Equal(at) {
		t.Error(got.Sub(at))
	}
	if calendar.Now().Before(at) {
		t.Error("the clock goes back")
	}
}
