package web_test

import (
	"net/http"
	"strings"
	"testing"
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
