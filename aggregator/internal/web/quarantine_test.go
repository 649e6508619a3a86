package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestQuarantine_ButtonsOfAnOperator_RetryAndDropOneJob(t *testing.T) {
	s := filled(t)
	const path = "/ui/quarantine"
	listJobs := func() []v1.Quarantined {
		list, err := s.pages.V1.Quarantine(access.With(t.Context(), access.Daemon()), nil)
		if err != nil {
			t.Fatal(err)
		}
		return list.Quarantine
	}
	jobs := listJobs()
	if len(jobs) == 0 {
		t.Fatal("no quarantined job")
	}
	job := jobs[0]
	if code, body := s.as(access.Daemon(), path); code != http.StatusOK || strings.Count(body, `action="/ui/quarantine"`) != len(jobs) {
		t.Errorf("%d\n%s", code, body)
	}
	form := func(do, id string) url.Values {
		return url.Values{"agent": {job.Agent}, "type": {job.SourceType}, "label": {job.SourceLabel}, "id": {id}, "do": {do}}
	}
	if code, body := s.form(access.Daemon(), path, form("retry", job.ID)); code != http.StatusOK || !strings.Contains(body, "the agent has mapped the job") {
		t.Errorf("%d\n%s", code, body)
	}
	if code, body := s.form(access.Daemon(), path, form("forget", job.ID)); code != http.StatusBadRequest || !strings.Contains(body, "use retry or drop") {
		t.Errorf("%d\n%s", code, body)
	}
	if code, body := s.form(access.Daemon(), path, form("drop", "unheard-of")); code != http.StatusNotFound || !strings.Contains(body, "there is no quarantined job unheard-of") || !strings.Contains(body, job.ID) {
		t.Errorf("%d\n%s", code, body)
	}
	for _, token := range []string{"", "t00"} {
		refused := form("drop", job.ID)
		refused.Set("token", token)
		if code, body := s.form(access.Daemon(), path, refused); code != http.StatusBadRequest || !strings.Contains(body, "This form was not sent from a page of this server") {
			t.Errorf("token %q: %d\n%s", token, code, body)
		}
	}
	for _, who := range []access.Principal{
		{Name: "reader", Rights: identity.Read},
		{Name: "pi", Rights: identity.Operate | identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"atlas"}})},
	} {
		if code, _ := s.form(who, path, form("drop", job.ID)); code != http.StatusForbidden {
			t.Errorf("%s: %d", who.Name, code)
		}
		if _, body := s.as(who, path); strings.Contains(body, "<form") {
			t.Errorf("%s is offered the buttons", who.Name)
		}
	}
	if got := len(listJobs()); got != len(jobs) {
		t.Fatalf("%d jobs, want %d: a refused form dropped one", got, len(jobs))
	}
	if code, body := s.form(access.Daemon(), path, form("drop", job.ID)); code != http.StatusOK || !strings.Contains(body, "is dropped; its usage is not counted") {
		t.Errorf("%d\n%s", code, body)
	}
	if got := len(listJobs()); got != len(jobs)-1 {
		t.Errorf("%d jobs, want %d", got, len(jobs)-1)
	}
}
