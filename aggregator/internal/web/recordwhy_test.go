package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

func TestRecord_OfNoJobThatCounts_LeadsToWhatIsKnownOfIt(t *testing.T) {
	s := filled(t)
	const link = `href="/ui/reports?job=nemo-4711&amp;report=job"`
	for path, want := range map[string]int{"/ui/record?id=nemo-4711": http.StatusNotFound, "/ui/records?find=nemo-4711": http.StatusOK} {
		if code, body, _ := s.get(path); code != want || !strings.Contains(body, link) {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	if code, body, _ := s.get("/ui/reports?job=nemo-4711&report=job"); code != http.StatusOK || !strings.Contains(body, "in quarantine, not counted") || !strings.Contains(body, "head1/slurm/nemo") {
		t.Errorf("%d\n%s", code, body)
	}
	if _, body, _ := s.get("/ui/record?id=nemo-1"); strings.Contains(body, "report=job") {
		t.Error("a record that is there has the link")
	}
}

func TestRecord_JobBehindPrefixOfMapping_IsLinked(t *testing.T) {
	s := filled(t)
	s.Post(apitest.Records(apitest.Job{ID: "uni7/batch-815_3", Group: "atlas", User: "alice", Start: "2026-02-26", Stop: "2026-02-27", Cores: 1})...)
	const link = `<a href="/ui/record?id=uni7%2Fbatch-815_3"><code>uni7/batch-815_3</code></a>`
	for path, want := range map[string]int{"/ui/record?id=815": http.StatusNotFound, "/ui/records?find=815": http.StatusOK} {
		if code, body, _ := s.get(path); code != want || !strings.Contains(body, "Records of this job: "+link) {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	if _, body, _ := s.get("/ui/records?find=81"); strings.Contains(body, "Records of this job") {
		t.Error("an id of which no job is known has records")
	}
}
