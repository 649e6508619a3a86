package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// route is one operation below /v1. The pattern is like one of http.ServeMux,
// with {name} for one part of the path and at its end {name...} for the rest,
// which may be followed by a verb, as in {id...}:retry. http.ServeMux itself
// will not do: it redirects ids with // in them to other ids, and its 404 and
// 405 are no problem documents.
type route struct {
	method  string
	pattern string
	handle  http.HandlerFunc
}

// serveV1 answers what is below /v1.
func (s *Server) serveV1(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	var allow []string
	for i := range s.routes {
		route := &s.routes[i]
		values, ok := matchPath(route.pattern, path)
		if !ok {
			continue
		}
		setRoute(w, route.pattern)
		if route.allowsMethod(r.Method) {
			leave, ok := s.acquireSlot(w, route.pattern)
			if !ok {
				return
			}
			defer leave()
			for name, value := range values {
				r.SetPathValue(name, value)
			}
			s.admitRequest(w, r, route.method+" "+route.pattern, route.handle)
			return
		}
		allow = append(allow, route.method)
	}
	if len(allow) > 0 {
		slices.Sort(allow)
		w.Header().Set("Allow", strings.Join(slices.Compact(allow), ", "))
		answerProblem(w, http.StatusMethodNotAllowed, "method "+r.Method+" not allowed")
		return
	}
	answerProblem(w, http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path+"; GET /v1/openapi.yaml lists what there is")
}

func (rt *route) allowsMethod(method string) bool {
	return rt.method == method || method == http.MethodHead && rt.method == http.MethodGet
}

// matchPath returns the values of a pattern in an escaped path, unescaped.
func matchPath(pattern, path string) (map[string]string, bool) {
	values := map[string]string{}
	for {
		want, morePattern, patternGoesOn := strings.Cut(pattern, "/")
		if name, verb, ok := strings.Cut(want, "...}"); ok {
			return values, matchRest(values, name[1:], path, verb)
		}
		got, morePath, pathGoesOn := strings.Cut(path, "/")
		if !matchPart(values, want, got) || patternGoesOn != pathGoesOn {
			return nil, false
		}
		if !pathGoesOn {
			return values, true
		}
		pattern, path = morePattern, morePath
	}
}

func matchRest(values map[string]string, name, rest, verb string) bool {
	rest, ok := strings.CutSuffix(rest, verb)
	if !ok || rest == "" {
		return false
	}
	value, err := url.PathUnescape(rest)
	values[name] = value
	return err == nil
}

func matchPart(values map[string]string, want, got string) bool {
	if !strings.HasPrefix(want, "{") {
		return want == got
	}
	value, err := url.PathUnescape(got)
	values[strings.Trim(want, "{}")] = value
	return err == nil && got != ""
}
