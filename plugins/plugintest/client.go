package plugintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Serve serves a source in the test's process over gRPC and returns its client.
// It stops when the test ends.
func Serve(t testing.TB, newSource func() sdk.Source) bursarv1.SourcePluginClient {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(sdk.MaxMessage), grpc.MaxSendMsgSize(sdk.MaxMessage))
	sdk.RegisterSource(server, newSource, slog.New(slog.DiscardHandler))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:source",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(sdk.MaxMessage), grpc.MaxCallSendMsgSize(sdk.MaxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		serving.Wait()
	})
	return bursarv1.NewSourcePluginClient(conn)
}

// Daemon asks a source as a daemon does: it takes batches, keeps the
// checkpoint, and acknowledges.
type Daemon struct {
	Client     bursarv1.SourcePluginClient
	Checkpoint []byte // the last one that was acknowledged

	// Quiet ends a Collect after so long without a batch, for push sources; zero
	// waits for the source to end it.
	Quiet time.Duration

	// Limit ends a Collect like a crash: the batch after so many acknowledged
	// ones is received and not acknowledged. Zero: none.
	Limit int
}

// Collected is what a Collect gave.
type Collected struct {
	Batches []*bursarv1.CollectResponse // acknowledged ones
	Cut     *bursarv1.CollectResponse   // the one at which Daemon.Limit cut; nil: none
}

// Jobs returns the acknowledged jobs, in order.
func (c *Collected) Jobs() []*bursarv1.Job {
	var jobs []*bursarv1.Job
	for _, b := range c.Batches {
		jobs = append(jobs, b.GetJobs()...)
	}
	return jobs
}

// Refused returns the acknowledged inputs that were no jobs.
func (c *Collected) Refused() []*bursarv1.Refused {
	var refused []*bursarv1.Refused
	for _, b := range c.Batches {
		refused = append(refused, b.GetRefused()...)
	}
	return refused
}

// Collect asks once, from d's checkpoint when start has none, until the source
// ends, is quiet, or d's limit is reached.
func (d *Daemon) Collect(ctx context.Context, start sdk.Start) (*Collected, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := d.Client.Collect(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(d.startMessage(start)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	quiet := d.newAlarm(cancel)
	got := new(Collected)
	for {
		b, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) || err != nil && quiet.hasFired():
			return got, nil
		case err != nil:
			return got, err
		case d.Limit > 0 && len(got.Batches) == d.Limit:
			got.Cut = b
			return got, nil
		}
		quiet.reset()
		if err := d.acknowledgeBatch(stream, got, b, start.Window != nil); err != nil {
			return got, err
		}
	}
}

// Count asks how many runs ended in w. A source that does not count answers with
// the code Unimplemented.
func (d *Daemon) Count(ctx context.Context, w sdk.Window) (int64, error) {
	r, err := d.Client.Count(ctx, &bursarv1.CountRequest{From: w.From.UnixMicro(), To: w.To.UnixMicro()})
	return r.GetRuns(), err
}

func (d *Daemon) acknowledgeBatch(stream grpc.BidiStreamingClient[bursarv1.CollectRequest, bursarv1.CollectResponse], got *Collected, b *bursarv1.CollectResponse, window bool) error {
	got.Batches = append(got.Batches, b)
	if len(b.GetCheckpoint()) > 0 {
		if window {
			return errors.New("a batch of a window has a checkpoint")
		}
		d.Checkpoint = b.GetCheckpoint()
	}
	ack := &bursarv1.CollectRequest_Ack{Batch: uint64(len(got.Batches))}
	if err := stream.Send(&bursarv1.CollectRequest{Message: &bursarv1.CollectRequest_Ack_{Ack: ack}}); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("acknowledge batch %d: %w", ack.Batch, err)
	}
	return nil
}

func (d *Daemon) startMessage(start sdk.Start) *bursarv1.CollectRequest {
	if start.Checkpoint == nil {
		start.Checkpoint = d.Checkpoint
	}
	p := &bursarv1.CollectRequest_Start{Checkpoint: start.Checkpoint, Rewind: start.Rewind.Microseconds()}
	if w := start.Window; w != nil {
		p.Window = &bursarv1.CollectRequest_Window{From: w.From.UnixMicro(), To: w.To.UnixMicro()}
	}
	return &bursarv1.CollectRequest{Message: &bursarv1.CollectRequest_Start_{Start: p}}
}

// alarm cancels a Collect after a quiet time.
type alarm struct {
	timer *time.Timer // nil: never
	after time.Duration
	fired chan struct{}
}

func (d *Daemon) newAlarm(cancel context.CancelFunc) *alarm {
	a := &alarm{after: d.Quiet, fired: make(chan struct{})}
	if d.Quiet > 0 {
		a.timer = time.AfterFunc(d.Quiet, func() {
			close(a.fired)
			cancel()
		})
	}
	return a
}

// reset begins the quiet time again, unless it is over.
func (a *alarm) reset() {
	if a.timer != nil && a.timer.Stop() {
		a.timer.Reset(a.after)
	}
}

func (a *alarm) hasFired() bool {
	select {
	case <-a.fired:
		return true
	default:
		return false
	}
}
