package membership

import (
	"context"
	"errors"
	"fmt"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// AskFunc answers a question that only the leader can answer. Its error is told
// to who has asked, as text.
type AskFunc func(ctx context.Context, body []byte) ([]byte, error)

// Answer has questions of that topic answered by fn while this node leads. It
// must be called before Run.
func (p *Peer) Answer(topic string, fn AskFunc) { p.asked[topic] = fn }

// Ask has the leader, which may be this node, answer a question. [ErrNotNow] says
// that no one was reached, [ErrRefused] wraps the leader's own error; after any
// other one no one knows whether the leader did what it was asked for.
func (p *Peer) Ask(ctx context.Context, topic string, body []byte) ([]byte, error) {
	if p.conf.Node.IsLeader() {
		fn := p.asked[topic]
		if fn == nil {
			return nil, fmt.Errorf("%w: no handler for %s", ErrRefused, topic)
		}
		return fn(ctx, body)
	}
	leader, client, err := p.leaderClient()
	if err != nil {
		return nil, err
	}
	ctx, sent := withSent(ctx)
	resp, err := client.Ask(ctx, &bursarv1.AskRequest{Topic: topic, Body: body})
	switch {
	case err != nil && sent.yes:
		return nil, fmt.Errorf("the leader at %s has not answered: %s", leader.Addr, messageOf(err))
	case err != nil:
		return nil, notNow("the leader at %s: %s", leader.Addr, messageOf(err))
	case !resp.GetLeads():
		return nil, notNow("%s leads no longer", leader.Addr)
	case resp.GetRefused() != "":
		return nil, &leaderError{resp.GetRefused()}
	}
	return resp.GetBody(), nil
}

// leaderError is an error of the leader's AskFunc, in its own words.
type leaderError struct{ text string }

func (e *leaderError) Error() string { return e.text }

// Is makes it an [ErrRefused].
func (e *leaderError) Is(target error) bool { return target == ErrRefused }

// Ask implements the peer protocol.
func (s server) Ask(ctx context.Context, req *bursarv1.AskRequest) (*bursarv1.AskResponse, error) {
	if !s.p.conf.Node.IsLeader() {
		return &bursarv1.AskResponse{}, nil
	}
	fn := s.p.asked[req.GetTopic()]
	if fn == nil {
		return &bursarv1.AskResponse{Leads: true, Refused: fmt.Sprintf("the leader does not know the question %q; it runs another version", req.GetTopic())}, nil
	}
	body, err := fn(ctx, req.GetBody())
	if errors.Is(err, ErrNotNow) {
		return &bursarv1.AskResponse{}, nil
	}
	if err != nil {
		return &bursarv1.AskResponse{Leads: true, Refused: err.Error()}, nil //nolint:nilerr // the answer says it
	}
	return &bursarv1.AskResponse{Leads: true, Body: body}, nil
}
