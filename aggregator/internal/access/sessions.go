package access

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
)

const (
	// tokenTime is how long a token waits for its browser, and sessionTime how long
	// the browser may look.
	tokenTime   = time.Hour
	sessionTime = 12 * time.Hour
	// maxSessions bounds the tokens and the sessions; the oldest go first.
	maxSessions = 100
	// sessionRights are those of a session: it never changes anything.
	sessionRights = identity.Monitor | identity.Read
)

// Sessions let browsers in that reach a plain address: an administrator has a token
// made, and the browser that brings it, once, gets a cookie. The zero value has none.
// It may be used by several goroutines.
type Sessions struct {
	mu     sync.Mutex
	tokens map[secret]grant
	open   map[secret]grant
}

// secret is the hash of what a browser has.
type secret [sha256.Size]byte

type grant struct {
	by  string
	end time.Time
}

// Token makes a token in the name of who, and says when it ends.
func (s *Sessions) Token(who string) (token string, end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, end = rand.Text(), time.Now().Add(tokenTime)
	s.tokens = addGrant(s.tokens, token, grant{who, end})
	return token, end
}

// Redeem takes a token, and returns the cookie of a new session for a browser that
// asks the address host; false when there is no such token any more.
func (s *Sessions) Redeem(token, host string) (*http.Cookie, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.tokens[hashSecret(token)]
	delete(s.tokens, hashSecret(token))
	if !ok || time.Now().After(g.end) {
		return nil, false
	}
	value := rand.Text()
	s.open = addGrant(s.open, value, grant{g.by, time.Now().Add(sessionTime)})
	return &http.Cookie{ //nolint:gosec // not Secure: the listener is a plain one of this machine
		Name: CookieName("session", host), Value: value, Path: "/", MaxAge: int(sessionTime / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}, true
}

// End ends the session of a cookie; false where there is none.
func (s *Sessions) End(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.open[hashSecret(text)]
	delete(s.open, hashSecret(text))
	return ok
}

// sessionOf returns in whose name the session of a request was opened; false without one.
func (s *Sessions) sessionOf(r *http.Request) (by string, ok bool) {
	cookie, err := r.Cookie(CookieName("session", r.Host))
	if err != nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.open[hashSecret(cookie.Value)]
	return g.by, ok && time.Now().Before(g.end)
}

// CookieName is the name of a cookie of the address host, since browsers send those of
// one port to all others of a machine.
func CookieName(purpose, host string) string {
	_, port := splitHost(host)
	return "bursar_" + purpose + "_" + port
}

func hashSecret(text string) secret { return sha256.Sum256([]byte(text)) }

// addGrant adds a grant, and takes away those that have ended, and the first to end when
// there are too many.
func addGrant(all map[secret]grant, text string, g grant) map[secret]grant {
	if all == nil {
		all = map[secret]grant{}
	}
	now := time.Now()
	var first secret
	for k, old := range all {
		if now.After(old.end) {
			delete(all, k)
		} else if _, ok := all[first]; !ok || old.end.Before(all[first].end) {
			first = k
		}
	}
	if len(all) >= maxSessions {
		delete(all, first)
	}
	all[hashSecret(text)] = g
	return all
}
