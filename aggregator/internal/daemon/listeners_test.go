package daemon_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

// dialNode returns a connection to a node, which ends with the test.
func dialNode(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err == nil {
		t.Cleanup(func() { c.Close() })
		err = c.SetDeadline(time.Now().Add(time.Minute))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAggregator_Stopping_AnswersWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	l := porttest.Listen(t) // no other test gets its port when it is closed
	_, _, stop := startOpen(t, daemon.Settings{Name: "agg1", DataDir: t.TempDir(), Plain: []net.Listener{l}, Log: slog.New(slog.DiscardHandler)})
	c := dialNode(t, l)
	body := recordJSON("r1")
	fmt.Fprintf(c, "POST /record HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", l.Addr(), len(body))
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // the request is being answered
		t.Fatal(line, err)
	}
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	for refused := false; !refused; {
		other, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			other.Close()
		}
		refused = errors.Is(err, syscall.ECONNREFUSED)
	}
	if _, err := io.WriteString(c, body); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("%s, the last of its connection: %v", answer.Status, answer.Close)
	}
	<-stopped
}

// The rest of a body that never comes holds no connection.
func TestAggregator_RefusesARequestWithoutItsBody_EndsTheConnection(t *testing.T) {
	t.Parallel()
	l := porttest.Listen(t)
	_, _, stop := startOpen(t, daemon.Settings{Name: "agg1", DataDir: t.TempDir(), Plain: []net.Listener{l}, Log: slog.New(slog.DiscardHandler)})
	defer stop()
	for request, want := range map[string]string{
		"POST /record HTTP/1.1\r\nHost: other.example.org":            "",
		"POST /v1/records:export HTTP/1.1\r\nHost: other.example.org": "HTTP/1.1 421 Misdirected Request",
		"POST /health_check HTTP/1.1\r\nHost: " + l.Addr().String():   "HTTP/1.1 405 Method Not Allowed",
	} {
		c := dialNode(t, l)
		fmt.Fprint(c, request, "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		answer, _ := io.ReadAll(c) // until the node ends it, or breaks it off
		if line, _, _ := strings.Cut(string(answer), "\r\n"); line != want {
			t.Errorf("%q: %q", request, answer)
		}
	}
}
