package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"

	"github.com/bursar-accounting/bursar/proto/client"
)

// Call implements [v1.Caller] within the process: with the rights and the rows of the
// principal in ctx (see package access), and by the same handlers. A refusal is a
// *[client.Problem].
//
// It takes no place among the requests that are worked on; the request for which it is
// done has one.
func (s *Server) Call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	w := &bufferedResponse{head: http.Header{}, status: http.StatusOK}
	err := chargeDecoded(ctx, func() (int, error) {
		err := s.serveInProcess(ctx, w, method, path, query, body)
		return w.body.Len(), err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return w.decodeInto(method+" "+path, out)
}

// decodeInto fills out from an answer, unless it is nil, or says why there is none.
func (k *bufferedResponse) decodeInto(what string, out any) error {
	if k.status/100 != 2 {
		p := &client.Problem{Status: k.status}
		if json.Unmarshal(k.body.Bytes(), p) != nil {
			p.Title = http.StatusText(k.status)
		}
		p.RetryAfter = k.head.Get("Retry-After")
		return p
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(k.body.Bytes(), out); err != nil {
		return fmt.Errorf("%s: the answer does not read: %w", what, err)
	}
	return nil
}

// Stream implements [v1.Caller]: it yields the values of an answer in NDJSON as they are
// made.
func (s *Server) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		query = maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		query.Set("format", "ndjson")
		lines := &lineResponse{bufferedResponse: bufferedResponse{head: http.Header{}, status: http.StatusOK}, yield: yield}
		err := s.serveInProcess(ctx, lines, http.MethodGet, path, query, nil)
		switch {
		case lines.left:
		case err != nil:
			yield(nil, fmt.Errorf("GET %s: %w", path, err))
		case lines.status != http.StatusOK:
			yield(nil, lines.decodeInto(http.MethodGet+" "+path, nil))
		}
	}
}

// lineResponse yields an answer line by line; a refusal it keeps.
type lineResponse struct {
	bufferedResponse

	yield func(json.RawMessage, error) bool
	left  bool // no more is wanted
}

// errLeft ends an answer of which no more is wanted.
var errLeft = errors.New("no more of the answer is wanted")

// Write implements http.ResponseWriter.
func (l *lineResponse) Write(p []byte) (int, error) {
	_, _ = l.body.Write(p) // never fails
	for l.status == http.StatusOK && !l.left {
		n := bytes.IndexByte(l.body.Bytes(), '\n')
		if n < 0 {
			break
		}
		line := l.body.Next(n + 1)[:n]
		l.left = n > 0 && !l.yield(bytes.Clone(line), nil)
	}
	if l.left {
		return 0, errLeft
	}
	return len(p), nil
}

// errBroken says that an answer was broken off.
var errBroken = errors.New("the answer was broken off")

// insideKey marks the context of a request that the process makes itself.
type insideKey struct{}

func isInside(ctx context.Context) bool { return ctx.Value(insideKey{}) != nil }

// serveInProcess lets the handler of a path answer.
func (s *Server) serveInProcess(ctx context.Context, w http.ResponseWriter, method, path string, query url.Values, body []byte) (err error) {
	ctx = context.WithValue(ctx, insideKey{}, true)
	r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.URL.RawQuery = query.Encode()
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Prefer", "handling=lenient") // pages and reports name what is near themselves
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
		values, ok := matchPath(route.pattern, path)
		if !ok || route.method != method {
			continue
		}
		for name, value := range values {
			r.SetPathValue(name, value)
		}
		s.admitRequest(w, r, route.method+" "+route.pattern, route.handle)
		return nil
	}
	answerProblem(w, http.StatusNotFound, "there is no "+method+" "+path)
	return nil
}

// bufferedResponse is an answer in memory.
type bufferedResponse struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *bufferedResponse) Header() http.Header { return k.head }

// WriteHeader implements http.ResponseWriter.
func (k *bufferedResponse) WriteHeader(status int) { k.status = status }

// Write implements http.ResponseWriter.
func (k *bufferedResponse) Write(p []byte) (int, error) { return k.body.Write(p) }
