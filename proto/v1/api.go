package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/url"
	"time"
)

// TypeNoMatch is the type of the problem that no record has what a filter names.
const TypeNoMatch = "urn:bursar:no-match"

// TypeArchive is the type of the problem that the files of an archive cannot be read.
const TypeArchive = "urn:bursar:archive"

// API has a method for each route whose answer is JSON. A refusal is the error of the
// Caller.
type API struct{ Caller Caller }

// Caller carries questions to a server: over HTTP as package client does, or within its
// process.
type Caller interface {
	// Call sends in as JSON, unless it is nil, and decodes the answer into out, unless
	// that is nil. The path is escaped.
	Call(ctx context.Context, method, path string, query url.Values, in, out any) error
	// Stream yields the values of an answer in NDJSON as they come. An answer that ends
	// before its end is an error, after which the range ends.
	Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error]
}

// Files has a method for each route that takes or answers a file.
type Files struct{ Carrier Carrier }

// Carrier carries files to and from a server.
type Carrier interface {
	// Download copies an answer of a media type to w.
	Download(ctx context.Context, path string, query url.Values, accept string, w io.Writer) error
	// Upload sends a body of a media type and decodes the answer into out.
	Upload(ctx context.Context, method, path string, query url.Values, kind string, body io.Reader, out any) error
}

// Reading says how old an answer may be; the zero Reading: it has all that was acknowledged.
type Reading struct {
	// Consistency is linearizable or stale.
	Consistency string `query:"consistency"`
	// MaxAge bounds the age of a stale answer, such as 10s.
	MaxAge string `query:"max_age"`
}

// pathPart is a value within a path.
func pathPart(value any) string { return url.PathEscape(fmt.Sprint(value)) }

// addressOf is a route with its query and a format.
func addressOf(path string, query url.Values, format string) string {
	if format != "" {
		if query == nil {
			query = url.Values{}
		}
		query.Set("format", format)
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// ListRecordsTexts is [API.ListRecordsLines] for a caller who needs so little of many records that
// it decodes them itself.
func (a API) ListRecordsTexts(ctx context.Context, q *ListRecordsQuery) iter.Seq2[json.RawMessage, error] {
	return a.Caller.Stream(ctx, "/v1/records", queryValues(q))
}

// decodeLines decodes the values of a stream.
func decodeLines[T any](stream iter.Seq2[json.RawMessage, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for raw, err := range stream {
			var line T
			if err == nil {
				err = json.Unmarshal(raw, &line)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// ZoneHeader has the site's time zone, by whose clock days begin, in every answer of /v1.
const ZoneHeader = "X-Bursar-Zone"

// Clock returns the time zone of a name; of an empty one the site's, by which /v1 reads
// what names none. It is one of package time, and no other name than it reads is known.
func (a API) Clock(ctx context.Context, name string) (*time.Location, error) {
	if name == "" {
		today, err := a.Usage(ctx, &UsageQuery{Window: "today", Measure: "records"})
		if err != nil {
			return nil, fmt.Errorf("the site's time zone: %w", err)
		}
		name = today.Zone
	}
	return time.LoadLocation(name)
}
