package v1_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// recorded keeps what is asked.
type recorded struct {
	method, path string
	query        url.Values
	in           any
	lines        []string
}

func (r *recorded) Call(_ context.Context, method, path string, query url.Values, in, out any) error {
	r.method, r.path, r.query, r.in = method, path, query, in
	if out == nil {
		return nil
	}
	return json.Unmarshal([]byte(`{}`), out)
}

func (r *recorded) Stream(_ context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	r.path, r.query = path, query
	return func(yield func(json.RawMessage, error) bool) {
		for _, line := range r.lines {
			if !yield(json.RawMessage(line), nil) {
				return
			}
		}
		yield(nil, errors.New("cut short"))
	}
}

func TestQueries_EachKindOfField_IsWrittenAsTheServerReadsIt(t *testing.T) {
	at := v1.Time{Time: time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("", 3600))}
	r := &recorded{}
	_, err := v1.API{Caller: r}.Usage(t.Context(), &v1.UsageQuery{
		Window: "2026", Top: 10, Open: new(false), Reading: v1.Reading{MaxAge: "10s"},
		Where:      map[string]string{"project": "", "100%": "a&b"},
		Components: "Cores,Memory", Component: map[string]v1.NumberTest{"GPUs": {Gte: new(0)}},
		Meta:     map[string]v1.MetaTest{"site": {C: []string{"x", "y"}}},
		StopTime: v1.TimeTest{Gte: at},
		Runtime:  v1.NumberTest{Gt: new(0)},
	})
	want := url.Values{
		"window": {"2026"}, "top": {"10"}, "open": {"false"}, "max_age": {"10s"}, "where[project]": {""}, "where[100%]": {"a&b"},
		"component": {"Cores,Memory"}, "component[GPUs][gte]": {"0"}, "meta[site][c][0]": {"x"}, "meta[site][c][1]": {"y"}, "stop_time[gte]": {"2026-03-01T12:00:00Z"}, "runtime[gt]": {"0"},
	}
	if diff := cmp.Diff(want, r.query); diff != "" || err != nil || r.path != "/v1/usage" {
		t.Error(r.path, err, diff)
	}
	_, _ = v1.API{Caller: r}.Report(t.Context(), "usage", &v1.ReportQuery{Period: []string{"2025", "2026"}})
	if diff := cmp.Diff(url.Values{"period": {"2025", "2026"}}, r.query); diff != "" || r.path != "/v1/reports/usage" {
		t.Error(r.path, diff)
	}
	if _, _ = (v1.API{Caller: r}).Agents(t.Context(), nil); len(r.query) != 0 {
		t.Error(r.query)
	}
	if got := v1.UsageAddress(&v1.UsageQuery{By: "a,b"}, "csv"); got != "/v1/usage?by=a%2Cb&format=csv" {
		t.Error(got)
	}
}

func TestRoutes_PartsOfAPath_AreEscaped(t *testing.T) {
	r := &recorded{}
	if _, err := (v1.API{Caller: r}).RetryEffect(t.Context(), "mail", "a/b", 12, 0, v1.ActionOrder{}); err != nil {
		t.Fatal(err)
	}
	if r.method != "POST" || r.path != "/v1/actions/mail/a%2Fb/runs/12/effects/0:retry" {
		t.Error(r.method, r.path)
	}
}

func TestLines_ABrokenLineOrStream_EndsTheRange(t *testing.T) {
	for _, lines := range [][]string{{`{"record_id":"a"}`, `5`, `{}`}, {`{"record_id":"a"}`}} {
		var ids []string
		var errs int
		for line, err := range (v1.API{Caller: &recorded{lines: lines}}).ListRecordsLines(t.Context(), nil) {
			if err != nil {
				errs++
				continue
			}
			ids = append(ids, line.RecordID)
		}
		if len(ids) != 1 || ids[0] != "a" || errs != 1 {
			t.Errorf("%q: %q and %d errors", lines, ids, errs)
		}
	}
}
