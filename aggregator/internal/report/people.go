package report

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// directory is an answer of GET /v1/directory, as far as reports need it.
type directory struct {
	v1.Directory

	byID map[string]*v1.Person
	// note says why no one is in it; empty: it is whole.
	note string
}

// askDirectory asks who belongs where. Who may not see it, because it is about all
// records, gets an empty one.
func askDirectory(ctx context.Context, r v1.API) (*directory, error) {
	d := &directory{}
	var err error
	d.Directory, err = r.Directory(ctx, nil)
	if p, ok := errors.AsType[*client.Problem](err); ok && (p.Status == http.StatusForbidden || p.Status == http.StatusUnauthorized) {
		*d = directory{note: "Names, addresses and projects are shown only to readers of all records."}
	} else if err != nil {
		return nil, fmt.Errorf("the directory: %w", err)
	}
	d.byID = make(map[string]*v1.Person, len(d.People))
	for i := range d.People {
		d.byID[d.People[i].ID] = &d.People[i]
	}
	return d, nil
}

// projectOf is the project that claims the user, else the group, else what the directory says
// of the user.
func (d *directory) projectOf(user, group string) v1.Text {
	for i := range d.Projects {
		if p := &d.Projects[i]; user != "" && slices.Contains(p.Users, user) {
			return v1.Text(p.ID)
		}
	}
	for i := range d.Projects {
		if p := &d.Projects[i]; group != "" && slices.Contains(p.Groups, group) {
			return v1.Text(p.ID)
		}
	}
	if p := d.byID[user]; p != nil && group == "" {
		return p.Project
	}
	return ""
}

// textCell is a cell with a text that may not be known.
func textCell(s v1.Text) Cell {
	if s == "" {
		return Cell{}
	}
	return v1.Words(string(s))
}
