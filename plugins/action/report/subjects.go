package main

import (
	"context"
	"maps"
	"net/mail"
	"slices"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// subject is whom a report is about, and who gets it.
type subject struct {
	id, name string // "": all
	to       []*mail.Address
}

// displayName is the name of the subject for people.
func (s *subject) displayName() string {
	if s.name == "" || s.name == s.id {
		return s.id
	}
	return s.name + " (" + s.id + ")"
}

// keyOf is the key of usage by which subjects differ; empty without them.
func (p *planner) keyOf() string {
	switch p.Each {
	case "group":
		return p.directory.Keys.Group
	case "user":
		return p.directory.Keys.User
	}
	return p.Each
}

// listSubjects returns all that get a report, in the order of their ids; first that of all.
func (p *planner) listSubjects(used []string) []subject {
	var out []subject
	if len(p.To) > 0 || p.Each == "" {
		out = append(out, subject{to: parseAddresses(p.To)})
	}
	if p.Each == "" {
		return out
	}
	known := p.collectSubjects()
	for _, id := range used {
		if known[id] == nil {
			known[id] = &subject{id: id}
		}
	}
	var without []string
	for _, id := range slices.Sorted(maps.Keys(known)) {
		s := known[id]
		if len(s.to) > 0 || p.Site != nil {
			out = append(out, *s)
		}
		if len(s.to) == 0 && p.Mail != nil && slices.Contains(used, id) {
			without = append(without, id)
		}
	}
	if len(without) > 0 {
		p.noteLack("no address of %s: set email of the person, or a block recipient %q { to = [...] }", abbreviateList(without), without[0])
	}
	return out
}

// collectSubjects returns the subjects of the directory and of the configuration, with their
// addresses.
func (p *planner) collectSubjects() map[string]*subject {
	people := map[string]*v1.Person{}
	for i := range p.directory.People {
		people[p.directory.People[i].ID] = &p.directory.People[i]
	}
	out := map[string]*subject{}
	add := func(id, name, person string) {
		if id == "" {
			return
		}
		s := &subject{id: id, name: name}
		if who := people[person]; who != nil && who.Email != "" {
			s.to = parseAddresses([]string{string(who.Email)})
		}
		out[id] = s
	}
	for i := range p.directory.Projects {
		r := &p.directory.Projects[i]
		switch p.Each {
		case "pi":
			add(string(r.PI), string(r.PIName), string(r.PI))
		case "project":
			add(r.ID, "", string(r.PI))
		case "group":
			for _, g := range r.Groups {
				add(g, "", string(r.PI))
			}
		}
	}
	if p.Each == "user" {
		for id, who := range people {
			add(id, string(who.Name), id)
		}
	}
	for _, r := range p.Recipients {
		if out[r.ID] == nil {
			out[r.ID] = &subject{id: r.ID}
		}
		out[r.ID].to = parseAddresses(r.To)
	}
	return out
}

// parseAddresses reads a list of which the configuration, or the directory, has checked the
// form; each address comes once.
func parseAddresses(list []string) (out []*mail.Address) {
	for _, text := range list {
		a, err := mail.ParseAddress(text)
		if err == nil && !slices.ContainsFunc(out, func(o *mail.Address) bool { return strings.EqualFold(o.Address, a.Address) }) {
			out = append(out, a)
		}
	}
	return out
}

// loadDirectory asks for the directory, where the configuration needs it.
func (p *planner) loadDirectory(ctx context.Context, q *v1.DirectoryQuery) (err error) {
	if p.Each != "" {
		p.directory, err = p.data.API().Directory(ctx, q)
	}
	return err
}
