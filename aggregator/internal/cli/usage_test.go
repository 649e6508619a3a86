package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sheets serves answers of /v1/usage out of testdata, by the parameter bucket or
// compare, and remembers the last query.
func sheets(t *testing.T) (shell, *url.Values) {
	t.Helper()
	query := new(url.Values)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*query = r.URL.Query()
		if r.Header.Get("Accept") == "text/csv" {
			_, _ = io.WriteString(w, "group_id,bucket\natlas,\n")
			return
		}
		name := "usage-groups.answer.json"
		if query.Has("bucket") {
			name = "usage-months.answer.json"
		}
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}))
	t.Cleanup(srv.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}, query
}

func TestUsageIsATableWithWhatMustBeKnownBelow(t *testing.T) {
	s, _ := sheets(t)
	for _, c := range []struct {
		name, args string
		width      int
	}{
		{"usage-groups", "-by group_id -compare previous", 0},
		{"usage-groups-wide", "-by group_id -compare previous", 120},
		{"usage-months", "-bucket month", 0},
		{"usage-months-wide", "-bucket month", 80},
	} {
		s.width = c.width
		code, out, errs := s.bursar(t.Context(), append([]string{"usage"}, strings.Fields(c.args)...)...)
		if code != 0 {
			t.Errorf("%s: %d %s", c.name, code, errs)
		}
		golden(t, c.name+".table", out+"--\n"+errs)
	}
}

func TestUsageFitsTheTerminal(t *testing.T) {
	s, _ := sheets(t)
	for _, s.width = range []int{50, 80, 100, 200} {
		for _, args := range []string{"-by group_id", "-bucket month"} {
			_, out, _ := s.bursar(t.Context(), append([]string{"usage"}, strings.Fields(args)...)...)
			for line := range strings.Lines(out) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > s.width {
					t.Errorf("usage %s at %d columns: %d in %q", args, s.width, n, line)
				}
			}
		}
	}
}

func TestUsageCanBeHadAsItCame(t *testing.T) {
	s, _ := sheets(t)
	if code, out, _ := s.bursar(t.Context(), "usage", "-format", "csv"); code != 0 || out != "group_id,bucket\natlas,\n" {
		t.Error(code, out)
	}
	if code, out, _ := s.bursar(t.Context(), "usage", "-format", "json"); code != 0 || !strings.Contains(out, `"lacking"`) {
		t.Error(code, out)
	}
}

func TestOptionsOfUsageBecomeAQuery(t *testing.T) {
	s, query := sheets(t)
	for line, want := range map[string]string{
		"":                          "unit=hour&window=this-month&zone=UTC",
		"-by group_id":              "by=group_id&top=20&unit=hour&window=this-month&zone=UTC",
		"-by a,b -by c -top -1":     "by=a,b,c&unit=hour&window=this-month&zone=UTC",
		"-by a -format json -top 3": "by=a&top=3&unit=hour&window=this-month&zone=UTC",
		"-by a -format csv":         "by=a&unit=hour&window=this-month&zone=UTC",
		"-from 2026-03-01 -to 14d":  "from=2026-03-01&to=14d&unit=hour&zone=UTC",
		"-window 2026-Q3 -compare last-year -measure Cores*HS,records -order records -people account -component Memory": "compare=last-year&component=Memory&measure=Cores*HS,records&order=records&people=account&unit=hour&window=2026-Q3&zone=UTC",
		"-bucket week -zone Europe/Berlin -credit stop -unit second -meta a=b -meta a=c":                                "bucket=week&credit=stop&meta[a][c][0]=b&meta[a][c][1]=c&unit=second&window=this-month&zone=Europe/Berlin",
	} {
		code, _, errs := s.bursar(t.Context(), append([]string{"usage"}, strings.Fields(line)...)...)
		got, err := url.QueryUnescape(query.Encode())
		if code != 0 || err != nil || got != want {
			t.Errorf("%q: %d %s\n got %s\nwant %s", line, code, errs, got, want)
		}
	}
	for line, want := range map[string]string{"-top -2": "-1 is all", "-bucket decade": "quarter", "-unit day": "hour, second", "-meta x": "x=VALUE", "extra": "extra"} {
		if code, out, errs := s.bursar(t.Context(), append([]string{"usage"}, strings.Fields(line)...)...); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: %d %q %q", line, code, out, errs)
		}
	}
}
