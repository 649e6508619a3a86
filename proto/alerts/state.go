// Package alerts is what an action "alert" keeps between its runs: the plugin writes it, and
// the daemon shows it. It is in the replicated state of the action, so that every leader
// goes on where the one before it stopped.
package alerts

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// format is the version of the state, its first byte. Behind it comes JSON, deflated.
const format = 1

// MaxState bounds the JSON of a state that is read.
const MaxState = 16 << 20

// State is what is kept. All times are UTC.
type State struct {
	Alerts    []Alert              `json:"alerts,omitempty"`   // in the order of their keys
	Silences  []Silence            `json:"silences,omitempty"` // in the order in which they were made
	Problems  []Problem            `json:"problems,omitempty"` // rules that cannot be evaluated
	Changes   []Change             `json:"changes,omitempty"`  // that some receiver has not been told, the oldest first
	Last      uint64               `json:"last,omitempty"`     // number of the newest change
	Receivers map[string]*Receiver `json:"receivers,omitempty"`
}

// Alert is a condition of a rule that holds, or did until a short while ago.
type Alert struct {
	Rule     string `json:"rule"`
	About    string `json:"about,omitempty"`
	Severity string `json:"severity"` // critical, warning or notice
	What     string `json:"what"`
	Do       string `json:"do,omitempty"`
	Runbook  string `json:"runbook,omitempty"`
	// Since is when the condition began, Fired when it had lasted long enough for the rule,
	// Ended when it ended; zero: not yet.
	Since time.Time `json:"since"`
	Fired time.Time `json:"fired,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
	// Over is since when the condition was not found, of an alert that has not ended; zero: it
	// was found by the last run.
	Over time.Time `json:"over,omitzero"`
	// Told says that there is a change that says that it fires.
	Told bool `json:"told,omitempty"`
}

// Key tells an alert from others.
func (a *Alert) Key() string { return a.Rule + "\x00" + a.About }

// Firing reports whether the alert fires.
func (a *Alert) Firing() bool { return !a.Fired.IsZero() && a.Ended.IsZero() }

// Problem says why a rule cannot be evaluated.
type Problem struct {
	Rule  string    `json:"rule"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
}

// Change is that an alert begins to fire, or has ended, which Alert says.
type Change struct {
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	Alert  Alert     `json:"alert"`
	Only   string    `json:"only,omitempty"` // the receiver that is told; "": all
}

// Receiver is how far a receiver, or one address of it, has been told.
type Receiver struct {
	Through uint64    `json:"through"`          // the newest change in a message to it
	Told    time.Time `json:"told,omitzero"`    // when the last message was taken
	Sent    *Sent     `json:"sent,omitempty"`   // whose outcome is to be looked up
	Failing time.Time `json:"failing,omitzero"` // since when it takes nothing
	Problem string    `json:"problem,omitempty"`
	Tries   int       `json:"tries,omitempty"` // in a row that failed
	Next    time.Time `json:"next,omitzero"`   // not before
}

// Sent is a message that was planned.
type Sent struct {
	Planned time.Time `json:"planned"` // of the run
	Effect  string    `json:"effect"`
	Before  uint64    `json:"before"` // Through before it
}

// Silence keeps alerts from being told.
type Silence struct {
	ID      string            `json:"id"`
	Match   map[string]string `json:"match"` // patterns of Fields; all must match
	From    time.Time         `json:"from"`
	Until   time.Time         `json:"until"`
	Author  string            `json:"author"`
	Comment string            `json:"comment,omitempty"`
}

// Fields are what a silence can match.
func Fields() []string { return []string{"rule", "about", "severity"} }

// Check says what is wrong with a silence that is to be made.
func (s *Silence) Check(now time.Time) error {
	if len(s.Match) == 0 {
		return fmt.Errorf("missing matcher: use one or more of %s, such as rule=backup", strings.Join(Fields(), ", "))
	}
	for key, pattern := range s.Match {
		switch {
		case !slices.Contains(Fields(), key):
			return fmt.Errorf("unknown matcher %q: use %s", key, strings.Join(Fields(), ", "))
		case len(pattern) > 512:
			return fmt.Errorf("matcher %s is too long: at most 512 bytes are allowed", key)
		}
	}
	switch {
	case !s.Until.After(now):
		return errors.New("invalid duration: the silence would have ended already")
	case s.Until.Sub(now) > 366*24*time.Hour:
		return errors.New("invalid duration: at most 366 days are allowed")
	case len(s.Comment) > 512:
		return errors.New("the comment is too long: at most 512 bytes are allowed")
	}
	return nil
}

// Matches reports whether a silence is about an alert.
func (s *Silence) Matches(a *Alert) bool {
	values := map[string]string{"rule": a.Rule, "about": a.About, "severity": a.Severity}
	for key, pattern := range s.Match {
		if !Match(pattern, values[key]) {
			return false
		}
	}
	return len(s.Match) > 0
}

// Match reports whether a text has a pattern, in which * is any text.
func Match(pattern, text string) bool {
	expr := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	ok, err := regexp.MatchString("(?s)^"+expr+"$", text)
	return err == nil && ok
}

// Silenced is the silence that keeps an alert from being told at an instant; nil: none.
func (s *State) Silenced(a *Alert, now time.Time) *Silence {
	for i := range s.Silences {
		if q := &s.Silences[i]; !now.Before(q.From) && now.Before(q.Until) && q.Matches(a) {
			return q
		}
	}
	return nil
}

// Read reads a state; an empty one is that of an action that has not run.
func Read(b []byte) (*State, error) {
	s := &State{}
	if len(b) == 0 {
		return s, nil
	}
	if b[0] != format {
		return nil, fmt.Errorf("the state of the alerts has format %d, this program knows %d; run the newer plugin", b[0], format)
	}
	in := flate.NewReader(bytes.NewReader(b[1:]))
	text, err := io.ReadAll(io.LimitReader(in, MaxState))
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of the alerts: %w", err)
	}
	return s, nil
}

// Bytes writes a state.
func (s *State) Bytes() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer([]byte{format})
	w, err := flate.NewWriter(out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Word is the state of an alert in a word: pending, firing, silenced or recovered.
func (s *State) Word(a *Alert, now time.Time) string {
	switch {
	case !a.Ended.IsZero():
		return "recovered"
	case a.Fired.IsZero():
		return "pending"
	case s.Silenced(a, now) != nil:
		return "silenced"
	}
	return "firing"
}
