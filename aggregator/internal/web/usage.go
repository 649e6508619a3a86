package web

import "net/http"

// usagePage is what the page of usage shows.
type usagePage struct{}

func (p *Pages) usage(*http.Request) (any, error) { return &usagePage{}, nil }
