package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// orders carries out what an operator orders through the aggregator.
type orders struct{ agent *Agent }

// Order implements serve.Orders. An order that fails is an answer, not an error.
func (o orders) Order(ctx context.Context, req *bursarv1.OrderRequest, send func(*bursarv1.OrderResponse) error) error {
	message, err := o.carryOut(ctx, req, send)
	if err != nil {
		return send(&bursarv1.OrderResponse{Message: err.Error(), Done: true, Failed: true, ExitCode: 1})
	}
	return send(&bursarv1.OrderResponse{Message: message, Done: true})
}

func (o orders) carryOut(ctx context.Context, req *bursarv1.OrderRequest, send func(*bursarv1.OrderResponse) error) (string, error) {
	switch order := req.GetOrder().(type) {
	case *bursarv1.OrderRequest_Retry_:
		return o.retryJob(ctx, order.Retry)
	case *bursarv1.OrderRequest_Recollect_:
		return o.recollectWindow(ctx, order.Recollect, send)
	case *bursarv1.OrderRequest_Command_:
		return "", fmt.Errorf("the command %q is refused: this agent's configuration allows no commands", order.Command.GetName())
	}
	return "", errors.New("this agent does not know the order; is it older than the aggregator?")
}

func (o orders) retryJob(ctx context.Context, r *bursarv1.OrderRequest_Retry) (string, error) {
	s, err := o.agent.findSource(r.GetSourceType() + "/" + r.GetSourceLabel())
	if err != nil {
		return "", err
	}
	if err := s.loop.Retry(ctx, r.GetQuarantineId(), r.GetRaw()); err != nil {
		return "", err
	}
	return "the job gives a record now, which is on its way", nil
}

func (o orders) recollectWindow(ctx context.Context, r *bursarv1.OrderRequest_Recollect, send func(*bursarv1.OrderResponse) error) (string, error) {
	req := control.Recollect{
		Source: r.GetSourceType() + "/" + r.GetSourceLabel(), Plan: r.GetPlan(),
		From: time.UnixMicro(r.GetFrom()).UTC(), To: time.UnixMicro(r.GetTo()).UTC(),
	}
	total, err := o.agent.Recollect(ctx, req, func(s control.Step) error {
		return send(&bursarv1.OrderResponse{Progress: progressOut(s.Progress), Message: s.Counts.String()})
	})
	return total.String(), err
}

// findSource returns a running source, or says why there is none.
func (a *Agent) findSource(name string) (*source, error) {
	cfg, s := a.currentSource(name)
	if s != nil {
		return s, nil
	}
	if cfg.Source(name) != nil {
		return nil, fmt.Errorf("the source %q is disabled", name)
	}
	return nil, noSource(cfg, name)
}

func noSource(cfg *config.Config, name string) error {
	return fmt.Errorf("unknown source %q; %s", name, hcl.DidYouMean(name, cfg.Names()))
}

// Recollect implements control.Agent.
func (a *Agent) Recollect(ctx context.Context, r control.Recollect, send func(control.Step) error) (control.Counts, error) {
	s, err := a.findSource(r.Source)
	if err != nil {
		return control.Counts{}, err
	}
	if !r.From.Before(r.To) {
		return control.Counts{}, fmt.Errorf("the window from %s to %s is empty", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	}
	a.opt.Log.Info("recollection", "source", r.Source, "from", r.From, "to", r.To, "plan", r.Plan)
	total, err := s.loop.Recollect(ctx, collect.Window{From: r.From, To: r.To}, r.Plan, func(c collect.Counts, p *bursarv1.Progress) error {
		return send(control.Step{Counts: countsOf(c), Progress: progressOf(p)})
	})
	return countsOf(total), err
}
