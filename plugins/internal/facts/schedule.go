package facts

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// The facts, which are what a source sends beside jobs; also the keys of the
// configuration that switch them off.
const (
	Capacity  = "capacity"
	Census    = "census"
	Directory = "directory"
)

// Retry is when a fact that failed is asked for again, where its interval is longer.
const Retry = 10 * time.Minute

// Schedule decides when a source asks for each fact, and logs what is wrong with one,
// once. The zero Schedule has asked for nothing.
type Schedule struct {
	looked map[string]time.Time // when each fact was asked for last
	failed map[string]string    // what is wrong with a fact, as it was logged last
}

// Settings of the facts of a source.
type Settings struct {
	Every map[string]time.Duration // the intervals of the facts that are wanted
	Now   func() time.Time
	Log   *slog.Logger
	// Remedy returns what to do about a fact that fails, where the error does not say.
	Remedy func(name string) string
}

// Ask calls ask when the fact is due, or when renew says that the daemon has lost it. The
// error is that of ctx alone: a fact never holds up a record.
func (s *Schedule) Ask(ctx context.Context, with Settings, name string, renew bool, ask func(context.Context) error) error {
	every, wanted := with.Every[name]
	since, before := s.looked[name]
	if s.failed[name] != "" {
		every = min(every, Retry)
	}
	now := with.Now()
	passed := now.Sub(since)
	if !wanted || !renew && before && passed >= 0 && passed < every {
		return nil
	}
	err := ask(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.looked == nil {
		s.looked = map[string]time.Time{}
	}
	s.looked[name] = now
	s.Judge(with, name, err)
	return nil
}

// Judge logs what is wrong with a fact, or with what a fact needs, when that changes.
func (s *Schedule) Judge(with Settings, name string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch text {
	case s.failed[name]:
		return
	case "":
		with.Log.Info("the "+name+" is sent again", "fact", name)
	default:
		remedy := with.Remedy(name)
		if r, ok := errors.AsType[*Remediable](err); ok {
			remedy = r.Remedy
		}
		with.Log.Warn("the "+name+" is not complete; jobs are collected regardless", "fact", name, "error", err, "remedy", remedy)
	}
	if s.failed == nil {
		s.failed = map[string]string{}
	}
	s.failed[name] = text
}

// Failed reports whether a fact could not be had when it was asked for last.
func (s *Schedule) Failed(name string) bool { return s.failed[name] != "" }

// Forget makes all facts due, since the daemon did not get them.
func (s *Schedule) Forget() { clear(s.looked) }

// Fact is a fact with how it is asked for.
type Fact struct {
	Name string
	Ask  func(context.Context) error
}

// Tell asks for the facts that are due, after the runs, and calls send: what is wrong with
// them never holds up a record. With renew it asks for all, because the daemon has lost them.
func (s *Schedule) Tell(ctx context.Context, with Settings, renew bool, list []Fact, send func() error) error {
	for _, f := range list {
		if err := s.Ask(ctx, with, f.Name, renew, f.Ask); err != nil {
			return err
		}
	}
	err := send()
	if err != nil {
		s.Forget()
	}
	return err
}
