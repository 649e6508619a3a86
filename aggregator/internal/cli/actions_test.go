package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// actionAnswers are what a server says of five actions, one of each kind of trouble.
const actionAnswers = `{"actions":[
{"type":"priority","label":"nemo","configured":true,"state":"healthy","schedule":"@hourly","last_success":"2026-11-22T12:00:00Z","paused":null,"disabled":null,"problem":null,"doubtful":[],"orders":0,"current":null,
 "last":{"run":17,"why":"schedule","by":null,"planned":"2026-11-22T12:00:00Z","ended":"2026-11-22T12:00:01Z","effects":3,"done":3}},
{"type":"apel","label":"site","configured":true,"state":"paused","schedule":"@daily","last_success":null,"paused":{"by":"restore","at":"2026-11-20T00:00:00Z","why":"the cluster was restored"},"disabled":null,"problem":null,"doubtful":[],"orders":0,"current":null,"last":null},
{"type":"mail","label":"monthly","configured":true,"state":"unknown","schedule":"@monthly","last_success":null,"paused":null,"disabled":null,"problem":null,"doubtful":[12],"orders":1,"current":null,
 "last":{"run":12,"why":"order","by":"operator \u001b[2J","planned":"2026-11-01T00:00:00Z","ended":"2026-11-01T00:01:00Z","effects":4,"done":1,"rejected":1,"unknown":1,"skipped":1,"partial":true}},
{"type":"webhook","label":"grafana","configured":true,"state":"disabled","schedule":null,"last_success":null,"paused":null,"disabled":{"by":"agg1","at":"2026-11-20T00:00:00Z","why":"its plugin crashed 5 times in 10 minutes: signal: killed"},"problem":null,"doubtful":[],"orders":0,"current":null,"last":null},
{"type":"exec","label":"mirror","configured":true,"state":"failing","schedule":"@change 5m","last_success":"2026-11-22T11:00:00Z","paused":null,"disabled":null,"problem":{"by":"agg1","at":"2026-11-22T11:05:00Z","why":"the question is refused: unknown measure Coers"},"doubtful":[],"orders":0,
 "current":{"run":5,"why":"change","by":null,"planned":"2026-11-22T11:00:00Z","ended":null,"effects":2},"last":{"run":5,"why":"change","by":null,"planned":"2026-11-22T11:00:00Z","ended":null,"effects":2}}]}`

const actionRuns = `{"runs":[{"run":12,"why":"order","by":"me","planned":"2026-11-01T00:00:00Z","ended":"2026-11-01T00:01:00Z","effects":2,"done":1,"unknown":1},
{"run":11,"why":"schedule","by":null,"planned":"2026-10-01T00:00:00Z","ended":null,"effects":0}]}`

const actionRun = `{"run":{"run":12,"why":"order","notes":["record r-1 has no VO and is left out"]},"effects":[
{"effect":0,"name":"to=a@x","summary":"mail to a@x","state":"unknown","attempts":[{"number":1,"node":"agg1","fence":87,"begun":"2026-11-01T00:00:00Z","outcome":"retry","message":"450 busy"},{"number":2,"node":"agg2","fence":98,"begun":"2026-11-01T00:00:30Z","outcome":null,"message":""}]},
{"effect":1,"name":"to=b@x","summary":"mail to b@x","state":"planned","attempts":[]}]}`

const actionPlan = `{"effects":[{"name":"partition=atlas","summary":"10 to 17","size":33,"show":"scontrol update PartitionName=atlas\nPriorityJobFactor=17\u001b"}],"notes":["group nobody has no partition"],"partial":false}`

// actionServer answers all that "bursar actions" asks, and keeps what it was told.
func actionServer(t *testing.T) (s shell, told func() []string) {
	var mu sync.Mutex
	var orders []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		answer := `{"message":"it begins"}`
		switch path := r.URL.Path; {
		case path == "/v1/actions":
			answer = actionAnswers
		case strings.HasSuffix(path, ":plan"):
			answer = actionPlan
		case r.Method == http.MethodGet && strings.HasSuffix(path, "/runs"):
			answer = actionRuns
		case r.Method == http.MethodGet:
			answer = actionRun
		}
		if r.Method == http.MethodPost {
			mu.Lock()
			orders = append(orders, r.URL.Path+" "+strings.TrimSpace(string(body)))
			mu.Unlock()
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return orders
	}
}

func TestActionsAreListedWithWhatIsToBeDone(t *testing.T) {
	s, _ := actionServer(t)
	for name, args := range map[string][]string{
		"actions.table": {"list"}, "actions.csv": {"list", "-format", "csv"},
		"actions-plan.table": {"plan", "priority/nemo", "-v"},
		"actions-runs.table": {"history", "mail/monthly"}, "actions-run.table": {"history", "mail/monthly", "12"},
	} {
		code, out, errs := s.bursar(t.Context(), append([]string{"actions"}, args...)...)
		if code != 0 {
			t.Errorf("%v: %d %s", args, code, errs)
		}
		golden(t, name, out+"---\n"+errs)
	}
	code, _, errs := s.bursar(t.Context(), "actions", "list", "-check")
	if code != 2 || !strings.Contains(errs, "not healthy: apel/site, mail/monthly, webhook/grafana, exec/mirror") {
		t.Error(code, errs)
	}
}

func TestOrdersReachTheServerAsTheyWereGiven(t *testing.T) {
	s, told := actionServer(t)
	for _, order := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "apel/site", "month=2026-10", "site=A=B"}, `/v1/actions/apel/site:run {"arguments":{"month":"2026-10","site":"A=B"}}`},
		{[]string{"pause", "apel/site", "-why", "the receiver moves"}, `/v1/actions/apel/site:pause {"why":"the receiver moves"}`},
		{[]string{"resume", "apel/site"}, `/v1/actions/apel/site:resume {}`},
		{[]string{"retry", "mail/monthly", "12", "0"}, `/v1/actions/mail/monthly/runs/12/effects/0:retry {}`},
		{[]string{"skip", "mail/monthly", "12", "1"}, `/v1/actions/mail/monthly/runs/12/effects/1:skip {}`},
		{[]string{"plan", "apel/site", "month=2026-10"}, `/v1/actions/apel/site:plan {"arguments":{"month":"2026-10"}}`},
	} {
		code, _, errs := s.bursar(t.Context(), append([]string{"actions"}, order.args...)...)
		list := told()
		if code != 0 || len(list) == 0 || list[len(list)-1] != order.want {
			t.Errorf("%v: %d %s\n%s\nwant %s", order.args, code, errs, strings.Join(list, "\n"), order.want)
		}
	}
}

func TestAnOrderThatCannotBeMeantReachesNobody(t *testing.T) {
	s, told := actionServer(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"run", "apel"}, `"bursar actions list" prints them`},
		{[]string{"run", "apel/site", "month"}, "is not NAME=VALUE"},
		{[]string{"retry", "apel/site", "12", "first"}, "prints those of the effects"},
		{[]string{"history", "apel/site", "last"}, "the run is its number"},
		{[]string{"plan"}, ""},
	} {
		code, _, errs := s.bursar(t.Context(), append([]string{"actions"}, c.args...)...)
		if code != 1 || !strings.Contains(errs, c.says) {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
	}
	if list := told(); len(list) > 0 {
		t.Error(list)
	}
}
