package repeat_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bursar-accounting/bursar/proto/repeat"
)

func TestEvery_ContextOrWorkEnds_Returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, n := time.Now(), 0
		repeat.Every(t.Context(), time.Minute, func() bool { n++; return n < 3 })
		if took := time.Since(began); n != 3 || took != 2*time.Minute {
			t.Errorf("%d calls in %v", n, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		n = 0
		repeat.Every(ctx, time.Minute, func() bool { n++; return true })
		if n != 3 || ctx.Err() == nil {
			t.Errorf("%d calls until the context ended: %v", n, ctx.Err())
		}
	})
}
