package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// measureFailover measures how long no one takes writes when the leader is killed, and
// when it is told to stop. One client at each node writes all the time; a gap is
// from the signal to the first write that began after it and was accepted.
func (b *bench) measureFailover(ctx context.Context) error {
	t, err := b.newTrio("failover", nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.stopNodes() }() // its folders are removed
	if _, err := t.startNodes(ctx); err != nil {
		return err
	}
	for _, how := range []struct {
		name, what string
		target     goal
		end        func(*process) error
	}{
		{"failover", "leader killed → write accepted", goalUnder(2000), (*process).killProcess},
		{"planned", "leader stopped → write accepted", goalUnder(100), (*process).stopProcess},
	} {
		if err := b.runFailovers(ctx, t, how.name, how.what, how.target, how.end); err != nil {
			return fmt.Errorf("%s: %w", how.name, err)
		}
	}
	return nil
}

func (b *bench) runFailovers(ctx context.Context, t *trioSite, name, what string, target goal, end func(*process) error) error {
	var gaps []float64
	failed := 0
	for i := range b.kills {
		b.progress.beginPiece("%s, %d of %d", what, i+1, b.kills)
		gap, bad, err := t.measureGap(ctx, fmt.Sprintf("%s-%d", name, i), end)
		if err != nil {
			return err
		}
		gaps, failed = append(gaps, gap), failed+bad
	}
	l := Line{Name: name, What: what + ": p99", Unit: "ms", Runs: len(gaps), Spread: "p50–max"}
	l.Measured, l.Low, l.High = percentileOf(gaps, 99), medianOf(gaps), percentileOf(gaps, 100)
	b.addLine(l.compareTo(target).addNote("%d times; %d requests at the other nodes failed meanwhile", b.kills, failed))
	return nil
}

// killProcess ends the process at once.
func (p *process) killProcess() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.done
	return nil
}

// measureGap ends the leader, returns the milliseconds without an accepted write and how
// many requests at the other nodes failed, and starts the node again.
func (t *trioSite) measureGap(ctx context.Context, name string, end func(*process) error) (ms float64, failed int, err error) {
	leader, err := t.findLeader(ctx)
	if err != nil {
		return 0, 0, err
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	w := &writers{name: name, accepted: make(chan time.Time, 4096)}
	for i, n := range t.nodes {
		if n != leader {
			w.tasks.Go(func() { w.writeTo(writing, n, i) })
		}
	}
	if err := w.awaitWrite(ctx, time.Time{}); err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- end(leader.process) }()
	if err := w.awaitWrite(ctx, begun); err != nil {
		return 0, 0, err
	}
	ms = millisecondsSince(begun)
	if err := <-ended; err != nil {
		return 0, 0, err
	}
	if err := leader.launchNode(); err != nil {
		return 0, 0, err
	}
	if err := leader.awaitReady(ctx); err != nil {
		return 0, 0, err
	}
	stop()
	w.tasks.Wait()
	return ms, int(w.failed.Load()), nil
}

// findLeader asks each node whether it leads until one says so.
func (t *trioSite) findLeader(ctx context.Context) (*nodeSite, error) {
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		for _, n := range t.nodes {
			body, err := getText(ctx, n.baseURL()+"/metrics")
			if err == nil && strings.Contains(body, "\nbursar_raft_leader 1") {
				return n, nil
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil, fmt.Errorf("%w: no node leads", errPatience)
}

// awaitReady waits until the node answers reads that need the whole cluster.
func (n *nodeSite) awaitReady(ctx context.Context) error {
	return pollUntil(ctx, n.process, func() bool { _, err := n.countRecords(ctx); return err == nil })
}

// writers post small records all the time.
type writers struct {
	name     string
	accepted chan time.Time // when each accepted write began
	failed   atomic.Int64
	tasks    sync.WaitGroup
}

// awaitWrite returns when a write was accepted that began after t.
func (w *writers) awaitWrite(ctx context.Context, t time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(patience):
			return fmt.Errorf("%w: no write was accepted", errPatience)
		case begun := <-w.accepted:
			if begun.After(t) {
				return nil
			}
		}
	}
}

// writePatience is when a client gives up a request and sends the next.
const writePatience = 250 * time.Millisecond

// writeTo posts one record after the other to a node until ctx ends.
func (w *writers) writeTo(ctx context.Context, n *nodeSite, id int) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i := 0; ctx.Err() == nil; i++ {
		begun := time.Now()
		err := postSmall(ctx, client, n, fmt.Sprintf("%s-%d-%d", w.name, id, i))
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded): // it waits for a leader, and this client does not
		case err != nil:
			w.failed.Add(1)
		default:
			select {
			case w.accepted <- begun:
			default: // no one waits
			}
		}
	}
}

func postSmall(ctx context.Context, client *http.Client, n *nodeSite, id string) error {
	ctx, cancel := context.WithTimeout(ctx, writePatience)
	defer cancel()
	body := fmt.Sprintf(`{"record_id":%q,"meta":{},"components":[],"start_time":"2026-01-01T00:00:00Z"}`, id)
	return postOne(ctx, client, n.baseURL()+"/record", []byte(body))
}
