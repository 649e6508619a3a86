package web_test

import (
	"context"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
)

// PostJSON answers as GetJSON does.
func (s *site) PostJSON(ctx context.Context, path string, in, into any) error {
	return api.New(s.v1).PostJSON(ctx, path, in, into)
}
