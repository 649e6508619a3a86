package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// DiskProbe writes to a disk now and again and knows how long that takes: a disk that
// hangs gives no error, and raft goes on sending heartbeats.
type DiskProbe struct {
	// Path is the file that is written.
	Path string
	// Every is the pause between two writes; zero is a second.
	Every time.Duration
	Log   *slog.Logger
	// Write replaces the write; nil writes to Path and syncs.
	Write func() error

	mu    sync.Mutex
	begun time.Time // of the write that runs; zero when none does
	last  time.Duration
	fails uint64
}

// Run probes until ctx ends. It does not wait for a write that hangs: that one
// may never return.
func (p *DiskProbe) Run(ctx context.Context) error {
	write := p.Write
	if write == nil {
		write = p.writeAndSync
	}
	next := time.NewTicker(cmp.Or(p.Every, time.Second))
	defer next.Stop()
	for {
		done := make(chan error, 1)
		p.beginWrite()
		go func() {
			err := write()
			p.endWrite(err)
			done <- err
		}()
		select {
		case <-ctx.Done():
			return nil
		case err := <-done:
			p.logFailure(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
	}
}

// Stalled is how long the write that runs has been running; 0 when none does.
func (p *DiskProbe) Stalled() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun.IsZero() {
		return 0
	}
	return time.Since(p.begun)
}

// Last is how long the last write took, and how many have failed.
func (p *DiskProbe) Last() (took time.Duration, failed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.fails
}

func (p *DiskProbe) beginWrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = time.Now()
}

func (p *DiskProbe) endWrite(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.begun = time.Since(p.begun), time.Time{}
	if err != nil {
		p.fails++
	}
}

// logFailure logs a write that failed. A full disk is the guard's.
func (p *DiskProbe) logFailure(err error) {
	if err != nil && !isDiskFull(err) {
		p.Log.Error("a test write to the disk failed", "error", err)
	}
}

// writeAndSync writes to the file and syncs it.
func (p *DiskProbe) writeAndSync() (err error) {
	f, err := os.OpenFile(p.Path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteAt(fmt.Appendf(nil, "%-64s\n", time.Now().UTC().Format(time.RFC3339Nano)), 0); err != nil {
		return err
	}
	return f.Sync()
}
