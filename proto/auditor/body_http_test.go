package auditor

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// As over connections: a client that announces much and stalls is broken off when another
// one needs its place.
func TestBodies_StalledConnections_GiveWay(t *testing.T) {
	t.Parallel()
	for name, two := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBodies(64<<20, 25*time.Second, 1)
			var stalled sync.WaitGroup
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				err := b.Take(w, r, func(data []byte, no *Refusal) {
					if no != nil {
						http.Error(w, no.Text, no.Status)
					}
				})
				if err != nil {
					panic(http.ErrAbortHandler)
				}
			}))
			server.EnableHTTP2 = two
			server.StartTLS()
			defer server.Close()
			defer stalled.Wait()
			room := b.memory.stages[smallStage].room
			for range 64 {
				body, client := io.Pipe()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
				if err != nil {
					t.Fatal(err)
				}
				r.ContentLength = 64 << 20
				stalled.Go(func() { _, _ = client.Write(make([]byte, 140_000)) })
				defer client.Close()
				go func() {
					resp, err := server.Client().Do(r)
					if err == nil {
						resp.Body.Close()
					}
				}()
			}
			for { // until they have all of it
				room.mu.Lock()
				n := len(room.held)
				room.mu.Unlock()
				if n == 64 {
					break
				}
				time.Sleep(time.Millisecond)
			}
			resp, err := server.Client().Post(server.URL, "application/json", strings.NewReader(strings.Repeat("x", 300_000)))
			if err != nil || resp.StatusCode != http.StatusOK || resp.Proto[:6] != name[:6] {
				t.Fatal(resp, err)
			}
			resp.Body.Close()
		})
	}
}
