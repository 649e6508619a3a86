package ingest

import (
	"context"
	"sync"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// pipe follows the commands of one loop through the log: they are submitted while
// others are on their way, their results are taken in order, and what the store
// says of the cursor is acknowledged.
type pipe struct {
	loop    *Loop
	ctx     context.Context
	cancel  context.CancelFunc // ends what waits, the pull included
	pending chan Pending
	acks    chan struct{} // there is something to acknowledge
	done    sync.WaitGroup

	mu     sync.Mutex
	err    error
	cursor store.Cursor // as the store last said
	fresh  bool         // cursor is not acknowledged
	under  int          // commands on their way
}

// ahead is how many commands of one agent may be on their way.
const ahead = 8

func newPipe(ctx context.Context, cancel context.CancelFunc, l *Loop) *pipe {
	p := &pipe{loop: l, ctx: ctx, cancel: cancel, pending: make(chan Pending, ahead), acks: make(chan struct{}, 1)}
	p.done.Add(2)
	go p.takeResults()
	go p.sendAcknowledgements()
	return p
}

// closeAndWait ends the pipe and waits for its goroutines.
func (p *pipe) closeAndWait() {
	p.cancel()
	close(p.pending)
	p.done.Wait()
}

// firstFailure returns why a command was not committed; nil while all is well.
func (p *pipe) firstFailure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// noteFailure notes the first failure and ends the pull that may be waiting.
func (p *pipe) noteFailure(err error) {
	defer p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// submitCommand hands a command to the log and returns while it is on its way.
func (p *pipe) submitCommand(c *store.IngestCommand) error {
	if err := p.firstFailure(); err != nil {
		return err
	}
	pending, err := p.loop.Commit.Submit(p.ctx, c)
	if err != nil {
		return err
	}
	p.addUnderway(1)
	for i := range c.Gaps {
		p.loop.raiseGap(&c.Gaps[i])
	}
	select {
	case p.pending <- pending:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func (p *pipe) addUnderway(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under += n
}

// isIdle reports whether no command is on its way.
func (p *pipe) isIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.under == 0
}

// takeResults takes what became of the commands, in order.
func (p *pipe) takeResults() {
	defer p.done.Done()
	for pending := range p.pending {
		result, err := pending.Wait(p.ctx)
		p.addUnderway(-1)
		if err == nil && !result.Accepted {
			err = errStale
		}
		if err != nil {
			p.noteFailure(err)
			continue
		}
		p.noteCommitted(result)
	}
}

func (p *pipe) noteCommitted(r store.IngestResult) {
	p.loop.changeStatus(func(s *Status) {
		s.Cursor = r.Cursor.Seq
		s.Pulled.Add(r.Counts)
	})
	p.loop.Metrics.countCommitted(p.loop.Name, r.Counts)
	p.mu.Lock()
	p.cursor, p.fresh = r.Cursor, true
	p.mu.Unlock()
	if len(p.pending) == 0 {
		p.allowAcknowledge()
	}
}

// allowAcknowledge lets what is committed be acknowledged.
func (p *pipe) allowAcknowledge() {
	select {
	case p.acks <- struct{}{}:
	default:
	}
}

// sendAcknowledgements tells the agent the newest committed cursor, one call at a
// time.
func (p *pipe) sendAcknowledgements() {
	defer p.done.Done()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.acks:
		}
		p.mu.Lock()
		cursor, fresh := p.cursor, p.fresh
		p.fresh = false
		p.mu.Unlock()
		if !fresh {
			continue
		}
		if err := p.loop.ackCursor(p.ctx, cursor); err != nil && p.ctx.Err() == nil {
			p.noteFailure(err)
		}
	}
}
