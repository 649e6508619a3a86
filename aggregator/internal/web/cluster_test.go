package web_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestTheClusterPageShowsTheNodesAndThatAllIsWell(t *testing.T) {
	s := newSite(t)
	code, body, _ := s.get("/ui/cluster")
	for _, want := range []string{"Healthy.", "agg2.example.org:8701", `<span class="badge good">leader</span>`, "12\u202f345", "60 % free", "100\u202fGiB", "2027-03-01", "0.02 s", "CLUSTERID", `aria-current="page">Cluster`} {
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
	s.Facts.Nodes[2].Seen = s.Facts.Now.Add(-time.Hour)
	s.Facts.Nodes[1].Disk.Level, s.Facts.Nodes[1].Paused = health.LevelLow, "<full>"
	s.Facts.Leader, s.Facts.Nodes[0].Leader = "", false
	if _, body, _ := s.get("/"); !strings.Contains(body, "3 problems.") || !strings.Contains(body, "is unreachable") {
		t.Error("the overview says nothing of it")
	}
	s.Down = errors.New("no leader")
	code, body, _ := s.get("/ui/cluster")
	for _, want := range []string{"3 problems.", "no leader", "free-ballast", "unreachable", "since 2026-03-01 11:00:00", "critical", "<b>–</b><span>records</span>", "<b>–</b><span>changes</span>"} {
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
	s.Post(run("r1", 0, "alice"))
	s.Facts.Nodes[1].ConfigDiffers = []string{`agent "<head1>"`}
	s.Facts.Nodes[2].Backup = &health.LocalBackup{Path: "/backup", Every: 24 * time.Hour, Last: s.Facts.Now.Add(-time.Hour), Bytes: 3 << 20}
	s.Facts.Nodes[0].Backup = &health.LocalBackup{Path: "/elsewhere", Every: 24 * time.Hour, Error: "no <space>", Failing: s.Facts.Now}
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

func TestClusterPage_CommittedConfiguration_IsNamed(t *testing.T) {
	s := newSite(t)
	digest, err := s.API().CommitConfig(t.Context(), nil, json.RawMessage(`{"format":3,"settings":{"metrics":{"site_meta_key":"site_id"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	code, body, _ := s.get("/ui/cluster")
	if code != http.StatusOK || !strings.Contains(body, "<code>"+digest.Digest[:12]+"</code>, committed by bursar") {
		t.Errorf("%d\n%s", code, body)
	}
}

func TestOverview_WithoutLeader_SaysWhatClusterKnowsAndLeadsThere(t *testing.T) {
	s := newSite(t)
	s.Facts.Nodes[2].Seen = s.Facts.Now.Add(-time.Hour)
	s.Facts.Leader, s.Facts.Nodes[0].Leader = "", false
	s.Down = errors.New("the cluster has no leader")
	for _, path := range []string{"/", "/ui/overview"} {
		code, body, _ := s.get(path)
		for _, want := range []string{"the cluster has no leader", "no leader", "since 2026-03-01 11:00:00", "unreachable", ">agg2<", `href="/ui/cluster">All that`, `data-refresh`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in %s", path, want, body)
			}
		}
		if code != http.StatusServiceUnavailable || strings.Contains(body, `class="tiles"`) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if _, body, _ := s.getAs(reader(identity.Read, access.Grant{"user_id": {"alice"}}), "/ui/overview"); strings.Contains(body, "agg2") || !strings.Contains(body, "the cluster has no leader") {
		t.Errorf("who sees some records reads of nodes: %s", body)
	}
	if _, body, _ := s.get("/ui/records"); strings.Contains(body, "agg2") {
		t.Errorf("another page: %s", body)
	}
}
