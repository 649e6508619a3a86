package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// count returns how many records the node shows.
func (n *nodeSite) count(ctx context.Context) (int, error) {
	body, err := get(ctx, n.url()+"/v1/status")
	if err != nil {
		return 0, err
	}
	var status struct {
		Records int `json:"records"`
	}
	err = json.Unmarshal([]byte(body), &status)
	return status.Records, err
}

// sweep reads an answer to its end and returns its lines.
func sweep(ctx context.Context, target string, each func(lines int)) (lines int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", target, resp.Status)
	}
	buf := make([]byte, 1<<20)
	for {
		n, err := resp.Body.Read(buf)
		lines += bytes.Count(buf[:n], []byte{'\n'})
		each(lines)
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
	}
}

// stream measures GET /records of everything.
func (b *bench) stream(ctx context.Context) error {
	s, err := b.first(ctx)
	if err != nil {
		return err
	}
	profiled, err := b.profiled("get")
	if err != nil {
		return err
	}
	before, memory := s.node.process.memory(), s.node.watch()
	var rates []float64
	for range b.runs {
		b.progress.begin("GET /records, %d records", b.n)
		begun := time.Now()
		lines, err := sweep(ctx, s.node.url()+"/records", func(lines int) { b.progress.at(float64(lines), float64(b.n)) })
		if err != nil || lines != b.n {
			return fmt.Errorf("%d records came, want %d: %w", lines, b.n, err)
		}
		rates = append(rates, float64(b.n)/time.Since(begun).Seconds())
	}
	most, _ := memory()
	b.add(overRuns("get", "GET /records, all of them", "rec/s", atLeast(500_000), rates).noted("the aggregator's RssAnon %.0f MiB before, at most %.0f", before, most))
	return profiled()
}

// lookups is how many records are looked up.
const lookups = 5000

// lookup measures GET /record/{id}, one after the other.
func (b *bench) lookup(ctx context.Context) error {
	for _, ids := range b.kinds() {
		s, err := b.pulled(ctx, ids)
		if err != nil {
			return err
		}
		times, err := b.lookUp(ctx, s, lookups)
		if err != nil {
			return err
		}
		line := Line{
			Name: "lookup_" + ids, What: fmt.Sprintf("lookup by id at %d, %s ids: p99", b.n, ids), Unit: "ms", Runs: 1,
			Measured: percentile(times, 99), Low: percentile(times, 50), High: percentile(times, 100), Spread: "p50–max",
		}
		b.add(line.against(under(1)).noted("%d by HTTP, one after the other", lookups))
	}
	return nil
}

// lookUp gets records by random ids of the set, and returns how many milliseconds each took.
func (b *bench) lookUp(ctx context.Context, s *set, count int) (times []float64, err error) {
	text, err := os.ReadFile(s.sample())
	if err != nil {
		return nil, err
	}
	list := strings.Fields(string(text))
	b.progress.begin("lookup by id, %s ids", s.ids)
	rng := rand.New(rand.NewPCG(1, 2))
	for range count {
		begun := time.Now()
		if _, err := get(ctx, s.node.url()+"/record/"+url.PathEscape(list[rng.IntN(len(list))])); err != nil {
			return nil, err
		}
		times = append(times, since(begun))
	}
	return times, nil
}

// unindexed is a filter that no index and no zone helps: it is true of no record,
// and two columns of all of them must be looked at.
const unindexed = "/records?meta[partition][dnc][]=nemo-part0&component[Cores][gt]=1000000"

// scan measures a filter on what has no index.
func (b *bench) scan(ctx context.Context) error {
	s, err := b.first(ctx)
	if err != nil {
		return err
	}
	profiled, err := b.profiled("scan")
	if err != nil {
		return err
	}
	b.progress.begin("scan with a filter")
	var rates []float64
	for range max(b.runs, 5) {
		begun := time.Now()
		lines, err := sweep(ctx, s.node.url()+strings.NewReplacer("[", "%5B", "]", "%5D").Replace(unindexed), func(int) {})
		if err != nil || lines != 0 {
			return fmt.Errorf("%d records match: %w", lines, err)
		}
		rates = append(rates, float64(b.n)/time.Since(begun).Seconds())
	}
	b.add(overRuns("scan", "scan with a filter on unindexed keys, one core", "rec/s", atLeast(10e6), rates))
	return profiled()
}
