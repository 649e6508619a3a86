package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
)

// Call implements [v1.Caller]: it sends in as JSON, or nothing when in is nil, and reads
// the answer into out, unless out is nil. A refusal is a *[Problem].
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	r := request{method: method, path: path, query: query, accept: typeJSON}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		r.kind, r.body = typeJSON, bytes.NewReader(body)
	}
	return c.exchangeJSON(ctx, r, out)
}

// Stream implements [v1.Caller]: it yields the values of an answer in NDJSON as they come.
// An answer that ends before its end is an error, after which the range ends. Leaving the
// range closes the connection.
func (c *Client) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	target := path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return c.streamValues(ctx, target, request{method: http.MethodGet, path: path, query: query, accept: "application/x-ndjson"})
}

// Download implements [v1.Carrier]: it copies an answer of any type, such as text/csv, to
// w. When it returns nil, all of it was written.
func (c *Client) Download(ctx context.Context, path string, query url.Values, accept string, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := c.newWatchdog(cancel, query)
	defer alive.stop()
	resp, err := c.sendRequest(ctx, request{method: http.MethodGet, path: path, query: query, accept: accept})
	if err != nil {
		return causeOf(ctx, err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, alive.watchedReader(resp.Body)); err != nil {
		return causeOf(ctx, fmt.Errorf("GET %s: %w", path, err))
	}
	return nil
}

// Upload implements [v1.Carrier]: it sends body, of that media type, without a bound in
// time, and reads the answer as JSON into out, unless out is nil.
func (c *Client) Upload(ctx context.Context, method, path string, query url.Values, kind string, body io.Reader, out any) error {
	resp, err := c.sendRequest(ctx, request{method: method, path: path, query: query, accept: typeJSON, kind: kind, body: body})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := readAnswer(resp.Body, out); err != nil {
		return fmt.Errorf("%s %s: answer: %w", method, path, err)
	}
	return nil
}
