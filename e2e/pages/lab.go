//go:build e2e

package pages

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// config is what the pages of the lab have to show beside records.
const config = `
cluster "nemo" {
  capacity {
    from       = "2020-01-01"
    nodes      = 8
    components = { Cores = 64, Memory = 256000 }
  }
}
cluster "hydra" {
  capacity {
    from       = "2020-01-01"
    nodes      = 4
    components = { Cores = 32, GPUs = 4, Memory = 512000 }
  }
}
directory {}
person "curie" { name = "M. Curie" }
project "radiation" {
  pi     = "curie"
  groups = ["physics"]
}
project "lhc" {
  pi     = "higgs"
  groups = ["antares", "cygnus"]
}
host_class "all" {
  pattern   = "."
  su_factor = 1
}
service_units {
  components     = { Cores = 1 }
  default_factor = 1
}
contribution "nodes of physics" {
  by     = "curie"
  amount = 60
  from   = "2020-01-01"
}
price "standard" {
  currency = "EUR"
  from     = "2020-01-01"
  per "Cores" { hour = "0.012" }
  per "GPUs" { hour = "0.90" }
}
budget "radiation" {
  project = "radiation"
  period  = "year"
  amount  = "9000"
  unit    = "EUR"
}
budget "antares" {
  group  = "antares"
  period = "quarter"
  amount = 40000
  unit   = "core-hours"
}
action "alert" "lab" {
  schedule = "@manual"
  config { defaults = true }
}
action "exec" "quota" {
  schedule = "@manual"
  config {
    command = [%q]
    input   = "usage"
    usage {
      window  = "last-month"
      by      = ["group_id"]
      measure = ["Cores"]
    }
    skip_empty = false
  }
}
`

// Lab is a small computing centre: an aggregator with a fortnight of records, and an
// agent, whose jobs gave one conflict and one entry of the quarantine.
type Lab struct {
	*site.Site

	Agg *site.Aggregator
	// Dashboard is the configured origin of a dashboard, see [newDashboard].
	Dashboard string
	t         testing.TB
	as        map[string]string // the addresses of As, by client
}

// NewLab starts a lab and waits until it has all its records.
func NewLab(t testing.TB) *Lab {
	t.Helper()
	l := &Lab{Site: site.New(t), Dashboard: newDashboard(t), t: t, as: map[string]string{}}
	now := time.Now().UTC()
	jobs := l.Write("jobs.ndjson", jobsOf(now))
	agent := l.Site.Agent(site.AgentSpec{Name: "head1", Sources: site.Replay(jobs, "1s")})
	l.Agg = l.Site.Aggregator(agent)
	script := l.Program("quota.sh", "#!/bin/sh\ncat > /dev/null\necho set\n")
	l.Agg.Access = "  client \"curie\" {\n    roles = [\"read\"]\n    rows  = [{ group_id = [\"physics\"] }]\n  }\n" +
		fmt.Sprintf("  widget_origins = [%q]\n  view \"Groups of hydra\" {\n    address = \"/ui/usage?by=group_id&measure=Cores&where[site_id]=hydra&window=30d\"\n  }\n", l.Dashboard)
	l.Agg.Add(fmt.Sprintf(config, script))
	l.Agg.Start()
	l.Agg.AwaitReady()
	records := recordsOf(now)
	l.postRecords(records)
	agent.Start()                                     // one of its jobs has been posted: the other way round the post is refused
	l.awaitRecords(int64(len(records) + labJobs - 2)) // one in conflict, one in quarantine
	l.runActions()
	return l
}

// awaitRecords waits until all is there that the pages show.
func (l *Lab) awaitRecords(records int64) {
	l.t.Helper()
	l.Eventually("all records, a conflict and an entry of the quarantine", func() (bool, string) {
		s, err := l.Agg.Status()
		return err == nil && s.Records == records && s.Conflicts == 1 && s.Quarantined == 1, fmt.Sprintf("%+v of %d records, %v", s, records, err)
	})
}

// runActions runs the actions once.
func (l *Lab) runActions() {
	l.t.Helper()
	for _, name := range []string{"exec/quota", "alert/lab"} {
		l.Eventually("the action is run", func() (bool, string) {
			out, err := l.Agg.Bursar("actions", "run", name)
			return err == nil, fmt.Sprint(out, err)
		})
	}
	if out, err := l.Agg.Bursar("alerts", "silence", "rule=utilization-*", "-for", "7d", "-comment", "the clusters are new"); err != nil {
		l.t.Fatal(err, out)
	}
	l.Eventually("the action has run", func() (bool, string) {
		var run json.RawMessage
		err := l.Agg.Get("/v1/actions/exec/quota/runs/1", &run)
		return strings.Contains(string(run), `"done"`), fmt.Sprint(string(run), err)
	})
}

// Who uses the lab. No one is in two groups, so that a name tells whose row it is.
type people struct {
	site, group string
	users       []string
	cores, gpus int64
}

func inhabitants() []people {
	return []people{
		{"nemo", "antares", []string{"higgs", "rubbia", "goeppert"}, 16, 0},
		{"nemo", "cygnus", []string{"dellanegra", "virdee"}, 32, 0},
		{"nemo", "physics", []string{"curie", "joliot", "meitner"}, 8, 0},
		{"hydra", "robotics", []string{"lecun", "hinton"}, 4, 2},
		{"hydra", "physics", []string{"curie", "noether"}, 8, 1},
		{"hydra", "chemistry", []string{"hodgkin", "pauling", "haber"}, 24, 0},
		{"katana", "biology", []string{"franklin", "mcclintock"}, 12, 0},
	}
}

// strangers are the names that who may see the rows of physics only must not read.
func strangers() []string {
	names := []string{"katana", "astronomy", "leavitt", "lhc"}
	for _, p := range inhabitants() {
		if p.group != "physics" {
			names = append(append(names, p.group), p.users...)
		}
	}
	return names
}

// job is a record as AUDITOR's clients post it.
type job struct {
	ID         string              `json:"record_id"`
	Meta       map[string][]string `json:"meta"`
	Components []component         `json:"components"`
	Start      string              `json:"start_time"`
	Stop       string              `json:"stop_time,omitempty"`
}

type component struct {
	Name   string  `json:"name"`
	Amount int64   `json:"amount"`
	Scores []score `json:"scores"`
}

type score struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// How many records there are, and jobs of the agent.
const (
	posted  = 600
	labJobs = 40
)

// recordsOf are those of the fortnight before now; the last ones go on. They are the
// same each time, but for now.
func recordsOf(now time.Time) []job {
	rng := rand.New(rand.NewPCG(7, 7))
	all := inhabitants()
	var list []job
	for i := range posted {
		p := all[rng.IntN(len(all))]
		// More in the middle of the fortnight than at its ends.
		back := time.Duration((rng.Float64() + rng.Float64()) * 7 * 24 * float64(time.Hour))
		start := now.Add(-back - time.Hour).Truncate(time.Second)
		r := job{
			ID:    fmt.Sprintf("%s-%d", p.site, 1000+i),
			Meta:  map[string][]string{"site_id": {p.site}, "group_id": {p.group}, "user_id": {p.users[min(rng.IntN(5), len(p.users)-1)]}, "partition": {"batch"}},
			Start: start.Format(time.RFC3339),
		}
		cores := p.cores * int64(1+rng.IntN(3))
		r.Components = []component{{"Cores", cores, []score{{"HEPScore23", 12.5}}}, {"Memory", 4000 * cores, []score{}}}
		if p.gpus > 0 {
			r.Components = append(r.Components, component{"GPUs", p.gpus, []score{}})
		}
		stop := start.Add(time.Duration(10+rng.IntN(1400)) * time.Minute)
		if i%20 != 0 && stop.Before(now) {
			r.Stop = stop.Format(time.RFC3339)
		} else if i%20 != 0 {
			r.Stop = now.Add(-time.Minute).Truncate(time.Second).Format(time.RFC3339)
		}
		list = append(list, r)
	}
	// The agent has a job that someone has posted with another start.
	disputed := list[1]
	disputed.ID = "lab-1"
	return append(list, disputed)
}

// jobsOf are those that the agent reads. The first is posted with another start, the
// last gives no record.
func jobsOf(now time.Time) string {
	var b strings.Builder
	for i := range labJobs {
		start := now.Add(-time.Duration(labJobs-i) * 6 * time.Hour).Truncate(time.Second)
		used := (i + 1) * 3000
		if i == labJobs-1 {
			used = -1
		}
		fmt.Fprintf(&b, `{"id":"%d","start":%q,"submit":%q,"stop":%q,"user":"leavitt","group":"astronomy","site":"katana","cpus":8,"memory_mb":16000,"cpu_seconds":%d,"partition":"night","state":"COMPLETED"}`+"\n",
			i+1, start.Format(time.RFC3339), start.Add(-time.Hour).Format(time.RFC3339), start.Add(5*time.Hour).Format(time.RFC3339), used)
	}
	return b.String()
}

// postRecords hands in records as AUDITOR's clients do.
func (l *Lab) postRecords(records []job) {
	l.t.Helper()
	for chunk := range slices.Chunk(records, 1000) {
		body, err := json.Marshal(chunk)
		if err != nil {
			l.t.Fatal(err)
		}
		l.Agg.Post("/records", string(body))
	}
}

// Pages returns an address at which the aggregator answers as it does to an
// administrator over its unix socket.
func (l *Lab) Pages() string {
	l.t.Helper()
	return serveAs(l.t, "http://localhost", site.Local(l.Agg.DataDir).Transport, "")
}

// As returns an address at which the aggregator answers as it does to the holder of a
// client's certificate. Chromium takes certificates only from a store of its own.
func (l *Lab) As(name string) string {
	l.t.Helper()
	if at := l.as[name]; at != "" {
		return at
	}
	files := l.Issue(identity.Identity{Role: identity.Client, Name: name, Rights: identity.Read})
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		l.t.Fatal(err)
	}
	authority, err := os.ReadFile(files.CA)
	if err != nil {
		l.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	l.as[name] = serveAs(l.t, l.Agg.TLSURL, &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots, MinVersion: tls.VersionTLS13}}, "")
	return l.as[name]
}

// serveAs returns an address at which the server at base answers as it does to the holder of a
// token; "" sends none.
func serveAs(t testing.TB, base string, transport http.RoundTripper, token string) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if target.Hostname() == "localhost" {
				r.Out.Host = r.In.Host // Origin is compared with it
			}
			if token != "" {
				r.Out.Header.Set("Authorization", "Bearer "+token)
			}
		},
		Transport: transport,
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// newDashboard serves a page with a card that frames the address of the query, and returns its
// origin.
func newDashboard(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Dashboard</title><link rel="icon" href="data:,"><iframe title="Usage" width="350" height="420" src="%s"></iframe>`, html.EscapeString(r.URL.Query().Get("card")))
	}))
	t.Cleanup(server.Close)
	return server.URL
}
