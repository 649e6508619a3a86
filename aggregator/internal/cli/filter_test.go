package cli_test

import (
	"strings"
	"testing"
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
