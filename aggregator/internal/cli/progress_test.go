package cli

import (
	"testing"
	"time"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

func TestTheBarSaysHowLongItWillTake(t *testing.T) {
	b := bar{what: "save", total: 100 << 20, done: 25 << 20}
	if got := b.barLine(10 * time.Second); got != "save  25%  25 MiB of 100 MiB  2.5 MiB/s  30s left" {
		t.Error(got)
	}
	if got := (&bar{what: "save", done: 1 << 20}).barLine(time.Second); got != "save 1.0 MiB  1.0 MiB/s" {
		t.Error(got)
	}
}

func TestTheBarOfAnImportCountsWhatTheSourceCounts(t *testing.T) {
	b := bar{p: &Program{}, what: "import"}
	b.showJobs(7, nil)
	if got := b.barLine(time.Second); got != "import 0 B  0 B/s" {
		t.Error(got)
	}
	b.showJobs(7, &bursarv1.Progress{Done: 1 << 20, Total: 4 << 20, Unit: "bytes"})
	if got := b.barLine(time.Second); got != "import  25%  1.0 MiB of 4.0 MiB  1.0 MiB/s  3s left  7 records" {
		t.Error(got)
	}
	b.showJobs(8, &bursarv1.Progress{Done: 2, Total: 4, Unit: "days"})
	if got := b.barLine(time.Second); got != "import  50%  2 days of 4 days  2 days/s  1s left  8 records" {
		t.Error(got)
	}
}
