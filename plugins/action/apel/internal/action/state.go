package action

import (
	"encoding/json"
	"fmt"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/month"
)

// stateVersion is the format of a state.
const stateVersion = 1

// state is what the action remembers: for each site the last month that was looked at,
// and what was sent of the months that are looked at again.
type state struct {
	Version int                   `json:"version"`
	Sites   map[string]*siteState `json:"sites"`
}

type siteState struct {
	Through string           `json:"through"` // the last month
	Sent    map[string]*sent `json:"sent"`    // by month
}

// sent is what the receiver has of a month.
type sent struct {
	Digest string `json:"digest"` // of the messages, unsigned
	Jobs   int64  `json:"jobs"`
	Wall   int64  `json:"wall"`
	CPU    int64  `json:"cpu"`
	// Rows are digests of all rows that were ever sent, of the key and of the whole;
	// none when they are too many.
	Rows []string `json:"rows,omitempty"`
	// Days are digests of the messages of jobs by day; DIGEST@COUNT when only so many
	// of them were sent.
	Days map[string]string `json:"days,omitempty"`
}

func (s *sent) dayDigest(name string) string {
	if s == nil {
		return ""
	}
	return s.Days[name]
}

// readState reads a state; nil is that of a new action.
func readState(b []byte) (state, error) {
	s := state{Version: stateVersion, Sites: map[string]*siteState{}}
	if len(b) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("the state of the action cannot be read: %w", err)
	}
	if s.Version != stateVersion {
		return s, fmt.Errorf("the state of the action has format %d, and this plugin knows %d; run the newer plugin", s.Version, stateVersion)
	}
	for name, one := range s.Sites {
		if _, err := month.Parse(one.doneThrough()); err != nil {
			return s, fmt.Errorf("the state of the action, site %s: %w", name, err)
		}
	}
	return s, nil
}

func (s *siteState) doneThrough() string {
	if s == nil {
		return ""
	}
	return s.Through
}

// stateOf is the state of a site, which is made when it is not there.
func (s *state) stateOf(site string) *siteState {
	one := s.Sites[site]
	if one == nil {
		one = &siteState{}
		s.Sites[site] = one
	}
	if one.Sent == nil {
		one.Sent = map[string]*sent{}
	}
	return one
}

// forgetBefore drops what was sent of months before first.
func (s *siteState) forgetBefore(first month.Month) {
	for text := range s.Sent {
		if m, err := month.Parse(text); err != nil || m.Before(first) {
			delete(s.Sent, text)
		}
	}
}

// maxState is how long a state may be, below what the daemon takes.
const maxState = 60 << 10

// encodeState writes the state. One that is too long goes without the rows, which are only
// needed to tell what is new and what vanishes.
func (s *state) encodeState() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil || len(text) <= maxState {
		return text, err
	}
	for _, site := range s.Sites {
		for _, m := range site.Sent {
			m.Rows = nil
		}
	}
	return json.Marshal(s)
}
