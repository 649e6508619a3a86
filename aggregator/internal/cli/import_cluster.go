package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/frame"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// addCounts adds what became of the writes of a chunk at the cluster.
func addCounts(c *v1.Counts, o v1.Counts) {
	c.Pulled += o.Pulled
	c.Added += o.Added
	c.Merged += o.Merged
	c.Unchanged += o.Unchanged
	c.Stale += o.Stale
	c.Withdrawn += o.Withdrawn
	c.Deleted += o.Deleted
	c.Conflicting += o.Conflicting
	c.Quarantined += o.Quarantined
	c.Conserved = c.Conserved && o.Conserved
}

// ImportCluster is a Sink that pushes to a cluster. One chunk is on its way while the
// next is made; they are committed in order. It is for one goroutine.
type ImportCluster struct {
	client *client.Client
	name   string
	epoch  string
	log    func(string, ...any)

	clock   int64 // the last time of observation
	settle  map[string]bool
	all     bool // anything may have to be settled
	builder *frame.Builder
	buffer  []byte

	position *importPosition // nil: none is kept
	mark     positionLine    // of the frames so far
	before   *ImportResult   // what an import that broke off has done; nil: nothing

	ctx    context.Context
	stop   context.CancelCauseFunc
	chunks chan marked
	done   chan struct{}
	counts v1.Counts // after done
}

// marked is a chunk, nil for none, and the position behind it.
type marked struct {
	chunk []byte
	mark  positionLine
}

// importPatience is how long a chunk is sent again and again while the cluster cannot
// take it.
const importPatience = 5 * time.Minute

// BeginImport begins an import under a name, in which src reads. Ctx bounds all of it;
// the caller closes the Cluster. Say tells people what takes its time.
func BeginImport(ctx context.Context, c *client.Client, src *ImportSource, say func(string, ...any)) (*ImportCluster, error) {
	begun, err := c.BeginImport(ctx, src.Name)
	if err != nil {
		return nil, err
	}
	out := &ImportCluster{
		client: c, name: src.Name, epoch: begun.Epoch, log: say, clock: begun.Observed, settle: map[string]bool{}, counts: v1.Counts{Conserved: true},
		builder: frame.NewBuilder(1, frame.Digest{}), chunks: make(chan marked, 1), position: src.position, done: make(chan struct{}),
	}
	if out.before, err = src.position.resumeFrom(&begun, say); err != nil {
		return nil, err
	}
	if out.before != nil {
		out.counts = src.position.last.Counts
	}
	if err := out.lookUpQuarantined(ctx, src); err != nil {
		return nil, err
	}
	out.ctx, out.stop = context.WithCancelCause(ctx)
	go out.sendChunks()
	return out, nil
}

// lookUpQuarantined looks up which jobs of the source are in quarantine.
func (c *ImportCluster) lookUpQuarantined(ctx context.Context, src *ImportSource) error {
	list, err := c.client.Quarantine(ctx, nil)
	if err != nil {
		return err
	}
	c.all = list.More
	for _, q := range list.Quarantine {
		if q.Agent == src.Name && q.SourceType == src.Type && q.SourceLabel == src.Label {
			c.settle[q.ID] = true
		}
	}
	return nil
}

// Settles implements Sink.
func (c *ImportCluster) Settles(quarantine string) bool { return c.all || c.settle[quarantine] }

// Take implements Sink. The error is why the cluster did not take an earlier one.
func (c *ImportCluster) Take(f *wire.Frame) error {
	c.clock = max(c.clock+1, time.Now().UnixMicro())
	f.Version.Observed = c.clock
	c.buffer = wire.AppendFrame(c.buffer[:0], f)
	err := c.builder.Append(c.buffer)
	if errors.Is(err, frame.ErrFull) {
		if err := c.flush(); err != nil {
			return err
		}
		err = c.builder.Append(c.buffer)
	}
	return err
}

// flush hands the chunk to the goroutine that sends.
func (c *ImportCluster) flush() error {
	next := marked{c.builder.Finish(), c.mark}
	if next.chunk == nil && len(next.mark.At) == 0 {
		return nil
	}
	c.mark = positionLine{}
	select {
	case c.chunks <- next:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// Close sends the rest, unless something failed before, and waits until all is
// committed.
func (c *ImportCluster) Close() (v1.Counts, error) {
	err := c.flush()
	close(c.chunks)
	<-c.done
	if err == nil {
		err = context.Cause(c.ctx)
	}
	c.stop(nil)
	return c.counts, err
}

// Stop gives up what is not committed yet, because of err.
func (c *ImportCluster) Stop(err error) { c.stop(err) }

// sendChunks sends the chunks until all are sent or one fails.
func (c *ImportCluster) sendChunks() {
	defer close(c.done)
	for next := range c.chunks {
		if c.ctx.Err() != nil {
			continue
		}
		err := c.deliverChunk(next.chunk)
		if err == nil {
			err = c.writeMark(&next.mark)
		}
		if err != nil {
			c.stop(err)
		}
	}
}

// deliverChunk posts a chunk until it is committed. One whose answer was lost is sent
// again, which commits nothing twice.
func (c *ImportCluster) deliverChunk(chunk []byte) error {
	if chunk == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, importPatience)
	defer cancel()
	said := false
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		counts, err := c.postChunk(ctx, chunk)
		if err == nil {
			addCounts(&c.counts, counts)
			return nil
		}
		if !isTransient(err) || ctx.Err() != nil {
			return err
		}
		if !said {
			c.log("The cluster does not take the records now; they are sent again: %v", err)
			said = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster did not take the records for %s: %w", importPatience, err)
		case <-time.After(pause):
		}
	}
}

func (c *ImportCluster) postChunk(ctx context.Context, chunk []byte) (v1.Counts, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answer, err := c.client.ImportChunk(ctx, c.name, c.epoch, bytes.NewReader(chunk))
	return answer.Counts, err
}

// isTransient reports whether a later try may succeed: the server cannot now, or did
// not answer.
func isTransient(err error) bool {
	p, ok := errors.AsType[*client.Problem](err)
	return !ok || p.Status >= http.StatusInternalServerError || p.Status == http.StatusTooManyRequests
}

// Nowhere is a Sink that keeps nothing, to see what would come.
type Nowhere struct{}

// Take implements Sink.
func (Nowhere) Take(*wire.Frame) error { return nil }

// Mark implements Sink.
func (Nowhere) Mark([]byte, *ImportResult) error { return nil }

// Settles implements Sink.
func (Nowhere) Settles(string) bool { return false }
