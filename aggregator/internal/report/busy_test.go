package report_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// busyOnce answers, but for one question, for which it has no room at the moment.
type busyOnce struct {
	v1.Caller

	at    int // the question, from 1; 0: none
	asked int
	of    string // the path of that question
}

func (b *busyOnce) refuses(path string) error {
	if b.asked++; b.asked != b.at {
		return nil
	}
	b.of = path
	return &client.Problem{Status: http.StatusServiceUnavailable, Detail: "2 other answers read archives on this node; try again in a moment", RetryAfter: "5"}
}

func (b *busyOnce) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	if err := b.refuses(path); err != nil {
		return err
	}
	return b.Caller.Call(ctx, method, path, query, in, into)
}

func (b *busyOnce) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	if err := b.refuses(path); err != nil {
		return func(yield func(json.RawMessage, error) bool) { yield(nil, err) }
	}
	return b.Caller.Stream(ctx, path, query)
}

func TestReports_AnyQuestionIsRefusedAsBusy_AreNoDocument(t *testing.T) {
	world := autumn(t).API()
	given := map[string]url.Values{"person": {"user": {"ann"}}, "job": {"job": {"1"}}, "statement": {"of": {"group_id=cms"}}}
	records := 0
	for _, e := range report.Catalogue() {
		query := url.Values{}
		for _, p := range e.Parameters {
			if p.Name == "period" {
				query.Set("period", "2026-10")
			}
		}
		maps.Copy(query, given[e.Name])
		whole := &busyOnce{Caller: world.Caller}
		if _, err := report.Make(t.Context(), v1.API{Caller: whole}, e.Name, query, now()); err != nil && !errors.Is(err, report.ErrNothing) {
			t.Errorf("%s: %v", e.Name, err)
		}
		for at := 1; at <= whole.asked; at++ {
			b := &busyOnce{Caller: world.Caller, at: at}
			d, err := report.Make(t.Context(), v1.API{Caller: b}, e.Name, query, now())
			if problem, ok := errors.AsType[*client.Problem](err); !ok || d != nil || problem.Status != http.StatusServiceUnavailable || problem.RetryAfter != "5" {
				t.Errorf("%s, question %d of %d (%s): %v, %v", e.Name, at, whole.asked, b.of, d, err)
			}
			if b.of == "/v1/records" {
				records++
			}
		}
	}
	if records < 2 {
		t.Errorf("%d questions for records were refused", records)
	}
}
