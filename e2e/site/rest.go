//go:build e2e

package site

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// client gives up where a test would hang.
func client() *http.Client { return &http.Client{Timeout: 2 * time.Minute} }

// Ready reports whether the aggregator's health check passes.
func (g *Aggregator) Ready() bool {
	resp, err := client().Get(g.URL + "/health_check")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// AwaitReady waits until the health check passes.
func (g *Aggregator) AwaitReady() {
	g.site.t.Helper()
	g.site.Eventually("the aggregator is ready", func() (bool, string) { return g.Ready(), g.Log(3) })
}

// Get decodes an answer of /v1.
func (g *Aggregator) Get(path string, into any) error {
	resp, err := client().Get(g.URL + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("GET %s: %s: %s", path, resp.Status, text)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// Status is what a test looks at in /v1/status.
type Status struct {
	Records     int64  `json:"records"`
	Quarantined int    `json:"quarantined"`
	Conflicts   int    `json:"conflicts"`
	Hash        string `json:"hash"`
}

// Status returns the node's status; an error while it does not answer.
func (g *Aggregator) Status() (Status, error) {
	var s Status
	return s, g.Get("/v1/status", &s)
}

// Finding is what a test looks at in a finding of the status.
type Finding struct{ ID, About, What, Do string }

// Findings are those of the node's status.
func (g *Aggregator) Findings() ([]Finding, error) {
	var status struct{ Findings []Finding }
	err := g.Get("/v1/status", &status)
	return status.Findings, err
}

// AwaitFinding waits until the node's status has a finding that is looked for.
func (g *Aggregator) AwaitFinding(what string, is func(Finding) bool) {
	g.site.t.Helper()
	g.site.Eventually("the status names "+what, func() (bool, string) {
		all, err := g.Findings()
		return slices.ContainsFunc(all, is), fmt.Sprintf("%+v %v", all, err)
	})
}

// Member is what a test looks at in a member of the cluster.
type Member struct {
	ID, Name      string
	Voter, Leader bool
}

// Members are those of the cluster, as the node says.
func (g *Aggregator) Members() ([]Member, error) {
	var answer struct{ Members []Member }
	err := g.Get("/v1/cluster/members", &answer)
	return answer.Members, err
}

// Metrics is what the node tells a Prometheus.
func (g *Aggregator) Metrics() (string, error) {
	resp, err := client().Get(g.URL + "/metrics")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// Post hands in JSON at the plain address, which has to be taken.
func (g *Aggregator) Post(path, body string) {
	g.site.t.Helper()
	resp, err := client().Post(g.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		g.site.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		g.site.t.Fatalf("POST %s: %s %s %v", path, resp.Status, text, err)
	}
}

// AwaitRecords waits until exactly n records are there.
func (g *Aggregator) AwaitRecords(n int64) {
	g.site.t.Helper()
	g.site.Eventually(fmt.Sprintf("%d records", n), func() (bool, string) {
		s, err := g.Status()
		return err == nil && s.Records == n, fmt.Sprint(s.Records, " records, ", err)
	})
}

// Records calls yield with every record that matches the query of AUDITOR's
// grammar.
func (g *Aggregator) Records(query url.Values, yield func(record.Record)) {
	g.site.t.Helper()
	g.readRecords("/records", query, yield)
}

// readRecords reads a path that answers with a record a line, from a node that may just
// have been started.
func (g *Aggregator) readRecords(path string, query url.Values, yield func(record.Record)) {
	g.site.t.Helper()
	g.AwaitReady()
	resp, err := client().Get(g.URL + path + "?" + query.Encode())
	if err != nil {
		g.site.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReaderSize(resp.Body, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return
		}
		if err != nil {
			g.site.t.Fatal(err)
		}
		r, err := wire.DecodeRecordJSON(line)
		if err != nil {
			g.site.t.Fatalf("%v in %s", err, line)
		}
		yield(r)
	}
}

// ByID returns all records by id, and fails the test when one is there twice.
func (g *Aggregator) ByID() map[string]record.Record {
	g.site.t.Helper()
	all := map[string]record.Record{}
	g.Records(nil, func(r record.Record) {
		if _, twice := all[r.ID]; twice {
			g.site.t.Errorf("the record %s is there twice", r.ID)
		}
		all[r.ID] = r
	})
	return all
}
