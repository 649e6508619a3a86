//go:build e2e

package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"time"
)

// hook is the receiver of a webhook that counts in a target. What it has begun to take
// it takes, whoever is gone meanwhile.
type hook struct{ target *Target }

// webhookAction is an action that posts what has changed to a hook.
func webhookAction(s *Site, target *Target) *Armed {
	server := httptest.NewServer(hook{target})
	s.t.Cleanup(server.Close)
	a := &Armed{Type: "webhook", Label: "mirror", Class: Keyed, Target: target}
	a.Block = fmt.Sprintf("url = %q\n unsigned = true\n input = \"changes\"\n batch = 100\n timeout = \"5m\"", server.URL)
	a.Judge = a.judgeMirror
	return a
}

// ServeHTTP implements http.Handler.
func (h hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.receiveChange(r); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (h hook) receiveChange(r *http.Request) error {
	var in struct {
		Changes []struct {
			Seq uint64 `json:"seq"`
		} `json:"changes"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return err
	}
	fence, err := strconv.ParseUint(r.Header.Get("Bursar-Fence"), 10, 64)
	attempt, e := strconv.Atoi(r.Header.Get("Bursar-Attempt"))
	if err := errors.Join(err, e); err != nil {
		return err
	}
	line := Happened{Key: r.Header.Get("Idempotency-Key"), Fence: fence, Attempt: attempt}
	for _, c := range in.Changes {
		line.Value += fmt.Sprint(c.Seq, " ")
	}
	return h.target.applyEffect(line)
}

// applyEffect has an effect happen in the target, as the program counting does.
func (t *Target) applyEffect(line Happened) error {
	t.waitAtGate(Before, line)
	if err := appendHappened(t.path, line); err != nil {
		return err
	}
	t.waitAtGate(After, line)
	return nil
}

func appendHappened(path string, line Happened) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// waitAtGate waits while the gate names this point.
func (t *Target) waitAtGate(point string, line Happened) {
	for told := false; ; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(t.gatePath())
		at, begun, _ := strings.Cut(string(text), " ")
		if err != nil || at != point {
			return
		}
		if !told {
			told = appendHappened(begun, line) == nil
		}
	}
}
