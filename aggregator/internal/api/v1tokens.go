package api

import (
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// apiToken makes a token of the API.
func (s *Server) apiToken(w http.ResponseWriter, r *http.Request, view *access.View, body *v1.NewToken) error {
	by := access.From(r.Context())
	if !by.Rows.All() {
		return newRefusal(http.StatusForbidden, "%v: a token could see more", access.ErrRows)
	}
	wanted := enrol.NewBearer{
		Name: body.Name, By: by.Name, Scope: enrol.Scope{Roles: body.Role, Rows: body.Rows, Person: body.Person, Pseudonyms: body.Pseudonyms},
		Life: time.Duration(min(body.LifetimeSeconds, int64(enrol.MaxBearerLife/time.Second)+1)) * time.Second,
	}
	text, b, err := enrol.CreateBearer(r.Context(), view, s.commitResult, wanted, calendar.Now())
	if err != nil {
		return s.enrolRefusal(err)
	}
	answerJSON(w, http.StatusCreated, v1.IssuedToken{ID: b.ID, Token: text, Expires: v1.Time{Time: b.Expires}})
	return nil
}

// apiTokens are the tokens of the API.
func apiTokens(view *access.View, now time.Time) ([]v1.Token, error) {
	bearers, err := enrol.Bearers(view)
	if err != nil {
		return nil, err
	}
	list := make([]v1.Token, 0, len(bearers))
	for i := range bearers {
		b := &bearers[i]
		one := v1.Token{
			ID: b.ID, Role: b.Scope.Roles, Name: b.Name, State: b.State(now), CreatedBy: b.By,
			Created: v1.Time{Time: b.Made}, Expires: v1.Time{Time: b.Expires}, Rows: b.Scope.Rows, Person: b.Scope.Person, Pseudonyms: b.Scope.Pseudonyms,
		}
		use, err := enrol.UsedBearer(view, b.ID)
		if err != nil {
			return nil, err
		}
		if use != nil {
			one.Used, one.UsedFrom = v1.Time{Time: use.At}, use.From
		}
		list = append(list, one)
	}
	return list, nil
}
