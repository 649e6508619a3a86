package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/membership"
)

// members implements api.Members. Changes are made by the leader, whichever node
// is asked.
type members struct{ replica *replica }

// memberTopic is the question by which another node asks the leader for a change.
const memberTopic = "members/1"

// memberChange is what the leader is asked for.
type memberChange struct {
	What    string `json:"what"` // add, remove, transfer
	ID      string `json:"id,omitempty"`
	Address string `json:"address,omitempty"`
}

// newMembers has this node answer the others while it leads.
func newMembers(r *replica) members {
	m := members{r}
	r.peer.Answer(memberTopic, func(ctx context.Context, body []byte) ([]byte, error) {
		var c memberChange
		if err := json.Unmarshal(body, &c); err != nil {
			return nil, fmt.Errorf("a change of the members: %w", err)
		}
		return nil, m.applyChange(ctx, c)
	})
	return m
}

// applyChange makes a change of the members; this node leads.
func (m members) applyChange(ctx context.Context, c memberChange) (err error) {
	switch c.What {
	case "add":
		err = m.replica.node.Add(ctx, cluster.Server{ID: c.ID, Addr: c.Address})
	case "remove":
		err = m.replica.node.Remove(ctx, c.ID)
	case "transfer":
		err = m.transferLeadership(ctx)
	default:
		err = fmt.Errorf("the leader cannot %q; it runs another version", c.What)
	}
	if errors.Is(err, cluster.ErrNotLeader) {
		return fmt.Errorf("%w: the leadership has just changed, ask again", membership.ErrNotNow)
	}
	return err
}

// transferLeadership gives the leadership away as a node does that stops: no write fails.
func (m members) transferLeadership(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	return m.replica.peer.TransferLeadership(ctx)
}

// askLeader has the leader make a change.
func (m members) askLeader(ctx context.Context, c memberChange) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = m.replica.peer.Ask(ctx, memberTopic, body)
	switch {
	case err == nil, errors.Is(err, cluster.ErrUnknownOutcome):
		return err
	case errors.Is(err, membership.ErrNotNow):
		return fmt.Errorf("%w: %w", api.ErrNotNow, err)
	case errors.Is(err, membership.ErrRefused), m.replica.node.IsLeader():
		return fmt.Errorf("%w: %w", api.ErrRefused, err)
	}
	return err
}

// Members implements api.Members.
func (m members) Members() []api.Member {
	reach := map[string]cluster.Reach{}
	for _, r := range m.replica.node.Reach() {
		reach[r.ID] = r
	}
	names := map[string]string{}
	for _, l := range m.replica.peer.Names() {
		names[l.ID] = l.Name
	}
	var list []api.Member
	for _, n := range m.replica.node.Members() {
		one := api.Member{ID: n.ID, Name: names[n.ID], Address: n.Addr, Dialled: m.replica.peer.AddressOf(n.Server), Voter: n.Voter, Leader: n.Leader, Match: reach[n.ID].Match, LastContact: reach[n.ID].LastContact}
		if f, ok := m.replica.nodeFact(n.ID); ok {
			one.Name, one.Version, one.Applied = cmp.Or(f.Name, one.Name), f.Version, f.Applied
		}
		list = append(list, one)
	}
	return list
}

// Add implements api.Members.
func (m members) Add(ctx context.Context, id, address string) error {
	return m.askLeader(ctx, memberChange{What: "add", ID: id, Address: address})
}

// Remove implements api.Members.
func (m members) Remove(ctx context.Context, id string) error {
	return m.askLeader(ctx, memberChange{What: "remove", ID: id})
}

// Transfer implements api.Members.
func (m members) Transfer(ctx context.Context) error {
	return m.askLeader(ctx, memberChange{What: "transfer"})
}

// nodeFact returns what is known of a node, this one included.
func (r *replica) nodeFact(id string) (membership.NodeFact, bool) {
	if id == r.node.ID() {
		return r.peer.Roster().Own(), true
	}
	return r.peer.Roster().ByID(id)
}
