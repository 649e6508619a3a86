package web_test

import (
	"context"
	"net/http"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
)

// handler is who answers a path: the pages, or the interface that they link to.
func (s *site) handler(path string) http.Handler {
	if strings.HasPrefix(path, "/v1/") {
		return api.New(s.v1)
	}
	return s.mux
}

// PostJSON answers as GetJSON does.
func (s *site) PostJSON(ctx context.Context, path string, in, into any) error {
	return api.New(s.v1).PostJSON(ctx, path, in, into)
}
