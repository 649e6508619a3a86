package cli

import (
	"testing"
	"time"
)

func TestTheBarSaysHowLongItWillTake(t *testing.T) {
	b := bar{what: "save", total: 100 << 20, done: 25 << 20}
	if got := b.line(10 * time.Second); got != "save  25%  25.0 MiB of 100.0 MiB  2.5 MiB/s  30s left" {
		t.Error(got)
	}
	if got := (&bar{what: "save", done: 1 << 20}).line(time.Second); got != "save 1.0 MiB  1.0 MiB/s" {
		t.Error(got)
	}
}
