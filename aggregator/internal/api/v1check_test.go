package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// checker finds what it is told to find.
type checker struct {
	wrong []string
	err   error
	begun chan struct{} // when not nil, a check waits for two values
}

func (c *checker) Check(context.Context) (uint64, []string, error) {
	if c.begun != nil {
		c.begun <- struct{}{}
		c.begun <- struct{}{}
	}
	return 7, c.wrong, c.err
}

func TestANodeIsCheckedOneAtATime(t *testing.T) {
	c := &checker{}
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Checker = c })
	if got := rg.call(http.MethodPost, "/v1/check", nil); got.status != 200 || got.body != `{"index":7,"wrong":[]}`+"\n" {
		t.Error(got)
	}
	c.wrong = []string{"a is 1, and the records say 2"}
	if got := rg.call(http.MethodPost, "/v1/check", nil); got.status != 200 || !strings.Contains(got.body, `"a is 1`) {
		t.Error(got)
	}
	c.err = errors.New("the disk does not read")
	if got := rg.call(http.MethodPost, "/v1/check", nil); got.status < 500 {
		t.Error(got)
	}
	c.err, c.begun = nil, make(chan struct{})
	done := make(chan struct{})
	go func() {
		rg.call(http.MethodPost, "/v1/check", nil)
		close(done)
	}()
	<-c.begun
	if got := rg.call(http.MethodPost, "/v1/check", nil); got.status != 409 {
		t.Error(got)
	}
	<-c.begun
	<-done
}
