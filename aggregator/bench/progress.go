package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress says on a terminal what is being measured, and when it will be done.
type progress struct {
	w io.Writer // nil: no one looks

	mu    sync.Mutex
	what  string
	begun time.Time
	shown time.Time
}

// beginPiece starts a new piece of work.
func (p *progress) beginPiece(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.begun, p.shown = fmt.Sprintf(format, args...), time.Now(), time.Time{}
	p.showLine("")
}

// showDone says how much of the piece is done.
func (p *progress) showDone(done, all float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done <= 0 || all <= 0 || time.Since(p.shown) < 200*time.Millisecond {
		return
	}
	spent := time.Since(p.begun)
	left := time.Duration(float64(spent) * (all - done) / done)
	p.showLine(fmt.Sprintf(" %3.0f %%, %s left", 100*done/all, left.Round(time.Second)))
}

func (p *progress) showLine(more string) {
	if p.w == nil {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(p.w, "\r\x1b[K%s%s", p.what, more)
}

// clearLine takes the words away.
func (p *progress) clearLine() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
