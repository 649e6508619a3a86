package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestEveryRouteIsDescribedAndNothingElseIs(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(v1.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	described := map[string]any{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			described[method+" "+path] = op.Extensions["x-roles"]
		}
	}
	needs := access.Routes()
	for _, route := range New(Options{}).Served() {
		name := strings.Replace(route, "...}", "}", 1)
		roles, ok := described[name]
		if !ok {
			t.Errorf("%s is not described", name)
		}
		if want := "[" + strings.ReplaceAll(needs[route].Roles(), ",", " ") + "]"; fmt.Sprint(roles) != want {
			t.Errorf("%s: x-roles are %v, want %s", name, roles, want)
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
		values, ok := matchPath(c.pattern, c.path)
		if got := values["agent"] + "|" + values["id"]; ok != c.ok || ok && got != c.want {
			t.Errorf("%s in %s: %q %v, want %q %v", c.pattern, c.path, got, ok, c.want, c.ok)
		}
	}
}
