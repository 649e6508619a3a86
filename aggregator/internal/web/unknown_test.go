package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Whoever asks for a job that is not counted learns why, by the id of the record or of the
// job; a reader of some records learns nothing of others.
func TestRecord_NotCounted_SaysWhy(t *testing.T) {
	s := filled(t)
	s.Apply(&store.DeleteCommand{IDs: []string{"nemo-2"}, By: "root", Now: apitest.At("2026-03-01T10:00:00Z")})
	some := access.Principal{Name: "pi", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"alice"}})}
	for id, want := range map[string]string{
		"4711/a":     "job 4711/a of head1/slurm/nemo is quarantined, so its usage is not counted: mapping: agent.hcl:12:5: no attribute",
		"nemo-4711":  "job 4711/a of head1/slurm/nemo is quarantined",
		"nemo-2":     "was deleted on 2026-03-01",
		"unheard-of": "Record &#34;unheard-of&#34; not found.<",
	} {
		path := "/ui/record?id=" + url.QueryEscape(id)
		if code, body, _ := s.get(path); code != http.StatusNotFound || !strings.Contains(strings.ToLower(body), strings.ToLower(want)) {
			t.Errorf("%s: %d, no %q in\n%s", id, code, want, body)
		}
		if code, body := s.as(some, path); code != http.StatusNotFound || strings.Contains(body, "quarantined,") || strings.Contains(body, "deleted") {
			t.Errorf("%s for a reader of some records: %d\n%s", id, code, body)
		}
	}
	_, err := s.pages.V1.GetEntry(access.With(t.Context(), access.Daemon()), "nemo-4711", nil)
	if err == nil || !strings.Contains(err.Error(), "record nemo-4711 not found; job 4711/a of head1/slurm/nemo is quarantined") {
		t.Error(err)
	}
}
