package run

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/pull"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// agents implements api.Agents by the pulls of this node.
type agents struct{ manager *pull.Manager }

// Agents implements api.Agents.
func (a agents) Agents() []api.AgentStatus {
	var out []api.AgentStatus
	for _, s := range a.manager.Status() {
		st := api.AgentStatus{Name: s.Name, Address: s.Address, Connected: s.Connected, LastContact: s.LastContact, Behind: s.Behind}
		if s.Err != nil {
			st.Error = s.Err.Error()
		}
		out = append(out, st)
	}
	return out
}

// Retry implements api.Agents.
func (a agents) Retry(ctx context.Context, q *store.Quarantined) error {
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
