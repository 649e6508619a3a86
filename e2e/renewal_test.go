//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// renewing is a cluster whose certificates are of an authority that one of its nodes has,
// and of a life of an hour, so that daemons look every ten seconds whether it is time.
type renewing struct {
	*site.Cluster

	t     *testing.T
	site  *site.Site
	jobs  *site.Jobs
	agent *site.Agent
	dir   string // of the authority
	made  map[string]identity.Files
}

// certificateLife is that of all certificates of a renewing cluster.
const certificateLife = time.Hour

func newRenewing(t *testing.T, dialsIn bool) *renewing {
	t.Helper()
	r := &renewing{t: t, site: site.New(t), made: map[string]identity.Files{}}
	r.dir = filepath.Join(r.site.Dir, "ca")
	if _, err := identity.CreateCA(r.dir, "test", identity.LifetimeCA, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	r.jobs = r.site.Jobs()
	if dialsIn {
		r.Cluster = r.site.Cluster(3, `agent "head1" { dials_in = true }`)
		r.agent = r.site.Agent(site.AgentSpec{Name: "head1", Sources: r.jobs.Source(), Dial: tlsAddresses(r.Nodes)})
	} else {
		r.agent = r.site.Agent(site.AgentSpec{Name: "head1", Sources: r.jobs.Source()})
		r.Cluster = r.site.Cluster(3, "", r.agent)
	}
	for _, g := range r.Nodes {
		g.Files = r.make(identity.Aggregator, g.Name)
		g.Configure()
	}
	r.agent.Use(r.make(identity.Agent, "head1"))
	r.Nodes[0].Settings = fmt.Sprintf("authority = %q", r.dir)
	r.Nodes[0].Configure()
	return r
}

// make makes a certificate that is to be renewed at once: a quarter of an hour is left.
func (r *renewing) make(role identity.Role, name string) identity.Files {
	r.t.Helper()
	files, err := identity.CreateCert(r.dir, filepath.Join(r.site.Dir, "tls", name), identity.Request{
		Identity: identity.Identity{Role: role, Name: name}, Hosts: []string{"127.0.0.1"}, Lifetime: certificateLife,
	}, time.Now().Add(-certificateLife*3/4))
	if err != nil {
		r.t.Fatal(err)
	}
	r.made[name] = files
	return files
}

// age puts a certificate of the same key in place that is to be renewed at once.
func (r *renewing) age(role identity.Role, names ...string) {
	r.t.Helper()
	must := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	authority, err := identity.LoadAuthority(r.dir)
	must(err)
	for _, name := range names {
		key, err := identity.KeepKey(r.made[name].Key)
		must(err)
		text, err := identity.NewRequest(key, name)
		must(err)
		csr, err := identity.ParseRequest(text)
		must(err)
		req := identity.Request{Identity: identity.Identity{Role: role, Name: name}, Hosts: []string{"127.0.0.1"}, Lifetime: certificateLife}
		certificate, err := authority.Sign(csr, req, time.Now().Add(-certificateLife*3/4))
		must(err)
		next := r.made[name].Cert + ".next"
		must(os.WriteFile(next, certificate, 0o644))
		must(os.Rename(next, r.made[name].Cert))
	}
}

// renewed waits until the certificates are new, on disk and in use.
func (r *renewing) renewed(names ...string) {
	r.t.Helper()
	address := map[string]string{"head1": r.agent.Address}
	for _, g := range r.Nodes {
		address[g.Name] = strings.TrimPrefix(g.TLSURL, "https://")
	}
	for _, name := range names {
		r.site.Eventually("the certificate of "+name+" is renewed", func() (bool, string) {
			keys, err := identity.Load(r.made[name])
			if err != nil {
				return false, err.Error()
			}
			end := keys.Expires().UTC()
			out, err := r.site.Run("bursar", "tls", "show", address[name])
			return time.Until(end) > certificateLife/2 && err == nil && strings.Contains(out, "until "+end.Format("2006-01-02 15:04 MST")), fmt.Sprintln(end, out, err)
		})
	}
}

// unrenewed are the machines whose certificates are not renewed, as a node's status says.
func unrenewed(g *site.Aggregator) (list []string, err error) {
	all, err := g.Findings()
	for _, f := range all {
		if f.ID == "certificate-not-renewed" {
			list = append(list, f.About)
		}
	}
	slices.Sort(list)
	return list, err
}

func TestCertificates_RenewedSeveralTimes_RecordsAreCounted(t *testing.T) {
	t.Parallel()
	r := newRenewing(t, false)
	r.agent.Start()
	r.jobs.Write(100)
	r.Start()
	for round := range 3 {
		if round > 0 {
			r.age(identity.Aggregator, "agg1", "agg2", "agg3")
			r.age(identity.Agent, "head1")
			r.agent.Restart()
			r.jobs.Write(100)
		}
		r.renewed("agg1", "agg2", "agg3", "head1")
		r.jobs.Write(100)
		for _, g := range r.Nodes {
			r.jobs.Arrive(g)
		}
	}
	for _, g := range r.Nodes {
		r.site.Eventually("nothing is said of certificates", func() (bool, string) {
			list, err := unrenewed(g)
			return err == nil && len(list) == 0, fmt.Sprint(list, err)
		})
	}
}

func TestCertificates_NodeWithTheAuthorityIsDown_OthersGoOnAndSaySo(t *testing.T) {
	t.Parallel()
	r := newRenewing(t, false)
	first, rest := r.Nodes[0], r.Nodes[1:]
	r.agent.Start()
	r.jobs.Write(100)
	r.Start()
	r.renewed("agg1", "agg2", "agg3", "head1")
	first.Kill()
	r.age(identity.Aggregator, "agg2", "agg3")
	r.age(identity.Agent, "head1")
	r.agent.Restart()
	r.jobs.Write(100)
	for _, g := range rest {
		r.site.Eventually("the status says whose certificates are not renewed", func() (bool, string) {
			list, err := unrenewed(g)
			return slices.Equal(list, []string{"agent head1", "agg2", "agg3"}), fmt.Sprint(list, err)
		})
		r.jobs.Arrive(g)
	}
	out, _ := rest[0].Bursar("status") // it exits with 2, for there are findings
	if out = strings.Join(strings.Fields(out), " "); !strings.Contains(out, "is not renewed: the node at "+first.Listen) {
		t.Error(out)
	}
	r.site.Eventually("the agent says it too", func() (bool, string) {
		out, err := r.site.Run("bursar-agent", "status", "-config", r.agent.Config)
		return err == nil && strings.Contains(out, "is not renewed: the node at "+first.Listen) && strings.Contains(out, "bursar token create -role agent -name head1"), out
	})
	first.Start()
	r.renewed("agg2", "agg3", "head1")
	for _, g := range r.Nodes {
		r.jobs.Arrive(g)
		r.site.Eventually("nothing is said of certificates any more", func() (bool, string) {
			list, err := unrenewed(g)
			return err == nil && len(list) == 0, fmt.Sprint(list, err)
		})
	}
}

// rotateTo replaces the authority in the way of the runbook: both are trusted, the
// certificates are those of the new one, and it is trusted alone.
func (r *renewing) rotateTo(name string) {
	r.t.Helper()
	dir := filepath.Join(r.site.Dir, name)
	if _, err := identity.CreateCA(dir, name, identity.LifetimeCA, time.Now()); err != nil {
		r.t.Fatal(err)
	}
	old, next := filepath.Join(r.dir, "ca.pem"), filepath.Join(dir, "ca.pem")
	r.replaceFiles("authorities=2", func(f identity.Files) error { _, err := identity.WriteBundle(f.CA, old, next); return err })
	r.replaceFiles("issuer="+name, func(f identity.Files) error {
		_, err := identity.Renew(dir, f, certificateLife, time.Now())
		return err
	})
	r.replaceFiles("authorities=1", func(f identity.Files) error { _, err := identity.WriteBundle(f.CA, next); return err })
	r.dir, r.Nodes[0].Settings = dir, fmt.Sprintf("authority = %q", dir)
	r.Nodes[0].Configure() // for its next start
}

// replaceFiles replaces files of each daemon, and waits until each logs that it uses them.
func (r *renewing) replaceFiles(logged string, replace func(identity.Files) error) {
	r.t.Helper()
	daemons := map[string]*site.Daemon{"head1": r.agent.Daemon}
	for _, g := range r.Nodes {
		daemons[g.Name] = g.Daemon
	}
	for name := range daemons {
		if err := replace(r.made[name]); err != nil {
			r.t.Fatal(err)
		}
	}
	for name, d := range daemons {
		r.site.Eventually(name+" uses its new files", func() (bool, string) {
			last := ""
			for line := range strings.Lines(d.Log(10_000)) {
				if strings.Contains(line, "certificates renewed") {
					last = line
				}
			}
			return strings.Contains(last, logged), last
		})
	}
}

func TestCertificates_AgentThatDialsIn_IsRenewedAndOutlivesARotation(t *testing.T) {
	t.Parallel()
	r := newRenewing(t, true)
	r.agent.Start()
	r.jobs.Write(100)
	r.Start()
	r.renewed("agg1", "agg2", "agg3")
	r.site.Eventually("the agent's certificate is renewed", func() (bool, string) {
		keys, err := identity.Load(r.made["head1"])
		return err == nil && time.Until(keys.Expires()) > certificateLife/2, fmt.Sprint(err)
	})
	r.agent.Restart()
	r.jobs.Write(100)
	r.jobs.Arrive(r.Leader())
	r.rotateTo("next")
	for range 2 {
		leader := r.Leader()
		r.jobs.Write(100)
		r.jobs.Arrive(leader)
		leader.Kill()
		r.jobs.Write(100)
		r.jobs.Arrive(r.Leader())
		leader.Start()
		leader.AwaitReady()
	}
	r.site.Eventually("the agent is connected to all nodes", func() (bool, string) {
		out, err := r.site.Run("bursar-agent", "status", "-config", r.agent.Config)
		return err == nil && strings.Count(out, ": connected to agg") == 3, out
	})
}
