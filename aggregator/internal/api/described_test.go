package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// described checks requests and answers against openapi.yaml. kin-openapi
// validates documents of 3.1 with the rules of JSON Schema 2020-12 as soon as
// their version says so. What it has no words for is done here: paths whose last
// part may have slashes, and bodies of several JSON values.
type described struct {
	doc   *openapi3.T
	paths []describedPath
}

type describedPath struct {
	template string
	names    []string
	match    *regexp.Regexp
}

// description reads the contract once for all tests, which takes a quarter of a second.
var description = sync.OnceValues(readDescription)

func describe(t testing.TB) described {
	t.Helper()
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readDescription() (described, error) {
	doc, err := openapi3.NewLoader().LoadFromData(v1.OpenAPI())
	if err != nil {
		return described{}, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return described{}, err
	}
	d := described{doc: doc}
	for template := range doc.Paths.Map() {
		d.paths = append(d.paths, parseTemplate(template))
	}
	// A path with a verb comes before the one without.
	sort.Slice(d.paths, func(i, j int) bool { return len(d.paths[i].template) > len(d.paths[j].template) })
	return d, nil
}

func parseTemplate(template string) describedPath {
	p := describedPath{template: template}
	expr := regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllStringFunc(regexp.QuoteMeta(template), func(s string) string { return s })
	for _, name := range regexp.MustCompile(`\{([a-z_]+)\}`).FindAllStringSubmatch(template, -1) {
		p.names = append(p.names, name[1])
		one := "([^/]+)"
		if strings.HasSuffix(template, name[0]) || strings.Contains(template, name[0]+":") {
			one = "(.+)"
		}
		expr = strings.Replace(expr, regexp.QuoteMeta(name[0]), one, 1)
	}
	p.match = regexp.MustCompile("^" + expr + "$")
	return p
}

// find returns the operation of a request, nil when there is none.
func (d *described) find(r *http.Request) (*routers.Route, map[string]string) {
	for _, p := range d.paths {
		found := p.match.FindStringSubmatch(r.URL.EscapedPath())
		if found == nil {
			continue
		}
		item := d.doc.Paths.Value(p.template)
		op := item.GetOperation(r.Method)
		if op == nil {
			continue
		}
		params := map[string]string{}
		for i, name := range p.names {
			params[name] = found[i+1]
		}
		return &routers.Route{Spec: d.doc, Path: p.template, PathItem: item, Method: r.Method, Operation: op}, params
	}
	return nil, nil
}

// check fails the test when the answer is not as described, or when the server
// took a request that is not.
func (d *described) check(t testing.TB, method, path, body string, header []string, a answer) {
	t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	route, params := d.find(req)
	if route == nil {
		if method != http.MethodHead && a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %v, but it is not described", method, path, a)
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: &openapi3filter.Options{
		IncludeResponseStatus: true, ExcludeRequestBody: req.Header.Get("Content-Encoding") != "",
		ExcludeRequestQueryParams: strings.Contains(path, "[]="), // taken, but for old clients only
	}}
	if a.status < 300 {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			t.Errorf("%s %s: taken, but not as described: %v", method, path, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body)), Options: &openapi3filter.Options{
		IncludeResponseStatus: true, ExcludeResponseBody: a.body == "",
	}}
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		t.Errorf("%s %s: %v: not as described: %v", method, path, a, err)
	}
	d.checkLines(t, route.Operation.OperationID, a)
}

// checkLines checks a stream of records.
func (d *described) checkLines(t testing.TB, operation string, a answer) {
	t.Helper()
	schema := ""
	switch {
	case a.status != http.StatusOK:
		return
	case operation == "queryRecords":
		schema = "Record"
	case operation == "listRecords" && a.header.Get("Content-Type") == "application/x-ndjson":
		schema = "FullRecord"
	case operation == "openRuns":
		schema = "OpenRunLine"
	default:
		return
	}
	rules := d.doc.Components.Schemas[schema].Value
	scan := bufio.NewScanner(strings.NewReader(a.body))
	scan.Buffer(nil, 1<<20)
	for n := 0; scan.Scan() && n < 50; n++ { // they are all made by the same code
		var v any
		dec := json.NewDecoder(bytes.NewReader(scan.Bytes()))
		if err := dec.Decode(&v); err != nil {
			t.Errorf("line %q: %v", scan.Text(), err)
			continue
		}
		if err := rules.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.VisitAsResponse()); err != nil {
			t.Errorf("line %q: %v", scan.Text(), err)
		}
	}
}
