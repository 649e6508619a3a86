package cli_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestCapacityAndCensusAreShownInEveryFormat(t *testing.T) {
	s, w := filled(t)
	for _, command := range []string{"capacity", "census", "census -by queue", "census -by source", "census -by all"} {
		for _, format := range []string{"table", "json", "csv"} {
			code, out, errs := s.bursar(t.Context(), append(strings.Fields(command), "-format", format)...)
			if got := w.Asked(); code != 0 || !slices.Equal(got, []string{"GET /v1/capacity"}) {
				t.Errorf("%s -format %s: %d %s %s", command, format, code, errs, got)
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
	code, out, errs := s.bursar(t.Context(), "capacity", "-window", "this-year", "-at", "2026-03-01", "-zone", "Asia/Tokyo")
	if got := w.Asked(); code != 0 || !slices.Equal(got, []string{"GET /v1/capacity?at=2026-03-01&window=this-year&zone=Asia%2FTokyo"}) {
		t.Error(code, errs, got)
	}
	golden(t, "capacity-steps.table", out+"--\n"+errs)
}

func TestWhoMayNotSeeTheCensusIsToldSo(t *testing.T) {
	some := v1.Capacity{Census: nil} // as a reader of some records would get it
	s, _ := answered(t, http.StatusOK, some)
	code, out, errs := s.bursar(t.Context(), "census")
	if code != 0 || out != "" || !strings.Contains(errs, "shown only to readers of all records") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	s, w := filled(t)
	w.Options.Who = func(*http.Request) access.Principal {
		return access.Principal{Name: "mon", Rights: identity.Monitor, Rows: access.AllRows()}
	}
	if code, _, errs := s.bursar(t.Context(), "census"); code != 0 || !strings.Contains(errs, "-by source") {
		t.Errorf("%d %q", code, errs)
	}
	s = at(apitest.New(t).Serve())
	if code, _, errs := s.bursar(t.Context(), "capacity"); code != 0 || !strings.Contains(errs, "add a cluster block") {
		t.Errorf("%d %q", code, errs)
	}
	if code, _, errs := s.bursar(t.Context(), "census"); code != 0 || !strings.Contains(errs, "No source reports") {
		t.Errorf("%d %q", code, errs)
	}
}

func TestAUtilizationIsShownInPerCentWithWhatIsNotInIt(t *testing.T) {
	s, _ := filled(t)
	code, out, errs := s.bursar(t.Context(), "usage", "-window", "2026-02", "-by", "cluster", "-measure", "capacity,utilization")
	if code != 0 {
		t.Error(code, errs)
	}
	golden(t, "usage-utilization.table", out+"--\n"+errs)
}
