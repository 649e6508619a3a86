package cli_test

import (
	"net/url"
	"strings"
	"testing"
)

func TestUsageIsATableWithWhatMustBeKnownBelow(t *testing.T) {
	s, _ := filled(t)
	for _, c := range []struct {
		name, args string
		width      int
	}{
		{"usage-groups", "-by group_id -window 2026-02 -compare previous -top 2", 0},
		{"usage-groups-wide", "-by group_id -window 2026-02 -compare previous -top 2", 120},
		{"usage-months", "-bucket month -window 2026-Q1 -zone Europe/Berlin -credit stop", 0},
		{"usage-months-wide", "-bucket month -window 2026-Q1 -zone Europe/Berlin -credit stop", 80},
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
	s, _ := filled(t)
	for _, s.width = range []int{50, 80, 100, 200} {
		for _, args := range []string{"-by group_id -window 2026-02", "-bucket month -window 2026-Q1"} {
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
	s, _ := filled(t)
	if code, out, _ := s.bursar(t.Context(), "usage", "-format", "csv"); code != 0 || !strings.HasPrefix(out, "bucket,from,to,records,") {
		t.Error(code, out)
	}
	if code, out, _ := s.bursar(t.Context(), "usage", "-format", "json"); code != 0 || !strings.Contains(out, `"lacking"`) {
		t.Error(code, out)
	}
}

func TestOptionsOfUsageBecomeAQuery(t *testing.T) {
	s, w := filled(t)
	for line, want := range map[string]string{
		"":                            "unit=hour&window=this-month",
		"-by group_id":                "by=group_id&top=20&unit=hour&window=this-month",
		"-by host,job -by pi -top -1": "by=host,job,pi&unit=hour&window=this-month",
		"-by pi -format json -top 3":  "by=pi&top=3&unit=hour&window=this-month",
		"-by pi -top 0":               "by=pi&unit=hour&window=this-month",
		"-by pi -format csv":          "by=pi&unit=hour&window=this-month",
		"-from 2026-02-01 -to 14d":    "from=2026-02-01&to=14d&unit=hour",
		"-window 2026-Q3 -compare last-year -measure Cores*HS,records -order records -people account -component Memory": "compare=last-year&component=Memory&measure=Cores*HS,records&order=records&people=account&unit=hour&window=2026-Q3",
		"-bucket week -zone Europe/Berlin -credit stop -unit second -meta user_id=bob -meta user_id=b=c":                "bucket=week&credit=stop&meta[user_id][c][0]=bob&meta[user_id][c][1]=b=c&unit=second&window=this-month&zone=Europe/Berlin",
		"-where user_id=bob -where group_id=a,b -where user_id=b=c":                                                     "unit=hour&where[group_id]=a,b&where[user_id]=bob,b=c&window=this-month",
	} {
		code, _, errs := s.bursar(t.Context(), append([]string{"usage"}, strings.Fields(line)...)...)
		asked, ok := strings.CutPrefix(w.Asked()[0], "GET /v1/usage?")
		got, err := url.QueryUnescape(asked)
		if code == 1 || !ok || err != nil || got != want {
			t.Errorf("%q: %d %s\n got %s\nwant %s", line, code, errs, got, want)
		}
	}
	for line, want := range map[string]string{"-top -2": "0 is all", "-bucket decade": "quarter", "-unit day": "hour, second", "-where x": "x=VALUE", "extra": "extra"} {
		if code, out, errs := s.bursar(t.Context(), append([]string{"usage"}, strings.Fields(line)...)...); code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: %d %q %q", line, code, out, errs)
		}
	}
}
