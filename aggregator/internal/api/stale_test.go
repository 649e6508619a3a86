package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// follower is a node whose leader is gone; its data are so old.
type follower struct {
	*node

	age   time.Duration
	never bool
}

func (f *follower) Read(ctx context.Context) (*store.View, error) {
	s := api.StaleOf(ctx)
	if s == nil || (s.MaxAge >= 0 && (f.never || f.age > s.MaxAge)) {
		return nil, fmt.Errorf("no leader")
	}
	s.Age, s.Never = f.age, f.never
	return f.node.Read(ctx)
}

func TestAReadIsStaleOnlyWhereItIsAskedFor(t *testing.T) {
	f := &follower{age: 1500 * time.Millisecond}
	rg := newRig(t, func(o *api.Options, _ *store.Options) {
		f.node = o.Writer.(*node)
		o.Reader = access.Reader{Source: f}
	})
	for _, c := range []struct {
		method, path string
		never        bool
		status       int
		contact      string
	}{
		{"GET", "/v1/records", false, 503, ""},
		{"GET", "/v1/records?consistency=linearizable", false, 503, ""},
		{"GET", "/v1/records?consistency=stale", false, 200, "1500"},
		{"GET", "/v1/records?limit=1&consistency=stale&max_age=10s", false, 200, "1500"},
		{"GET", "/v1/records?consistency=stale&max_age=1s", false, 503, ""},
		{"GET", "/v1/status?consistency=stale", true, 200, "never"},
		{"GET", "/v1/status?consistency=stale&max_age=1h", true, 503, ""},
		{"GET", "/v1/records?consistency=newest", false, 400, ""},
		{"GET", "/v1/records?consistency=stale&max_age=-1s", false, 400, ""},
		{"GET", "/v1/records?consistency=stale&max_age=long", false, 400, ""},
		{"GET", "/v1/records?max_age=1s", false, 400, ""},
		{"DELETE", "/v1/records/r1?consistency=stale", false, 400, ""},
		{"GET", "/record/r1?consistency=stale", false, 503, ""}, // AUDITOR's routes are always linearizable
		{"GET", "/records", false, 503, ""},
	} {
		f.never = c.never
		req, err := http.NewRequestWithContext(t.Context(), c.method, rg.url+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(c.path, err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status || resp.Header.Get("X-Last-Contact") != c.contact || (resp.Header.Get("X-Applied-Index") != "") != (c.contact != "") {
			t.Errorf("%s %s: %d, %v", c.method, c.path, resp.StatusCode, resp.Header)
		}
	}
}
