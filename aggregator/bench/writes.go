package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/wire"
)

const (
	posted   = 1000    // records of a post
	postMost = 500_000 // records that are posted in a run, at most
	posters  = 4       // clients at a time
)

// measurePost measures POST /records of a thousand each on a node that is empty.
func (b *bench) measurePost(ctx context.Context) error {
	n := min(b.n, postMost) / posted * posted
	b.progress.beginPiece("making %d records to post", n)
	bodies := postBodies(n, b.measuredKinds()[0])
	profiled, err := b.startProfile("post")
	if err != nil {
		return err
	}
	var rates, cpus []float64
	for i := range b.runs {
		seconds, cpu, err := b.postAll(ctx, "post-"+strconv.Itoa(i), bodies, n)
		if err != nil {
			return err
		}
		rates, cpus = append(rates, float64(n)/seconds), append(cpus, 1e6*cpu/float64(n))
	}
	b.addLine(overRuns("post", fmt.Sprintf("POST /records, %d each, one node", posted), "rec/s", atLeast(100_000), rates).
		addNote("%d records, %d clients; CPU of the aggregator %.2f µs a record", n, posters, medianOf(cpus)))
	return profiled()
}

// postBodies makes the bodies of posts.
func postBodies(n int, ids string) [][]byte {
	gen := benchmark.Generator(2, n, ids)
	var bodies [][]byte
	for range n / posted {
		body := []byte{'['}
		for range posted {
			r, _ := gen.Next()
			body = append(wire.AppendJSON(body, &r), ',')
		}
		body[len(body)-1] = ']'
		bodies = append(bodies, body)
	}
	return bodies
}

// postAll posts all bodies to a new node.
func (b *bench) postAll(ctx context.Context, name string, bodies [][]byte, n int) (seconds, cpu float64, err error) {
	node, err := b.newNode(name, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, node.stopNode(), os.RemoveAll(node.dir)) }()
	if err := node.ensureRunning(ctx); err != nil {
		return 0, 0, err
	}
	b.progress.beginPiece("POST /records, %d records", n)
	before, begun := node.cpuSeconds(), time.Now()
	if err := b.postFrom(ctx, node.baseURL()+"/records", bodies); err != nil {
		return 0, 0, err
	}
	seconds, cpu = time.Since(begun).Seconds(), node.cpuSeconds()-before
	if count, err := node.countRecords(ctx); err != nil || count != n {
		return 0, 0, fmt.Errorf("the node has %d records, want %d: %w", count, n, err)
	}
	return seconds, cpu, nil
}

// postFrom posts from several clients at a time.
func (b *bench) postFrom(ctx context.Context, target string, bodies [][]byte) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: posters}}
	defer client.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(posters)
	for i, body := range bodies {
		if ctx.Err() != nil {
			break
		}
		b.progress.showDone(float64(i), float64(len(bodies)))
		g.Go(func() error { return postOne(ctx, client, target, body) })
	}
	return g.Wait()
}

func postOne(ctx context.Context, client *http.Client, target string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return err
}
