package web

import "net/http"

// actionsPage is what the page of actions shows.
type actionsPage struct{}

func (p *Pages) actions(*http.Request) (any, error) { return &actionsPage{}, nil }
