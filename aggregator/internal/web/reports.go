package web

import "net/http"

// reportsPage is what the page of reports shows.
type reportsPage struct{}

func (p *Pages) reports(*http.Request) (any, error) { return &reportsPage{}, nil }
