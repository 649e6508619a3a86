package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// drones is a shell at a cluster with two stops that wait for their starts.
func drones(t *testing.T) (shell, *apitest.World) {
	t.Helper()
	w := apitest.New(t)
	stop := func(id, at string) record.Write {
		return record.Write{Op: record.OpStop, ID: id, Origin: record.Pushed, Rank: record.RankPush, Version: record.Version{Ended: true, Observed: 1}, Stop: apitest.At(at)}
	}
	w.Collect(apitest.Nemo(), nil, &store.IngestCommand{Writes: []record.Write{stop("drone/1", "2001-01-01"), stop("drone-2", "2101-01-01")}})
	return at(w.Serve()), w
}

func TestWaiting_ListsAndDismisses(t *testing.T) {
	s, _ := drones(t)
	if code, out, errs := s.bursar(t.Context(), "waiting", "list"); code != 0 || !strings.Contains(out, "drone/1") || !strings.Contains(out, "drone-2") {
		t.Error(code, out, errs)
	}
	for args, want := range map[string]string{
		"-older 30d":      "DELETE /v1/waiting/drone%2F1",
		"-all":            "DELETE /v1/waiting/drone-2 DELETE /v1/waiting/drone%2F1",
		"drone-2 drone/1": "DELETE /v1/waiting/drone-2 DELETE /v1/waiting/drone%2F1",
	} {
		s, w := drones(t)
		code, _, errs := s.bursar(t.Context(), append([]string{"waiting", "dismiss"}, strings.Fields(args)...)...)
		got := strings.TrimPrefix(strings.Join(w.Asked(), " "), "GET /v1/waiting ")
		if n := strings.Count(want, "DELETE"); code != 0 || got != want || !strings.Contains(errs, fmt.Sprintf("dismissed %d of %d", n, n)) {
			t.Errorf("%s: %d %q %s", args, code, got, errs)
		}
	}
	if code, _, errs := s.bursar(t.Context(), "waiting", "dismiss", "drone-3"); code != 2 || !strings.Contains(errs, "1 of 1 failed") {
		t.Error(code, errs)
	}
	for _, wrong := range [][]string{{}, {"-all", "-older", "30d"}, {"-all", "x"}, {"-older", "soon"}} {
		if code, _, _ := s.bursar(t.Context(), append([]string{"waiting", "dismiss"}, wrong...)...); code != 1 {
			t.Errorf("%v: exit code %d", wrong, code)
		}
	}
}

func TestRepairKinds_PlansAndGoesOnUntilTheEnd(t *testing.T) {
	w := apitest.New(t)
	r := apitest.Job{ID: "a", Start: "2026-02-01", Stop: "2026-02-02", CPU: 3600}.Record()
	r.Components[0].Kind = record.Rate
	const records = 5003 // one request corrects 5000
	list := slices.Repeat([]record.Record{r}, records)
	for i := range list {
		list[i].ID = fmt.Sprint("record-", i)
	}
	for part := range slices.Chunk(list, 1000) {
		w.Post(part...)
	}
	s := at(w.Serve())
	code, out, errs := s.bursar(t.Context(), "operator", "repair-kinds", "-plan")
	if code != 0 || !strings.Contains(out, "TotalCPU") || !strings.Contains(errs, "5\u202f003 records would be changed") || !slices.Equal(w.Asked(), []string{"GET /v1/kinds"}) {
		t.Error(code, out, errs)
	}
	if code, out, errs := s.bursar(t.Context(), "operator", "repair-kinds"); code != 0 || !strings.Contains(errs, "5\u202f003 records changed") || len(w.Asked()) != 2 {
		t.Error(code, out, errs)
	}
}
