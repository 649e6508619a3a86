package daemon_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/filetest"
)

// What was deleted leaves the database and the log of Raft by itself.
func TestCompaction_RecordsOfAPersonAreDeleted_NameIsInNoFile(t *testing.T) {
	const name = "erika.mustermann"
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, addr, stop := startOpen(t, daemon.Settings{Name: "agg1", DataDir: dir, Plain: []net.Listener{l}, Log: slog.New(slog.DiscardHandler),
		Compaction: daemon.Compaction{Every: 20 * time.Millisecond, Keep: time.Millisecond, Whole: 50 * time.Millisecond, Files: 50 * time.Millisecond}})
	defer func() { stop() }()
	_ = a
	post := func(from, n int, user func(i int) string) {
		var b strings.Builder
		for i := from; i < from+n; i++ {
			fmt.Fprintf(&b, `,{"record_id":"r%d","meta":{"user_id":["%s"]},"components":[],"start_time":"2023-02-24T00:00:00Z","stop_time":"2023-02-24T01:00:00Z"}`, i, user(i))
		}
		if status, got := call(t, "POST", addr+"/records", "["+b.String()[1:]+"]"); status != http.StatusOK {
			t.Fatal(status, got)
		}
	}
	one := func(i int) string {
		if i%10 == 0 {
			return name
		}
		return "u1"
	}
	post(0, 2000, one)
	post(2000, 20, one)
	for i := 0; i < 2020; i += 10 {
		if status, got := call(t, "DELETE", fmt.Sprintf("%s/v1/records/r%d", addr, i), ""); status != http.StatusOK && status != http.StatusNoContent {
			t.Fatal(status, got)
		}
	}
	end := time.Now().Add(patience)
	for in := []string{"?"}; len(in) > 0; in = filetest.Containing(t, dir, name) {
		if time.Now().After(end) {
			t.Fatal("the name is in ", in)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, got := call(t, "GET", addr+"/records", ""); strings.Count(got, "\n") != 1818 || strings.Contains(got, name) {
		t.Errorf("%d records are left", strings.Count(got, "\n"))
	}
	stop()
	if in := filetest.Containing(t, dir, name); len(in) > 0 {
		t.Error("the name is in ", in)
	}
	_, stop = start(t, dir)
}
