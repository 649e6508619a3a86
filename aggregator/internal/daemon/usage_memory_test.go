package daemon_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
)

// metricOf is the value of a metric without labels; "" when there is none.
func metricOf(t *testing.T, addr, name string) string {
	t.Helper()
	_, text := call(t, http.MethodGet, addr+"/metrics", "")
	if found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// indexed asks until the sums by day answer.
func indexed(t *testing.T, url string) string {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		status, got := call(t, http.MethodGet, url, "")
		if status != http.StatusOK {
			t.Fatal(status, got)
		}
		if strings.Contains(got, `"way":"index"`) {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("the sums by day do not answer: %.500s", got)
		}
	}
}

func TestUsageMemory_MostDaysOnDisk_AnswersAsFromMemory(t *testing.T) {
	dir := t.TempDir()
	run := func(memory int64) (addr string, stop func()) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return startWith(t, daemon.Settings{
			Name: "agg1", DataDir: dir, Plain: []net.Listener{l}, UsageMemory: memory, Log: slog.New(slog.DiscardHandler),
		})
	}
	addr, stop := run(0)
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	post := func(from, n int) {
		var b strings.Builder
		for i := from; i < from+n; i++ {
			start := begin.Add(time.Duration(i%500) * 17 * time.Hour)
			fmt.Fprintf(&b, `,{"record_id":"r%d","meta":{"user_id":["u%d"],"group_id":["g%d"],"site_id":["s"]},`+
				`"components":[{"name":"Cores","amount":%d,"scores":[]}],"start_time":%q,"stop_time":%q}`,
				i, i%30, i%4, 1+i%64, start.Format(time.RFC3339), start.Add(time.Duration(1+i%40)*time.Hour).Format(time.RFC3339))
		}
		if status, got := call(t, http.MethodPost, addr+"/records", "["+b.String()[1:]+"]"); status != http.StatusOK {
			t.Fatal(status, got)
		}
	}
	post(0, 4000)
	ask := func() string {
		return indexed(t, addr+"/v1/usage?window=2025&by=user_id&bucket=day&measure=Cores,records") +
			indexed(t, addr+"/v1/usage?window=2025-03&by=user_id&measure=Cores,records")
	}
	place := regexp.MustCompile(`"index":\d+,|"complete":.*?,"edges"`) // in the log, and of the present time
	same := func(what, got, want string) {
		t.Helper()
		if got, want = place.ReplaceAllString(got, ""), place.ReplaceAllString(want, ""); got != want {
			t.Errorf("%s: %.2000s\nwant %.2000s", what, got, want)
		}
	}
	want := ask()
	if got := metricOf(t, addr, "bursar_usage_away_bytes"); got != "0" {
		t.Errorf("with memory for all days %q bytes are on disk alone", got)
	}
	stop()
	addr, stop = run(350 << 10) // what was stored is loaded
	same("loaded", ask(), want)
	if got := metricOf(t, addr, "bursar_usage_away_bytes"); got == "0" || got == "" {
		t.Errorf("with little memory %q bytes are on disk alone", got)
	}
	post(4000, 500)
	got := ask()
	stop()
	addr, stop = run(0)
	defer func() { stop() }()
	same("changed", got, ask())
}
