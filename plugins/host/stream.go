package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Stream runs one Collect call of the plugin to its end, and acknowledges each
// batch when take has returned. An error of take ends the call. A call that makes no
// progress for too long ends with a [Stall], and the plugin with it; a message with
// nothing in it is none. So does, without the plugin, that of a push source with
// [ErrEnded] when it ends by itself.
func (s *Session) Stream(ctx context.Context, start *bursarv1.CollectRequest_Start, take func(*bursarv1.CollectResponse) error) error {
	ctx, w, release := s.watchCall(ctx, sdk.CallCollect)
	defer release()
	err := s.streamBatches(ctx, w, start, take)
	return w.explainEnd(err)
}

// ErrEnded says that a push source has ended its stream, which it must not.
var ErrEnded = errors.New("the plugin ended its stream, which a source that is pushed to must not")

func (s *Session) streamBatches(ctx context.Context, w *watch, start *bursarv1.CollectRequest_Start, take func(*bursarv1.CollectResponse) error) error {
	stream, err := s.Client.Collect(ctx)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	if err := stream.Send(&bursarv1.CollectRequest{Message: &bursarv1.CollectRequest_Start_{Start: start}}); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	for n := uint64(1); ; n++ {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if s.Description.GetPush() && start.GetWindow() == nil && ctx.Err() == nil {
				return ErrEnded
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("collect: %w", Said(err))
		}
		if Says(resp) {
			w.noteTurn(true)
		}
		if err := take(resp); err != nil {
			return err
		}
		if Says(resp) {
			w.noteTurn(false)
		}
		ack := &bursarv1.CollectRequest{Message: &bursarv1.CollectRequest_Ack_{Ack: &bursarv1.CollectRequest_Ack{Batch: n}}}
		if err := stream.Send(ack); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("acknowledge to the plugin: %w", err)
		}
	}
}

// Says reports whether there is something in a message.
func Says(r *bursarv1.CollectResponse) bool {
	return len(r.GetJobs())+len(r.GetCheckpoint())+len(r.GetFrames())+len(r.GetRefused())+len(r.GetRecords())+len(r.GetStops()) > 0 ||
		r.GetProgress() != nil || r.GetWatermark() != 0 || r.GetSkipped() != 0
}
