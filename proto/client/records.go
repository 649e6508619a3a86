package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

const typeJSON = "application/json"

// Health returns nil when the server can serve.
func (c *Client) Health(ctx context.Context) error {
	return c.exchangeJSON(ctx, request{method: http.MethodGet, path: "/health_check"}, nil)
}

// Add stores r as AUDITOR's POST /record does: the fields that AUDITOR knows. The
// error is [ErrExists] when the id is there.
func (c *Client) Add(ctx context.Context, r *record.Record) error {
	return c.postBody(ctx, http.MethodPost, "/record", wire.AppendJSON(nil, r))
}

// BulkInsert stores all records or, with an error, none. The error is
// [ErrExists] when one of the ids is there, or is twice in the list.
func (c *Client) BulkInsert(ctx context.Context, list []record.Record) error {
	b := []byte{'['}
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendJSON(b, &list[i])
	}
	return c.postBody(ctx, http.MethodPost, "/records", append(b, ']'))
}

// Update sets the stop of a record. The error is [ErrNotFound] when there is no
// record of that id.
func (c *Client) Update(ctx context.Context, id string, stop record.Time) error {
	body, err := json.Marshal(map[string]any{"record_id": id, "components": []any{}, "stop_time": stop.String()})
	if err != nil {
		return fmt.Errorf("update %q: %w", id, err)
	}
	return c.postBody(ctx, http.MethodPut, "/record", body)
}

func (c *Client) postBody(ctx context.Context, method, path string, body []byte) error {
	return c.exchangeJSON(ctx, request{method: method, path: path, kind: typeJSON, body: bytes.NewReader(body)}, nil)
}

// Get returns the record of that id; [ErrNotFound] when there is none.
func (c *Client) Get(ctx context.Context, id string) (record.Record, error) {
	switch {
	case record.ValidateID(id) != nil:
		return record.Record{}, fmt.Errorf("record %q: %w", id, ErrNotFound)
	case isAwkward(id):
		return c.findRecord(ctx, id)
	}
	var raw json.RawMessage
	if err := c.exchangeJSON(ctx, request{method: http.MethodGet, path: "/record/" + id}, &raw); err != nil {
		return record.Record{}, err
	}
	if bytes.Equal(raw, []byte("null")) {
		return record.Record{}, fmt.Errorf("record %q: %w", id, ErrNotFound)
	}
	return decodeRecord(raw)
}

// isAwkward reports whether a path cannot carry the id through every server and
// proxy.
func isAwkward(id string) bool { return url.PathEscape(id) != id || id == "." || id == ".." }

// findRecord gets a record by a filter.
func (c *Client) findRecord(ctx context.Context, id string) (record.Record, error) {
	query := url.Values{"record_id": {id}}
	ctx, cancel := c.withTimeout(ctx, query)
	defer cancel()
	for r, err := range c.Query(ctx, query) {
		if err != nil {
			return record.Record{}, causeOf(ctx, err)
		}
		if r.ID == id {
			return r, nil
		}
	}
	return record.Record{}, fmt.Errorf("record %q: %w", id, ErrNotFound)
}

// Query streams the records that match: the query language of AUDITOR's GET
// /records, for example {"stop_time[gte]": {"2026-01-01T00:00:00Z"}}. An answer
// that ends before its end is an error, so a range without an error had all.
// After an error the range ends. Leaving the range closes the connection.
func (c *Client) Query(ctx context.Context, query url.Values) iter.Seq2[record.Record, error] {
	return func(yield func(record.Record, error) bool) {
		for raw, err := range c.Raw(ctx, "/records", query) {
			var r record.Record
			if err == nil {
				r, err = decodeRecord(raw)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Raw streams the records of /records, or of /v1/records with format=ndjson, as [Query]
// does, each as the server wrote it, also where it is not valid.
func (c *Client) Raw(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	target := path
	if len(query) > 0 {
		target += "?" + encodeQuery(query)
	}
	return c.streamValues(ctx, target, request{method: http.MethodGet, path: path, query: query})
}

// encodeQuery is url.Values.Encode with brackets as they are: AUDITOR refuses them
// when they are escaped.
func encodeQuery(query url.Values) string {
	b := []byte(query.Encode())
	for _, bracket := range []struct{ escaped, plain string }{{"%5B", "["}, {"%5D", "]"}} {
		b = replaceInKeys(b, bracket.escaped, bracket.plain)
	}
	return string(b)
}

// replaceInKeys replaces text in the keys of an encoded query.
func replaceInKeys(query []byte, old, with string) []byte {
	parts := bytes.Split(query, []byte("&"))
	for i, part := range parts {
		key, value, _ := bytes.Cut(part, []byte("="))
		key = bytes.ReplaceAll(key, []byte(old), []byte(with))
		parts[i] = bytes.Join([][]byte{key, value}, []byte("="))
	}
	return bytes.Join(parts, []byte("&"))
}

func decodeRecord(raw []byte) (record.Record, error) {
	r, err := wire.DecodeRecordJSON(raw)
	if err != nil {
		return record.Record{}, fmt.Errorf("the server's record: %w", err)
	}
	return r, nil
}

// exchangeJSON does an exchange within the timeout and reads the answer, if it has a
// body, as JSON into out, unless out is nil.
func (c *Client) exchangeJSON(ctx context.Context, r request, out any) error {
	ctx, cancel := c.withTimeout(ctx, r.query)
	defer cancel()
	resp, err := c.sendRequest(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := readAnswer(resp.Body, out); err != nil {
		return causeOf(ctx, fmt.Errorf("%s %s: answer: %w", r.method, r.path, err))
	}
	return nil
}

// readAnswer reads body to its end, so that the connection can be used again.
func readAnswer(body io.Reader, out any) error {
	all, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if string(all) == recordExists {
		return ErrExists
	}
	if out == nil {
		return nil
	}
	if len(all) == 0 {
		return errors.New("is empty")
	}
	return json.Unmarshal(all, out)
}
