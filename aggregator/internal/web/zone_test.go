package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Pages of a site with a time zone show times by it and say so, and read times by it.
func TestZone_OfTheSite_IsThatOfPages(t *testing.T) {
	s := filled(t)
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`[-0-9: ]+ UTC(\.| are missing)|<option value="UTC">`) // notes name UTC; a list of zones does
	stamp := regexp.MustCompile(`<time datetime="([^"]+)">([^<]+)</time>`)
	site := func(z *time.Location) func(string) string {
		s.Options.Zone = func() *time.Location { return z }
		s.pages.Zone = s.Options.Zone
		return func(path string) string {
			code, body, _ := s.get(path)
			if code != http.StatusOK {
				t.Fatalf("%s: %d %s", path, code, body)
			}
			return body
		}
	}
	for _, path := range []string{"/", "/ui/records", "/ui/usage?window=this-year", "/ui/agents", "/ui/cluster", "/ui/actions", "/ui/reports?report=usage&period=2026"} {
		body := strings.ReplaceAll(said.ReplaceAllString(site(zone)(path), ""), "Days are in UTC", "")
		if strings.Contains(body, "UTC") || !strings.Contains(body, "Asia/Kolkata") {
			at := max(0, strings.Index(body, "UTC")-100)
			t.Errorf("%s: …%s", path, body[at:min(len(body), at+200)])
		}
		for _, m := range stamp.FindAllStringSubmatch(body, -1) {
			at, err := time.Parse(time.RFC3339, m[1])
			if text := at.In(zone).Format("2006-01-02 15:04:05"); err != nil || m[2] != text && strings.HasPrefix(m[2], "20") && len(m[2]) > len(time.DateOnly) {
				t.Errorf("%s: %s is shown as %s, want %s", path, m[1], m[2], text)
			}
		}
	}
	if body := site(zone)("/ui/usage?window=2026-02"); !strings.Contains(body, "2026-02-01 00:00 – 2026-03-01 00:00 Asia/Kolkata") {
		t.Error("the month is not that of the site's clock")
	}
	total := regexp.MustCompile(`<tbody>[\s\S]*?</tbody>`)
	for _, c := range [][2]string{
		{"since=2026-02-20", "since=2026-02-19T18:30:00Z"}, {"until=2026-02-20+05:30", "until=2026-02-20T00:00:00Z"}, {"ran_since=2026-02-19&ran_until=2026-02-20", "ran_since=2026-02-18T18:30:00Z&ran_until=2026-02-19T18:30:00Z"},
	} {
		page := site(zone)
		if a, b := total.FindString(page("/ui/records?"+c[0])), total.FindString(page("/ui/records?"+c[1])); a != b || a == "" {
			t.Errorf("%s has\n%s\nand %s\n%s", c[0], a, c[1], b)
		}
	}
}
