package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// trio is a cluster of three in which all is well.
func trio() health.Facts {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := health.Facts{Now: now, Node: "agg1", Cluster: "CLUSTERID", Leader: "1"}
	for i, name := range []string{"agg1", "agg2", "agg3"} {
		f.Nodes = append(f.Nodes, health.Node{
			Name: name, ID: string('1' + rune(i)), Address: name + ".example.org:8701", Voter: true, Leader: i == 0, Self: i == 0, Seen: now, LagKnown: true, Applied: 12345,
			ClockOffset: 20 * time.Millisecond, Local: health.Local{
				Version: "1.2.3", CertFrom: now.AddDate(-1, 0, 0), CertEnds: now.AddDate(1, 0, 0), Disk: health.Disk{Path: "/d", Free: 60 << 30, Size: 100 << 30, Level: health.LevelNormal, Ballast: 256 << 20},
			},
		})
	}
	return f
}

func TestTheClusterPageShowsTheNodesAndThatAllIsWell(t *testing.T) {
	s := newSite(t)
	code, body, _ := s.get("/ui/cluster")
	for _, want := range []string{"Healthy.", "agg2.example.org:8701", "leads", "12\u202f345", "60 % free", "100\u202fGiB", "2027-03-01", "0.02 s", "CLUSTERID", `aria-current="page">Cluster`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if code != 200 {
		t.Error(code)
	}
	if _, body, _ := s.get("/"); strings.Contains(body, "verdict") {
		t.Error("the overview speaks of a cluster that is well")
	}
}

func TestTheClusterPageSaysWhatToDoAlsoWhileNobodyLeads(t *testing.T) {
	s := newSite(t)
	s.facts.Nodes[2].Seen = s.facts.Now.Add(-time.Hour)
	s.facts.Nodes[1].Disk.Level, s.facts.Nodes[1].Paused = health.LevelLow, "<full>"
	s.facts.Leader, s.facts.Nodes[0].Leader = "", false
	if _, body, _ := s.get("/"); !strings.Contains(body, "3 things to do.") || !strings.Contains(body, "is not heard") {
		t.Error("the overview says nothing of it")
	}
	s.down = errors.New("no leader")
	code, body, _ := s.get("/ui/cluster")
	for _, want := range []string{"3 things to do.", "no node leads", "free-ballast", "not heard", "since 2026-03-01 11:00:00", "critical"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	if code != 200 || strings.Contains(body, "<full>") {
		t.Error(code)
	}
}

func TestTheClusterPageIsForThoseWhoMonitor(t *testing.T) {
	s := newSite(t)
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ui/cluster", nil))
	if w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "agg2") {
		t.Error(w.Code)
	}
}

func TestTheClusterPageShowsFiguresDifferencesAndSnapshots(t *testing.T) {
	s := newSite(t)
	s.post(run("r1", 0, "alice"))
	s.facts.Nodes[1].ConfigDiffers = []string{`agent "<head1>"`}
	s.facts.Nodes[2].Backup = &health.LocalBackup{Path: "/backup", Every: 24 * time.Hour, Last: s.facts.Now.Add(-time.Hour), Bytes: 3 << 20}
	s.facts.Nodes[0].Backup = &health.LocalBackup{Path: "/elsewhere", Every: 24 * time.Hour, Error: "no <space>", Failing: s.facts.Now}
	_, body, _ := s.get("/ui/cluster")
	for _, want := range []string{
		"<b>agg1</b><span>leads, term 1</span>", "<b>1</b><span>records</span>", "<b>yes</b><span>confirmed by a majority</span>", `agent &#34;&lt;head1&gt;&#34;`, "bursar config diff",
		"/backup", "3.0\u202fMiB", "no &lt;space&gt;", "60 min ago", `href="/v1/cluster?format=csv"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	if code, text, _ := s.get("/v1/cluster?format=csv"); code != http.StatusOK || strings.Count(text, "\n") != 4 {
		t.Errorf("%d\n%s", code, text)
	}
}

// committed answers /v1/config as a cluster with a configuration does.
type committed struct{ *site }

func (c committed) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	if config, ok := into.(*v1.Config); ok && path == "/v1/config" {
		*config = v1.Config{Digest: "abcdef0123456789", CommittedBy: "alice", CommittedAt: v1.Time{Time: c.facts.Now}}
		return nil
	}
	return c.site.Call(ctx, method, path, query, in, into)
}

func TestClusterPage_CommittedConfiguration_IsNamed(t *testing.T) {
	s := newSite(t)
	s.pages.V1 = v1.API{Caller: committed{s}}
	code, body, _ := s.get("/ui/cluster")
	if code != http.StatusOK || !strings.Contains(body, "<code>abcdef012345</code>, committed by alice") {
		t.Errorf("%d\n%s", code, body)
	}
}
