package cli_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

// lastQuery is the query of the last request.
func lastQuery(t *testing.T, w *apitest.World) url.Values {
	t.Helper()
	list := w.Asked()
	if len(list) == 0 {
		t.Fatal("nothing was asked")
	}
	_, target, _ := strings.Cut(list[len(list)-1], " ")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.URL.Query()
}

func TestTheDirectoryIsShownPartByPart(t *testing.T) {
	s, w := filled(t)
	for name, args := range map[string]string{
		"directory-projects": "", "directory-people": "people -at 2026-03-01", "directory-classes": "classes", "directory-contributions": "contributions", "directory-unclaimed": "-unclaimed",
	} {
		code, out, errs := s.bursar(t.Context(), append([]string{"directory"}, strings.Fields(args)...)...)
		if want := map[bool]int{true: 2}[name == "directory-unclaimed"]; code != want {
			t.Errorf("%s: %d %s", name, code, errs)
		}
		golden(t, name+".table", out+"--\n"+errs)
		query := lastQuery(t, w)
		if strings.Contains(args, "-at") && query.Get("at") != "2026-03-01" || (query.Get("unclaimed") == "true") != strings.Contains(args, "unclaimed") {
			t.Error(name, query)
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
	s, w := filled(t)
	for _, s.width = range []int{0, 60} {
		code, out, errs := s.bursar(t.Context(), "subscription", "-window", "2026-02", "-credit", "stop")
		if query := lastQuery(t, w); code != 0 || query.Get("window") != "2026-02" || query.Get("credit") != "stop" {
			t.Error(code, errs, query)
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
	_, out, _ := s.bursar(t.Context(), "subscription", "-format", "csv", "-where", "cluster=nemo", "-where", "group_id=atlas,cms")
	if query := lastQuery(t, w); query.Get("where[cluster]") != "nemo" || query.Get("where[group_id]") != "atlas,cms" {
		t.Error(query)
	}
	golden(t, "subscription.csv", out)
	if code, out, _ := s.bursar(t.Context(), "subscription", "-format", "json"); code != 0 || !strings.Contains(out, `"ratio": `) {
		t.Error(code, out)
	}
}
