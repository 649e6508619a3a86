package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What was typed wrongly fails, and the answer says what to type.
func TestHints_WrongWords_SayWhatToType(t *testing.T) {
	s, _ := filled(t)
	for line, want := range map[string]string{
		"usage -by group":                                 `no record has a meta key "group"; did you mean "group_id"?`,
		"usage -window 2026-02 -measure cpuhours":         `unknown measure "cpuhours"; did you mean "TotalCPU"?`,
		"usage -window 2026-02 -by cost":                  `invalid key "cost": it is a measure; use -measure cost`,
		"usage -window 2026-02 -by energy":                `invalid key "energy": it is a measure, and energy is not configured`,
		"usage -window 2026-02 -measure project":          `invalid measure "project": it is a key; use -by project`,
		"usage -window 2026-02 -by user_id -order x":      `invalid order "x": use one of records`,
		"records -sort meta.group":                        `no record has a meta key "group"; did you mean "group_id"?`,
		"usage -window lastmonth":                         `did you mean "last-month"?`,
		"usage -window 2026-02-30":                        `invalid window "2026-02-30": there is no 30 February`,
		"usage -window 2026-13":                           `invalid window "2026-13": there is no month 13`,
		"usage -from 2026-02-30":                          `invalid time "2026-02-30": there is no 30 February`,
		"usage -compare 2026-02-30":                       `invalid comparison "2026-02-30": there is no 30 February`,
		"usage -compare lastyear":                         `did you mean "last-year"?`,
		"usage -bucket 1d":                                `invalid value "1d" for -bucket: use one of hour, day, week, month, quarter, year`,
		"usage -bucket months":                            `invalid value "months" for -bucket: did you mean "month"?`,
		"records -since 2026-02-30":                       `-since: invalid time "2026-02-30": there is no 30 February`,
		"records -until 2026-13-01":                       `-until: invalid time "2026-13-01": there is no month 13`,
		"budgets -at 2026-02-30":                          `invalid time "2026-02-30": there is no 30 February`,
		"prices -at 2026-02-30":                           `invalid time "2026-02-30": there is no 30 February`,
		"report usage -period 2026-02-30":                 `invalid window "2026-02-30": there is no 30 February`,
		"report usage -period lastmonth":                  `did you mean "last-month"?`,
		"report statement":                                "statement needs -of KEY=VALUE, such as -of group_id=atlas",
		"report person":                                   "person needs -user: the user_id of the person",
		"report usage -period 2026-02 -o /nowhere/x.docx": `no format for ".docx": use a file that ends in .html, .xlsx, .csv, .json or .txt, or give -format`,
		"report usage -period 2026-02 -o x.tar.gz":        `no format for ".gz"`,
		"report usage -period 2026-02 -format docx":       `invalid value "docx" for -format: use one of table, csv, json, html, xlsx`,
		"records -format jsn":                             `invalid value "jsn" for -format: did you mean "json"?`,
	} {
		code, out, errs := s.bursar(t.Context(), strings.Fields(line)...)
		if code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s\n%s", line, code, out, errs)
		}
	}
}

func TestReport_FileWithAKnownEnding_HasItsFormat(t *testing.T) {
	s, _ := filled(t)
	dir := t.TempDir()
	for name, begin := range map[string]string{"a.html": "<!", "a.HTM.Html": "<!", "a.xlsx": "PK", "a.csv": "", "a.json": "{", "a.txt": "Usage", "a": "Usage"} {
		file := filepath.Join(dir, name)
		code, _, errs := s.bursar(t.Context(), "report", "usage", "-period", "2026-02", "-o", file)
		text, err := os.ReadFile(file)
		if code != 0 || err != nil || !strings.HasPrefix(strings.ToLower(string(text)), strings.ToLower(begin)) {
			t.Errorf("%s: %d %s %v %.50q", name, code, errs, err, text)
		}
	}
}
