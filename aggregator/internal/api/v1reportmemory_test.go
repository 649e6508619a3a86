package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// manyUsers is a server with a budget for answers, and a record of each of n users.
func manyUsers(t *testing.T, n int, total int64) (*rig, *store.Budget) {
	t.Helper()
	budget := store.NewBudget(total, time.Minute, nil)
	rg := newRig(t, noon("2026-04-10T12:00:00Z"), func(o *api.Options, _ *store.Options) { o.Memory = budget })
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"record_id":"%d","meta":{"user_id":["user%d"]},"components":[{"name":"Cores","amount":1,"scores":[]}],"start_time":"2026-03-%02dT00:00:00Z","stop_time":"2026-03-%02dT01:00:00Z"}`, i, i, 1+i%28, 1+i%28))
	}
	rg.add(list...)
	return rg, budget
}

// allFree fails the test unless nothing of the budget is taken.
func allFree(t *testing.T, b *store.Budget, total int64) {
	t.Helper()
	// The client may have the answer a moment before the handler ends.
	l, err := b.Begin(t.Context(), total)
	if err != nil {
		t.Error("not all was given back:", err)
	}
	l.End()
}

func TestReports_ManyAtOnce_StayWithinTheBudgetAndAllEnd(t *testing.T) {
	const total = 48 << 20
	rg, budget := manyUsers(t, 1000, total)
	paths := []string{
		"/v1/reports/usage?period=2026-03&by=user_id&top=0", "/v1/reports/usage?period=2026-03&period=2026-02&by=user_id&top=0&format=csv",
		"/v1/usage?by=user_id&window=2026-03", "/v1/records?limit=1000",
	}
	lengths := map[string]int{}
	for _, path := range paths {
		a := rg.call("GET", path, nil)
		if a.err != nil || a.status != http.StatusOK {
			t.Fatal(path, a)
		}
		lengths[path] = len(a.body)
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			path := paths[i%len(paths)]
			if a := rg.call("GET", path, nil); a.err != nil || a.status != http.StatusOK || len(a.body) != lengths[path] {
				t.Errorf("%s: %d %v, %d bytes of %d", path, a.status, a.err, len(a.body), lengths[path])
			}
		})
	}
	all.Wait()
	allFree(t, budget, total)
}

func TestReport_LargerThanTheBudget_IsRefused(t *testing.T) {
	const total = 8 << 20
	rg, budget := manyUsers(t, 2000, total)
	a := rg.do("GET", "/v1/reports/usage?period=2026-03&by=user_id&top=0", "")
	if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "takes more memory") {
		t.Error(a)
	}
	allFree(t, budget, total)
}

func TestReport_WhileOthersHoldTheMemory_Waits(t *testing.T) {
	const total = 48 << 20
	rg, budget := manyUsers(t, 500, total)
	for _, held := range []int64{total, total - 5<<20, total - 8<<20, total / 2} {
		l, err := budget.Begin(t.Context(), held)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan answer)
		go func() { got <- rg.call("GET", "/v1/reports/usage?period=2026-03&by=user_id&top=0", nil) }()
		for held == total && !budget.Waiting() {
			time.Sleep(time.Millisecond)
		}
		l.End()
		if a := <-got; a.status != http.StatusOK {
			t.Error(held, a)
		}
		allFree(t, budget, total)
	}
}
