package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestWidget_Reader_ShowsOwnUsageThatLeadsOutOfTheFrame(t *testing.T) {
	s := filled(t)
	job := run("march-1", 0, "alice")
	job.Start, job.Stop = record.FromStd(apitest.Noon().Add(-3*time.Hour)), record.FromStd(apitest.Noon().Add(-time.Hour))
	s.Post(job)
	for _, c := range []struct {
		who   access.Principal
		wants []string
	}{
		{reader(identity.Read, access.Grant{"user_id": {"alice"}}), []string{"<h1>My usage this month</h1>", "core-hours</span>", "jobs running", "user=alice", `href="/ui/me?period=this-month" target="_top"`}},
		{reader(identity.Read), []string{"<h1>Usage this month</h1>", "core-hours</span>", "CPU efficiency", " left of "}},
	} {
		code, body, head := s.getAs(c.who, "/ui/widget")
		if code != http.StatusOK {
			t.Fatalf("%d: %s", code, body)
		}
		for _, want := range c.wants {
			if !strings.Contains(body, want) {
				t.Errorf("no %q in\n%s", want, body)
			}
		}
		if strings.Count(body, "<a ") != strings.Count(body, `target="_top"`) || strings.Contains(body, "<nav") || strings.Contains(body, "<form") {
			t.Errorf("a link stays in the frame, or there is more than a card:\n%s", body)
		}
		if !strings.HasSuffix(head.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("without origins in the configuration: %s", head.Get("Content-Security-Policy"))
		}
	}
}

func TestWidget_ConfiguredOrigins_MayFrameItAndNoOtherPage(t *testing.T) {
	s := filled(t)
	s.pages.Framers = func() []string { return []string{"https://ood.example.org", "https://b.example.org:8443"} }
	for path, want := range map[string]string{"/ui/widget": "https://ood.example.org https://b.example.org:8443", "/ui/me?user=alice": "'none'", "/": "'none'", "/ui/usage": "'none'"} {
		if _, _, head := s.get(path); !strings.HasSuffix(head.Get("Content-Security-Policy"), "; frame-ancestors "+want) {
			t.Errorf("%s: %s", path, head.Get("Content-Security-Policy"))
		}
	}
}

func TestWidget_WithoutLogin_LeadsToItOutOfTheFrame(t *testing.T) {
	s := filled(t)
	code, body, _ := s.getAs(access.Principal{}, "/ui/widget")
	if code != http.StatusUnauthorized || !strings.Contains(body, `<a href="/ui/login?to=%2F" target="_top">Log in</a>`) || strings.Contains(body, "core-hours") {
		t.Errorf("%d: %s", code, body)
	}
}
