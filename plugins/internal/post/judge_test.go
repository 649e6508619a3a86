package post

import (
	"testing"
	"time"
)

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for given, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "-1": 0, "soon": 0, "18446744073709551615": 24 * time.Hour, "99999999999999999999": 0,
		"Sun, 22 Nov 2026 12:01:00 GMT": time.Minute, "Sun, 22 Nov 2026 11:00:00 GMT": 0, "Sun, 22 Nov 2099 12:00:00 GMT": 24 * time.Hour,
	} {
		if got := retryAfter(given, now); got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
}
