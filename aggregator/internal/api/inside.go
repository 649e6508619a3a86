package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/bursar-accounting/bursar/proto/client"
)

// GetJSON answers GET of a path below /v1 within the process, as client.GetJSON does
// from outside: with the rights and the rows of the principal in ctx (see package
// access), and by the same handlers. The path is escaped already; into is filled as by
// [json.Unmarshal]. A refusal is a *[client.Problem].
//
// It takes no place among the requests that are worked on; the request for which it is
// done has one.
func (s *Server) GetJSON(ctx context.Context, path string, query url.Values, into any) error {
	w, err := s.inside(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return w.read(http.MethodGet+" "+path, into)
}

// PostJSON does POST of a path below /v1 within the process, as GetJSON does GET; in
// is the body.
func (s *Server) PostJSON(ctx context.Context, path string, in, into any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	w, err := s.inside(ctx, http.MethodPost, path, nil, body)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	return w.read(http.MethodPost+" "+path, into)
}

// read fills into from an answer, or says why there is none.
func (k *kept) read(what string, into any) error {
	if k.status != http.StatusOK {
		p := &client.Problem{Status: k.status}
		if json.Unmarshal(k.body.Bytes(), p) != nil {
			p.Title = http.StatusText(k.status)
		}
		return p
	}
	if err := json.Unmarshal(k.body.Bytes(), into); err != nil {
		return fmt.Errorf("%s: the answer does not read: %w", what, err)
	}
	return nil
}

// errBroken says that an answer was broken off.
var errBroken = errors.New("the answer was broken off")

// inside lets the handler of a path answer into memory.
func (s *Server) inside(ctx context.Context, method, path string, query url.Values, body []byte) (w *kept, err error) {
	r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery = query.Encode()
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Prefer", "handling=lenient") // pages and reports name what is near themselves
	w = &kept{head: http.Header{}, status: http.StatusOK}
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			err = errBroken
		default:
			panic(cause)
		}
	}()
	for i := range s.routes {
		route := &s.routes[i]
		values, ok := match(route.pattern, path)
		if !ok || route.method != method {
			continue
		}
		for name, value := range values {
			r.SetPathValue(name, value)
		}
		s.admit(w, r, route.method+" "+route.pattern, route.handle)
		return w, nil
	}
	fail(w, http.StatusNotFound, "there is no "+method+" "+path)
	return w, nil
}

// kept is an answer in memory.
type kept struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.head }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(status int) { k.status = status }

// Write implements http.ResponseWriter.
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }
