package health

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// trio is a cluster of three in which all is well.
func trio() Facts {
	f := Facts{Now: noon, Node: "agg1", Version: "1.0", Cluster: "C", Leader: "id-agg1"}
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		f.Nodes = append(f.Nodes, Node{
			Name: name, ID: "id-" + name, Address: name + ":8701", Voter: true, Leader: name == "agg1", Self: name == "agg1", Seen: noon.Add(-2 * time.Second),
			Lag: 3, LagKnown: true, Applied: 100, Hash: "aa", HashIndex: 90, ClockOffset: 20 * time.Millisecond,
			Local: Local{
				Version: "1.0", CertFrom: noon.AddDate(-1, 0, 0), CertEnds: noon.AddDate(0, 0, 80),
				Disk: Disk{Path: "/var/lib/bursar", Free: 50 << 30, Size: 100 << 30, Level: LevelNormal, Ballast: 256 << 20},
			},
		})
	}
	f.Agents = []Agent{{Name: "head1", Address: "head1:7070", Connected: true, Contact: noon.Add(-5 * time.Second), Behind: 12}}
	f.Data = Data{Known: true, Index: 100, Records: 20, CompleteTo: noon.Add(-time.Minute), Late: "head1/slurm/nemo"}
	f.Backup = Backup{Known: true, Last: noon.AddDate(0, 0, -1)}
	return f
}

func TestEachFactGivesItsFinding(t *testing.T) {
	hours := func(h int) time.Time { return noon.Add(time.Duration(-h) * time.Hour) }
	for _, c := range []struct {
		name   string
		change func(*Facts)
		want   string // severity id about
		what   string
		do     string
		since  time.Time
	}{
		{"no leader", func(f *Facts) { f.Leader, f.LeaderLost = "", hours(1) }, "critical no-leader ", "nothing is pulled", "journalctl", hours(1)},
		{"one of three is left", func(f *Facts) { f.Leader, f.Nodes[1].Seen, f.Nodes[2].Seen = "", hours(2), hours(1) }, "critical no-leader ", "1 of 3 voters are reachable, 2 are needed", "operator recover", time.Time{}},
		{"a silent node", func(f *Facts) { f.Nodes[2].Seen = hours(1) }, "critical node-silent agg3", "agg3 at agg3:8701 is unreachable", "systemctl status bursar   # on agg3", hours(1)},
		{"a node that could not be reached since", func(f *Facts) { f.Nodes[2].Seen, f.Nodes[2].Unreached = noon.Add(-4*time.Second), true }, "critical node-silent agg3", "agg3 at agg3:8701 is unreachable", "on agg3", noon.Add(-4 * time.Second)},
		{"two of three died four seconds ago", func(f *Facts) {
			f.Leader = ""
			for i := range f.Nodes[1:] {
				f.Nodes[1+i].Seen, f.Nodes[1+i].Unreached = noon.Add(-4*time.Second), true
			}
		}, "critical no-leader ", "1 of 3 voters are reachable, 2 are needed", "systemctl start bursar", time.Time{}},
		{"a node that was never heard", func(f *Facts) { f.Nodes[2].Seen = time.Time{} }, "critical node-silent agg3", "unreachable", "on agg3", time.Time{}},
		{"a silent node that the list has at another address", func(f *Facts) { f.Nodes[2].Seen, f.Nodes[2].Listed = hours(1), "old:8701" }, "critical node-silent agg3", "agg3 at agg3:8701 (raft.peers; the list of members has old:8701) is unreachable", "on agg3", hours(1)},
		{"a node at another address than one dials", func(f *Facts) {
			f.Nodes[1].Misplaced = []Misplaced{{Name: "agg3", Dialled: "agg3:8701", Is: "new:8701"}}
		}, "warning peer-address agg2", "agg2 dials agg3 at agg3:8701, and agg3 says that it is at new:8701", "config validate", time.Time{}},
		{"a node behind", func(f *Facts) { f.Nodes[1].Lag = 5000 }, "warning node-behind agg2", "5000 entries behind", "on agg2", time.Time{}},
		{"a node that joins", func(f *Facts) { f.Nodes[2].Voter = false; f.Nodes = append(f.Nodes, f.Nodes[1]) }, "notice node-joins agg3", "does not vote yet", "list-peers", time.Time{}},
		{"two voters", func(f *Facts) { f.Nodes = f.Nodes[:2] }, "warning two-voters ", "stops when either fails", "raft add", time.Time{}},
		{"a fenced node", func(f *Facts) { f.Nodes[1].Fenced = "its state differs" }, "critical node-fenced agg2", "its state differs", "operator check", time.Time{}},
		{"an older copy of a node's data", func(f *Facts) { f.Nodes[1].OldCopy = "cluster: older copy" }, "critical node-old-copy agg2", "does not vote until it has caught up", "every other node", time.Time{}},
		{"a usage index that is too large", func(f *Facts) { f.Nodes[1].Unindexed = "the usage index takes too much memory" }, "warning usage-unindexed agg2", "takes too much memory", "dimensions", time.Time{}},
		{"two histories", func(f *Facts) {
			f.Nodes[1].Forked, f.Nodes[1].Fenced = "cluster: two histories", "cluster: two histories"
		}, "critical two-histories agg2", "committed entries that the leader lacks", "keep the data", time.Time{}},
		{"a progress that is not recorded", func(f *Facts) { f.Nodes[1].Unrecorded = "permission denied" }, "warning progress-not-recorded agg2", "permission denied", "writable for bursar", time.Time{}},
		{"a disk that fills up", func(f *Facts) { f.Nodes[1].Disk.Level, f.Nodes[1].Disk.Since = LevelWarn, hours(3) }, "warning disk-warn agg2", "filling up (50.0 % of 100 GiB free)", "du -xh", hours(3)},
		{"a disk nearly full", func(f *Facts) { f.Nodes[0].Disk.Level = LevelLow }, "critical disk-low agg1", "neither leads nor pulls", "disk free-ballast   # on agg1, gives 256 MiB", time.Time{}},
		{"a full disk without ballast", func(f *Facts) { f.Nodes[0].Disk.Level, f.Nodes[0].Disk.Ballast = LevelReadOnly, 0 }, "critical disk-readonly agg1", "writes nothing", "du -xh --max-depth=2 /var/lib/bursar", time.Time{}},
		{"a disk that hangs", func(f *Facts) { f.Nodes[0].Disk.Stalled = 7 * time.Second }, "critical disk-stalled agg1", "hanging for 7s", "dmesg", noon.Add(-7 * time.Second)},
		{"paused pulls", func(f *Facts) { f.Nodes[0].Paused = "the clock is wrong" }, "critical pulls-paused agg1", "nothing is pulled from the agents: the clock is wrong", "journalctl", time.Time{}},
		{"days that lack runs", func(f *Facts) {
			f.Data.Lacking = []Lacking{{Agent: "head1", Source: "head1/slurm/nemo", From: noon.Add(-60 * time.Hour), To: noon.Add(-12 * time.Hour), Runs: 7, Shared: 1, Remedy: "bursar-agent recollect -source slurm/nemo"}}
		}, "warning runs-missing head1/slurm/nemo 2026-02-27 to 2026-02-28", "the scheduler has 7 runs that are not counted", "bursar-agent recollect -source slurm/nemo   # on head1", time.Time{}},
		{"a day whose runs the source does not give", func(f *Facts) {
			f.Data.Lacking = []Lacking{{Agent: "head1", Source: "head1/slurm/nemo", From: noon.Add(-36 * time.Hour), To: noon.Add(-12 * time.Hour), Runs: 1, Unread: 1}}
		}, "warning runs-missing head1/slurm/nemo 2026-02-28", "1 run that is not counted, and the source does not collect", "journalctl -u bursar-agent", time.Time{}},
		{"a mapping that gives runs one id", func(f *Facts) {
			f.Data.Lacking = []Lacking{{Agent: "head1", Source: "head1/slurm/nemo", From: noon.Add(-36 * time.Hour), To: noon.Add(-12 * time.Hour), Runs: 2, Shared: 2, Remedy: "recollect"}}
		}, "warning runs-missing head1/slurm/nemo 2026-02-28", "the record ids of other runs", "correct the id in the mapping, then: recollect", time.Time{}},
		{"a source that fails", func(f *Facts) {
			f.Agents[0].Failing = map[string]string{"slurm/nemo": "sacct: exit status 1"}
		}, "warning source-failing head1/slurm/nemo", "source slurm/nemo of agent head1 is not collected: sacct: exit status 1", "bursar-agent status   # on head1", time.Time{}},
		{"a source that is silent", func(f *Facts) {
			f.Data.Silent = []Silent{{Agent: "head1", Source: "head1/slurm/nemo", Since: hours(2), Allowed: 5 * time.Minute}, {Agent: "gone", Source: "gone/slurm/x"}}
		}, "warning source-silent head1/slurm/nemo", "says nothing since 2026-03-01 10:00 UTC; 5m0s without a word are unusual", "bursar-agent status   # on head1", hours(2)},
		{"a silent agent", func(f *Facts) {
			f.Agents[0].Connected, f.Agents[0].Error, f.Agents[0].Contact = false, "refused", hours(4)
		}, "warning agent-silent head1", "head1 at head1:7070 does not answer: refused", "systemctl status bursar-agent   # on head1", hours(4)},
		{"an agent never reached", func(f *Facts) {
			f.Agents[0].Connected, f.Agents[0].Error, f.Agents[0].Contact = false, "no route", time.Time{}
		}, "warning agent-silent head1", "never reached: no route", "head1", time.Time{}},
		{"an agent that is away since a restart", func(f *Facts) {
			f.Agents[0].Connected, f.Agents[0].Error, f.Agents[0].Unasked, f.Agents[0].Contact = false, "no route", true, time.Time{}
		}, "warning agent-silent head1", "no route; findings about its records are not known since this node leads", "head1", time.Time{}},
		{"an agent with a damaged buffer", func(f *Facts) {
			f.Agents[0].Connected, f.Agents[0].Error, f.Agents[0].Remedy = false, "corrupt chunk", "mv b b.damaged   # on head1"
		}, "critical agent-damaged head1", "cannot hand over what it holds: corrupt chunk", "mv b b.damaged   # on head1", time.Time{}},
		{"a late source", func(f *Facts) { f.Data.CompleteTo = hours(7) }, "warning source-late head1/slurm/nemo", "complete only to 2026-03-01 05:00", "bursar agents", hours(7)},
		{"a certificate that ends", func(f *Facts) { f.Nodes[1].CertEnds = noon.AddDate(0, 0, 20) }, "warning certificate-ends agg2", "ends on 2026-03-21", "bursar tls cert create -role aggregator -name agg2", time.Time{}},
		{"a certificate that ends now", func(f *Facts) { f.Nodes[1].CertEnds = noon.AddDate(0, 0, 2) }, "critical certificate-ends agg2", "ends on 2026-03-03", "agg2", time.Time{}},
		{"a certificate that has ended", func(f *Facts) { f.Nodes[1].CertEnds = hours(1) }, "critical certificate-ends agg2", "ended on", "agg2", hours(1)},
		{"a certificate that is not renewed", func(f *Facts) {
			f.Nodes[1].CertEnds, f.Nodes[1].Unrenewed = noon.AddDate(0, 0, 25), "agg1 cannot be asked"
		}, "warning certificate-not-renewed agg2", "ends on 2026-03-26 12:00 UTC and is not renewed: agg1 cannot be asked", "bursar token create -role aggregator -name agg2", time.Time{}},
		{"a certificate of an agent that ends", func(f *Facts) { f.Agents[0].CertEnds = noon.AddDate(0, 0, 20) }, "warning certificate-ends agent head1", "ends on 2026-03-21", "bursar token create -role agent -name head1", time.Time{}},
		{"refused certificates", func(f *Facts) { f.Nodes[1].CertError = "not ours" }, "warning certificate-refused agg2", "not ours", "-check", time.Time{}},
		{"clocks apart", func(f *Facts) { f.Nodes[1].ClockOffset = -1500 * time.Millisecond }, "warning clock-apart agg2", "agg1 and agg2 differ by 1.5s", "timedatectl", time.Time{}},
		{"clocks far apart", func(f *Facts) { f.Nodes[1].ClockOffset = time.Hour }, "critical clock-apart agg2", "1h0m0s", "timedatectl", time.Time{}},
		{"files that differ", func(f *Facts) { f.Nodes[2].ConfigDiffers = []string{"agent.a", "agent.b", "usage", "index"} }, "warning config-differs agg3", "agent.a, agent.b, usage and 1 more", "bursar config diff   # on agg3", time.Time{}},
		{"a configuration that is not obeyed", func(f *Facts) { f.Nodes[2].ConfigProblem = "unknown block" }, "critical config-disobeyed agg3", "unknown block", "journalctl", time.Time{}},
		{"mixed versions", func(f *Facts) { f.Nodes[2].Version = "1.1" }, "warning versions-mixed ", "agg1, agg2 1.0; agg3 1.1", "upgrade", time.Time{}},
		{"states that differ", func(f *Facts) { f.Nodes[2].Hash = "bb" }, "critical state-differs agg3", "agg2 and agg3 differ in their state at index 90", "operator check", time.Time{}},
		{"quarantine", func(f *Facts) { f.Data.Quarantined, f.Data.OldestQuarantined = 1, hours(9) }, "warning quarantine ", "1 job is quarantined; its usage is not counted", "bursar quarantine list", hours(9)},
		{"counters that do not add up", func(f *Facts) { f.Data.Lost = []string{"head1/slurm/nemo"} }, "critical not-conserved ", "head1/slurm/nemo", "report", time.Time{}},
		{"a new gap", func(f *Facts) { f.Data.Gaps, f.Data.NewestGap = 2, hours(5) }, "warning gaps ", "2 gaps", "recollect", hours(5)},
		{"an old gap", func(f *Facts) { f.Data.Gaps, f.Data.NewestGap = 1, hours(24*9) }, "notice gaps ", "1 gap", "recollect", hours(24 * 9)},
		{"records that lack a component", func(f *Facts) {
			f.Agents[0].Findings = []RecordFinding{{Kind: "component-missing", Source: "head1/replay/lab", About: "Cores", What: "component \"Cores\" is missing", Do: "bursar-agent preview   # on head1", Count: 2, First: hours(3), Last: hours(2), Example: "lab-7", Noticed: hours(1)}}
		}, "warning records-odd head1/replay/lab component-missing Cores", "2 records of head1/replay/lab: component \"Cores\" is missing (from 2026-03-01 09:00 to 2026-03-01 10:00 UTC, for example lab-7)", "preview", time.Time{}},
		{"records that stop before they start, long ago", func(f *Facts) {
			f.Data.Negative = []RecordFinding{{Kind: "stop-before-start", Source: "pushed", What: "the stop is before the start", Do: "correct", Count: 1, Noticed: hours(24 * 9)}}
		}, "notice records-odd pushed stop-before-start", "1 record of pushed: the stop is before the start", "correct", time.Time{}},
		{"conflicts", func(f *Facts) { f.Data.Conflicts = 3 }, "warning conflicts ", "start of 3 runs", "bursar conflicts", time.Time{}},
		{"stops that wait", func(f *Facts) { f.Data.Waiting = 2 }, "notice waiting-stops ", "2 stops wait", "bursar waiting list", time.Time{}},
		{"an old backup", func(f *Facts) { f.Backup.Last = noon.AddDate(0, 0, -9) }, "warning backup-old ", "9 days old", "snapshot save", noon.AddDate(0, 0, -9)},
		{"no backup", func(f *Facts) { f.Backup.Last = time.Time{} }, "notice backup-none ", "no snapshot", "snapshot save", time.Time{}},
		{"a backup that fails", func(f *Facts) {
			f.Nodes[1].Backup = &LocalBackup{Every: time.Hour, Began: hours(50), Last: hours(3), Error: "no space left", Remedy: "df -h /b", Failing: hours(2)}
		}, "warning backup-fails agg2", "the backup of agg2 fails: no space left", "df -h /b   # on agg2", hours(2)},
		{"a backup that does not come", func(f *Facts) {
			f.Nodes[1].Backup = &LocalBackup{Every: 24 * time.Hour, Began: hours(500), Last: hours(50)}
		}, "warning backup-late agg2", "the newest backup of agg2 is 50 h old, and one is to be made every 24 h", "journalctl", hours(26)},
		{"a backup that never came", func(f *Facts) {
			f.Nodes[1].Backup = &LocalBackup{Every: 24 * time.Hour, Began: hours(60)}
		}, "warning backup-late agg2", "the wait for a backup of agg2 is 60 h old", "journalctl", hours(36)},
		{"an old backup of every node", func(f *Facts) {
			f.Backup = Backup{}
			f.Nodes[1].Backup = &LocalBackup{Every: 24 * time.Hour, Began: hours(500), Last: hours(24 * 10)}
			f.Nodes[2].Backup = &LocalBackup{Every: 24 * time.Hour, Began: hours(500), Last: hours(24 * 9)}
		}, "warning backup-old ", "the newest snapshot is 9 days old", "snapshot save", hours(24 * 9)},
		{"what is not known", func(f *Facts) { f.Unknown = []string{"the store cannot be read"} }, "warning unknown the store cannot be read", "the store", "journalctl", time.Time{}},
		{"what others found", func(f *Facts) { f.Others = []Finding{{Severity: Warning, ID: "x", About: "y", What: "z"}} }, "warning x y", "z", "", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := trio()
			c.change(&f)
			r := Judge(f)
			for _, got := range r.Findings {
				if string(got.Severity)+" "+got.ID+" "+got.About != c.want {
					continue
				}
				if !strings.Contains(got.What, c.what) || !strings.Contains(got.Do, c.do) || !got.Since.Equal(c.since) {
					t.Errorf("%+v", got)
				}
				if got.Do == "" && got.ID != "x" {
					t.Error("it does not say what to do")
				}
				return
			}
			t.Errorf("%+v, want %s", r.Findings, c.want)
		})
	}
}

func TestJudge_CauseComesBeforeWhatFollows(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		first  string
	}{
		"nodes that do not answer": {func(f *Facts) { f.Nodes[1].Seen, f.Nodes[2].Seen = time.Time{}, time.Time{} }, "node-silent"},
		"a full disk":              {func(f *Facts) { f.Nodes[0].Disk.Level = LevelReadOnly }, "disk-readonly"},
		"a disk that hangs":        {func(f *Facts) { f.Nodes[0].Disk.Stalled = 7 * time.Second }, "disk-stalled"},
		"a fenced node":            {func(f *Facts) { f.Nodes[1].Fenced = "its state differs" }, "node-fenced"},
		"nothing else":             {func(*Facts) {}, "no-leader"},
	} {
		f := trio()
		f.Leader = ""
		c.change(&f)
		r := Judge(f)
		if len(r.Findings) == 0 || r.Findings[0].ID != c.first {
			t.Errorf("%s: %+v", name, r.Findings)
		}
	}
}

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	alone := trio()
	alone.Nodes, alone.Backup = alone.Nodes[:1], Backup{}
	alone.Nodes[0].Local.CertEnds, alone.Agents = time.Time{}, nil
	young := trio() // a certificate of a day, renewed every few hours
	young.Nodes[0].CertFrom, young.Nodes[0].CertEnds = noon.Add(-6*time.Hour), noon.Add(18*time.Hour)
	monthly := trio()
	monthly.Backup = Backup{}
	monthly.Nodes[1].Backup = &LocalBackup{Every: 30 * 24 * time.Hour, Began: noon.AddDate(-1, 0, 0), Last: noon.AddDate(0, 0, -40)}
	brief := trio()
	brief.Agents[0].Connected, brief.Agents[0].Error = false, "it restarts"
	for name, f := range map[string]Facts{"three nodes": trio(), "one node": alone, "a certificate of a day": young, "an agent that was there a moment ago": brief, "a backup a month": monthly} {
		if r := Judge(f); r.State != Healthy || len(r.Findings) != 0 || r.ToDo() != 0 {
			t.Errorf("%s: %s %+v", name, r.State, r.Findings)
		}
	}
}

func TestTheWorstComesFirstAndDecides(t *testing.T) {
	f := trio()
	f.Data.Waiting = 1
	if r := Judge(f); r.State != Healthy || r.ToDo() != 0 || len(r.Findings) != 1 {
		t.Errorf("a notice: %s %+v", r.State, r.Findings)
	}
	f.Data.Conflicts = 1
	if r := Judge(f); r.State != Degraded || r.ToDo() != 1 || r.Findings[0].ID != "conflicts" {
		t.Errorf("a warning: %s %+v", r.State, r.Findings)
	}
	f.Others = []Finding{{Severity: Critical, ID: "x"}}
	if r := Judge(f); r.State != Failing || r.ToDo() != 2 || r.Findings[0].ID != "x" {
		t.Errorf("a critical finding: %s %+v", r.State, r.Findings)
	}
}

func TestASilentNodeIsFoundOnceWhateverItSaidLast(t *testing.T) {
	f := trio()
	n := &f.Nodes[2]
	n.Seen, n.Hash, n.Version, n.ClockOffset, n.Disk.Level = noon.Add(-time.Hour), "zz", "0.9", time.Hour, LevelLow
	if r := Judge(f); len(r.Findings) != 1 || r.Findings[0].ID != "node-silent" {
		t.Errorf("%+v", r.Findings)
	}
	n.Fenced = "x" // and so it stopped
	if r := Judge(f); len(r.Findings) != 1 || r.Findings[0].ID != "node-fenced" {
		t.Errorf("%+v", r.Findings)
	}
}
