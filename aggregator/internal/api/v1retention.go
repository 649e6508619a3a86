package api

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// retentionPolicy says how long records keep names.
func (s *Server) retentionPolicy() erasure.Policy {
	if s.opt.Retention == nil {
		return erasure.Policy{}
	}
	return s.opt.Retention()
}

// retentionState says how long records keep names, and when names were removed last.
func (s *Server) retentionState(view *access.View) (*v1.Retention, error) {
	policy := s.retentionPolicy()
	state, err := erasure.ReadState(view)
	if err != nil {
		return nil, err
	}
	out := &v1.Retention{Last: v1.Stamp(state.Last), Records: int(state.Records), Total: int(state.Total), Quarantined: state.Quarantined, Archived: state.Archived, Drop: textList(policy.Drop)}
	if policy.Months > 0 {
		out.NamesMonths = &policy.Months
	}
	return out, nil
}

func textList(list []string) []string { return append([]string{}, list...) }

// v1Retention is GET /v1/retention: what has been removed, and what would be now.
func (s *Server) v1Retention(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	retention, err := s.retentionState(view)
	if err != nil {
		return err
	}
	q, err := decodeQuery[v1.RetentionQuery](r)
	if err != nil {
		return err
	}
	policy := s.retentionPolicy()
	policy.Months = cmp.Or(q.Months, policy.Months)
	out := v1.RetentionPlan{Retention: *retention}
	if policy.Months > 0 {
		if out.Due, err = s.dueRemovals(r.Context(), view, policy); err != nil {
			return err
		}
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// dueRemovals says what a policy would remove now.
func (s *Server) dueRemovals(ctx context.Context, view *access.View, policy erasure.Policy) (*v1.RetentionDue, error) {
	from := wholeView{View: view}
	var err error
	if from.archives, err = view.Archives(); err != nil {
		return nil, err
	}
	directory, err := s.currentDirectory()
	if err != nil {
		return nil, err
	}
	due, err := erasure.Look(ctx, from, policy, erasure.NewPolicyKeys(directory, policy), s.currentTime().Std())
	if err != nil {
		return nil, err
	}
	return &v1.RetentionDue{
		Until: v1.Stamp(due.Until), Records: due.Records, People: due.People, Quarantined: due.Quarantined, Archived: due.Archived,
		Archives: textList(due.Archives), Keys: textList(slices.Sorted(maps.Keys(due.Keys))),
	}, nil
}

// wholeView is a picture for package erasure.
type wholeView struct {
	*access.View

	archives []store.Archive
}

// Archives implements erasure.Source.
func (v wholeView) Archives() []store.Archive { return v.archives }

// Query implements erasure.Source.
func (v wholeView) Query(ctx context.Context, q store.Query, yield func(*columns.Row) error) error {
	return v.View.Query(ctx, q, yield)
}
