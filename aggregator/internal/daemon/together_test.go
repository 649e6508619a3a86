package daemon_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestPosts_ThatComeTogether_ShareEntriesAndSyncs posts one record each over as many
// connections, of which all but the last byte is sent before the first ends. A node that
// finds no time between them may need more entries, so it gets several chances.
func TestPosts_ThatComeTogether_ShareEntriesAndSyncs(t *testing.T) {
	addr, stop := start(t, t.TempDir())
	defer stop()
	eventually(t, func() string {
		if status, body := call(t, "GET", addr+"/health_check", ""); status != http.StatusOK {
			return fmt.Sprint(status, body)
		}
		return ""
	})
	for _, c := range []struct{ posts, most int }{{1, 1}, {16, 4}, {256, 16}} {
		t.Run(fmt.Sprint(c.posts), func(t *testing.T) {
			var took []string
			for round := range 20 {
				entries, syncs := postTogether(t, addr, c.posts, round)
				if syncs >= 1 && syncs <= entries && entries <= c.most {
					return
				}
				took = append(took, fmt.Sprintf("%d entries and %d syncs", entries, syncs))
			}
			t.Errorf("%d posts took %s; want at most %d entries, and a sync for each or fewer", c.posts, took, c.most)
		})
	}
}

// postTogether returns how many entries and syncs of the log it took to post n records.
func postTogether(t *testing.T, addr string, n, round int) (entries, syncs int) {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		conn, err := net.Dial("tcp", strings.TrimPrefix(addr, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		body := fmt.Sprintf(`{"record_id":"r-%d-%d-%d","meta":{},"components":[],"start_time":"2023-02-24T00:27:58Z"`, n, round, i)
		if _, err := fmt.Fprintf(conn, "POST /record HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", conn.RemoteAddr(), len(body)+1, body); err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
	}
	eventually(t, func() string {
		if got := metric(t, addr, "bursar_http_requests_in_flight"); got != n+1 { // that for the metric is one
			return fmt.Sprintf("%d requests have begun, want %d", got, n+1)
		}
		return ""
	})
	const commits, synced = "bursar_raft_commit_seconds_count", "bursar_raft_log_syncs_total"
	entries, syncs = metric(t, addr, commits), metric(t, addr, synced)
	for _, conn := range conns {
		if _, err := conn.Write([]byte("}")); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	return metric(t, addr, commits) - entries, metric(t, addr, synced) - syncs
}

// metric returns a number of the page of metrics.
func metric(t *testing.T, addr, name string) (value int) {
	t.Helper()
	_, page := call(t, "GET", addr+"/metrics", "")
	_, rest, ok := strings.Cut(page, "\n"+name+" ")
	if _, err := fmt.Sscan(rest, &value); err != nil || !ok {
		t.Fatalf("no metric %s: %v", name, err)
	}
	return value
}
