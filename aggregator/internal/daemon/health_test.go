package daemon_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
)

// eventually waits until is returns "".
func eventually(t *testing.T, is func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		problem := is()
		if problem == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(problem)
		}
	}
}

func TestANodeAloneWithoutTroubleIsWell(t *testing.T) {
	addr, stop := start(t, t.TempDir())
	defer stop()
	call(t, "POST", addr+"/record", `{"record_id":"r1","meta":{},"components":[],"start_time":"2023-02-24T00:27:58Z","stop_time":"2023-02-24T01:27:58Z"}`)
	eventually(t, func() string {
		_, body := call(t, "GET", addr+"/v1/status", "")
		var v verdict
		if err := json.Unmarshal([]byte(body), &v); err != nil || !v.well() || !strings.Contains(body, `"records":1`) {
			return body
		}
		return ""
	})
	_, body := call(t, "GET", addr+"/v1/cluster", "")
	var c struct {
		Leader string
		Nodes  []struct {
			Name, Role string
			Self       bool
			DiskSize   uint64 `json:"disk_size_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil || c.Leader != "agg1" || len(c.Nodes) != 1 || c.Nodes[0].Role != "leader" || !c.Nodes[0].Self || c.Nodes[0].DiskSize == 0 {
		t.Error(body, err)
	}
}

func TestANodeWithAFullDiskSaysSoFirst(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, stop := startWith(t, daemon.Settings{Name: "agg1", DataDir: t.TempDir(), Plain: []net.Listener{l}, MinFree: 1 << 60, Log: slog.New(slog.DiscardHandler)})
	defer stop()
	eventually(t, func() string {
		_, body := call(t, "GET", "http://"+l.Addr().String()+"/v1/status", "")
		if !strings.Contains(body, `"state":"failing"`) || !strings.Contains(body, `"id":"disk-readonly"`) {
			return body
		}
		return ""
	})
	_, metrics := call(t, "GET", "http://"+l.Addr().String()+"/metrics", "")
	for _, want := range []string{"bursar_writes_paused 1", "bursar_pulls_paused 1", "bursar_disk_level 3"} {
		if !strings.Contains(metrics, want+"\n") {
			t.Error("no", want)
		}
	}
}

func TestANodeKeepsABallast(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, stop := startWith(t, daemon.Settings{Name: "agg1", DataDir: dir, Plain: []net.Listener{l}, MinFree: 1 << 20, Ballast: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	defer stop()
	eventually(t, func() string {
		_, metrics := call(t, "GET", "http://"+l.Addr().String()+"/metrics", "")
		free := strings.Contains(metrics, "\nbursar_disk_level 0\n") // the machine that tests may have a full disk
		info, err := os.Stat(filepath.Join(dir, "disk.ballast"))
		if free != (err == nil && info.Size() > 0) {
			return fmt.Sprintf("the disk has room: %t; the ballast: %v", free, err)
		}
		return ""
	})
}

func TestSlowClientsDoNotBlockOthers(t *testing.T) {
	addr, stop := start(t, t.TempDir())
	defer stop()
	host := strings.TrimPrefix(addr, "http://")
	var slow []net.Conn
	defer func() {
		for _, c := range slow {
			c.Close()
		}
	}()
	for i := range 300 {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
		part := "POST /record HTTP/1.1\r\nHost: x\r\n" // a head without an end
		if i%2 == 0 {
			part += "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{" // a body without an end
		}
		if _, err := c.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		rec := fmt.Sprintf(`{"record_id":"r%d","meta":{},"components":[],"start_time":"2023-02-24T00:27:58Z","stop_time":"2023-02-24T01:27:58Z"}`, i)
		if status, body := call(t, "POST", addr+"/record", rec); status != 200 {
			t.Fatal(status, body)
		}
	}
	if status, body := call(t, "GET", addr+"/v1/status", ""); status != 200 || !strings.Contains(body, `"records":20`) {
		t.Error(status, body)
	}
	if err := slow[1].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := slow[1].Read(make([]byte, 1000)); err != nil && !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset") {
		t.Errorf("a head without an end is waited for: %d bytes, %v", n, err)
	}
}
