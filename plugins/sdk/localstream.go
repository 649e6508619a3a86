package sdk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// NewData makes a Data whose answers come from a handler, for tests of an action's
// Plan without a daemon.
func NewData(h http.Handler) *Data {
	return &Data{&requester{stream: &localStream{ctx: context.Background(), get: h}}}
}

// NewWorld makes a World whose programs are a function, for tests of an action's
// Execute without a daemon.
func NewWorld(run func(context.Context, Program) (Output, error)) *World {
	return &World{&requester{stream: &localStream{ctx: context.Background(), run: run}}}
}

// NewArchiveWorld makes a World whose questions, and what it archives and restores, a
// handler answers, for tests of an action's Execute without a daemon.
func NewArchiveWorld(h http.Handler) *World {
	return &World{&requester{stream: &localStream{ctx: context.Background(), get: h}}}
}

// localStream answers questions at once.
type localStream struct {
	ctx context.Context //nolint:containedctx // as that of a stream
	get http.Handler
	run func(context.Context, Program) (Output, error)

	answers []*bursarv1.Answer
}

// Context implements actionStream.
func (r *localStream) Context() context.Context { return r.ctx }

// Send implements actionStream.
func (r *localStream) Send(m *bursarv1.ActionResponse) error {
	q := m.GetAsk()
	switch {
	case q.GetGet() != nil:
		r.answers = append(r.answers, r.answerPage(http.MethodGet, q.GetGet().GetTarget(), q.GetGet().GetAccept(), nil))
	case q.GetWrite() != nil:
		w := q.GetWrite()
		r.answers = append(r.answers, r.answerPage(w.GetMethod(), w.GetTarget(), "", w.GetBody()))
	case q.GetRun() != nil:
		r.answers = append(r.answers, r.answerProgram(q.GetRun()))
	default: // a stop: the answer is whole already
		return nil
	}
	a := r.answers[len(r.answers)-1]
	a.Id, a.Last = q.GetId(), true
	return nil
}

// Recv implements actionStream.
func (r *localStream) Recv() (*bursarv1.ActionRequest, error) {
	if len(r.answers) == 0 {
		return nil, io.EOF
	}
	a := r.answers[0]
	r.answers = r.answers[1:]
	return &bursarv1.ActionRequest{Message: &bursarv1.ActionRequest_Answer{Answer: a}}, nil
}

func (r *localStream) answerPage(method, target, accept string, body []byte) *bursarv1.Answer {
	req, err := http.NewRequestWithContext(r.ctx, method, target, bytes.NewReader(body))
	if err != nil || r.get == nil {
		return &bursarv1.Answer{Failure: errors.Join(err, errors.New("no answer")).Error()}
	}
	req.Header.Set("Accept", accept)
	p := &page{header: http.Header{}, status: http.StatusOK}
	r.get.ServeHTTP(p, req)
	return &bursarv1.Answer{Status: int32(p.status), Kind: p.header.Get("Content-Type"), Data: p.body.Bytes()}
}

func (r *localStream) answerProgram(q *bursarv1.Ask_Run) *bursarv1.Answer {
	if r.run == nil {
		return &bursarv1.Answer{Failure: "programs cannot be run here", Kind: NotRunKind}
	}
	out, err := r.run(r.ctx, Program{Arguments: q.GetArguments(), Environment: q.GetEnvironment(), Input: q.GetInput()})
	switch {
	case NotRun(err):
		return &bursarv1.Answer{Failure: err.Error(), Kind: NotRunKind}
	case err != nil:
		return &bursarv1.Answer{Failure: err.Error()}
	}
	return &bursarv1.Answer{Status: int32(out.Status), Data: out.Stdout, Errors: out.Error}
}

// page keeps what a handler answers.
type page struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (p *page) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *page) WriteHeader(status int) { p.status = status }

// Write implements io.Writer.
func (p *page) Write(b []byte) (int, error) { return p.body.Write(b) }
