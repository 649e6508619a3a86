package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/text"
)

// Buffer is what the server needs of the agent's buffer.
type Buffer interface {
	Epoch() buffer.Epoch
	Read(p buffer.Position, maxBytes int) ([][]byte, buffer.Position, error)
	Wait(ctx context.Context, after uint64)
	Ack(cluster string, p buffer.Position) error
	Resume(r buffer.Resume) (buffer.Position, error)
	Stats() (buffer.Stats, error)
	SetVersion(cluster string, version uint32) error
}

// Orders carries out what an operator orders through the aggregator. The
// functions report through send, whose last message has Done set.
type Orders interface {
	Order(ctx context.Context, order *bursarv1.OrderRequest, send func(*bursarv1.OrderResponse) error) error
}

// Reporter adds to an answer what the agent knows of its sources.
type Reporter interface {
	Report(*bursarv1.StatusResponse)
}

// Server answers aggregators.
type Server struct {
	bursarv1.UnimplementedAgentServer

	Buffer   Buffer
	Orders   Orders
	Programs ProgramAdmitter
	Reporter Reporter
	Keys     *identity.Keys
	Log      *slog.Logger
	// Resumed is called after a cluster has sent the sources back.
	Resumed func()

	told atomic.Uint64 // the first frame of the damage that was logged
	age  time.Duration // of a connection that is ended in order; 0: maxAge
}

// Limits of one answer to Pull.
const (
	minPull = 64 << 10
	maxPull = 4 << 20
	maxWait = time.Minute
)

// Limits of programs: how much they may be given – the payload of an effect, and the
// errand around it – and for how long a connection that is to be closed waits for one.
const (
	maxReceive = sdk.MaxPayload + 1<<20
	maxProgram = time.Hour + time.Minute
)

// maxAge is after how long a connection is ended in order: calls under way are answered on it, and the
// aggregator makes the next one, or takes a waiting one. So certificates are shown again well before
// those of an hour's life, which are renewed after two thirds of it, end. It is not shorter, because gRPC stops
// sending keepalive pings on a connection that it has begun to end: whether an aggregator that has a program
// run is still there is then left to TCP, which takes minutes.
const maxAge = 10 * time.Minute

// Run serves on l until ctx ends. Calls that wait are then cut off.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	server := grpc.NewServer(
		grpc.Creds(newCredentials(s.Keys, s.Log)),
		grpc.MaxRecvMsgSize(maxReceive),
		grpc.MaxSendMsgSize(maxPull+(2<<20)),
		grpc.MaxConcurrentStreams(64),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second, MaxConnectionAge: cmp.Or(s.age, maxAge), MaxConnectionAgeGrace: maxProgram}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
	)
	bursarv1.RegisterAgentServer(server, s)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve aggregators on %s: %w", l.Addr(), err)
	}
	return nil
}

// Pull implements bursar.v1.Agent.
func (s *Server) Pull(ctx context.Context, req *bursarv1.PullRequest) (*bursarv1.PullResponse, error) {
	if req.GetCluster() == "" {
		return nil, status.Error(codes.InvalidArgument, "the request names no cluster")
	}
	if err := s.Buffer.SetVersion(req.GetCluster(), max(1, req.GetVersion())); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	at := positionOf(req.GetEpoch(), req.GetAfter(), req.GetDigest())
	size := min(max(int(req.GetMaxBytes()), minPull), maxPull)
	chunks, end, err := s.Buffer.Read(at, size)
	if err == nil && len(chunks) == 0 {
		wait, cancel := context.WithTimeout(ctx, min(time.Duration(req.GetWaitMs())*time.Millisecond, maxWait))
		s.Buffer.Wait(wait, at.Seq)
		cancel()
		chunks, end, err = s.Buffer.Read(at, size)
	}
	if err != nil {
		return s.refusePosition(ctx, err)
	}
	stats, err := s.Buffer.Stats()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &bursarv1.PullResponse{
		Epoch: end.Epoch[:], Chunks: chunks, Last: end.Seq, Digest: end.Digest[:], Behind: stats.Last - min(end.Seq, stats.Last),
	}, nil
}

// reportDamage answers that frames are there and cannot be read.
func (s *Server) reportDamage(ctx context.Context, damage *buffer.DamageError) error {
	if s.told.Swap(damage.After+1) != damage.After+1 {
		s.Log.Error("a pull failed", "error", damage, "do", damage.Remedy())
	}
	if err := grpc.SetTrailer(ctx, metadata.Pairs(frame.DamagedTrailer, damage.Path)); err != nil {
		s.Log.Warn("the aggregator could not be notified of a damaged file", "error", err)
	}
	return status.Error(codes.DataLoss, damage.Error())
}

// refusePosition answers a position that is no place in the buffer's history, or behind
// which the buffer is damaged.
func (s *Server) refusePosition(ctx context.Context, err error) (*bursarv1.PullResponse, error) {
	if damage, ok := errors.AsType[*buffer.DamageError](err); ok {
		return nil, s.reportDamage(ctx, damage)
	}
	if !errors.Is(err, buffer.ErrEpoch) && !errors.Is(err, buffer.ErrDigest) && !errors.Is(err, buffer.ErrAhead) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	epoch := s.Buffer.Epoch()
	return &bursarv1.PullResponse{Epoch: epoch[:], Resume: true, Reason: err.Error()}, nil
}

func positionOf(epoch []byte, seq uint64, digest []byte) buffer.Position {
	p := buffer.Position{Seq: seq}
	copy(p.Epoch[:], epoch)
	copy(p.Digest[:], digest)
	return p
}

// Ack implements bursar.v1.Agent.
func (s *Server) Ack(_ context.Context, req *bursarv1.AckRequest) (*bursarv1.AckResponse, error) {
	if req.GetCluster() == "" {
		return nil, status.Error(codes.InvalidArgument, "the request names no cluster")
	}
	if err := s.Buffer.Ack(req.GetCluster(), positionOf(req.GetEpoch(), req.GetThrough(), req.GetDigest())); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return &bursarv1.AckResponse{}, nil
}

// Resume implements bursar.v1.Agent.
func (s *Server) Resume(_ context.Context, req *bursarv1.ResumeRequest) (*bursarv1.ResumeResponse, error) {
	r := buffer.Resume{
		Cluster:     req.GetCluster(),
		Epoch:       positionOf(req.GetEpoch(), 0, nil).Epoch,
		Known:       positionOf(req.GetKnownEpoch(), req.GetKnownAfter(), req.GetKnownDigest()),
		Checkpoints: map[buffer.Source][]byte{},
		Observed:    req.GetObserved(),
	}
	for _, c := range req.GetCheckpoints() {
		r.Checkpoints[buffer.Source{Type: c.GetSourceType(), Label: c.GetSourceLabel()}] = c.GetState()
	}
	from, err := s.Buffer.Resume(r)
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	s.Log.Info("agreed with the cluster where to resume", "cluster", r.Cluster, "after", from.Seq, "sources_sent_back", len(r.Checkpoints))
	if s.Resumed != nil {
		s.Resumed()
	}
	return &bursarv1.ResumeResponse{Epoch: from.Epoch[:], After: from.Seq, Digest: from.Digest[:]}, nil
}

// Order implements bursar.v1.Agent.
func (s *Server) Order(req *bursarv1.OrderRequest, stream grpc.ServerStreamingServer[bursarv1.OrderResponse]) error {
	if s.Orders == nil {
		return status.Error(codes.Unavailable, "this agent takes no orders")
	}
	if err := s.Orders.Order(stream.Context(), req, stream.Send); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return nil
}

// Status implements bursar.v1.Agent.
func (s *Server) Status(context.Context, *bursarv1.StatusRequest) (*bursarv1.StatusResponse, error) {
	stats, err := s.Buffer.Stats()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	resp := &bursarv1.StatusResponse{
		Epoch: stats.Epoch[:], Now: time.Now().UnixMicro(), First: stats.First, Last: stats.Last,
		Bytes: uint64(stats.Bytes), MaxBytes: uint64(stats.MaxBytes),
	}
	if s.Reporter != nil {
		s.Reporter.Report(resp)
	}
	return resp, nil
}

// Certify implements bursar.v1.Agent.
func (s *Server) Certify(_ context.Context, req *bursarv1.CertifyRequest) (*bursarv1.CertifyResponse, error) {
	problem := req.GetProblem()
	if problem == "" {
		err := s.Keys.Take(req.GetCertificate())
		if err == nil {
			return &bursarv1.CertifyResponse{}, nil
		}
		problem = err.Error()
	}
	if s.Keys.NoteRenewal(text.Cut(problem, maxProblem)) {
		s.Log.Warn("this agent's certificate is not renewed; the cluster tries it again", "ends", s.Keys.Expires().UTC(), "error", text.Cut(problem, maxProblem))
	}
	if req.GetProblem() != "" {
		return &bursarv1.CertifyResponse{}, nil
	}
	return &bursarv1.CertifyResponse{Refused: problem}, nil
}

// maxProblem bounds what is kept of why the certificate is not renewed, in bytes.
const maxProblem = 1 << 10
