package enrol

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
)

const (
	sessionSpace = "sessions"
	sessionMark  = "bs1_"
	// SessionLife is how long a session of a browser lasts.
	SessionLife = 12 * time.Hour
)

// The ways by which a session begins.
const (
	ByOIDC  = "oidc"
	ByToken = "token"
)

// Session is that of a browser, as it is stored: not its cookie, but the hash of it.
type Session struct {
	Format  int             `json:"format"`
	ID      string          `json:"id"`
	Hash    identity.Digest `json:"hash"`
	Way     string          `json:"way"`
	User    string          `json:"user,omitempty"`   // as the provider said
	Groups  []string        `json:"groups,omitempty"` // as the provider said
	Token   string          `json:"token,omitempty"`  // the id of the token of the API
	Made    time.Time       `json:"made"`
	Expires time.Time       `json:"expires"`
}

// maxOfUser is how many sessions a user, or a token, has at most: the oldest ends where one
// more begins.
const maxOfUser = 20

// NewSession says what session to begin: of a user of a provider, or of a token of the API.
type NewSession struct {
	User   string
	Groups []string
	// Token, when not nil, is whose session it is. The session ends with it.
	Token *Bearer
}

// Begin begins a session, and returns what its cookie holds. Sessions that have ended go.
func Begin(ctx context.Context, v View, write Write, w NewSession, now time.Time) (string, error) {
	list, err := listValues[Session](v, sessionSpace)
	if err != nil {
		return "", err
	}
	text, id, hash := newSecret(sessionMark)
	s := &Session{
		Format: format, ID: id, Hash: hash, Way: ByOIDC, User: w.User, Groups: slices.Clone(w.Groups), Made: now.UTC(), Expires: now.Add(SessionLife).UTC(),
	}
	if w.Token != nil {
		s.Way, s.Token = ByToken, w.Token.ID
		if w.Token.Expires.Before(s.Expires) {
			s.Expires = w.Token.Expires
		}
	}
	c := &store.DocumentCommand{}
	var own []Session
	for i := range list {
		switch old := &list[i]; {
		case now.After(old.Expires):
			c.Sets = append(c.Sets, store.Document{Space: sessionSpace, Key: old.ID})
		case old.Way == s.Way && old.User == s.User && old.Token == s.Token:
			own = append(own, *old)
		}
	}
	slices.SortFunc(own, func(a, b Session) int { return a.Made.Compare(b.Made) })
	for i := range len(own) - maxOfUser + 1 {
		c.Sets = append(c.Sets, store.Document{Space: sessionSpace, Key: own[i].ID})
	}
	if len(list)-len(c.Sets) >= maxCount {
		return "", fmt.Errorf("%w: there are %d sessions already", ErrRequest, maxCount)
	}
	c.Sets = append(c.Sets, encodeDocument(sessionSpace, id, s))
	return text, commitDocuments(ctx, write, c)
}

// FindSession returns the session of a cookie, or why there is none.
func FindSession(v View, text string, now time.Time) (*Session, error) {
	id, ok := secretID(sessionMark, text)
	if !ok {
		return nil, ErrUnknown
	}
	s, _, err := findValue[Session](v, sessionSpace, id)
	if err != nil {
		return nil, err
	}
	hash := identity.Digest(sha256.Sum256([]byte(text)))
	if s == nil || subtle.ConstantTimeCompare(hash[:], s.Hash[:]) != 1 || now.After(s.Expires) {
		return nil, ErrUnknown
	}
	return s, nil
}

// End ends a session.
func End(ctx context.Context, write Write, s *Session) error {
	return commitDocuments(ctx, write, &store.DocumentCommand{Sets: []store.Document{{Space: sessionSpace, Key: s.ID}}})
}
