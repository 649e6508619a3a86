package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// RegisterSource serves a source on a gRPC server: what ServeSource does inside
// a plugin's process, for tests and for programs that hold a source themselves.
// Every Configure starts with a new source from newSource.
func RegisterSource(s grpc.ServiceRegistrar, newSource func() Source, log *slog.Logger) {
	bursarv1.RegisterSourcePluginServer(s, &server{worker: newWorker(newSource, log)})
}

// server turns gRPC calls into calls of a Source.
type server struct {
	bursarv1.UnimplementedSourcePluginServer
	*worker[Source]

	calls calls
}

// Progress implements the service.
func (s *server) Progress(context.Context, *bursarv1.ProgressRequest) (*bursarv1.ProgressResponse, error) {
	return &bursarv1.ProgressResponse{Steps: s.calls.stepsByCall()}, nil
}

// Describe implements the service.
func (s *server) Describe(context.Context, *bursarv1.DescribeRequest) (r *bursarv1.DescribeResponse, err error) {
	defer s.guardPanic("Describe", &err)
	source, _ := s.currentPlugin()
	return source.Describe().encodeDescription(), nil
}

// Configure implements the service.
func (s *server) Configure(ctx context.Context, r *bursarv1.ConfigureRequest) (*bursarv1.ConfigureResponse, error) {
	return s.configurePlugin(ctx, r)
}

// Collect implements the service.
func (s *server) Collect(stream grpc.BidiStreamingServer[bursarv1.CollectRequest, bursarv1.CollectResponse]) (err error) {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.GetStart() == nil {
		return status.Error(codes.InvalidArgument, "the first message of Collect must be the start")
	}
	if err := s.acquirePlugin(stream.Context()); err != nil {
		return err
	}
	defer s.releasePlugin()
	source, configured := s.currentPlugin()
	if !configured {
		return status.Error(codes.FailedPrecondition, "Collect before Configure")
	}
	defer s.guardPanic("Collect", &err)
	return s.collectFrom(stream, source, decodeStart(first.GetStart()))
}

// Count implements the service.
func (s *server) Count(ctx context.Context, r *bursarv1.CountRequest) (_ *bursarv1.CountResponse, err error) {
	defer s.guardPanic("Count", &err)
	if source, _ := s.currentPlugin(); !source.Describe().Push { // whose Collect never ends
		if err := s.acquirePlugin(ctx); err != nil {
			return nil, err
		}
		defer s.releasePlugin()
	}
	source, configured := s.currentPlugin()
	counter, can := source.(Counter)
	switch {
	case !can:
		return nil, status.Error(codes.Unimplemented, "the source has no second route by which it could count")
	case !configured:
		return nil, status.Error(codes.FailedPrecondition, "Count before Configure")
	}
	n, err := counter.Count(s.calls.beginCall(ctx, CallCount), Window{From: time.UnixMicro(r.GetFrom()).UTC(), To: time.UnixMicro(r.GetTo()).UTC()})
	switch {
	case err == nil:
		return &bursarv1.CountResponse{Runs: n}, nil
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, errors.ErrUnsupported):
		return nil, status.Error(codes.Unimplemented, err.Error())
	}
	return nil, failureOf(err)
}

// failureOf is what the daemon is told of a source's error.
func failureOf(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unknown, validText(cutText(err.Error())))
}

func (s *server) collectFrom(stream collectStream, source Source, from Start) error {
	ctx, cancel := context.WithCancel(s.calls.beginCall(stream.Context(), CallCollect))
	defer cancel()
	p := &pipe{stream: stream, acks: make(chan uint64), window: from.Window != nil, ended: ctx.Done()}
	go p.receiveAcks(cancel)
	err := source.Collect(ctx, from, NewStream(source.Describe().Attributes, p.sendBatch))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return status.Error(codes.Canceled, "the daemon closed the stream")
	}
	return failureOf(err)
}

func decodeStart(p *bursarv1.CollectRequest_Start) Start {
	from := Start{Checkpoint: p.GetCheckpoint(), Rewind: rewindOf(p.GetRewind())}
	if len(from.Checkpoint) == 0 {
		from.Checkpoint = nil
	}
	if w := p.GetWindow(); w != nil {
		from.Window = &Window{From: time.UnixMicro(w.GetFrom()).UTC(), To: time.UnixMicro(w.GetTo()).UTC()}
	}
	return from
}

// rewindOf reads microseconds; what is too long or negative is the nearest that fits.
func rewindOf(micros int64) time.Duration {
	return time.Duration(min(max(micros, 0), math.MaxInt64/1000)) * time.Microsecond
}

type collectStream interface {
	Context() context.Context
	Send(*bursarv1.CollectResponse) error
	Recv() (*bursarv1.CollectRequest, error)
}

// pipe sends batches and waits for their acknowledgements.
type pipe struct {
	stream collectStream
	acks   chan uint64
	ended  <-chan struct{}
	sent   uint64
	window bool
}

// receiveAcks passes acknowledgements on until the daemon closes the stream.
func (p *pipe) receiveAcks(cancel context.CancelFunc) {
	defer cancel()
	for {
		r, err := p.stream.Recv()
		if err != nil {
			return
		}
		if r.GetAck() == nil {
			continue
		}
		select {
		case p.acks <- r.GetAck().GetBatch():
		case <-p.ended:
			return
		}
	}
}

func (p *pipe) sendBatch(ctx context.Context, b Batch) error {
	if p.window {
		b.Checkpoint = nil
	}
	all := messagesOf(b)
	if err := addPushed(all[len(all)-1], &b); err != nil {
		return err
	}
	for _, m := range all {
		if err := p.stream.Send(m); err != nil {
			return err
		}
		p.sent++
		if err := p.awaitAck(ctx, p.sent); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipe) awaitAck(ctx context.Context, batch uint64) error {
	for {
		select {
		case ack := <-p.acks:
			if ack >= batch {
				return nil
			}
		case <-p.ended:
			return fmt.Errorf("wait for the daemon: %w", context.Canceled)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d Description) encodeDescription() *bursarv1.DescribeResponse {
	d = d.withDefaults()
	out := &bursarv1.DescribeResponse{
		Type: validText(d.Type), Version: validText(d.Version), Rank: uint32(d.Rank), Push: d.Push,
		Interval: d.Interval.String(), Mapping: validText(d.Mapping), Pushed: d.Pushed, ReusesIds: d.ReusesIDs,
	}
	for _, a := range d.Attributes {
		out.Attributes = append(out.Attributes, &bursarv1.Attribute{
			Name: validText(a.Name), Type: bursarv1.Type(a.Type), Doc: validText(a.Doc)})
	}
	return out
}

func (d Description) withDefaults() Description {
	if d.Rank == 0 {
		d.Rank = RankScheduler
	}
	if d.Interval == 0 {
		d.Interval = time.Minute
	}
	return d
}
