package api

import (
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (s *Server) userRoutes() []route {
	const one = "/v1/users/{name}"
	return []route{
		{http.MethodGet, "/v1/users", s.viewing(s.v1Users)},
		{http.MethodPost, "/v1/users", s.viewing(s.v1UserAdd)},
		{http.MethodPut, one, s.viewing(s.v1UserPassword)},
		{http.MethodDelete, one, s.viewing(s.v1UserRemove)},
	}
}

// v1Users is GET /v1/users.
func (s *Server) v1Users(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	list, err := enrol.Users(view)
	if err != nil {
		return err
	}
	out := v1.Users{Users: []v1.User{}}
	for i := range list {
		u := &list[i]
		out.Users = append(out.Users, v1.User{
			Name: u.Name, Roles: u.Scope.Roles, Rows: u.Scope.Rows, Person: u.Scope.Person, CreatedBy: u.By,
			Created: v1.Time{Time: u.Made}, Changed: v1.Time{Time: u.Changed},
		})
	}
	answer(w, http.StatusOK, out)
	return nil
}

// v1UserAdd is POST /v1/users.
func (s *Server) v1UserAdd(w http.ResponseWriter, r *http.Request, view *access.View) error {
	var body v1.NewUser
	if err := decodeBody(w, r, &body); err != nil {
		return err
	}
	by := access.From(r.Context())
	if !by.Rows.All() {
		return refuse(http.StatusForbidden, "%v: a user could see more", access.ErrRows)
	}
	scope := enrol.Scope{Roles: body.Roles, Rows: body.Rows, Person: body.Person}
	if err := enrol.AddUser(r.Context(), view, s.commitResult, body.Name, body.Password, by.Name, scope, calendar.Now()); err != nil {
		return s.enrolled(err)
	}
	answer(w, http.StatusOK, v1.Message{Message: "added: " + body.Name})
	return nil
}

// v1UserPassword is PUT /v1/users/{name}.
func (s *Server) v1UserPassword(w http.ResponseWriter, r *http.Request, view *access.View) error {
	var body v1.NewPassword
	if err := decodeBody(w, r, &body); err != nil {
		return err
	}
	name := r.PathValue("name")
	if err := enrol.SetPassword(r.Context(), view, s.commitResult, name, body.Password, calendar.Now()); err != nil {
		return s.enrolled(err)
	}
	answer(w, http.StatusOK, v1.Message{Message: "password set, and sessions ended: " + name})
	return nil
}

// v1UserRemove is DELETE /v1/users/{name}.
func (s *Server) v1UserRemove(w http.ResponseWriter, r *http.Request, view *access.View) error {
	name := r.PathValue("name")
	if err := enrol.RemoveUser(r.Context(), view, s.commitResult, name); err != nil {
		return s.enrolled(err)
	}
	answer(w, http.StatusOK, v1.Message{Message: "removed, and sessions ended: " + name})
	return nil
}
