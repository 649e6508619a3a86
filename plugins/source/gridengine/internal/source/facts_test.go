package source

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/gridengine/internal/grid"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// commands are fakes of Grid Engine's and of getent: each prints a file.
type commands struct {
	s   *site
	dir string
}

const qhost = `<?xml version='1.0'?>
<qhost xmlns:xsd="x">
 <host name='global'><hostvalue name='num_proc'>-</hostvalue><hostvalue name='mem_total'>-</hostvalue></host>
 <host name='n1'><hostvalue name='num_proc'>16</hostvalue><hostvalue name='mem_total'>64.0G</hostvalue>
  <queue name='all.q'><queuevalue qname='all.q' name='slots_used'>1</queuevalue><queuevalue qname='all.q' name='slots'>16</queuevalue></queue>
  <queue name='short.q'><queuevalue qname='short.q' name='slots'>16</queuevalue></queue></host>
 <host name='n2'><hostvalue name='num_proc'>%s</hostvalue><hostvalue name='mem_total'>%s</hostvalue>
  <queue name='all.q'><queuevalue qname='all.q' name='slots'>4</queuevalue></queue></host>
</qhost>
`

const qstat = `<?xml version='1.0'?>
<job_info  xmlns:xsd="x"><queue_info>
 <job_list state="running"><JB_owner>bob</JB_owner><JB_name>b&lt;` + "\xff\x01" + `</JB_name><queue_name>all.q@n1</queue_name><tasks>4</tasks></job_list>
 <job_list state="running"><JB_owner>bob</JB_owner><queue_name>all.q@n2</queue_name></job_list>
</queue_info><job_info>
 <job_list state="pending"><JB_owner>alice</JB_owner><queue_name></queue_name><tasks>5-10:2,20</tasks></job_list>
</job_info></job_info>
`

func newCommands(s *site) *commands {
	c := &commands{s: s, dir: filepath.Join(s.dir, "bin")}
	s.must(os.Mkdir(c.dir, 0o755))
	c.prints("qhost", fmt.Sprintf(qhost, "2", "512.0M"))
	c.prints("qstat", qstat)
	c.prints("getent", "phys:x:1:alice,bob\nalice:x:1:1:A. Lice,,,:/:/bin/sh\n")
	return c
}

func (c *commands) prints(name, text string) {
	c.s.t.Helper()
	file := filepath.Join(c.dir, name+".txt")
	c.s.must(os.WriteFile(file, []byte(text), 0o600))
	c.script(name, "cat "+file)
}

func (c *commands) script(name, script string) {
	c.s.t.Helper()
	path := filepath.Join(c.dir, name)
	c.s.must(programtest.WriteProgram(path+".new", "#!/bin/sh\n"+script+"\n"))
	c.s.must(os.Rename(path+".new", path))
}

func (c *commands) keys(more ...sdk.Node) []sdk.Node {
	return append(more, text("commands", c.dir), text("getent", filepath.Join(c.dir, "getent")),
		sdk.Node{Name: facts.Capacity, Value: sdk.Bool(true)}, sdk.Node{Name: facts.Census, Value: sdk.Bool(true)}, sdk.Node{Name: facts.Directory, Value: sdk.Bool(true)})
}

func amounts(c sdk.Capacity) map[string]int64 {
	out := map[string]int64{}
	for _, a := range c.Components {
		out[a.Name] = a.Amount
	}
	return out
}

func TestTheFactsAreToldAndAgainWhenTheyChange(t *testing.T) {
	s := newSite(t)
	c := newCommands(s)
	s.write(job(1, -9), job(2, -8, "owner", "bob"))
	s.restart(c.keys()...)
	s.poll()
	want := map[string]int64{"Cores": 20, "Memory": 65536 + 512, "Slots:all.q": 20, "Slots:short.q": 16}
	if d := cmp.Diff(want, amounts(s.capacity[0])); d != "" {
		t.Error(d)
	}
	rows := []sdk.CensusRow{{User: "alice", Pending: 4}, {User: "bob", Queue: "all.q", Running: 2}}
	if d := cmp.Diff([]sdk.Census{{At: noon(), Rows: rows}}, s.census); d != "" {
		t.Error(d)
	}
	people := []sdk.Person{{User: "alice", Groups: []string{"phys"}, Name: "A. Lice"}, {User: "bob", Groups: []string{"phys"}}}
	if d := cmp.Diff([][]sdk.Person{people}, s.directory); d != "" {
		t.Error(d)
	}
	if s.watermark.IsZero() {
		t.Error("no watermark")
	}
	// A new process tells only what is new, also of users of old runs.
	s.restart(c.keys()...)
	s.time = s.time.Add(2 * time.Hour)
	s.poll()
	if len(s.capacity) != 1 || len(s.directory) != 1 || len(s.census) != 2 {
		t.Errorf("%v, %v, %v", s.capacity, s.directory, s.census)
	}
	// A host that is down has what it had.
	s.time = s.time.Add(2 * time.Hour)
	c.prints("qhost", fmt.Sprintf(qhost, "-", "-"))
	s.poll()
	c.prints("qhost", fmt.Sprintf(qhost, "8", "512.0M"))
	s.time = s.time.Add(2 * time.Hour)
	s.poll()
	if len(s.capacity) != 1 {
		t.Errorf("capacity %v", s.capacity)
	}
	s.must(s.collect(sdk.Start{Rewind: time.Hour}))
	if len(s.capacity) != 2 || len(s.directory) != 2 {
		t.Errorf("after a rewind %v, %v", s.capacity, s.directory)
	}
}

func TestQueuesRestrictTheCapacityAndTheCensus(t *testing.T) {
	s := newSite(t)
	c := newCommands(s)
	s.write(job(1, -9))
	s.restart(c.keys(list("queues", "short.q"))...)
	s.poll()
	if d := cmp.Diff(map[string]int64{"Cores": 16, "Memory": 65536, "Slots:short.q": 16}, amounts(s.capacity[0])); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]sdk.CensusRow{{User: "alice", Pending: 4}}, s.census[0].Rows); d != "" {
		t.Error(d)
	}
}

func TestWhatIsWrongWithACommandCostsNoRunAndIsSaidOnce(t *testing.T) {
	for name, script := range map[string]string{
		"status": "exit 1", "error": "echo 'error: commlib error: got select error' >&2; exit 1", "nothing": "true", "cut": "head -c 300 $0.txt",
		"other": "echo '<html></html>'", "text": "echo all.q", "no numbers": "sed 's/>16</>many</' $0.txt", "hangs": "sleep 100",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c := newCommands(s)
			s.write(job(1, -9))
			s.restart(c.keys()...)
			log := new(bytes.Buffer)
			s.source.facts.log = slog.New(slog.NewTextHandler(log, nil))
			cell := s.source.facts.cells[0].(*grid.Client)
			patience := cell.Timeout
			if name == "hangs" {
				cell.Timeout = time.Second
			}
			c.script("qhost", script)
			if name != "no numbers" {
				c.script("qstat", script)
			}
			s.poll()
			s.time = s.time.Add(time.Hour)
			s.poll()
			if len(s.jobs) != 1 || len(s.capacity) != 0 || len(s.census) > 0 && name != "no numbers" || len(s.directory) != 1 {
				t.Errorf("%d runs, %v, %v, %v", len(s.jobs), s.capacity, s.census, s.directory)
			}
			if !s.watermark.IsZero() {
				t.Error("it says that it is complete while qmaster does not answer")
			}
			if n := strings.Count(log.String(), "the capacity is not complete"); n != 1 {
				t.Errorf("said %d times: %s", n, log)
			}
			c.prints("qhost", fmt.Sprintf(qhost, "2", "512.0M"))
			c.prints("qstat", qstat)
			cell.Timeout = patience // a busy machine needs longer to start a command that works
			s.time = s.time.Add(time.Hour)
			s.poll()
			if len(s.capacity) != 1 || s.watermark.IsZero() {
				t.Errorf("after it works again: %v, watermark %s", s.capacity, s.watermark)
			}
		})
	}
}

func TestFactsThatTheDaemonDidNotTakeAreToldAgain(t *testing.T) {
	s := newSite(t)
	c := newCommands(s)
	s.write(job(1, -9))
	s.restart(c.keys()...)
	s.fail = 1
	if s.collect(sdk.Start{}) == nil {
		t.Fatal("the daemon did not fail")
	}
	s.fail = -1
	s.poll()
	if len(s.capacity) != 1 || len(s.directory) != 1 {
		t.Errorf("%v, %v", s.capacity, s.directory)
	}
}

func TestWithoutCommandsOnlyTheDirectoryIsTold(t *testing.T) {
	s := newSite(t)
	c := newCommands(s)
	s.must(os.Remove(filepath.Join(c.dir, "qhost")))
	s.write(job(1, -9))
	s.restart(text("getent", filepath.Join(c.dir, "getent")), text("commands", c.dir), sdk.Node{Name: facts.Capacity, Value: sdk.Bool(false)},
		sdk.Node{Name: facts.Census, Value: sdk.Bool(false)}, sdk.Node{Name: facts.Directory, Value: sdk.Bool(true)})
	s.poll()
	if len(s.capacity)+len(s.census) != 0 || len(s.directory) != 1 || s.watermark.IsZero() {
		t.Errorf("%v, %v, %v", s.capacity, s.census, s.directory)
	}
}

const qconf = `case "$*" in
-sc) echo '#name shortcut type relop requestable consumable default urgency
gpu                 g          INT         <=    YES         %s         0        0
h_rt                h_rt       TIME        <=    YES         NO         0:0:0    0
# >#< starts a comment';;
"-se n1") echo 'hostname              n1
complex_values        h_vmem=64G,ngpus=9, \\
                      gpu=4.000000
load_values           gpu=77';;
"-se n2") echo 'hostname              n2
complex_values        gpu=2(cuda0[0,1] cuda1),slots=4';;
*) exit 1;;
esac
`

func TestCapacity_HasTheGPUsOfComplexValues(t *testing.T) {
	for name, c := range map[string]struct {
		consumable string
		keys       []sdk.Node
		want       int64
	}{
		"for each slot": {"YES", nil, 6},
		"for the job":   {"JOB", nil, 6},
		"for each host": {"HOST", nil, 6},
		"a condition":   {"NO", nil, 0},
		"of one queue":  {"YES", []sdk.Node{list("queues", "short.q")}, 4},
		"another name":  {"YES", []sdk.Node{list("gpu_requests", "ngpus")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			commands := newCommands(s)
			commands.script("qconf", fmt.Sprintf(qconf, c.consumable))
			s.write(job(1, -9))
			s.restart(commands.keys(c.keys...)...)
			s.poll()
			if got := amounts(s.capacity[0])["GPUs"]; got != c.want {
				t.Errorf("%d GPUs, want %d", got, c.want)
			}
		})
	}
}

func TestCapacity_QconfFails_HoldsWhatWasToldAndIsSaidOnce(t *testing.T) {
	s := newSite(t)
	c := newCommands(s)
	s.write(job(1, -9))
	c.script("qconf", fmt.Sprintf(qconf, "YES"))
	s.restart(c.keys()...)
	s.poll()
	log := new(bytes.Buffer)
	for _, script := range []string{"exit 1", "exit 1", "true", fmt.Sprintf(strings.Replace(qconf, "=4.0", "=x", 1), "YES")} {
		s.restart(c.keys()...)
		s.source.facts.log = slog.New(slog.NewTextHandler(log, nil))
		c.script("qconf", script)
		c.prints("qhost", fmt.Sprintf(qhost, "2", "1024.0M"))
		s.time = s.time.Add(time.Hour)
		s.poll()
		if len(s.capacity) != 1 || s.watermark.IsZero() {
			t.Errorf("%q: capacity %v", script, s.capacity)
		}
		if n := strings.Count(log.String(), "the capacity of GPUs is not complete"); n != 1 {
			t.Errorf("%q: said %d times: %s", script, n, log)
		}
		log.Reset()
	}
	c.script("qconf", fmt.Sprintf(qconf, "YES"))
	s.time = s.time.Add(time.Hour)
	s.poll()
	if len(s.capacity) != 2 || amounts(s.capacity[1])["GPUs"] != 6 {
		t.Errorf("when it works again: %v", s.capacity)
	}
}
