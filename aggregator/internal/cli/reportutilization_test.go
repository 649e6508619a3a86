package cli_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

const auditorFiles = "../../../proto/auditor/utilization/testdata/"

// auditorSite has the records from which AUDITOR's utilization plugin wrote its files.
func auditorSite(t *testing.T) shell {
	t.Helper()
	w := apitest.New(t)
	f, err := os.Open(auditorFiles + "records.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []record.Record
	for in := bufio.NewScanner(f); in.Scan(); {
		r, err := wire.DecodeRecordJSON(in.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Components {
			if o := &r.Components[i]; o.Name == "TotalCPU" {
				o.Kind = record.Total
			}
		}
		list = append(list, r)
	}
	w.Post(list...)
	w.Options.Now = func() time.Time { return time.Date(2026, 4, 2, 0, 0, 0, 0, time.UTC) }
	s := at(w.Serve())
	s.now = w.Options.Now
	return s
}

// The files were written by AUDITOR's own program from the same records.
func TestReportUtilization_CompatAuditor_IsItsTableToTheDigit(t *testing.T) {
	s := auditorSite(t)
	for name, flags := range map[string]string{
		"htcondor": "-watt-per-core-of a=4.6 -watt-per-core-of b=7.25",
		"slurm":    "-collector-type slurm -grouped-list atlas,bob",
	} {
		want, err := os.ReadFile(auditorFiles + name + ".csv")
		if err != nil {
			t.Fatal(err)
		}
		args := append([]string{"report", "utilization", "-compat", "auditor", "-benchmark", "HEPscore23"}, strings.Fields(flags)...)
		if code, out, errs := s.bursar(t.Context(), args...); code != 0 || out != string(want) {
			t.Errorf("%s: %d %s\n%s, want\n%s", name, code, errs, out, want)
		}
		file := filepath.Join(t.TempDir(), "u.csv")
		if code, out, errs := s.bursar(t.Context(), append(args, "-period", "2026-03", "-o", file)...); code != 0 || out != "" {
			t.Errorf("%s: %d %s %s", name, code, out, errs)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != string(want) {
			t.Errorf("%s: %v %s", name, err, text)
		}
	}
}

func TestReportUtilization_CompatAuditorWrong_IsRefused(t *testing.T) {
	s := auditorSite(t)
	for args, want := range map[string]string{
		"-compat auditor -period 2026-04":                 `period "2026-04" has not ended`,
		"-compat auditor -period 2026-03-02":              "is not a month",
		"-compat auditor -period 2026-03 -bucket week":    "-bucket has no meaning with -compat auditor",
		"-compat auditor -format json":                    "writes CSV",
		"-compat auditor -watt-per-core-of hall":          "use SITE=WATTS",
		"-compat auditor -period 2026-03 -period 2026-02": "of one -period",
		"-watt-per-core 7":                                "-watt-per-core is for -compat auditor",
	} {
		if code, _, errs := s.bursar(t.Context(), append([]string{"report", "utilization"}, strings.Fields(args)...)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s, want %s", args, code, errs, want)
		}
	}
}
