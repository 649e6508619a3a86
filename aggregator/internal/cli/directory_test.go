package cli_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
)

// served serves a file of testdata at a path, and remembers the last query.
func served(t *testing.T, path, file string) (shell, *url.Values) {
	t.Helper()
	query := new(url.Values)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*query = r.URL.Query()
		text, err := os.ReadFile("testdata/" + file)
		if err != nil || r.URL.Path != path {
			t.Error(err, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}))
	t.Cleanup(srv.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}, query
}

func TestTheDirectoryIsShownPartByPart(t *testing.T) {
	s, query := served(t, "/v1/directory", "directory.answer.json")
	for name, args := range map[string]string{
		"directory-projects": "", "directory-people": "people -at 2026-03-01", "directory-classes": "classes", "directory-contributions": "contributions", "directory-unclaimed": "-unclaimed",
	} {
		code, out, errs := s.bursar(t.Context(), append([]string{"directory"}, strings.Fields(args)...)...)
		if want := map[bool]int{true: 2}[name == "directory-unclaimed"]; code != want {
			t.Errorf("%s: %d %s", name, code, errs)
		}
		golden(t, name+".table", out+"--\n"+errs)
		if strings.Contains(args, "-at") && query.Get("at") != "2026-03-01" || (query.Get("unclaimed") == "true") != strings.Contains(args, "unclaimed") {
			t.Error(name, *query)
		}
		_, out, _ = s.bursar(t.Context(), append([]string{"directory", "-format", "csv"}, strings.Fields(args)...)...)
		golden(t, name+".csv", out)
	}
	if code, out, _ := s.bursar(t.Context(), "directory", "-format", "json"); code != 0 || !strings.Contains(out, `"pattern": "^node-gpu"`) {
		t.Error(code, out)
	}
	for _, args := range []string{"cats", "people -unclaimed", "people classes"} {
		if code, _, errs := s.bursar(t.Context(), append([]string{"directory"}, strings.Fields(args)...)...); code != 1 || !strings.Contains(errs, "see bursar directory -h") {
			t.Errorf("%s: %d %s", args, code, errs)
		}
	}
}

func TestASubscriptionHasThoseWhoDidNotUseTheirs(t *testing.T) {
	s, query := served(t, "/v1/subscription", "subscription.answer.json")
	for _, s.width = range []int{0, 60} {
		code, out, errs := s.bursar(t.Context(), "subscription", "-window", "2012-10", "-credit", "stop")
		if code != 0 || query.Get("window") != "2012-10" || query.Get("credit") != "stop" {
			t.Error(code, errs, *query)
		}
		if s.width == 0 {
			golden(t, "subscription.table", out+"--\n"+errs)
		}
		for line := range strings.Lines(out) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); s.width > 0 && n > s.width {
				t.Errorf("%d columns: %d in %q", s.width, n, line)
			}
		}
	}
	_, out, _ := s.bursar(t.Context(), "subscription", "-format", "csv", "-where", "cluster=nemo", "-where", "group_id=a,b")
	if query.Get("where[cluster]") != "nemo" || query.Get("where[group_id]") != "a,b" {
		t.Error(*query)
	}
	golden(t, "subscription.csv", out)
	if code, out, _ := s.bursar(t.Context(), "subscription", "-format", "json"); code != 0 || !strings.Contains(out, `"ratio": 1.381845161`) {
		t.Error(code, out)
	}
}
