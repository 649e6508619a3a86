//go:build e2e

package faults

import (
	"bytes"
	"fmt"
	"net"
	"net/mail"
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
		return target.happen(Happened{Value: value})
	}
	done := make(chan struct{})
	go func() { defer close(done); serve(l, take) }()
	s.t.Cleanup(func() { l.Close(); <-done })
	_, port, err := net.SplitHostPort(l.Addr().String())
	s.must(err)
	return port
}

// report is an action that mails what was used in the last second to two people, by a
// server of mail that counts in a target.
func report(s *Site, target *Target, serve MailServer) *Armed {
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
	a.Judge = a.mailed
	return a
}

func messageID(text []byte) (string, error) {
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	return m.Header.Get("Message-Id"), nil
}

// mailed judges the mails by their ids: each that was planned has one of its own, none
// arrived twice, those arrived that the ledger says are done, and no others were planned.
func (a *Armed) mailed(node *Member, _ Truth, _ []Run) error {
	first, err := a.happened()
	if err != nil {
		return err
	}
	runs, err := node.Runs(a.String()) // all that happened first is in these
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	last, err := a.happened() // what these say is done is in this
	if err != nil {
		return err
	}
	times, planned := map[string]int{}, map[string]bool{}
	for i := range last {
		times[last[i].Value]++
	}
	for i := range runs {
		for j, e := range runs[i].Ledger {
			text, err := node.payload(a.String(), runs[i].Number, j)
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

// payload is what an effect does, byte by byte.
func (m *Member) payload(action string, run uint64, effect int) ([]byte, error) {
	var answer struct {
		Payload []byte `json:"payload"`
	}
	err := m.decode(fmt.Sprintf("/v1/actions/%s/runs/%d/effects/%d", action, run, effect), &answer)
	return answer.Payload, err
}
