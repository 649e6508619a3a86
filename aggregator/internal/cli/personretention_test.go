package cli_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestPersonRetention_WithoutABlock_OnlyShowsWhatWouldGo(t *testing.T) {
	s := aggregator(t)
	resp, err := s.client().Post("http://localhost/records", "application/json", strings.NewReader(`[
		{"record_id":"a","meta":{"user_id":["erika"],"group_id":["g"]},"components":[],"start_time":"2020-01-01T00:00:00Z","stop_time":"2020-01-02T00:00:00Z"},
		{"record_id":"b","meta":{"user_id":["erika"]},"components":[],"start_time":"2020-01-01T00:00:00Z","stop_time":"2020-01-02T00:00:00Z"},
		{"record_id":"c","meta":{"user_id":["erika"]},"components":[],"start_time":"2020-01-01T00:00:00Z"}]`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	resp.Body.Close()
	for _, c := range []struct{ flags, want string }{
		{"", "kept for ever, never removed"}, {"-months 18", "2 records of 1 user that stopped before"}, {"-months 18", "group_id, user_id"}, {"-months 1200", "0 records of 0 users"},
	} {
		code, out, errs := s.bursar(t.Context(), append([]string{"person", "retention"}, strings.Fields(c.flags)...)...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d %s %s, want %s", c.flags, code, out, errs, c.want)
		}
	}
	if code, _, errs := s.bursar(t.Context(), "person", "retention", "-months", "1201"); code != 1 || !strings.Contains(errs, `months is "1201", want a whole number from 1 to 1200`) {
		t.Error(code, errs)
	}
	if code, out, errs := s.bursar(t.Context(), "records", "-format", "csv"); code != 0 || strings.Count(out, "erika") != 3 {
		t.Error(code, out, errs)
	}
}
