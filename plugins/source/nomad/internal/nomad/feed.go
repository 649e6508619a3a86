package nomad

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Event is a change of an allocation or of a job, or the end of a job: one of the
// three is set.
type Event struct {
	Index      uint64
	Type       string // for example AllocationUpdated
	Allocation *Allocation
	Job        *Job
	Stopped    *Evaluation
}

// Evaluation is what Nomad makes of a job that someone has stopped or purged.
type Evaluation struct {
	Namespace, JobID, TriggeredBy string
	CreateTime                    int64 // ns since 1970
}

// ParseEvents reads a line of the event stream. A heartbeat has no events; what says
// nothing about runs is left out.
func ParseEvents(line []byte) ([]Event, error) {
	var in struct {
		Index  uint64
		Events []struct {
			Topic, Type string
			Payload     struct {
				Allocation *Allocation
				Job        *Job
				Evaluation *Evaluation
			}
		}
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, fmt.Errorf("line of the event stream: %w", err)
	}
	var out []Event
	for _, e := range in.Events {
		switch {
		case e.Topic == "Allocation" && e.Payload.Allocation != nil && e.Payload.Allocation.ID != "":
			out = append(out, Event{Index: in.Index, Type: e.Type, Allocation: e.Payload.Allocation})
		case e.Topic == "Job" && e.Payload.Job != nil && e.Payload.Job.ID != "":
			out = append(out, Event{Index: in.Index, Type: e.Type, Job: e.Payload.Job})
		case e.Topic == "Evaluation" && strings.HasSuffix(e.Type, "Deregistered") && e.Payload.Evaluation != nil && e.Payload.Evaluation.JobID != "":
			out = append(out, Event{Index: in.Index, Type: e.Type, Stopped: e.Payload.Evaluation})
		}
	}
	return out, nil
}

// Limits of a feed.
const (
	maxLine   = 64 << 20
	maxQueue  = 100_000         // events that wait
	maxBytes  = 32 << 20        // of the lines that they came in; one alone may have more
	heartbeat = 2 * time.Minute // Nomad sends one every half a minute at least
)

// ErrSlow says that events came faster than they were taken.
var ErrSlow = errors.New("event stream: too many events wait")

// Feed follows the event stream. It reads on while events wait to be taken, because
// Nomad cuts off readers that are slow.
type Feed struct {
	cancel context.CancelFunc
	done   chan struct{}
	ready  chan struct{}

	mu     sync.Mutex
	queue  []Event
	bytes  int // of the lines of queue
	err    error
	opened bool
}

// Follow opens the event stream at an index. Nomad begins there or, when that is
// further back than its memory goes, where its memory begins.
func (c *Client) Follow(ctx context.Context, index uint64) *Feed {
	ctx, cancel := context.WithCancel(ctx)
	f := &Feed{cancel: cancel, done: make(chan struct{}), ready: make(chan struct{}, 1)}
	go func() {
		defer close(f.done)
		f.endWith(f.readStream(ctx, c, index))
	}()
	return f
}

// Close ends the feed.
func (f *Feed) Close() {
	f.cancel()
	<-f.done
}

// Ready gives a value when there is something to take.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Opened reports whether the server has answered.
func (f *Feed) Opened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}

// Take takes the events that wait. The error is why there will be no more.
func (f *Feed) Take() ([]Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.queue
	f.queue, f.bytes = nil, 0
	return events, f.err
}

func (f *Feed) endWith(err error) {
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	f.wakeReader()
}

// Wake makes Ready give a value.
func (f *Feed) Wake() { f.wakeReader() }

func (f *Feed) wakeReader() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// addEvents lets the events of a line wait, unless too many do. The error is ErrSlow then.
func (f *Feed) addEvents(events []Event, line int) error {
	f.mu.Lock()
	f.opened = true
	n := len(f.queue)
	full := n > 0 && len(events) > 0 && (n+len(events) > maxQueue || f.bytes+line > maxBytes)
	if !full && len(events) > 0 {
		f.queue = append(f.queue, events...)
		f.bytes += line
	}
	f.mu.Unlock()
	if len(events) > 0 {
		f.wakeReader()
	}
	if full {
		return ErrSlow
	}
	return nil
}

func (f *Feed) readStream(ctx context.Context, c *Client, index uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(heartbeat, cancel)
	defer silence.Stop()
	body, err := c.openStream(ctx, index)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		silence.Reset(heartbeat)
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		events, err := ParseEvents(line)
		if err != nil {
			return err
		}
		if err := f.addEvents(events, len(line)); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("event stream: %w", err)
	}
	return errors.New("event stream: Nomad has ended it")
}

// NoStream reports whether an error says that the server has no event stream: its
// event broker is off.
func NoStream(err error) bool {
	text := err.Error()
	return strings.Contains(text, "event broker") || strings.Contains(text, "event stream is disabled") || strings.Contains(text, "/v1/event/stream: "+ErrGone.Error())
}
