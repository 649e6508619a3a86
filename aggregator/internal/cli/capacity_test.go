package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const capacityAnswer = `{"at":"2026-03-01T12:00:00Z","window":null,"clusters":[
{"name":"nemo","configured":true,"match":{"site_id":["nemo"]},"sources":["head1/slurm/nemo"],"parts":[],"components":{"Cores":15360,"GPUs":null,"su":29184.5},"steps":null},
{"name":"tiny\u001b[2J","configured":false,"match":{"site_id":["tiny"]},"sources":["head2/slurm/tiny"],"parts":[],"components":{"Cores":4},"steps":null}],
"groups":[{"name":"grid","clusters":["nemo","gone"],"groups":[],"members":["nemo"],"unknown":["gone"],"components":{"Cores":null,"GPUs":null,"su":null},"steps":null}],
"census":{"running":12,"pending":45,"sources":[
{"source":"head1/slurm/nemo","at":"2026-03-01T11:59:30Z","running":9,"pending":45,"rows":[{"user":"alice","queue":"gpu","running":2,"pending":40},{"user":"bob","queue":"long","running":3,"pending":0},{"user":"alice","queue":"long","running":4,"pending":5}]},
{"source":"head2/slurm/tiny","at":"2026-03-01T11:50:00Z","running":3,"pending":0,"rows":[{"user":"eve\u001b","queue":"q","running":3,"pending":0}]}]}}`

const stepsAnswer = `{"at":"2026-03-01T12:00:00Z","window":{"from":"2026-01-01T00:00:00Z","to":"2026-03-01T12:00:00Z"},"clusters":[
{"name":"nemo","configured":true,"match":{},"sources":[],"parts":[],"components":{"Cores":20},"steps":[{"from":"2026-01-01T00:00:00Z","components":{"Cores":null}},{"from":"2026-02-01T00:00:00Z","components":{"Cores":10}},{"from":"2026-02-11T00:00:00Z","components":{"Cores":20}}]}],
"groups":[],"census":null}`

// clusters serves answers of /v1/capacity and remembers the last query.
func clusters(t *testing.T, answer *string) (shell, *string) {
	t.Helper()
	query := new(string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*query = r.URL.Path + "?" + r.URL.RawQuery
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, *answer)
	}))
	t.Cleanup(srv.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}, query
}

func TestCapacityAndCensusAreShownInEveryFormat(t *testing.T) {
	answer := capacityAnswer
	s, query := clusters(t, &answer)
	for _, command := range []string{"capacity", "census", "census -by queue", "census -by source", "census -by all"} {
		for _, format := range []string{"table", "json", "csv"} {
			code, out, errs := s.bursar(t.Context(), append(strings.Fields(command), "-format", format)...)
			if code != 0 || *query != "/v1/capacity?" {
				t.Errorf("%s -format %s: %d %s %s", command, format, code, errs, *query)
			}
			if format == "table" {
				out += "--\n" + errs
			}
			if format != "json" && strings.Contains(out+errs, "\x1b") && format == "table" {
				t.Errorf("%s: %q", command, out)
			}
			golden(t, strings.ReplaceAll(command, " -by ", "-")+"."+format, out)
		}
	}
	answer = stepsAnswer
	code, out, errs := s.bursar(t.Context(), "capacity", "-window", "this-year", "-at", "2026-03-01", "-zone", "Asia/Tokyo")
	if code != 0 || *query != "/v1/capacity?at=2026-03-01&window=this-year&zone=Asia%2FTokyo" {
		t.Error(code, errs, *query)
	}
	golden(t, "capacity-steps.table", out+"--\n"+errs)
}

func TestWhoMayNotSeeTheCensusIsToldSo(t *testing.T) {
	answer := strings.Replace(stepsAnswer, "{}", "{}", 1)
	s, _ := clusters(t, &answer)
	code, out, errs := s.bursar(t.Context(), "census")
	if code != 0 || out != "" || !strings.Contains(errs, "You may see some of the records only") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	answer = strings.ReplaceAll(strings.Replace(capacityAnswer, `"rows":[{"user":"alice","queue":"gpu","running":2,"pending":40},{"user":"bob","queue":"long","running":3,"pending":0},{"user":"alice","queue":"long","running":4,"pending":5}]`, `"rows":null`, 1), "eve", "eva")
	if code, _, errs := s.bursar(t.Context(), "census"); code != 0 || !strings.Contains(errs, "-by source") {
		t.Errorf("%d %q", code, errs)
	}
	answer = `{"at":"2026-03-01T12:00:00Z","window":null,"clusters":[],"groups":[],"census":{"running":0,"pending":0,"sources":[]}}`
	if code, _, errs := s.bursar(t.Context(), "capacity"); code != 0 || !strings.Contains(errs, "add a cluster block") {
		t.Errorf("%d %q", code, errs)
	}
	if code, _, errs := s.bursar(t.Context(), "census"); code != 0 || !strings.Contains(errs, "No source has said") {
		t.Errorf("%d %q", code, errs)
	}
}

func TestAUtilizationIsShownInPerCentWithWhatIsNotInIt(t *testing.T) {
	answer := `{"index":1,"seq":1,"way":"index","window":{"word":"2026-03","from":"2026-03-01T00:00:00Z","to":"2026-04-01T00:00:00Z"},"zone":"UTC","bucket":null,"credit":"spread","compared_with":null,"by":["cluster"],"open":0,"several":0,"records":2,"edges":[],"labels":[""],
"groups":[{"values":[null],"others":0},{"values":["nemo"],"others":0}],
"measures":[{"name":"capacity","component":null,"score":null,"kind":"capacity","unit":"hour","values":[null,744],"totals":[null,744],"total":744,"lacking":null,"unpriced":null,"without":null,"compared":null},
{"name":"utilization","component":null,"score":null,"kind":"ratio","unit":null,"values":[null,1.0525],"totals":[null,1.0525],"total":1.0525,"lacking":{"total":24.5,"totals":[24.5,0]},"unpriced":null,"without":null,"compared":null}],
"complete":{"complete_to":null,"limited":true,"sources":[],"silent":0,"gaps":[],"open":0,"quarantined":null}}`
	s, _ := clusters(t, &answer)
	code, out, errs := s.bursar(t.Context(), "usage", "-by", "cluster", "-measure", "capacity,utilization")
	if code != 0 {
		t.Error(code, errs)
	}
	golden(t, "usage-utilization.table", out+"--\n"+errs)
}
