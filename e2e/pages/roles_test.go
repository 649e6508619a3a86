//go:build e2e

package pages

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/benchmark"
	"github.com/bursar-accounting/bursar/proto/record"
)

var (
	records  = flag.Int("records", 100_000, "records of the cluster with many records")
	pictures = flag.String("pictures", "", "write a picture of the first page of each role into this `folder`")
)

// reader is someone who looks at the pages, at an address at which all requests are theirs.
type reader struct {
	role  string
	first string // the page at which this role begins
	at    string
}

// tokensOf are the roles, of whom each has a token: an administrator, a director who reads all
// records, a principal investigator, and a user with records of their own. run runs the operator's
// command, base is where the aggregator answers over transport, and lead and user are the flags
// of `bursar token create` that make the last two.
func tokensOf(t *testing.T, run func(args ...string) (string, error), base string, transport http.RoundTripper, lead, user []string) (all []reader) {
	t.Helper()
	for _, r := range []struct {
		role, first string
		flags       []string
	}{
		{"administrator", "/", []string{"-role", "read,monitor,operate"}},
		{"director", "/ui/centre", []string{"-role", "read"}},
		{"investigator", "/ui/projects", append([]string{"-role", "read"}, lead...)},
		{"user", "/ui/me", append([]string{"-role", "read"}, user...)},
	} {
		out, err := run(append([]string{"token", "create", "-name", r.role}, r.flags...)...)
		words := strings.Fields(out)
		at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "bt1_") })
		if err != nil || at < 0 {
			t.Fatal(out, err)
		}
		all = append(all, reader{r.role, r.first, serveAs(t, base, transport, words[at])})
	}
	return all
}

// readersOf are the roles at an aggregator.
func readersOf(t *testing.T, agg *site.Aggregator, lead, user []string) []reader {
	t.Helper()
	return tokensOf(t, agg.Bursar, "http://localhost", site.Local(agg.DataDir).Transport, lead, user)
}

// readers are the roles in the lab.
func (d *desk) readers(t *testing.T) []reader {
	t.Helper()
	return readersOf(t, d.lab.Agg, []string{"-person", "higgs"}, []string{"-person", "hodgkin"})
}

// firstPages looks at the page at which each role begins.
func (d *desk) firstPages(t *testing.T) {
	for _, r := range d.readers(t) {
		tab := d.browser.Tab(t, r.at)
		d.begin(t, tab, r)
		d.walk(t, tab, []page{{path: r.first, needs: ".tile", table: true}}, briefLooks())
	}
}

// begin opens the address without a path, which leads to the first page of the role.
func (d *desk) begin(t *testing.T, tab *Tab, r reader) {
	t.Helper()
	tab.Look("light", 1280, 900)
	tab.Open("/", 200)
	if at := Eval[string](tab, "location.pathname"); at != r.first {
		t.Errorf("the %s begins at %s, want %s", r.role, at, r.first)
	}
	if *pictures != "" {
		name := strings.ReplaceAll(t.Name()+"-"+r.role, "/", "-")
		d.picture(t, tab, name)
		tab.Print("light")
		d.picture(t, tab, name+"-print")
	}
}

// picture writes what is seen of the page into the folder of pictures.
func (d *desk) picture(t *testing.T, tab *Tab, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), tab.WholePicture(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// walkRoles walks, for each role, the pages in their navigation, and for the administrator what
// these lead to in every cluster.
func (d *desk) walkRoles(t *testing.T, roles []reader) {
	t.Helper()
	var visits []visit
	for _, r := range roles {
		tab := d.browser.Tab(t, r.at)
		d.begin(t, tab, r)
		all, rest := []page{{path: r.first}}, []page{{path: "/ui/widget"}}
		tab.Open("/", 200)
		for _, path := range navigation(tab) {
			if path != r.first {
				rest = append(rest, page{path: path})
			}
		}
		if r.role == "administrator" {
			all, rest = append(all, rest...), nil
			for _, path := range []string{"/ui/centre", "/ui/quarantine", "/ui/conflicts", "/ui/record?id=none", "/ui/me?user=noone"} {
				all = append(all, page{path: path, may: true})
			}
			for _, p := range d.reports(t, tab) {
				p.may = true
				all = append(all, p)
			}
		}
		for _, v := range append(d.walk(t, tab, all, looks()), d.walk(t, tab, rest, briefLooks())...) {
			v.role = r.role
			visits = append(visits, v)
		}
	}
	logSlowest(t, visits)
}

// newDesk is a desk at an aggregator that runs.
func newDesk(t *testing.T, s *site.Site, agg *site.Aggregator) *desk {
	t.Helper()
	return &desk{&Lab{Site: s, Agg: agg, t: t, as: map[string]string{}}, NewBrowser(t), Library(t, "axe")}
}

func TestPages_OfAnEmptyCluster_SayThatThereIsNothing(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	agg := s.Aggregator()
	agg.Start()
	agg.AwaitReady()
	d := newDesk(t, s, agg)
	d.walkRoles(t, readersOf(t, agg, []string{"-where", "group_id=antares"}, []string{"-person", "higgs"}))
}

func TestPages_OfADayOldCluster_AreSound(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: site.Replay(s.Write("jobs.ndjson", firstDay(time.Now().UTC())), "1s")})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	agg.AwaitReady()
	agg.AwaitRecords(firstJobs)
	d := newDesk(t, s, agg)
	d.walkRoles(t, readersOf(t, agg, []string{"-where", "group_id=antares"}, []string{"-person", "higgs"}))
}

// firstJobs is how many jobs a cluster has that is a day old.
const firstJobs = 60

// firstDay are jobs of the last 24 hours.
func firstDay(now time.Time) string {
	var b strings.Builder
	for i := range firstJobs {
		p := inhabitants()[i%3]
		start := now.Add(-23*time.Hour + time.Duration(i)*20*time.Minute).Truncate(time.Second)
		fmt.Fprintf(&b, `{"id":"%d","submit":%q,"start":%q,"stop":%q,"user":%q,"group":%q,"site":"nemo","cpus":%d,"memory_mb":16000,"cpu_seconds":%d,"state":"COMPLETED"}`+"\n",
			i+1, start.Add(-time.Hour).Format(time.RFC3339), start.Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339), p.users[0], p.group, p.cores, 1800*p.cores)
	}
	return b.String()
}

func TestPages_OfTheDemo_AreSound(t *testing.T) {
	t.Parallel()
	demo := site.New(t).Demo()
	_, base := demo.Login()
	run := func(args ...string) (string, error) { return demo.Run("bursar " + strings.Join(args, " ")) }
	d := &desk{nil, NewBrowser(t), Library(t, "axe")}
	d.walkRoles(t, tokensOf(t, run, base, http.DefaultTransport, []string{"-person", "at00"}, []string{"-person", "at12"}))
}

func TestPages_OfManyRecords_AreSound(t *testing.T) {
	t.Parallel()
	s := site.NewIn(t, t.TempDir())
	jobs, n := yearOfJobs(t, s)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: site.Replay(jobs, "1s")})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	agg.AwaitReady()
	begun := time.Now()
	for tenth := int64(1); tenth <= 10; tenth++ { // each within the patience of the site
		s.Eventually(fmt.Sprintf("%d tenths of the records", tenth), func() (bool, string) {
			now, err := agg.Status()
			return err == nil && now.Records >= n*tenth/10, fmt.Sprintf("%+v of %d, %v", now, n, err)
		})
	}
	t.Logf("%d records collected in %s", n, time.Since(begun).Round(time.Second))
	d := newDesk(t, s, agg)
	d.walkRoles(t, readersOf(t, agg, []string{"-where", "group_id=group00"}, []string{"-person", "user0000"}))
}

// yearsEnd is the end of the year in which the jobs of the benchmark are submitted.
var yearsEnd = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// yearOfJobs writes the jobs of the benchmark that have ended, as if its year ended now, and
// returns the file and how many they are.
func yearOfJobs(t *testing.T, s *site.Site) (path string, n int64) {
	t.Helper()
	path = filepath.Join(s.Dir, "year.ndjson")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	gen := benchmark.Generator(7, *records, benchmark.Slurm)
	gen.Extended = true
	later := record.Time(time.Since(yearsEnd).Microseconds())
	out, now := bufio.NewWriter(file), record.Time(time.Now().UnixMicro())
	for r := range gen.All() {
		if r.Stop+later > now-record.Second {
			break // they are in the order of their stops
		}
		writeJob(out, &r, later)
		n++
	}
	if err := errors.Join(out.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path, n
}

// writeJob writes a record as a job of a source replay.
func writeJob(out *bufio.Writer, r *record.Record, later record.Time) {
	amount := func(name string) int64 {
		i := slices.IndexFunc(r.Components, func(c record.Component) bool { return c.Name == name })
		if i < 0 {
			return 0
		}
		return r.Components[i].Amount
	}
	seconds := func(at record.Time) int64 { return int64((at + later) / record.Second) }
	meta := func(key string) string {
		i := slices.IndexFunc(r.Meta, func(m record.MetaEntry) bool { return m.Key == key })
		return r.Meta[i].Values[0]
	}
	fmt.Fprintf(out, `{"id":%q,"submit":%d,"start":%d,"stop":%d,"user":%q,"group":%q,"site":%q,"partition":%q,"cpus":%d,"memory_mb":%d,"gpus":%d,"cpu_seconds":%d,"state":%q}`+"\n",
		r.ID, seconds(r.Submit), seconds(r.Start), max(seconds(r.Stop), seconds(r.Start)+1), meta("user_id"), meta("group_id"), meta("site_id"), meta("partition"), amount("Cores"), amount("Memory"), amount("GPUs"), amount("TotalCPU"), r.State)
}
