package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Members are the nodes of the cluster, to be looked at and changed. The errors
// of changes wrap [ErrNotNow] or [ErrRefused], or the outcome is not known.
type Members interface {
	Members() []Member
	// Add makes a fresh node a member, which votes as soon as it has caught up.
	Add(ctx context.Context, id, address string) error
	Remove(ctx context.Context, id string) error
	// Transfer hands the leadership to another node.
	Transfer(ctx context.Context) error
}

// ErrRefused is wrapped by what is not done for a reason that stays.
var ErrRefused = errors.New("it is refused")

// Member is a node of the cluster.
type Member struct {
	ID      string
	Name    string // "" while it is not known
	Address string // in the members' list
	Dialled string // at which this node dials it first
	Version string
	Voter   bool
	Leader  bool
	Applied uint64 // as the node says itself
	// Match is the newest entry that it is known to hold, LastContact when it last
	// answered: as the leader knows, zero on other nodes.
	Match       uint64
	LastContact time.Time
}

// memberRoutes returns the routes about the members of the cluster.
func (s *Server) memberRoutes() []route {
	return []route{
		{http.MethodGet, "/v1/cluster/members", s.v1Members},
		{http.MethodPost, "/v1/cluster/members", s.withCluster(s.v1AddMember)},
		{http.MethodDelete, "/v1/cluster/members/{id}", s.withCluster(s.v1RemoveMember)},
		{http.MethodPost, "/v1/cluster/leader:transfer", s.withCluster(s.v1Transfer)},
	}
}

// v1Members is GET /v1/cluster/members: what this node knows, also without a
// quorum.
func (s *Server) v1Members(w http.ResponseWriter, r *http.Request) {
	if who := access.From(r.Context()); who.Rights == 0 {
		answerProblem(w, http.StatusForbidden, "access denied: this certificate has no role")
		return
	}
	if s.opt.Members == nil {
		answerProblem(w, http.StatusNotFound, "this server knows no cluster")
		return
	}
	list := []v1.Member{}
	for _, m := range s.opt.Members.Members() {
		list = append(list, v1.Member{
			ID: m.ID, Name: m.Name, Address: m.Address, DialledAddress: m.Dialled, Version: m.Version, Voter: m.Voter, Leader: m.Leader,
			Applied: m.Applied, Match: m.Match, LastContact: v1.Time{Time: m.LastContact},
		})
	}
	answerJSON(w, http.StatusOK, v1.Members{Members: list})
}

// maxMember bounds the body that names a node.
const maxMember = 64 << 10

// v1AddMember is POST /v1/cluster/members.
func (s *Server) v1AddMember(w http.ResponseWriter, r *http.Request) error {
	var node struct {
		ID      string `json:"id"`
		Address string `json:"address"`
	}
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMember))
	in.DisallowUnknownFields()
	if err := in.Decode(&node); err != nil {
		return newRefusal(http.StatusBadRequest, `the body must be like {"id": "…", "address": "host:port"}: %v`, err)
	}
	if node.ID == "" || node.Address == "" {
		return newRefusal(http.StatusBadRequest, "a node has an id and an address")
	}
	return s.answerChange(w, r, "add "+node.ID+" at "+node.Address, s.opt.Members.Add(r.Context(), node.ID, node.Address))
}

// v1RemoveMember is DELETE /v1/cluster/members/{id}.
func (s *Server) v1RemoveMember(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	for _, m := range s.opt.Members.Members() {
		if m.ID == id {
			return s.answerChange(w, r, "remove "+id, s.opt.Members.Remove(r.Context(), id))
		}
	}
	return newRefusal(http.StatusNotFound, "the cluster has no member %q", id)
}

// v1Transfer is POST /v1/cluster/leader:transfer.
func (s *Server) v1Transfer(w http.ResponseWriter, r *http.Request) error {
	return s.answerChange(w, r, "hand over the leadership", s.opt.Members.Transfer(r.Context()))
}

// answerChange answers a change of the cluster.
func (s *Server) answerChange(w http.ResponseWriter, r *http.Request, what string, err error) error {
	switch {
	case errors.Is(err, ErrNotNow):
		return newRetryableRefusal("nothing was done: %v", err)
	case errors.Is(err, ErrRefused):
		return newRefusal(http.StatusConflict, "nothing was done: %v", err)
	case err != nil:
		return newRefusal(http.StatusServiceUnavailable, "outcome unknown; check before retrying: %v", err)
	}
	s.opt.Log.Warn("the cluster was changed", "what", what, "by", access.From(r.Context()).Name)
	answerJSON(w, http.StatusOK, v1.Message{Message: "done: " + what})
	return nil
}
