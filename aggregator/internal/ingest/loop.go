package ingest

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Cursors reads an agent's cursor from the store.
type Cursors interface {
	Cursor(agent string) (store.Cursor, error)
}

// Pending is a command on its way. Wait returns what became of it.
type Pending interface {
	Wait(ctx context.Context) (store.IngestResult, error)
}

// Committer hands commands to the log, in the order of the calls.
type Committer interface {
	Submit(ctx context.Context, c *store.IngestCommand) (Pending, error)
}

// Status says how the pull from an agent is doing.
type Status struct {
	Name        string
	Address     string       // "": it dials in
	Connected   bool         // the last call succeeded
	Err         error        // why not; nil when all is well
	Remedy      string       // the command that mends it, where trying again does not
	LastContact time.Time    // of the last call that succeeded; zero for none
	Behind      uint64       // frames that wait on the agent, as of LastContact
	Cursor      uint64       // the last frame that is committed
	Pulled      store.Counts // since this node leads
	Asked       bool         // the agent has said how its sources are since this node leads
	Reported    []Reported   // all of its sources, as the agent said last
	Failing     []Failing    // sources that do not collect, as the agent said last
	Found       []Found      // about records, as the agent said last
	// CertFrom and CertEnds bound the life of the agent's certificate; zero while unknown.
	CertFrom, CertEnds time.Time
	// Unrenewed says why that certificate is not renewed although it is time; "" when it is,
	// and of one that this cluster's authority has not signed.
	Unrenewed string
}

// Loop pulls from one agent.
type Loop struct {
	Name    string
	Address string
	// Cluster is the cluster's id, by which the agent knows it.
	Cluster string
	Client  bursarv1.AgentClient
	Cursors Cursors
	Commit  Committer
	Log     *slog.Logger
	Metrics *Metrics
	// Restored says that the cluster has been taken back to an earlier state in
	// its life, so that the agent may have been told of more than it holds now.
	Restored bool
	// Version returns the protocol version that the cluster has agreed on, which
	// the agent is told; nil is the first.
	Version func() uint32
	// Renew returns a new certificate for the key of an agent's, in DER. Its error wraps
	// [identity.ErrForeign] when the cluster's authority has not signed the old one. Nil
	// renews none.
	Renew func(ctx context.Context, old *x509.Certificate) ([]byte, error)
	// Backoff is the pause after the first failure; it doubles up to fifteen
	// seconds. Zero: 200 ms.
	Backoff time.Duration

	mu       sync.Mutex
	status   Status
	told     bool              // the agent knows that the cluster went back, if it did
	cert     *x509.Certificate // of the agent; nil while unknown
	replaced *x509.Certificate // by cert, in a renewal: older connections show it still
}

// Bounds of one pull.
const (
	pullBytes = 2 << 20
	pullWait  = 20 * time.Second
	callTime  = 40 * time.Second
)

// Status returns how the loop is doing.
func (l *Loop) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Name, s.Address = l.Name, l.Address
	return s
}

func (l *Loop) changeStatus(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

// Run pulls until ctx ends. Failures are logged, shown by [Loop.Status] and tried
// again with backoff.
func (l *Loop) Run(ctx context.Context) error {
	least := l.Backoff
	if least == 0 {
		least = minBackoff
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() { l.askSources(ctx) })
	asking.Go(func() { l.renewWhenDue(ctx) })
	backoff := time.Duration(0)
	for ctx.Err() == nil {
		err := l.followAgent(ctx)
		if errors.Is(err, errAgain) {
			continue
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was to end
		}
		backoff = min(max(2*backoff, least), maxBackoff)
		if l.Status().Connected {
			backoff = least
		}
		l.noteFailure(err, backoff)
		pauseJittered(ctx, backoff)
	}
	return nil
}

const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 15 * time.Second
)

func (l *Loop) noteFailure(err error, backoff time.Duration) {
	before, mend := l.Status(), remedyCommand(l.Name, err)
	l.changeStatus(func(s *Status) { s.Connected, s.Err, s.Remedy = false, err, mend })
	l.Metrics.countFailure(l.Name)
	switch {
	case mend != "" && before.Remedy != mend:
		l.Log.Error("pull failed; trying again will not help", "agent", l.Name, "address", cmp.Or(l.Address, "dials in"), "error", err, "do", mend)
	case before.Err == nil:
		l.Log.Warn("pull failed; it is tried again", "agent", l.Name, "address", cmp.Or(l.Address, "dials in"), "error", err, "next", backoff)
	}
}

// pauseJittered waits for d, shortened by chance, or until ctx ends.
func pauseJittered(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d/2 + rand.N(d/2+1)):
	}
}

// followAgent pulls from the stored cursor on until something fails.
func (l *Loop) followAgent(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cursor, err := l.Cursors.Cursor(l.Name)
	if err != nil {
		return fmt.Errorf("cursor of %s: %w", l.Name, err)
	}
	if err := l.tellRestored(ctx, cursor); err != nil {
		return err
	}
	l.repeatAck(ctx, cursor)
	pipe := newPipe(ctx, cancel, l)
	defer pipe.closeAndWait()
	b := newBatcher(l.Name, positionOf(cursor), nowMicros, pipe.submitCommand)
	b.begins = l.Version == nil || l.Version() >= store.BeginVersion
	// The first answer comes at once, so that it is known that the agent answers. Later
	// pulls wait there for something new.
	next := l.pullAhead(ctx, b.endPosition(), 0)
	for {
		resp, err := next()
		if err == nil && resp.GetResume() {
			return l.resumeElsewhere(ctx, resp)
		}
		if err == nil {
			err = pipe.firstFailure()
		}
		if err == nil && len(resp.GetChunks()) == 0 && pipe.isIdle() {
			err = l.checkCursor(b.endPosition())
		}
		if err == nil {
			next = l.pullAhead(ctx, positionBehind(b.endPosition(), resp), pullWait)
			err = emitChunks(b, resp)
		}
		if err != nil {
			return errors.Join(pipe.firstFailure(), err)
		}
		pipe.allowAcknowledge()
	}
}

// checkCursor makes sure that the store's cursor is where the loop is. It is not after
// the cluster was taken back to an earlier state: an agent that has nothing new
// would otherwise never be asked for what is missing.
func (l *Loop) checkCursor(p position) error {
	cursor, err := l.Cursors.Cursor(l.Name)
	if err != nil {
		return fmt.Errorf("cursor of %s: %w", l.Name, err)
	}
	if positionOf(cursor) != p {
		return errStale
	}
	return nil
}

// pullAhead begins a pull behind p, which waits at the agent for so long where nothing is new,
// and returns what waits for its answer, so that the agent is asked for what comes next
// while this node works on what came. The goroutine ends with the pull, which ends with ctx.
func (l *Loop) pullAhead(ctx context.Context, p position, wait time.Duration) func() (*bursarv1.PullResponse, error) {
	type answer struct {
		resp *bursarv1.PullResponse
		err  error
	}
	ch := make(chan answer, 1)
	go func() {
		resp, err := l.pullFrom(ctx, p, wait)
		ch <- answer{resp, err}
	}()
	return func() (*bursarv1.PullResponse, error) {
		a := <-ch
		return a.resp, a.err
	}
}

// positionBehind is where the answer to a pull from p ends, as the agent says. Whether
// that is so turns out when the chunks are taken.
func positionBehind(p position, resp *bursarv1.PullResponse) position {
	if len(resp.GetChunks()) == 0 {
		return p
	}
	end := position{epoch: p.epoch, seq: resp.GetLast()}
	copy(end.digest[:], resp.GetDigest())
	return end
}

// repeatAck acknowledges what is committed already: the last acknowledgement may not
// have arrived. If it fails, so does the pull that follows, or the agent has to
// be resumed.
func (l *Loop) repeatAck(ctx context.Context, c store.Cursor) {
	if c.Seq == 0 {
		return
	}
	if err := l.ackCursor(ctx, c); err != nil {
		l.Log.Debug("the stored cursor was not acknowledged", "agent", l.Name, "error", err)
	}
}

func nowMicros() record.Time { return record.FromStd(calendar.Now()) }

// emitChunks emits all chunks of an answer as commands.
func emitChunks(b *batcher, resp *bursarv1.PullResponse) error {
	end := positionBehind(b.endPosition(), resp)
	for _, raw := range resp.GetChunks() {
		if err := b.takeChunk(raw); err != nil {
			return fmt.Errorf("what the agent sent: %w", err)
		}
	}
	if b.endPosition() != end {
		return fmt.Errorf("what the agent sent ends with frame %d, and it says %d: %w", b.pos.seq, end.seq, frame.ErrChain)
	}
	return b.flushCommand()
}

func (l *Loop) pullFrom(ctx context.Context, p position, wait time.Duration) (*bursarv1.PullResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var trailer metadata.MD
	var agent peer.Peer
	resp, err := l.Client.Pull(ctx, &bursarv1.PullRequest{
		Cluster: l.Cluster, Version: l.clusterVersion(), Epoch: epochBytes(p.epoch), After: p.seq, Digest: p.digest[:],
		MaxBytes: pullBytes, WaitMs: uint32(wait.Milliseconds()),
	}, grpc.Trailer(&trailer), grpc.Peer(&agent))
	if err != nil {
		return nil, fmt.Errorf("pull: %w", asDamaged(err, trailer))
	}
	l.noteCertificate(agent.AuthInfo)
	recovered := false
	l.changeStatus(func(s *Status) {
		recovered = s.Err != nil
		s.Connected, s.Err, s.Remedy, s.LastContact, s.Behind = true, nil, "", time.Now(), resp.GetBehind()
	})
	if recovered {
		l.Log.Info("pull continues", "agent", l.Name, "behind", resp.GetBehind())
	}
	l.Metrics.countPulled(l.Name, resp)
	return resp, nil
}

func (l *Loop) clusterVersion() uint32 {
	if l.Version == nil {
		return 1
	}
	return max(1, l.Version())
}

// epochBytes is empty for an agent that was never pulled.
func epochBytes(e store.Epoch) []byte {
	if e == (store.Epoch{}) {
		return nil
	}
	return e[:]
}

// resumeElsewhere agrees with an agent whose buffer is another one on where to begin, and
// commits that.
func (l *Loop) resumeElsewhere(ctx context.Context, resp *bursarv1.PullResponse) error {
	cursor, err := l.Cursors.Cursor(l.Name)
	if err != nil {
		return err
	}
	l.Log.Info("the agent's buffer is not the one that was pulled before", "agent", l.Name, "reason", resp.GetReason(), "committed", cursor.Seq)
	if err := l.agreeOnCursor(ctx, cursor, resp.GetEpoch()); err != nil {
		return err
	}
	return errAgain
}

// tellRestored tells the agent, once, where a cluster is that was taken back to an
// earlier state. The agent then keeps what the cluster has lost until it has it
// again, although that was acknowledged before; where it is gone already the agent
// says so by a gap, and its sources go back.
func (l *Loop) tellRestored(ctx context.Context, c store.Cursor) error {
	if !l.Restored || l.told || c.Epoch == (store.Epoch{}) {
		return nil
	}
	err := l.agreeOnCursor(ctx, c, c.Epoch[:])
	if status.Code(err) == codes.FailedPrecondition {
		l.told = true // the agent's epoch is another one: it will be resumed
		return nil
	}
	if err == nil || errors.Is(err, errAgain) {
		l.told = true
	}
	return err
}

// agreeOnCursor tells the agent what is committed, and commits where it wants to go on
// when that is elsewhere.
func (l *Loop) agreeOnCursor(ctx context.Context, cursor store.Cursor, epoch []byte) error {
	from, err := l.Client.Resume(ctx, l.committedKnowledge(cursor, epoch))
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	next := position{seq: from.GetAfter()}
	copy(next.epoch[:], from.GetEpoch())
	copy(next.digest[:], from.GetDigest())
	if next == positionOf(cursor) {
		return nil
	}
	cmd := &store.IngestCommand{Agent: l.Name, Epoch: next.epoch, From: next.seq + 1, To: next.seq, Now: nowMicros()}
	cmd.Begin = &store.Begin{Replaces: cursor.Epoch, ReplacesSeq: cursor.Seq, ReplacesDigest: cursor.Digest, After: next.seq, Digest: store.Chain(next.digest)}
	cmd.Before, cmd.After = cmd.Begin.Digest, cmd.Begin.Digest
	pending, err := l.Commit.Submit(ctx, cmd)
	if err != nil {
		return err
	}
	result, err := pending.Wait(ctx)
	if err == nil && !result.Accepted {
		err = errStale
	}
	if err != nil {
		return fmt.Errorf("begin a new epoch: %w", err)
	}
	return errAgain
}

// committedKnowledge is what the cluster has committed of the agent.
func (l *Loop) committedKnowledge(cursor store.Cursor, epoch []byte) *bursarv1.ResumeRequest {
	req := &bursarv1.ResumeRequest{
		Cluster: l.Cluster, Epoch: epoch, Observed: cursor.Observed,
		KnownEpoch: epochBytes(cursor.Epoch), KnownAfter: cursor.Seq, KnownDigest: cursor.Digest[:],
	}
	for _, c := range cursor.Checkpoints {
		req.Checkpoints = append(req.Checkpoints, &bursarv1.SourceCheckpoint{SourceType: c.Source.Type, SourceLabel: c.Source.Label, State: c.State})
	}
	return req
}

// errAgain ends a follow that has to begin again at once.
var errAgain = errors.New("the agent's buffer is a new one; pulling begins again")

// errStale: the store's cursor is another one than the loop's.
var errStale = errors.New("the cursor in the store has moved")

// raiseGap raises the alarm: something is missing and will not come by itself.
func (l *Loop) raiseGap(g *store.Gap) {
	l.Metrics.gaps.WithLabelValues(l.Name).Inc()
	l.Log.Error("records are missing: the agent reports a gap", "agent", l.Name, "source", g.Source.String(), "from", g.From.String(), "to", g.To.String(), "reason", g.Reason)
}

// ackCursor tells the agent what is committed.
func (l *Loop) ackCursor(ctx context.Context, c store.Cursor) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := l.Client.Ack(ctx, &bursarv1.AckRequest{Cluster: l.Cluster, Epoch: c.Epoch[:], Through: c.Seq, Digest: c.Digest[:]})
	if err != nil {
		return fmt.Errorf("acknowledge frame %d: %w", c.Seq, err)
	}
	return nil
}
