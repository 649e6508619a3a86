package sdk

import (
	"context"
	"fmt"
	"strings"
)

// Stream takes what a source collects.
type Stream struct {
	attributes []Attribute
	sink       func(context.Context, Batch) error
}

// NewStream makes a Stream that hands every batch to sink, for tests of a
// source's Collect without a daemon. Attributes are those of the source's
// description.
func NewStream(attributes []Attribute, sink func(context.Context, Batch) error) *Stream {
	return &Stream{attributes: attributes, sink: sink}
}

// Send hands a batch to the daemon and returns after the daemon has it on disk;
// then its checkpoint counts. An error means that the batch may or may not be
// there: return it from Collect, the daemon asks again from the last checkpoint
// that it has. Batches of a few hundred to a few thousand jobs are best; a
// larger one is cut into several messages, the last of which has the checkpoint.
// Records and Stops are never cut; more than MaxPushed of them is an error.
//
// A job without a run name, or whose values do not fit the declared attributes,
// is handed on as Refused: one odd job stops nothing. Send keeps nothing of b
// after it has returned.
func (s *Stream) Send(ctx context.Context, b Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.sink(ctx, s.siftJobs(b))
}

// siftJobs moves the jobs that do not fit to the refused ones.
func (s *Stream) siftJobs(b Batch) Batch {
	for i := range b.Jobs {
		if s.whyMisfit(&b.Jobs[i]) != "" {
			return s.splitBatch(b)
		}
	}
	return b
}

func (s *Stream) splitBatch(b Batch) Batch {
	jobs, refused := make([]Job, 0, len(b.Jobs)), append([]Refused(nil), b.Refused...)
	for i := range b.Jobs {
		j := &b.Jobs[i]
		if why := s.whyMisfit(j); why != "" {
			refused = append(refused, Refused{Run: j.Run, Message: why, Raw: []byte(s.showJob(j))})
			continue
		}
		jobs = append(jobs, *j)
	}
	b.Jobs, b.Refused = jobs, refused
	return b
}

// whyMisfit says why a job cannot be sent, and nothing when it can.
func (s *Stream) whyMisfit(j *Job) string {
	switch {
	case j.Run == "":
		return "the source gave a job without a run name"
	case len(j.Values) != len(s.attributes):
		return fmt.Sprintf("the source gave %d values for %d attributes", len(j.Values), len(s.attributes))
	}
	for i := range j.Values {
		kind, a := j.Values[i].kind, &s.attributes[i]
		if kind != 0 && kind != a.Type && !(kind == TypeInt && a.Type == TypeFloat) {
			return fmt.Sprintf("the source gave %s for the attribute %s of type %s", kindOf(j.Values[i]), a.Name, a.Type)
		}
	}
	if size := j.encodedSize(); size > maxJob {
		return fmt.Sprintf("the job has %d bytes of attributes; at most %d are allowed", size, maxJob)
	}
	if n := len(j.Formerly); n > MaxFormerly {
		return fmt.Sprintf("the source gave %d other names for the run; at most %d are allowed", n, MaxFormerly)
	}
	for i := range j.Formerly {
		if why := s.whyMisfit(&j.Formerly[i]); why != "" {
			return why
		}
	}
	return ""
}

// showJob writes a job for people, cut to what a refused input may have.
func (s *Stream) showJob(j *Job) string {
	var text strings.Builder
	for i, v := range j.Values {
		if text.Len() > maxRaw {
			break
		}
		name := fmt.Sprint(i)
		if i < len(s.attributes) {
			name = s.attributes[i].Name
		}
		fmt.Fprintf(&text, "%s=%s\n", name, v.showValue())
	}
	return text.String()
}

func (v Value) showValue() string {
	if s, ok := textOf(v); ok {
		return fmt.Sprintf("%q", s[:min(len(s), maxRaw)])
	}
	switch v.kind {
	case TypeTime:
		return v.Time().Format("2006-01-02T15:04:05.999999Z")
	case TypeList:
		return fmt.Sprintf("list of %d", len(v.List()))
	case TypeMap:
		return fmt.Sprintf("map of %d", len(v.Map()))
	}
	return "null"
}

// encodedSize estimates the encoded size of a value.
func (v *Value) encodedSize() int {
	n := 12 + len(v.str)
	if v.more == nil {
		return n
	}
	for i := range v.List() {
		n += v.List()[i].encodedSize()
	}
	for k, e := range v.Map() {
		n += len(k) + e.encodedSize()
	}
	return n
}

func textOf(v Value) (string, bool) {
	switch v.Type() {
	case TypeString:
		return v.Str(), true
	case TypeInt:
		return fmt.Sprint(v.Int()), true
	case TypeFloat:
		return fmt.Sprint(v.Float()), true
	case TypeBool:
		return fmt.Sprint(v.Bool()), true
	}
	return "", false
}

func kindOf(v Value) string {
	switch v.Type() {
	case 0:
		return "null"
	case TypeInt, TypeFloat:
		return "a number"
	default:
		return "a " + v.Type().String()
	}
}
