package session

import (
	"context"
	"errors"
	"fmt"
	"io"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Stream runs one Collect call of the plugin to its end, and acknowledges each
// batch when take has returned. An error of take ends the call.
func (s *Session) Stream(ctx context.Context, start *bursarv1.CollectRequest_Start, take func(*bursarv1.CollectResponse) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
			return nil
		}
		if err != nil {
			return fmt.Errorf("collect: %w", err)
		}
		if err := take(resp); err != nil {
			return err
		}
		ack := &bursarv1.CollectRequest{Message: &bursarv1.CollectRequest_Ack_{Ack: &bursarv1.CollectRequest_Ack{Batch: n}}}
		if err := stream.Send(ack); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("acknowledge to the plugin: %w", err)
		}
	}
}
