//go:build e2e

package faults

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MailServer serves until the listener is closed. It takes each mail of which it sees the
// end, whoever is gone meanwhile, and then says that it has it.
type MailServer func(l net.Listener, take func(mail []byte) error)

// mailPort starts a server of mail that counts in a target what read finds in each mail, and
// returns its port.
func mailPort(s *Site, target *Target, serve MailServer, read func(mail []byte) (string, error)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	take := func(text []byte) error {
		value, err := read(text)
		if err != nil {
			return err
		}
		return target.applyEffect(Happened{Value: value})
	}
	done := make(chan struct{})
	go func() { defer close(done); serve(l, take) }()
	s.t.Cleanup(func() { // a mail may wait at the gate
		s.must(errors.Join(l.Close(), target.Open()))
		<-done
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	s.must(err)
	return port
}

// reportAction is an action that mails what was used in the last second to two people, by a
// server of mail that counts in a target.
func reportAction(s *Site, target *Target, serve MailServer) *Armed {
	a := &Armed{Type: "report", Label: "mail", Class: Probed, Target: target, Nameless: true}
	a.Block = fmt.Sprintf(`report = "usage"
 period = "1s"
 query = { by = "site_id" }
 to = ["ann@example.org", "bob@example.org"]
 mail {
  from = "bursar@example.org"
  host = "127.0.0.1"
  port = %s
  tls = "none"
 }`, mailPort(s, target, serve, messageID))
	a.Judge = a.judgeMails
	return a
}

func messageID(text []byte) (string, error) {
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	return m.Header.Get("Message-Id"), nil
}

// judgeMails judges the mails by their ids: each that was planned has one of its own, none
// arrived twice, those arrived that the ledger says are done, and no others were planned.
func (a *Armed) judgeMails(node *Member, _ Truth, _ []Run) error {
	first, err := a.readHappened()
	if err != nil {
		return err
	}
	runs, err := node.Runs(a.String()) // all that happened first is in these
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	last, err := a.readHappened() // what these say is done is in this
	if err != nil {
		return err
	}
	times, planned := map[string]int{}, map[string]bool{}
	for i := range last {
		times[last[i].Value]++
	}
	for i := range runs {
		for j, e := range runs[i].Ledger {
			text, err := node.effectPayload(a.String(), runs[i].Number, j)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNotYet, err)
			}
			if isFile(text) {
				continue
			}
			id, err := messageID(text)
			if err != nil {
				return err
			}
			if n := times[id]; planned[id] || n > 1 || e.State == "done" && n != 1 {
				return fmt.Errorf("%s: run %d plans the mail %s, planned before: %t; it arrived %d times: %+v", a, runs[i].Number, id, planned[id], n, e)
			}
			planned[id] = true
		}
	}
	for i := range first {
		if !planned[first[i].Value] {
			return fmt.Errorf("%s: the mail %s arrived, and no run has planned it", a, first[i].Value)
		}
	}
	return nil
}

// effectPayload is what an effect does, byte by byte.
func (m *Member) effectPayload(action string, run uint64, effect int) ([]byte, error) {
	var answer struct {
		Payload []byte `json:"payload"`
	}
	err := m.fetchJSON(fmt.Sprintf("/v1/actions/%s/runs/%d/effects/%d", action, run, effect), &answer)
	return answer.Payload, err
}

// webSite is an action that publishes what was used in the last minute as a page of a static site.
func webSite(dir string) *Armed {
	a := &Armed{Type: "report", Label: "site", Class: Probed}
	a.Block = fmt.Sprintf("report = \"usage\"\n period = \"1m\"\n query = { by = \"site_id\" }\n without_usage = \"mail\"\n site { directory = %q }", dir)
	a.Judge = func(node *Member, _ Truth, _ []Run) error { return a.judgePages(node, dir) }
	return a
}

// judgePages judges a site: the folder of each page that the ledger says is done has all files of a
// page, as a run has planned it, and the index is whole and has the folder.
func (a *Armed) judgePages(node *Member, dir string) error {
	listed := time.Now()
	runs, err := node.Runs(a.String())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	planned, done := map[string]map[string]string{}, map[string]bool{} // files of a page by its digest, and folders
	for i := range runs {
		for j, e := range runs[i].Ledger {
			payload, err := node.effectPayload(a.String(), runs[i].Number, j)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNotYet, err)
			}
			var page struct {
				Folder string
				Files  map[string]string
			}
			if err := json.Unmarshal(payload, &page); err != nil {
				return err
			}
			digest := fmt.Sprintf("%x", sha256.Sum256(payload))
			planned[digest] = page.Files
			done[page.Folder] = done[page.Folder] || e.State == "done"
		}
	}
	index, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	if !strings.HasSuffix(strings.TrimSpace(string(index)), "</html>") {
		return fmt.Errorf("%s: the index is half", a)
	}
	pages := 0
	for folder, isDone := range done {
		if !isDone || changedSince(filepath.Join(dir, folder), listed) { // it may be of a later run
			continue
		}
		pages++
		text, err := os.ReadFile(filepath.Join(dir, folder, "entry.json"))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: the page %s is done and not there", a, folder)
		}
		var entry struct{ Digest string }
		if err = errors.Join(err, json.Unmarshal(text, &entry)); err != nil {
			return err
		}
		if planned[entry.Digest] == nil || !strings.Contains(string(index), folder+"/") {
			return fmt.Errorf("%w: %s: %s has a page %s that no run has planned, or the index lacks it", ErrNotYet, a, folder, entry.Digest)
		}
		for name, want := range planned[entry.Digest] {
			if got, err := os.ReadFile(filepath.Join(dir, folder, name)); err != nil || string(got) != want {
				return fmt.Errorf("%w: %s: %s/%s is not as it was planned, %w", ErrNotYet, a, folder, name, err)
			}
		}
	}
	if pages == 0 {
		return fmt.Errorf("%w: %s: no page is done", ErrNotYet, a)
	}
	return nil
}

// changedSince reports whether a folder or a file of it changed after a time.
func changedSince(folder string, at time.Time) bool {
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	return slices.ContainsFunc(append(files, folder), func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.ModTime().After(at)
	})
}
