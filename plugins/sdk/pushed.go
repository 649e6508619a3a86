package sdk

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// MaxPushed is how many bytes the records and stops of one batch may have. They
// are kept together, so they must fit into one message with what else the last
// message of a batch has.
const MaxPushed = 12 << 20

// SizePushed bounds what a record takes in a batch, in bytes.
func SizePushed(r *record.Record) int { return len(wire.AppendRecord(nil, r)) + 8 }

// addPushed puts the records and stops of a batch into its last message.
func addPushed(m *bursarv1.CollectResponse, b *Batch) error {
	size := 0
	for i := range b.Records {
		text := wire.AppendRecord(nil, &b.Records[i])
		size += len(text)
		r := new(bursarv1.Record)
		if err := proto.Unmarshal(text, r); err != nil { // a text that is not UTF-8
			return fmt.Errorf("record %d of the batch: %w", i, err)
		}
		m.Records = append(m.Records, r)
	}
	for _, s := range b.Stops {
		size += len(s.ID) + 16
		m.Stops = append(m.Stops, &bursarv1.Stop{Id: validText(s.ID), Stop: int64(s.At)})
	}
	if size > MaxPushed {
		return fmt.Errorf("the records of a batch have %d bytes; at most %d are kept together", size, MaxPushed)
	}
	return nil
}
