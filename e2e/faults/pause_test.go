//go:build e2e

package faults_test

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/faults"
)

func TestLeader_WasPaused_AnswersNothingStale(t *testing.T) {
	if *nodes < 2 {
		t.Skip("a node alone has no other to lead")
	}
	s := faults.NewSite(t, faults.Plan{Nodes: *nodes, Agents: 1, Seed: *seed})
	c := faults.NewCampaign(t, s, *seed)
	c.Begin()
	for n := range 8 {
		leader := s.Leader()
		pauseWithQuestions(t, s, leader)
		id := writeElsewhere(t, s, leader, n)
		var asking sync.WaitGroup
		for range 16 {
			asking.Go(func() {
				client := &http.Client{Timeout: 20 * time.Second}
				resp, err := client.Get(leader.URL + "/record/" + faults.Pushed + id) //nolint:noctx // the client has a time limit
				if err != nil {
					return // an error is no wrong answer
				}
				resp.Body.Close()
				if resp.StatusCode == http.StatusNotFound {
					t.Errorf("pause %d: %s answered that %s is not there, which another leader had committed before the question", n, leader.Name, id)
				}
			})
		}
		time.Sleep(20 * time.Millisecond) // the questions wait in its sockets
		if err := leader.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		asking.Wait()
		if err := c.Settle(faults.Recovery); err != nil {
			t.Fatal(err)
		}
	}
}

// pauseWithQuestions pauses a leader whose heartbeats are on their way: their
// answers come while it does not look, and it finds them when it goes on.
func pauseWithQuestions(t *testing.T, s *faults.Site, leader *faults.Member) {
	t.Helper()
	for _, other := range s.Nodes {
		if other != leader {
			s.Network.Set(leader.Name, other.Name, faults.Link{Held: true})
		}
	}
	time.Sleep(150 * time.Millisecond) // some heartbeats, and less than its lease
	if err := leader.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.Network.Heal()
}

// writeElsewhere writes a record through the other nodes, and returns its id.
func writeElsewhere(t *testing.T, s *faults.Site, paused *faults.Member, n int) (id string) {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second}
	for try := 0; ; try++ {
		node := s.Nodes[try%len(s.Nodes)]
		if node == paused {
			continue
		}
		id := fmt.Sprintf("pause-%d-%d", n, try)
		if status, err := add(t.Context(), client, node, id); err == nil && status == http.StatusOK {
			return id
		}
		if try > 1000 {
			t.Fatal("no other node takes a write")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
