package api

import (
	"context"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func TestEveryRouteIsDescribedAndNothingElseIs(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPIText)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described[method+" "+path] = true
		}
	}
	served := []string{"GET /health_check", "GET /metrics", "POST /record", "PUT /record", "GET /record/{record_id}", "POST /records", "GET /records"}
	for _, r := range New(Options{}).routes {
		served = append(served, r.method+" "+strings.Replace(r.pattern, "...}", "}", 1))
	}
	for _, name := range served {
		if !described[name] {
			t.Errorf("%s is not described", name)
		}
		delete(described, name)
	}
	for name := range described {
		t.Errorf("%s is described and not served", name)
	}
}

func TestPathsAreTakenApartBeforeTheyAreUnescaped(t *testing.T) {
	const record, retry = "/v1/records/{id...}", "/v1/q/{agent}/{id...}:retry"
	cases := []struct {
		pattern, path string
		want          string // agent|id
		ok            bool
	}{
		{record, "/v1/records/a", "|a", true},
		{record, "/v1/records/a/b//c", "|a/b//c", true},
		{record, "/v1/records/a%2Fb%20%25%23", "|a/b %#", true},
		{record, "/v1/records/", "", false},
		{record, "/v1/records", "", false},
		{record, "/v1/record/a", "", false},
		{retry, "/v1/q/x%2Fy/1/2:retry", "x/y|1/2", true},
		{retry, "/v1/q/x/1", "", false},
		{retry, "/v1/q//1:retry", "", false},
		{retry, "/v1/q/x/:retry", "", false},
		{"/v1/records", "/v1/records", "|", true},
		{"/v1/records", "/v1/records/", "", false},
	}
	for _, c := range cases {
		values, ok := match(c.pattern, c.path)
		if got := values["agent"] + "|" + values["id"]; ok != c.ok || ok && got != c.want {
			t.Errorf("%s in %s: %q %v, want %q %v", c.pattern, c.path, got, ok, c.want, c.ok)
		}
	}
}
