package ingest_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
)

// rotten is an agent whose buffer is damaged.
type rotten struct {
	*agent

	file string
}

func (r rotten) Pull(_ context.Context, _ *bursarv1.PullRequest, opts ...grpc.CallOption) (*bursarv1.PullResponse, error) {
	for _, o := range opts {
		if t, ok := o.(grpc.TrailerCallOption); ok {
			*t.TrailerAddr = metadata.Pairs(frame.DamagedTrailer, r.file)
		}
	}
	return nil, status.Error(codes.DataLoss, "the frames behind 4 cannot be read")
}

func TestADamagedBufferIsShownWithTheCommandThatMendsIt(t *testing.T) {
	for file, want := range map[string]string{
		"/var/lib/bursar-agent/buffer.db": "systemctl stop bursar-agent && mv /var/lib/bursar-agent/buffer.db /var/lib/bursar-agent/buffer.db.damaged && systemctl start bursar-agent   # on head1",
		"/x; rm -rf /":                    "bursar-agent status   # on head1", // it is not for the agent to say what people type
	} {
		a, l := newAgent(1), newLog(t)
		loop, stop := runWith(t, a, l, func(loop *ingest.Loop) { loop.Name, loop.Client = "head1", rotten{a, file} })
		await(t, "the remedy", func() bool { return loop.Status().Remedy != "" })
		if s := loop.Status(); s.Remedy != want || s.Connected || s.Err == nil {
			t.Errorf("%+v", s)
		}
		stop()
	}
}

func TestAnAnswerThatIsNotWhatItSaysIsShownWithACommand(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	a.add(t, rec(1))
	follow(t, a, l)
	a.lie = 1 // the answer is not what it says
	a.add(t, rec(2))
	loop, stop := runWith(t, a, l, func(*ingest.Loop) {})
	await(t, "the remedy", func() bool { return loop.Status().Remedy != "" })
	stop()
}
