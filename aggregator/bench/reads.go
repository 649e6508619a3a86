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

// countRecords returns how many records the node shows.
func (n *nodeSite) countRecords(ctx context.Context) (int, error) {
	body, err := getText(ctx, n.baseURL()+"/v1/status")
	if err != nil {
		return 0, err
	}
	var status struct {
		Records int `json:"records"`
	}
	err = json.Unmarshal([]byte(body), &status)
	return status.Records, err
}

// sweepAnswer reads an answer to its end and returns its lines.
func sweepAnswer(ctx context.Context, target string, each func(lines int)) (lines int, err error) {
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

// measureStream measures GET /records of everything.
func (b *bench) measureStream(ctx context.Context) error {
	s, err := b.firstSet(ctx)
	if err != nil {
		return err
	}
	profiled, err := b.startProfile("get")
	if err != nil {
		return err
	}
	before, memory := s.node.process.memoryOrZero(), s.node.watchMemory()
	var rates []float64
	for range b.runs {
		b.progress.beginPiece("GET /records, %d records", b.n)
		begun := time.Now()
		lines, err := sweepAnswer(ctx, s.node.baseURL()+"/records", func(lines int) { b.progress.showDone(float64(lines), float64(b.n)) })
		if err != nil || lines != b.n {
			return fmt.Errorf("%d records came, want %d: %w", lines, b.n, err)
		}
		rates = append(rates, float64(b.n)/time.Since(begun).Seconds())
	}
	most, _ := memory()
	b.addLine(overRuns("get", "GET /records, all of them", "rec/s", atLeast(500_000), rates).addNote("the aggregator's RssAnon %.0f MiB before, at most %.0f", before, most))
	return profiled()
}

// lookups is how many records are looked up.
const lookups = 5000

// measureLookup measures GET /record/{id}, one after the other.
func (b *bench) measureLookup(ctx context.Context) error {
	for _, ids := range b.measuredKinds() {
		s, err := b.pulledSet(ctx, ids)
		if err != nil {
			return err
		}
		times, err := b.lookUp(ctx, s, lookups)
		if err != nil {
			return err
		}
		line := Line{
			Name: "lookup_" + ids, What: fmt.Sprintf("lookup by id at %d, %s ids: p99", b.n, ids), Unit: "ms", Runs: 1,
			Measured: percentileOf(times, 99), Low: percentileOf(times, 50), High: percentileOf(times, 100), Spread: "p50–max",
		}
		b.addLine(line.compareTo(goalUnder(1)).addNote("%d by HTTP, one after the other", lookups))
	}
	return nil
}

// lookUp gets records by random ids of the set, and returns how many milliseconds each took.
func (b *bench) lookUp(ctx context.Context, s *set, count int) (times []float64, err error) {
	text, err := os.ReadFile(s.sampleFile())
	if err != nil {
		return nil, err
	}
	list := strings.Fields(string(text))
	b.progress.beginPiece("lookup by id, %s ids", s.ids)
	rng := rand.New(rand.NewPCG(1, 2))
	for range count {
		begun := time.Now()
		if _, err := getText(ctx, s.node.baseURL()+"/record/"+url.PathEscape(list[rng.IntN(len(list))])); err != nil {
			return nil, err
		}
		times = append(times, millisecondsSince(begun))
	}
	return times, nil
}

// unindexed is a filter that no index and no zone helps: it is true of no record,
// and two columns of all of them must be looked at.
const unindexed = "/records?meta[partition][dnc][]=nemo-part0&component[Cores][gt]=1000000"

// measureScan measures a filter on what has no index.
func (b *bench) measureScan(ctx context.Context) error {
	s, err := b.firstSet(ctx)
	if err != nil {
		return err
	}
	profiled, err := b.startProfile("scan")
	if err != nil {
		return err
	}
	b.progress.beginPiece("scan with a filter")
	var rates []float64
	for range max(b.runs, 5) {
		begun := time.Now()
		lines, err := sweepAnswer(ctx, s.node.baseURL()+strings.NewReplacer("[", "%5B", "]", "%5D").Replace(unindexed), func(int) {})
		if err != nil || lines != 0 {
			return fmt.Errorf("%d records match: %w", lines, err)
		}
		rates = append(rates, float64(b.n)/time.Since(begun).Seconds())
	}
	b.addLine(overRuns("scan", "scan with a filter on unindexed keys, one core", "rec/s", atLeast(10e6), rates))
	return profiled()
}
