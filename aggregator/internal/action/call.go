package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// call is one call of a plugin: its questions are answered until it ends.
type call struct {
	ctx    context.Context //nolint:containedctx // of the call, which is all of its life
	stream stream
	spec   *Spec
	world  bool       // programs may be run
	files  bool       // archives may be changed
	effect ProgramRun // for which

	effects []sdk.Effect
	size    int

	answering *answering // nil: no question is open
	quiet     *quiet     // nil: it may be silent until its deadline
}

// quiet ends a call in which the plugin says nothing for too long. While a question is
// answered it is the daemon's turn.
type quiet struct {
	limit time.Duration
	timer *time.Timer
	turns atomic.Int64 // answers that are being given
}

func newQuiet(limit time.Duration, end func()) *quiet {
	q := &quiet{limit: limit}
	q.timer = time.AfterFunc(limit, func() {
		if q.turns.Load() > 0 {
			q.noteHeard()
			return
		}
		end()
	})
	return q
}

// noteHeard notes that the plugin says something. A nil quiet notes nothing.
func (q *quiet) noteHeard() {
	if q != nil {
		q.timer.Reset(q.limit)
	}
}

// answerQuestion runs what answers a question.
func (q *quiet) answerQuestion(give func()) {
	if q == nil {
		give()
		return
	}
	q.turns.Add(1)
	defer func() {
		q.noteHeard()
		q.turns.Add(-1)
	}()
	give()
}

// answering is the answer to a question, as it is being given.
type answering struct {
	id   uint64
	stop context.CancelFunc
	done sync.WaitGroup
}

// talkToPlugin sends the first message and returns the last one: a plan or a result.
func (c *call) talkToPlugin(first *bursarv1.ActionRequest) (*bursarv1.Plan, *bursarv1.Result, error) {
	defer c.settleAnswer(true)
	if err := c.stream.Send(first); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	for {
		m, err := c.stream.Recv()
		c.quiet.noteHeard()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil, errors.New("the plugin ended the call without an answer")
		case err != nil:
			return nil, nil, err
		case m.GetPlan() != nil, m.GetResult() != nil:
			return m.GetPlan(), m.GetResult(), nil
		case m.GetEffect() != nil:
			err = c.takeEffect(m.GetEffect())
		case m.GetAsk() != nil:
			err = c.beginAnswer(m.GetAsk())
		default:
			err = errors.New("the plugin sent a message that this program does not know")
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// takeEffect keeps an effect of a plan. A flood is cut off here, before it is all there.
func (c *call) takeEffect(e *bursarv1.Effect) error {
	c.size += len(e.GetPayload()) + len(e.GetShow())
	if len(c.effects) > maxEffects || c.size > 2*maxPayloads {
		return fmt.Errorf("the plan has more than %d effects, or more than %d bytes", maxEffects, 2*maxPayloads)
	}
	c.effects = append(c.effects, sdk.Effect{Name: e.GetName(), Summary: e.GetSummary(), Payload: e.GetPayload(), Show: e.GetShow()})
	return nil
}

// settleAnswer waits for the end of the open answer, which may be broken off.
func (c *call) settleAnswer(breakOff bool) {
	if c.answering == nil {
		return
	}
	if breakOff {
		c.answering.stop()
	}
	c.answering.done.Wait()
	c.answering.stop()
	c.answering = nil
}

// beginAnswer begins to answer a question, or stops.
func (c *call) beginAnswer(q *bursarv1.Ask) error {
	if q.GetStop() != nil {
		if a := c.answering; a != nil && a.id == q.GetId() {
			a.stop()
		}
		return nil
	}
	c.settleAnswer(false) // the last part of the answer before has been sent
	ctx, cancel := context.WithCancel(c.ctx)
	a := &answering{id: q.GetId(), stop: cancel}
	c.answering = a
	out := &parts{send: c.stream.Send, id: q.GetId()}
	switch {
	case q.GetGet() != nil:
		a.done.Go(func() { c.quiet.answerQuestion(func() { c.answerGet(ctx, q.GetGet(), out) }) })
	case q.GetRun() != nil:
		a.done.Go(func() { c.quiet.answerQuestion(func() { c.answerRun(ctx, q.GetRun(), out) }) })
	case q.GetWrite() != nil:
		a.done.Go(func() { c.quiet.answerQuestion(func() { c.answerWrite(ctx, q.GetWrite(), out) }) })
	default:
		return errors.New("the plugin asked something that this program does not know")
	}
	return nil
}

// answerGet answers a question to the REST interface.
func (c *call) answerGet(ctx context.Context, q *bursarv1.Ask_Get, out *parts) {
	if !strings.HasPrefix(q.GetTarget(), "/") {
		out.endParts(fmt.Errorf("%q is no path", cutText(q.GetTarget(), maxWord)), "")
		return
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, q.GetTarget(), http.NoBody)
	if err != nil {
		out.endParts(err, "")
		return
	}
	r.RequestURI, out.header = q.GetTarget(), http.Header{}
	r.Header.Set("Prefer", "handling=lenient") // a group may have its first job later
	if q.GetAccept() != "" {
		r.Header.Set("Accept", q.GetAccept())
	}
	out.endParts(serveRequest(ctx, c.spec.Data, out, r), "")
}

// answerWrite changes archives by the REST interface.
func (c *call) answerWrite(ctx context.Context, q *bursarv1.Ask_Write, out *parts) {
	if !c.files {
		out.endParts(errors.New("only Execute and Probe may change archives, and only of an action that says so in its description"), "")
		return
	}
	if !strings.HasPrefix(q.GetTarget(), "/v1/archives/") {
		out.endParts(fmt.Errorf("%q is not below /v1/archives/", cutText(q.GetTarget(), maxWord)), "")
		return
	}
	r, err := http.NewRequestWithContext(ctx, q.GetMethod(), q.GetTarget(), bytes.NewReader(q.GetBody()))
	if err != nil {
		out.endParts(err, "")
		return
	}
	r.RequestURI, out.header = q.GetTarget(), http.Header{}
	r.Header.Set("Content-Type", q.GetKind())
	out.endParts(serveRequest(ctx, c.spec.Archives, out, r), "")
}

// serveRequest has a handler answer. A handler that breaks its answer off panics.
func serveRequest(ctx context.Context, h http.Handler, out *parts, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the answer was broken off")
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("the answer was stopped: %w", ctx.Err())
		}
	}()
	h.ServeHTTP(out, r)
	return nil
}

// answerRun answers a question for a program.
func (c *call) answerRun(ctx context.Context, q *bursarv1.Ask_Run, out *parts) {
	p := sdk.Program{Arguments: q.GetArguments(), Environment: q.GetEnvironment(), Input: q.GetInput()}
	if q.GetTimeout() != "" {
		var err error
		if p.Timeout, err = time.ParseDuration(q.GetTimeout()); err != nil {
			out.endParts(err, sdk.NotRunKind)
			return
		}
	}
	if !c.world {
		out.endParts(errors.New("only Execute and Probe may run programs, and only of an action that says so in its description"), sdk.NotRunKind)
		return
	}
	result, err := c.spec.Programs.Run(ctx, c.effect, p)
	switch {
	case err != nil && sdk.NotRun(err):
		out.endParts(err, sdk.NotRunKind)
	case err != nil:
		out.endParts(err, "")
	default:
		out.status, out.errors = int32(result.Status), result.Error
		_, _ = out.Write(result.Stdout)
		out.endParts(nil, "")
	}
}

// parts sends an answer in parts, as an http.ResponseWriter.
type parts struct {
	send   func(*bursarv1.ActionRequest) error
	id     uint64
	header http.Header
	status int32
	errors []byte

	buf     bytes.Buffer
	started bool
	failed  error
}

const partSize = 256 << 10

// Header implements http.ResponseWriter.
func (p *parts) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}

// WriteHeader implements http.ResponseWriter.
func (p *parts) WriteHeader(status int) {
	if p.status == 0 {
		p.status = int32(status)
	}
}

// Write implements http.ResponseWriter.
func (p *parts) Write(b []byte) (n int, err error) {
	if p.header != nil { // it is an answer of HTTP
		p.WriteHeader(http.StatusOK)
	}
	for len(b) > 0 && p.failed == nil {
		k := min(len(b), partSize-p.buf.Len())
		p.buf.Write(b[:k])
		b, n = b[k:], n+k
		if p.buf.Len() == partSize {
			p.flushPart(&bursarv1.Answer{})
		}
	}
	return n, p.failed
}

// flushPart sends what is there with a part.
func (p *parts) flushPart(a *bursarv1.Answer) {
	a.Id, a.Data = p.id, bytes.Clone(p.buf.Bytes())
	p.buf.Reset()
	if !p.started {
		p.started = true
		a.Status = p.status
		if a.Kind == "" {
			a.Kind = p.header.Get("Content-Type")
		}
	}
	if err := p.send(&bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Answer{Answer: a}}); err != nil {
		p.failed = err
	}
}

// endParts sends the last part.
func (p *parts) endParts(failure error, kind string) {
	if p.status == 0 && failure == nil && kind == "" && p.header != nil {
		p.status = http.StatusOK
	}
	a := &bursarv1.Answer{Last: true, Errors: p.errors, Kind: kind}
	if failure != nil {
		a.Failure = cutText(failure.Error(), maxText)
	}
	p.flushPart(a)
}
