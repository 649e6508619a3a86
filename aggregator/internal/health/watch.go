package health

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/proto/repeat"
)

// Source adds what one part of the daemon knows to the facts. What it cannot
// find out it says in Facts.Unknown; it never waits longer than ctx.
type Source func(ctx context.Context, f *Facts)

// Watch judges now and again, remembers since when something has been found, and
// logs what changes.
type Watch struct {
	Sources []Source
	Log     *slog.Logger
	// Every is how often it looks; zero is 5 s.
	Every time.Duration
	// Now is the clock; nil is the machine's.
	Now func() time.Time

	mu    sync.Mutex
	since map[string]time.Time // of findings that are there, by key
	last  Report
	ready bool
}

const (
	lookEvery = 5 * time.Second
	// patience bounds the gathering of facts.
	patience = 3 * time.Second
	// lines of findings are logged once and again after logAgain.
	logAgain = 6 * time.Hour
	// A finding that is over before logAfter is not logged: a daemon that starts has no
	// leader yet, and one whose leader went finds another.
	logAfter = 15 * time.Second
)

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	told := map[string]loggedFinding{}
	repeat.Every(ctx, cmp.Or(w.Every, lookEvery), func() bool {
		w.logFindings(w.Report(ctx), told)
		return true
	})
	return nil
}

// Report gathers the facts now and judges them. It may be called at any time.
func (w *Watch) Report(ctx context.Context) Report {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f := Facts{Now: w.currentTime()}
	for _, source := range w.Sources {
		source(ctx, &f)
	}
	r := Judge(f)
	w.storeReport(&r)
	return r
}

// Last returns the newest report; false before the first.
func (w *Watch) Last() (Report, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.ready
}

// storeReport gives findings that do not know since when they hold the time at which
// they were found first, and keeps the report.
func (w *Watch) storeReport(r *Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := make(map[string]time.Time, len(r.Findings))
	for i := range r.Findings {
		f := &r.Findings[i]
		key := f.findingKey()
		at, known := w.since[key]
		if !known {
			at = r.Facts.Now
		}
		since[key] = at
		if f.Since.IsZero() {
			f.Since = at
		}
	}
	w.since, w.last, w.ready = since, *r, true
}

// loggedFinding is what the log knows of a finding.
type loggedFinding struct {
	found time.Time // by this daemon, first
	told  time.Time // last; zero: not yet
}

// logFindings logs what is new and stays, what is over, and after some hours what is still
// so.
func (w *Watch) logFindings(r Report, known map[string]loggedFinding) {
	if w.Log == nil {
		return
	}
	there := map[string]bool{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Severity == Notice {
			continue
		}
		key := f.findingKey()
		there[key] = true
		is, ok := known[key]
		if !ok {
			is.found = r.Facts.Now
		}
		if r.Facts.Now.Sub(is.found) >= logAfter && (is.told.IsZero() || r.Facts.Now.Sub(is.told) >= logAgain) {
			is.told = r.Facts.Now
			w.Log.Warn("finding", "id", f.ID, "severity", string(f.Severity), "about", f.About, "what", f.What, "do", f.Do)
		}
		known[key] = is
	}
	for key, is := range known {
		if there[key] {
			continue
		}
		delete(known, key)
		if !is.told.IsZero() {
			id, about, _ := strings.Cut(key, "\x00")
			w.Log.Info("finding is over", "id", id, "about", about)
		}
	}
}

func (w *Watch) currentTime() time.Time {
	if w.Now != nil {
		return w.Now()
	}
	return time.Now()
}
