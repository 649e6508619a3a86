//go:build e2e

package faults_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/faults"
	"github.com/bursar-accounting/bursar/proto/auditor"
)

var kills = flag.Int("kills", 10, "kills of the leader in the test of the failover")

// add writes a record of its own through a node. Where net/http sends it a second time,
// since the node closed a kept connection under it, it may be there already.
func add(ctx context.Context, client *http.Client, node *faults.Member, id string) (status int, err error) {
	body := fmt.Sprintf(`{"record_id":%q,"meta":{},"components":[],"start_time":"2026-01-01T00:00:00Z","stop_time":"2026-01-01T01:00:00Z"}`, faults.Pushed+id)
	var tries atomic.Int32 // connections that it was sent on
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { tries.Add(1) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, node.URL+"/record", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header["Idempotency-Key"] = nil // its id is one; nil is not sent
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if string(text) == auditor.Exists && tries.Load() > 1 {
		return http.StatusOK, err
	}
	return resp.StatusCode, err
}

func TestCluster_LeaderKilled_AcceptsWrites(t *testing.T) {
	if *nodes < 2 {
		t.Skip("a node alone has no other to go on")
	}
	s := faults.NewSite(t, faults.Plan{Nodes: *nodes, Agents: 1, Seed: *seed})
	c := faults.NewCampaign(t, s, *seed)
	c.Begin()
	var took []time.Duration
	for n := range *kills {
		leader := s.Leader()
		from := time.Now()
		leader.Kill()
		took = append(took, untilAccepted(t, s, leader, n, from))
		leader.Start()
		if err := c.Settle(faults.Recovery); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[min(len(took)-1, int(share*float64(len(took))))].Round(time.Millisecond)
	}
	t.Logf("leader killed -> next write accepted, %d kills: p50 %s, p99 %s, max %s", len(took), at(0.5), at(0.99), at(1))
}

// untilAccepted writes through the nodes that are left, until one has accepted.
func untilAccepted(t *testing.T, s *faults.Site, dead *faults.Member, n int, from time.Time) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), faults.Recovery)
	defer cancel()
	accepted := make(chan time.Duration, len(s.Nodes))
	var all sync.WaitGroup
	defer all.Wait()
	for _, node := range s.Nodes {
		if node == dead {
			continue
		}
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				client := &http.Client{Timeout: 10 * time.Second}
				if status, err := add(ctx, client, node, fmt.Sprintf("kill-%d-%s-%d", n, node.Name, i)); err == nil && status == http.StatusOK {
					accepted <- time.Since(from)
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	select {
	case d := <-accepted:
		cancel()
		return d
	case <-ctx.Done():
		t.Fatalf("no write was accepted after kill %d (seed %d)", n, *seed)
		return 0
	}
}
