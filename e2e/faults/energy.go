//go:build e2e

package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// energyAction is the action that writes and mails the utilization of a period that has ended. Runs
// of one day after another are requested of it, since each period is written and mailed once.
func energyAction(s *Site, dir string, target *Target, serve MailServer) (a *Armed, block string) {
	a = &Armed{Type: "energy", Label: "days", Class: Probed, Target: target, Nameless: true}
	a.Block = fmt.Sprintf(`period = "2000-01-01"
 by = ["site_id"]
 benchmark = ""
 directory = %q
 to = ["ann@example.org"]
 mail {
  from = "bursar@example.org"
  host = "127.0.0.1"
  port = %s
  tls = "none"
 }`, dir, mailPort(s, target, serve, messageID))
	a.Judge = func(node *Member, truth Truth, runs []Run) error {
		return errors.Join(a.judgeFiles(node, dir), a.judgeMails(node, truth, runs))
	}
	done := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() { a.requestRuns(s, done) })
	s.t.Cleanup(func() { close(done); asking.Wait() })
	return a, "energy {\n class \"all\" {\n per \"Cores\" { watts = 10 }\n }\n}\n"
}

// requestRuns requests a run for each day, of any node that takes the request, until done is closed.
func (a *Armed) requestRuns(s *Site, done <-chan struct{}) {
	day := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		case <-time.After(500 * time.Millisecond):
		}
		order := fmt.Sprintf(`{"arguments":{"period":%q}}`, day.Format(time.DateOnly))
		if s.Nodes[i%len(s.Nodes)].orderAction(a.String(), "run", order) == nil {
			day = day.AddDate(0, 0, 1)
		}
	}
}

// judgeFiles judges the files: each was planned once, is whole if it is there, and is there if the
// ledger says that it is done.
func (a *Armed) judgeFiles(node *Member, dir string) error {
	there, err := filepath.Glob(filepath.Join(dir, "[^.]*")) // one that a kill cut off keeps its hidden name
	if err != nil {
		return err
	}
	runs, err := node.Runs(a.String())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	var planned []string
	for i := range runs {
		for j, e := range runs[i].Ledger {
			payload, err := node.effectPayload(a.String(), runs[i].Number, j)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNotYet, err)
			}
			if !isFile(payload) {
				continue
			}
			var f struct{ Name, Text string }
			if err := json.Unmarshal(payload, &f); err != nil {
				return err
			}
			path := filepath.Join(dir, f.Name)
			text, err := os.ReadFile(path)
			switch {
			case slices.Contains(planned, path):
				return fmt.Errorf("%s: run %d plans %s again", a, runs[i].Number, f.Name)
			case err == nil && string(text) != f.Text:
				return fmt.Errorf("%s: %s has %q, planned was %q", a, f.Name, text, f.Text)
			case e.State == "done" && err != nil, runs[i].Ended != nil && e.State != "done" && e.State != "unknown":
				return errors.Join(fmt.Errorf("%s: run %d has ended, and %s is %s", a, runs[i].Number, f.Name, e.State), err)
			}
			planned = append(planned, path)
		}
	}
	for _, path := range there {
		if !slices.Contains(planned, path) {
			return fmt.Errorf("%s: %s is there, and no run has planned it", a, path)
		}
	}
	return nil
}

// isFile tells a file of the action energy, which is JSON, from a mail.
func isFile(payload []byte) bool { return bytes.HasPrefix(payload, []byte("{")) }
