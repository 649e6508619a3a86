package daemon

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

// Whoever has a connection when a node begins to stop is answered, even where the node takes
// longer to accept it than new callers are let in.
func TestFront_Stopping_AnswersWhoIsInTheQueue(t *testing.T) {
	l := porttest.Listen(t) // no one else gets its port when it is closed
	var conns []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	f := &front{door: &drainingListener{Listener: l}, limits: api.NewConns(api.PerAddress, prometheus.NewRegistry()), conns: map[net.Conn]struct{}{}}
	slow := func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			time.Sleep(2 * lastCallers)
		}
		f.trackConn(c, state)
	}
	f.server = &http.Server{ConnState: slow, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- f.serveUntilDone(ctx, farewell) }()
	for _, c := range conns {
		request, err := http.NewRequest(http.MethodPost, "http://node/record", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := request.Write(c); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("a caller came in after the end")
	}
}
