package daemon

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

// bearers implements access.Tokens by the replicated state, and notes the last uses.
type bearers struct {
	a *Aggregator

	mu      sync.Mutex
	used    map[string]enrol.BearerUse // that are not noted yet
	noted   map[string]time.Time
	looking time.Time // when this node last asked the others for a token that it does not have
}

const (
	// usedEvery is how often uses are noted, and usedWithin how exact the time is.
	usedEvery  = 10 * time.Second
	usedWithin = time.Minute
	// askPeersEvery bounds how often a token that this node does not have costs a question to
	// the others.
	askPeersEvery = 100 * time.Millisecond
)

// Bearer implements access.Tokens.
func (b *bearers) Bearer(ctx context.Context, text, from string) (*enrol.Bearer, error) {
	now := time.Now()
	token, err := b.findBearer(text, now)
	if errors.Is(err, enrol.ErrUnknown) && b.mayAskPeers(now) && b.a.replica.waitLinearizable(ctx) == nil {
		token, err = b.findBearer(text, now) // it was made at another node a moment ago
	}
	if err != nil {
		return nil, err
	}
	b.recordUse(token, from, now)
	return token, nil
}

// recordUse has the use of a token noted.
func (b *bearers) recordUse(token *enrol.Bearer, from string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.noted[token.ID]) >= usedWithin {
		b.used[token.ID] = enrol.BearerUse{At: now.UTC(), From: from}
	}
}

// Session implements access.Tokens.
func (b *bearers) Session(ctx context.Context, text, from string) (s *enrol.Session, token *enrol.Bearer, err error) {
	now := time.Now()
	if s, err = b.findSession(text, now); errors.Is(err, enrol.ErrUnknown) && b.mayAskPeers(now) && b.a.replica.waitLinearizable(ctx) == nil {
		s, err = b.findSession(text, now)
	}
	if err != nil || s.Way != enrol.ByToken {
		return s, nil, err
	}
	token, err = store.With(b.a.store, func(v *store.View) (*enrol.Bearer, error) { return enrol.SessionBearer(v, s, now) })
	if err == nil {
		b.recordUse(token, from, now)
	}
	return s, token, err
}

func (b *bearers) findSession(text string, now time.Time) (*enrol.Session, error) {
	return store.With(b.a.store, func(v *store.View) (*enrol.Session, error) { return enrol.FindSession(v, text, now) })
}

func (b *bearers) findBearer(text string, now time.Time) (*enrol.Bearer, error) {
	return store.With(b.a.store, func(v *store.View) (*enrol.Bearer, error) { return enrol.FindBearer(v, text, now) })
}

func (b *bearers) mayAskPeers(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.looking) < askPeersEvery {
		return false
	}
	b.looking = now
	return true
}

// noteUses writes the uses every now and then until ctx ends.
func (b *bearers) noteUses(ctx context.Context) error {
	repeat.Every(ctx, usedEvery, func() bool { b.writeUses(ctx); return true })
	return nil
}

// writeUses writes the uses since the last time; what could not be written is noted later.
func (b *bearers) writeUses(ctx context.Context) {
	b.mu.Lock()
	uses := maps.Clone(b.used)
	b.mu.Unlock()
	if len(uses) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	view, err := b.a.store.View()
	if err == nil {
		err = errors.Join(enrol.NoteUses(ctx, view, b.a.replica.Write, uses), view.Close())
	}
	if err != nil {
		b.a.set.Log.Debug("the last uses of tokens could not be noted yet", "error", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, use := range uses {
		if b.noted[id] = use.At; b.used[id] == use {
			delete(b.used, id)
		}
	}
}
