package web_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
)

// A name has one colour on all pages and in reports, however few or many are beside it.
func TestPages_OneName_HasOneColour(t *testing.T) {
	s := newSite(t)
	february(s)
	swatch := regexp.MustCompile(`<rect width="12" height="12" fill="#([0-9a-f]{6})"/>.*?</svg><a [^>]*>([^<]+)</a>`)
	bar := regexp.MustCompile(`fill="(?:url\(#[a-z]+-|#)([0-9a-f]{6})[^>]*><title>([^<,]+), `)
	for path, want := range map[string]string{
		"/ui/usage?window=2026-02&by=group_id&measure=Cores":                     "atlas cms neuro",
		"/ui/usage?window=2026-02&by=group_id&measure=Cores&top=1":               "atlas",
		"/ui/usage?window=2026-02&by=group_id&measure=GPUs&where[group_id]=cms":  "cms",
		"/ui/usage?window=2026-02&by=user_id":                                    "alice bob carol dora",
		"/ui/overview?in=7d&by=group_id":                                         "atlas cms",
		"/ui/reports?report=usage&by=group_id&period=2026-02&measure=Cores":      "atlas cms neuro",
		"/ui/reports?report=usage&by=user_id&period=2026-02&measure=Cores&top=2": "alice carol",
	} {
		code, body, _ := s.get(path)
		of := map[string]string{}
		for _, m := range append(swatch.FindAllStringSubmatch(body, -1), bar.FindAllStringSubmatch(body, -1)...) {
			of[m[2]] = "#" + m[1]
		}
		for name := range strings.FieldsSeq(want) {
			if of[name] != report.Colour(name) {
				t.Errorf("%d %s: %s is %q, want %s", code, path, name, of[name], report.Colour(name))
			}
		}
	}
}
