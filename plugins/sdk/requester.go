package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// actionStream is a call of an action, at the plugin's side.
type actionStream interface {
	Context() context.Context
	Send(*bursarv1.ActionResponse) error
	Recv() (*bursarv1.ActionRequest, error)
}

// requester brings the questions of one call to the daemon, one after the other.
type requester struct {
	stream actionStream

	mu   sync.Mutex // guards what follows, and that one sends at a time
	last uint64     // question
	open bool       // its answer has not ended
}

func (d *requester) sendMessage(m *bursarv1.ActionResponse) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stream.Send(m)
}

func (d *requester) getAnswer(ctx context.Context, target, accept string) (*answer, error) {
	return d.askQuestion(ctx, &bursarv1.Ask{What: &bursarv1.Ask_Get_{Get: &bursarv1.Ask_Get{Target: validText(target), Accept: accept}}})
}

func (d *requester) runProgram(ctx context.Context, p Program) (*answer, error) {
	r := &bursarv1.Ask_Run{Arguments: p.Arguments, Input: p.Input, Environment: p.Environment}
	if p.Timeout > 0 {
		r.Timeout = p.Timeout.String()
	}
	return d.askQuestion(ctx, &bursarv1.Ask{What: &bursarv1.Ask_Run_{Run: r}})
}

func (d *requester) writeRows(ctx context.Context, w *bursarv1.Ask_Write) (*answer, error) {
	w.Target = validText(w.GetTarget())
	return d.askQuestion(ctx, &bursarv1.Ask{What: &bursarv1.Ask_Write_{Write: w}})
}

// askQuestion sends a question and waits for the first part of its answer.
func (d *requester) askQuestion(ctx context.Context, q *bursarv1.Ask) (*answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, err := d.putQuestion(q)
	if err != nil {
		return nil, err
	}
	a := &answer{requester: d, id: id}
	a.cancel = context.AfterFunc(ctx, a.stopAnswer)
	if a.takePart(); a.err != nil && !errors.Is(a.err, io.EOF) {
		return nil, a.err
	}
	return a, nil
}

func (d *requester) putQuestion(q *bursarv1.Ask) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open {
		return 0, ErrOpen
	}
	d.last++
	q.Id = d.last
	if err := d.stream.Send(&bursarv1.ActionResponse{Message: &bursarv1.ActionResponse_Ask{Ask: q}}); err != nil {
		return 0, err
	}
	d.open = true
	return q.Id, nil
}

func (d *requester) endQuestions() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = false
}

// answer is an answer as it comes.
type answer struct {
	requester *requester
	id        uint64
	cancel    func() bool // of the wait for the end of the question's context

	status int    // known after the first part
	rest   []byte // of the part that came last
	errors []byte // known at the end
	err    error  // io.EOF: it is whole
}

// takePart takes the next part.
func (a *answer) takePart() {
	m, err := a.requester.stream.Recv()
	if err != nil {
		a.endAnswer(fmt.Errorf("the daemon has ended the call: %w", err))
		return
	}
	p := m.GetAnswer()
	if p.GetId() != a.id {
		a.endAnswer(fmt.Errorf("the daemon answers question %d, not %d", p.GetId(), a.id))
		return
	}
	if p.GetStatus() != 0 {
		a.status = int(p.GetStatus())
	}
	a.rest = p.GetData()
	switch {
	case !p.GetLast():
	case p.GetFailure() == "":
		a.errors = p.GetErrors()
		a.endAnswer(io.EOF)
	case p.GetKind() == NotRunKind:
		a.endAnswer(notRun{errors.New(p.GetFailure())})
	default:
		a.endAnswer(errors.New(p.GetFailure()))
	}
}

// NotRunKind is the kind of the answer to a Run whose program was not started.
const NotRunKind = "not-run"

func (a *answer) endAnswer(err error) {
	a.err = err
	a.cancel()
	a.requester.endQuestions()
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		a.takePart()
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// stopAnswer asks the daemon to break the answer off.
func (a *answer) stopAnswer() {
	q := &bursarv1.Ask{Id: a.id, What: &bursarv1.Ask_Stop_{Stop: &bursarv1.Ask_Stop{}}}
	_ = a.requester.sendMessage(&bursarv1.ActionResponse{Message: &bursarv1.ActionResponse_Ask{Ask: q}}) // the next part tells what is wrong
}

// Close ends the answer, of which the rest is not wanted. Closing twice is a no-op.
func (a *answer) Close() error {
	if a.err == nil {
		a.stopAnswer()
	}
	for a.err == nil {
		a.takePart()
	}
	a.rest = nil
	return nil
}
