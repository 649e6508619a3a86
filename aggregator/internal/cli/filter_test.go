package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestFilter_ThatNoRecordPasses_NamesWhatIsNear(t *testing.T) {
	s, _ := filled(t)
	for line, want := range map[string]string{
		"records -where user_id=alcie":                  `no record has user_id "alcie"; did you mean "alice"?`,
		"records -where usr_id=alice":                   `no record has a meta key "usr_id"; did you mean "user_id"?`,
		"records -id nemo-17777":                        `there is no record "nemo-17777"`,
		"records -where user_id=bob -where user_id=eve": "no record matches",
		"usage -window 2026-02 -where user_id=nil":      `no record has user_id "nil"; known are`,
		"usage -window 2031 -where user_id=bob":         "no record matches",
	} {
		for _, format := range []string{"table", "json", "csv"} {
			if strings.HasPrefix(line, "usage -window 2031") && format == "csv" {
				continue // it is written as it comes
			}
			code, _, errs := s.bursar(t.Context(), append(strings.Fields(line), "-format", format)...)
			if code != 2 || !strings.Contains(errs, want) {
				t.Errorf("%s -format %s: %d\n%s", line, format, code, errs)
			}
		}
	}
	for _, line := range []string{"records", "records -since 2031-01-01", "usage -window 2031"} {
		if code, _, errs := s.bursar(t.Context(), strings.Fields(line)...); code != 0 {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
}

func TestState_OfRuns_IsAColumnAndAKey(t *testing.T) {
	s, world := filled(t)
	var list []record.Record
	for id, state := range map[string]string{"nemo-91": "FAILED", "nemo-92": "COMPLETED", "nemo-93": "FAILED"} {
		list = append(list, apitest.Job{
			ID: id, Group: "atlas", User: "mia", Submit: "2026-02-25T00:00:00Z", Start: "2026-02-25T01:00:00Z", Stop: "2026-02-25T02:00:00Z", Cores: 4, CPU: 60, State: state,
		}.Record())
		if id == "nemo-91" {
			list[len(list)-1].Exit = record.Exit{Known: true, Code: 2, Signal: 9}
		}
	}
	world.Collect(apitest.Nemo(), list, nil)
	_, out, _ := s.bursar(t.Context(), "records", "-where", "exit_code=2")
	if !regexp.MustCompile(`EXIT CODE\nnemo-91 .* FAILED +2, signal 9\n`).MatchString(out) {
		t.Errorf("a run that failed:\n%s", out)
	}
	for line, lines := range map[string]int{
		"records -where user_id=mia":                                                              4,
		"records -where state=FAILED":                                                             4,
		"records -where state=FAILED -where exit_code=0":                                          0,
		"usage -window 2026-02 -by state -measure records -where user_id=mia -format csv":         3,
		"usage -window 2026-02 -by user_id -measure records -where state=FAILED -format csv":      3,
		"usage -window 2026-02 -by user_id,state -measure records -where user_id=mia -format csv": 3,
	} {
		code, out, errs := s.bursar(t.Context(), strings.Fields(line)...)
		if lines == 0 {
			if code != 2 {
				t.Errorf("%s: %d\n%s%s", line, code, out, errs)
			}
			continue
		}
		if n := strings.Count(out, "\n"); code != 0 || n != lines || !strings.Contains(strings.ToUpper(out), "STATE") && strings.HasPrefix(line, "records") {
			t.Errorf("%s: %d, %d lines\n%s%s", line, code, n, out, errs)
		}
	}
}
