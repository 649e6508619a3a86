package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Stale is a read that may be answered from what this node has, without asking
// the leader. It travels in the context of [Reader.Read]; who gives the picture
// says in Age and Never how old it may be.
type Stale struct {
	// MaxAge is the greatest age that is allowed; negative: any.
	MaxAge time.Duration
	// Age is how long ago the node last knew that it had all that was committed.
	Age time.Duration
	// Never is true when it never knew.
	Never bool
}

type staleKey struct{}

// WithStale returns a context whose read may be stale.
func WithStale(ctx context.Context, s *Stale) context.Context {
	return context.WithValue(ctx, staleKey{}, s)
}

// StaleOf returns how stale the read of ctx may be; nil: not at all.
func StaleOf(ctx context.Context) *Stale {
	s, _ := ctx.Value(staleKey{}).(*Stale)
	return s
}

// setHeaders says how old the answer may be: X-Last-Contact is in milliseconds.
func (s *Stale) setHeaders(h http.Header, index uint64) {
	if s == nil {
		return
	}
	h.Set("X-Applied-Index", strconv.FormatUint(index, 10))
	h.Set("X-Last-Contact", "never")
	if !s.Never {
		h.Set("X-Last-Contact", strconv.FormatInt(s.Age.Milliseconds(), 10))
	}
}

// ageSeconds is the age for an answer: 0 for what is not stale, nil where it is not known.
func (s *Stale) ageSeconds() *float64 {
	switch {
	case s == nil:
		return new(0.0)
	case s.Never:
		return nil
	}
	return new(s.Age.Seconds())
}

// extractConsistency takes ?consistency= and ?max_age= out of a request below /v1. The
// Stale is nil for a linearizable read.
func extractConsistency(r *http.Request) (*http.Request, *Stale, error) {
	if !strings.Contains(r.URL.RawQuery, "consistency=") && !strings.Contains(r.URL.RawQuery, "max_age=") {
		return r, nil, nil
	}
	level, age, rest, err := splitConsistency(r.URL.RawQuery)
	if err != nil {
		return r, nil, err
	}
	stale, err := parseConsistency(level, age)
	if err != nil {
		return r, nil, err
	}
	if stale != nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return r, nil, newRefusal(http.StatusBadRequest, "consistency=stale is only allowed on reads, not on %s", r.Method)
	}
	plain := *r.URL
	plain.RawQuery = rest
	r = r.WithContext(r.Context())
	r.URL = &plain
	if stale != nil {
		r = r.WithContext(WithStale(r.Context(), stale))
	}
	return r, stale, nil
}

// splitConsistency takes the two parameters out of a query, whose other parts
// stay as they are.
func splitConsistency(query string) (level, age, rest string, err error) {
	var others []string
	for part := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(part, "=")
		if key != "consistency" && key != "max_age" {
			others = append(others, part)
			continue
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return "", "", "", newRefusal(http.StatusBadRequest, "%s: %v", key, err)
		}
		if key == "consistency" {
			level = value
		} else {
			age = value
		}
	}
	return level, age, strings.Join(others, "&"), nil
}

func parseConsistency(level, age string) (*Stale, error) {
	switch level {
	case "", "linearizable":
		if age != "" {
			return nil, newRefusal(http.StatusBadRequest, "max_age goes with consistency=stale only; other reads are the newest there is")
		}
		return nil, nil //nolint:nilnil // the read is not stale
	case "stale":
	default:
		return nil, newRefusal(http.StatusBadRequest, "consistency is linearizable or stale, not %q", level)
	}
	if age == "" {
		return &Stale{MaxAge: -1}, nil
	}
	most, err := time.ParseDuration(age)
	if err != nil || most < 0 {
		return nil, newRefusal(http.StatusBadRequest, "max_age is a time such as 500ms, 10s or 5m, not %q", age)
	}
	return &Stale{MaxAge: most}, nil
}
