package translate

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Extra takes over a frame that a source made itself: a gap, a census, a
// capacity or a directory. Everything else is the daemon's to make. The refusal
// says what is wrong with it; nil when nothing is.
func Extra(f *bursarv1.Frame) (*wire.Frame, *bursarv1.Refused) {
	out, err := convertFrame(f)
	if err != nil {
		return nil, &bursarv1.Refused{Run: "frame", Message: err.Error()}
	}
	if n := len(wire.AppendFrame(nil, out)); n > MaxExtra {
		return nil, &bursarv1.Refused{Run: out.Kind.String(), Message: fmt.Sprintf("the source's %s has %d bytes; at most %d are allowed", out.Kind, n, MaxExtra)}
	}
	return out, nil
}

func convertFrame(f *bursarv1.Frame) (*wire.Frame, error) {
	text, err := proto.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("frame of the plugin: %w", err)
	}
	var out wire.Frame
	if err := wire.DecodeFrame(text, &out); err != nil {
		return nil, fmt.Errorf("frame of the plugin: %w", err)
	}
	switch out.Kind {
	case wire.KindGap, wire.KindCensus, wire.KindCapacity, wire.KindDirectory:
		return &wire.Frame{Kind: out.Kind, Gap: out.Gap, Census: out.Census, Capacity: out.Capacity, Directory: out.Directory}, nil
	}
	return nil, fmt.Errorf("the plugin sent a %s frame, which only the agent makes", out.Kind)
}
