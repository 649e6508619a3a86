// Package logtest is a log that a test reads while others write it.
package logtest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// Log keeps what is written to it. The zero Log is empty and ready; it is safe
// for use by many goroutines.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends to the log. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns all that has been written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Lines counts the lines that have been written.
func (l *Log) Lines() int { return strings.Count(l.String(), "\n") }

// Logger writes to the log as text, from level Info on.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Await returns when the log holds text, and ends the test when it does not
// within a minute.
func (l *Log) Await(t testing.TB, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(l.String(), text) {
			return
		}
	}
	t.Fatalf("the log never says %q: %.2000s", text, l.String())
}
