package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// The questions that only the leader, which pulls, can answer.
const (
	askPulls = "pulls/1"
	askRetry = "retry/1"
)

// askTime bounds a question for how the pulls are doing.
const askTime = 2 * time.Second

// agents implements api.Agents by the pulls of the leader, whichever node it is.
type agents struct {
	manager *ingest.Manager
	peer    *membership.Peer
}

// answerPeers lets this node answer the others while it leads.
func (a agents) answerPeers() {
	a.peer.Answer(askPulls, func(context.Context, []byte) ([]byte, error) { return encodePulls(a.manager.Status()) })
	a.peer.Answer(askRetry, func(ctx context.Context, body []byte) ([]byte, error) {
		var q store.Quarantined
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, fmt.Errorf("a retry of another node: %w", err)
		}
		return nil, a.retryQuarantined(ctx, &q)
	})
}

// Agents implements api.Agents.
func (a agents) Agents(ctx context.Context) ([]api.AgentStatus, error) {
	pulls, err := a.pullStatus(ctx)
	if err != nil {
		return nil, err
	}
	var out []api.AgentStatus
	for _, s := range pulls {
		st := api.AgentStatus{Name: s.Name, Address: s.Address, Connected: s.Connected, LastContact: s.LastContact, Behind: s.Behind, Remedy: s.Remedy}
		if s.Err != nil {
			st.Error = s.Err.Error()
		}
		st.States, st.Failing = map[string]string{}, map[string]string{}
		for _, r := range s.Reported {
			st.States[r.Source] = r.State
		}
		for _, f := range s.Failing {
			st.Failing[f.Source] = f.Error
		}
		out = append(out, st)
	}
	return out, nil
}

// pullStatus returns how the leader's pulls are doing.
func (a agents) pullStatus(ctx context.Context) ([]ingest.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	body, err := a.peer.Ask(ctx, askPulls, nil)
	if err != nil {
		return nil, fmt.Errorf("how the leader's pulls are doing: %w", err)
	}
	return decodePulls(body)
}

// Retry implements api.Agents.
func (a agents) Retry(ctx context.Context, q *store.Quarantined) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	_, err = a.peer.Ask(ctx, askRetry, body)
	return err
}

// retryQuarantined asks the agent, from which this node pulls.
func (a agents) retryQuarantined(ctx context.Context, q *store.Quarantined) error {
	client, ok := a.manager.Client(q.Source.Agent)
	if !ok {
		return fmt.Errorf("this node does not pull from the agent %s", q.Source.Agent)
	}
	stream, err := client.Order(ctx, &bursarv1.OrderRequest{Order: &bursarv1.OrderRequest_Retry_{Retry: &bursarv1.OrderRequest_Retry{
		SourceType: q.Source.Type, SourceLabel: q.Source.Label, QuarantineId: q.ID, Raw: q.Raw,
	}}})
	for err == nil {
		var resp *bursarv1.OrderResponse
		if resp, err = stream.Recv(); err == nil && resp.GetFailed() {
			return errors.New(resp.GetMessage())
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("agent %s: %w", q.Source.Agent, err)
}

// sentPull is a pull.Status on its way to another node.
type sentPull struct {
	ingest.Status

	Err string
}

func encodePulls(list []ingest.Status) ([]byte, error) {
	out := make([]sentPull, 0, len(list))
	for _, s := range list {
		one := sentPull{Status: s}
		if s.Err != nil {
			one.Err = s.Err.Error()
		}
		one.Status.Err = nil
		out = append(out, one)
	}
	return json.Marshal(out)
}

func decodePulls(body []byte) ([]ingest.Status, error) {
	var sent []sentPull
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, fmt.Errorf("what the leader says of its pulls: %w", err)
	}
	out := make([]ingest.Status, 0, len(sent))
	for _, s := range sent {
		one := s.Status
		if s.Err != "" {
			one.Err = errors.New(s.Err)
		}
		out = append(out, one)
	}
	return out, nil
}
