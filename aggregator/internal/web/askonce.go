package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// askOnce asks each question of a page once: what is asked again has the answer that is there, so
// that tables of the same figures cannot differ. It belongs to one page that is being made.
type askOnce struct {
	v1.Caller

	answers map[string]json.RawMessage // by path and query
}

// mostKept is how many bytes an answer has at most that is kept.
const mostKept = 1 << 20

// once returns an interface for a page.
func (p *Pages) once() v1.API {
	return v1.API{Caller: &askOnce{p.V1.Caller, map[string]json.RawMessage{}}}
}

// Call implements [v1.Caller].
func (a *askOnce) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	if method != http.MethodGet || in != nil || into == nil {
		return a.Caller.Call(ctx, method, path, query, in, into)
	}
	what := path + "?" + query.Encode()
	raw, known := a.answers[what]
	if !known {
		if err := a.Caller.Call(ctx, method, path, query, nil, &raw); err != nil {
			return err
		}
		if len(raw) <= mostKept {
			a.answers[what] = raw
		}
	}
	return json.Unmarshal(raw, into)
}
