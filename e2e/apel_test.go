//go:build e2e

package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/plugins/action/apel/amstest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/gridtest"
)

// apelCommon is what both actions say.
const apelCommon = `
    from      = %q
    site_meta = ["site_id", "grid_site"]
    site "UNI-A" { ids = ["a1", "a2"] }
    site "UNI-B" { ids = ["b"] }
    fields {
      VO         = lookupprefix({ "/atlas" = "atlas", "/cms" = "cms" }, record.meta.voms[0])
      SubmitHost = record.meta.headnode[0]
    }
    benchmark "HEPscore23" {
      score = lookup({ new = 21.5, old = 9.25 }, record.meta.class[0], 10)
    }
    benchmark "hepspec" { score = 12 }
`

// apelSite is a cluster that reports to a service, and to a directory.
type apelSite struct {
	t *testing.T
	*site.Site
	cluster   *site.Cluster
	service   *amstest.Service
	authority *gridtest.Authority
	outgoing  string
	first     time.Time // the first of three months, which are all over
	jobs      []gridJob
	chance    *rand.Rand
}

func newAPELSite(t *testing.T) *apelSite {
	t.Helper()
	a := &apelSite{t: t, Site: site.New(t), authority: gridtest.New(t), outgoing: t.TempDir(), chance: rand.New(rand.NewPCG(6, 2026))}
	now := time.Now().UTC()
	a.first = time.Date(now.Year(), now.Month()-3, 1, 0, 0, 0, 0, time.UTC)
	a.service = amstest.Start(t, a.authority.Server(t), a.authority.Pool())
	a.service.Users = []string{"bursar.example.org"}
	cert, key := a.authority.Host(t, "bursar.example.org", gridtest.RSA(t))
	common := fmt.Sprintf(apelCommon, a.first.Format("2006-01"))
	a.cluster = a.Cluster(3, fmt.Sprintf(`
action "apel" "egi" {
  schedule = "@manual"
  config {
    %s
    recheck = 3
    sign {
      cert = %q
      key  = %q
    }
    ams {
      host       = %q
      port       = %d
      authn_port = %d
      ca         = %q
    }
  }
}
action "apel" "ssm" {
  schedule = "@manual"
  config {
    %s
    directory { path = %q }
  }
}
`, common, cert, key, a.service.Host, a.service.Port, a.service.AuthnPort, a.authority.File, common, a.outgoing))
	a.cluster.Start()
	return a
}

// post lets jobs be there.
func (a *apelSite) post(jobs ...gridJob) {
	a.t.Helper()
	postJobs(a.t, a.node(), jobs...)
	a.jobs = append(a.jobs, jobs...)
}

// node is one that runs.
func (a *apelSite) node() *site.Aggregator {
	i := slices.IndexFunc(a.cluster.Nodes, func(g *site.Aggregator) bool { return g.PID() != 0 })
	return a.cluster.Nodes[i]
}

// bursar calls an order of actions.
func (a *apelSite) bursar(verb string, args ...string) (string, error) {
	return a.node().Bursar(append([]string{"actions", verb}, args...)...)
}

// must is bursar, again where a cluster that elects has done nothing. Exit code 2 says that
// the run left something out, as its notes say.
func (a *apelSite) must(verb string, args ...string) (out string) {
	a.t.Helper()
	a.Eventually(verb+" is taken", func() (bool, string) {
		var err error
		out, err = a.bursar(verb, args...)
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 2 {
			return true, ""
		}
		if err != nil && !strings.Contains(err.Error(), "nothing was done") {
			a.t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
	return out
}

// apelRun is a run as /v1 gives it.
type apelRun struct {
	Run struct {
		Ended                            *string
		Effects, Done, Rejected, Unknown int
		Partial                          bool
		Notes                            []string
	}
	Effects []struct {
		Name, State string
		Attempts    []struct{ Node, Outcome, Message, Reference string }
	}
}

// ended waits until a run has ended.
func (a *apelSite) ended(name string, number int) apelRun {
	a.t.Helper()
	var r apelRun
	a.Eventually(fmt.Sprintf("run %d of %s ends", number, name), func() (bool, string) {
		r = apelRun{}
		err := a.node().Get(fmt.Sprintf("/v1/actions/%s/runs/%d", name, number), &r)
		return err == nil && r.Run.Ended != nil, fmt.Sprintf("%+v %v", r, err)
	})
	return r
}

// received reads all that the service got, as the receiver does: openssl verifies the
// signature, and the format's parser reads the text.
func (a *apelSite) received() *apeltest.Receiver {
	a.t.Helper()
	r := &apeltest.Receiver{}
	for _, m := range a.service.Messages() {
		verify := exec.Command("openssl", "smime", "-verify", "-CAfile", a.authority.File)
		verify.Stdin = bytes.NewReader(m.Data)
		out, err := verify.Output()
		if err != nil {
			a.t.Fatalf("openssl refuses message %s: %v", m.ID, err)
		}
		_, body, _ := strings.Cut(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n\n")
		if err := r.Take(body, time.Now()); err != nil {
			a.t.Fatalf("message %s: %v in\n%s", m.ID, err, body)
		}
	}
	return r
}

func TestAPEL_ErrorsAndDeadLeader_ReportsWhatIsHeld(t *testing.T) {
	t.Parallel()
	a := newAPELSite(t)
	for i := range 3 {
		a.post(gridJobs(a.chance, a.first.AddDate(0, i, 0), "early", 500)...)
	}
	bad := a.jobs[0]
	bad.id, bad.voms = "without-a-proxy", ""
	a.post(bad)
	a.refused()
	a.plansOnly()
	a.errors()
	sameSums(t, a.received(), a.jobs)
	a.bytes()
	a.late()
	sameSums(t, a.received(), a.jobs)
	a.again()
	sameSums(t, a.received(), a.jobs)
	a.directory()
}

// refused checks a configuration with an expression that cannot be.
func (a *apelSite) refused() {
	a.t.Helper()
	text, err := os.ReadFile(a.cluster.Nodes[0].Config)
	if err != nil {
		a.t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "record.meta.headnode[0]")
	path := a.Write("bad.hcl", strings.Replace(string(text), "record.meta.headnode[0]", "record.headnode", 1))
	want := fmt.Sprintf("bad.hcl line %d", strings.Count(before, "\n")+1)
	if _, err := a.Run("bursar", "aggregator", "-dev", "-check", "-config", path); err == nil || !strings.Contains(err.Error(), want) {
		a.t.Errorf("want %s: %v", want, err)
	}
}

// plansOnly looks at what would be sent.
func (a *apelSite) plansOnly() {
	a.t.Helper()
	plan, err := a.bursar("plan", "-v", "apel/egi")
	if err == nil || !strings.Contains(err.Error(), "left out: VO: ") || !strings.Contains(err.Error(), ": without-a-proxy") {
		a.t.Fatalf("%s\n%v", plan, err)
	}
	for i := range 3 {
		if want := "site=UNI-B month=" + a.first.AddDate(0, i, 0).Format("2006-01") + " summary"; !strings.Contains(plan, want) {
			a.t.Errorf("%q is not in\n%s", want, plan)
		}
	}
	if list := a.service.Requests(); len(list) != 0 {
		a.t.Errorf("a plan asked %v", list)
	}
}

// errors runs while the service fails in all of its ways.
func (a *apelSite) errors() {
	a.t.Helper()
	a.service.Limit(8000)
	a.service.Fail(
		amstest.Failure{What: "authx509", Status: 401},
		amstest.Failure{What: "authx509", Status: 503},
		amstest.Failure{What: "publish", Status: 500},
		amstest.Failure{What: "publish", Done: true},
		amstest.Failure{What: "publish", Status: 408},
	)
	a.must("run", "apel/egi")
	r := a.ended("apel/egi", 1)
	if r.Run.Effects != 12 || r.Run.Done != 11 || r.Run.Rejected != 1 || !r.Run.Partial || !strings.Contains(strings.Join(r.Run.Notes, "\n"), "without-a-proxy") {
		a.t.Errorf("%+v", r.Run)
	}
	if e := r.Effects[0]; e.State != "rejected" || len(e.Attempts) != 1 || !strings.Contains(e.Attempts[0].Message, "GOCDB") {
		a.t.Errorf("%+v", e)
	}
	if !slices.Contains(a.service.Requests(), "publish 413") {
		a.t.Error("no message was too large")
	}
	if out, err := a.bursar("list", "-check"); err == nil || !strings.Contains(out, "rejected") {
		a.t.Errorf("%s %v", out, err)
	}
	a.must("retry", "apel/egi", "1", "0")
	a.Eventually("the effect that was refused is done", func() (bool, string) {
		r := a.ended("apel/egi", 1)
		return r.Run.Done == 12, fmt.Sprintf("%+v", r.Run)
	})
	a.service.Limit(1 << 20)
}

// bytes fetches what the ledger has of a message: it is what the service got.
func (a *apelSite) bytes() {
	a.t.Helper()
	out := a.must("payload", "apel/egi", "1", "0")
	_, message, ok := strings.Cut(out, "\n")
	if !ok || !slices.ContainsFunc(a.service.Messages(), func(m amstest.Message) bool { return string(m.Data) == message }) {
		a.t.Errorf("the service never got\n%s", message)
	}
}

// late lets jobs come late, and the leader die when it has sent something and has
// heard no answer.
func (a *apelSite) late() {
	a.t.Helper()
	a.post(gridJobs(a.chance, a.first.AddDate(0, 1, 0), "late", 5)...)
	before := len(a.service.Messages())
	answer := make(chan struct{})
	defer close(answer)
	a.service.Fail(amstest.Failure{What: "publish", Done: true, Hold: answer})
	if plan, _ := a.bursar("plan", "-v", "apel/egi"); !strings.Contains(plan, "%% changed") || strings.Contains(plan, a.first.Format("month=2006-01")) {
		a.t.Errorf("%s", plan)
	}
	a.must("run", "apel/egi")
	a.Eventually("a message is on its way", func() (bool, string) { return a.service.Held() == 1, "" })
	a.cluster.Leader().Kill()
	r := a.ended("apel/egi", 2)
	if r.Run.Effects != 4 || r.Run.Done != 4 {
		a.t.Errorf("%+v", r.Run)
	}
	if tries := r.Effects[0].Attempts; len(tries) != 2 || tries[0].Node == tries[1].Node {
		a.t.Errorf("%+v", tries)
	}
	// The first message is there twice, with the same bytes.
	got := a.service.Messages()[before:]
	if len(got) != 5 || !bytes.Equal(got[0].Data, got[1].Data) {
		a.t.Errorf("%d messages", len(got))
	}
}

// again sends a month of a site a second time, on demand.
func (a *apelSite) again() {
	a.t.Helper()
	before := len(a.service.Messages())
	a.must("run", "apel/egi", "month="+a.first.Format("2006-01"), "site=UNI-B")
	r := a.ended("apel/egi", 3)
	if r.Run.Done != 2 || len(a.service.Messages()) != before+2 {
		a.t.Errorf("%+v and %d messages", r.Run, len(a.service.Messages())-before)
	}
	if notes := strings.Join(r.Run.Notes, "\n"); !strings.Contains(notes, "compared with all messages of the history") || !strings.Contains(notes, " 0 are changed, 0 are new, and 0 that were sent are made by no record now") {
		a.t.Errorf("what was sent is compared with the records:\n%s", notes)
	}
	if out, err := a.bursar("run", "apel/egi", "month=1999-01"); err == nil || !strings.Contains(err.Error(), "failed: it cannot be planned: month 1999-01 is before ") {
		a.t.Errorf("a run that cannot be planned: %s %v", out, err)
	}
	if out := a.must("history", "apel/egi"); !strings.Contains(out, "not planned: month 1999-01 is before ") {
		a.t.Errorf("the history has no run that failed:\n%s", out)
	}
}

// directory reports all to a site's own SSM.
func (a *apelSite) directory() {
	a.t.Helper()
	a.must("run", "apel/ssm")
	if r := a.ended("apel/ssm", 1); r.Run.Done != r.Run.Effects {
		a.t.Errorf("%+v", r)
	}
	r := &apeltest.Receiver{}
	for _, text := range readOutgoing(a.t, a.outgoing) {
		if err := r.Take(text, time.Now()); err != nil {
			a.t.Fatal(err)
		}
	}
	sameSums(a.t, r, a.jobs)
}

// readOutgoing reads the messages that SSM finds in its outgoing directory.
func readOutgoing(t *testing.T, folder string) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "????????", "??????????????"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}
