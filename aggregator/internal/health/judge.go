package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Bounds of the rules.
const (
	// silence is how long a member may be unheard; nodes exchange facts every two
	// seconds. unreached is that of one that could not be reached since: a little more
	// than the time in which it would have asked itself. agentSilence is that of an agent,
	// whose pull waits up to 20 s for something new.
	silence      = 15 * time.Second
	unreached    = 3 * time.Second
	agentSilence = 30 * time.Second
	// farBehind is how many entries a member may lag.
	farBehind = 1000
	// clockApart is how far two clocks may differ before it is said, and
	// clockFar before it matters.
	clockApart = time.Second
	clockFar   = 10 * time.Second
	// lateSource is how far a source may be from complete.
	lateSource = 6 * time.Hour
	// oldBackup is how old the newest archive may be, unless they are made less
	// often; a node may be lateBackup late beside the time of another one.
	oldBackup  = 8 * 24 * time.Hour
	lateBackup = time.Hour
	// oldGap is how long a gap asks for something to be done; it is in the books
	// for ever.
	oldGap = 7 * 24 * time.Hour
	// slowWrite is how long a write to the disk may take.
	slowWrite = 2 * time.Second
	// certSoon and certNow are how long before its end a certificate is spoken
	// of, at most; those of a short life have a quarter and a tenth of it. Daemons renew
	// theirs before that.
	certSoon = 21 * 24 * time.Hour
	certNow  = 3 * 24 * time.Hour
)

// judge collects findings.
type judge struct {
	*Facts

	found []Finding
}

// Judge returns the verdict on facts. It is a pure function.
func Judge(f Facts) Report {
	if !f.Backup.Known {
		f.Backup = newestBackup(f.Nodes)
	}
	j := &judge{Facts: &f}
	for _, rule := range []func(){
		// A cause comes before what follows from it: without enough nodes none leads.
		j.checkMembers, j.checkAddresses, j.checkVoters, j.checkFences, j.checkOldCopies, j.checkUsageIndexes, j.checkDisks, j.checkStalls, j.checkLeader, j.checkPulls, j.checkAgents, j.checkSilentSources, j.checkLateSource, j.checkCertificates,
		j.checkClocks, j.checkConfiguration, j.checkVersions, j.checkStateHashes, j.checkQuarantine, j.checkRecords, j.checkConservation, j.checkGaps, j.checkMissingRuns, j.checkConflicts, j.checkWaitingStops, j.checkSnapshots, j.checkNodeBackups,
	} {
		rule()
	}
	j.found = append(j.found, f.Others...)
	for _, u := range f.Unknown {
		j.addFinding(Finding{Severity: Warning, ID: "unknown", About: u, What: u, Do: "journalctl -u bursar -n 50"})
	}
	j.applyAcknowledgements()
	j.found = sortBySeverity(j.found)
	return Report{State: stateOf(j.found), Findings: j.found, Facts: f}
}

func (j *judge) addFinding(f Finding) { j.found = append(j.found, f) }

// isHeard reports whether the judge hears the node.
func (j *judge) isHeard(n *Node) bool {
	limit := silence
	if n.Unreached {
		limit = unreached
	}
	return n.Self || j.Now.Sub(n.Seen) <= limit
}

// eachHeardNode calls a rule for all nodes that are heard.
func (j *judge) eachHeardNode(rule func(n *Node)) {
	for i := range j.Nodes {
		if n := &j.Nodes[i]; j.isHeard(n) {
			rule(n)
		}
	}
}

func (j *judge) checkLeader() {
	if j.Leader != "" {
		return
	}
	heard, voters := j.countVoters()
	f := Finding{Severity: Critical, ID: "no-leader", What: "no leader: nothing is pulled or written", Since: j.LeaderLost, Do: "journalctl -u bursar -n 50"}
	if voters > 0 && heard <= voters/2 {
		f.What = fmt.Sprintf("no leader: %d of %d voters are reachable, %d are needed", heard, voters, voters/2+1)
		f.Do = "systemctl start bursar   # on the unreachable nodes; if they are permanently lost: bursar operator recover -h"
	}
	j.addFinding(f)
}

func (j *judge) countVoters() (heard, voters int) {
	for i := range j.Nodes {
		n := &j.Nodes[i]
		if !n.Voter {
			continue
		}
		voters++
		if j.isHeard(n) {
			heard++
		}
	}
	return heard, voters
}

// checkMembers finds nodes that are silent, and nodes that lag.
func (j *judge) checkMembers() {
	for i := range j.Nodes {
		n := &j.Nodes[i]
		switch {
		case n.Fenced != "": // see checkFences
		case !j.isHeard(n):
			j.addFinding(Finding{
				Severity: Critical, ID: "node-silent", About: n.Name, Since: n.Seen,
				What: fmt.Sprintf("node %s at %s is unreachable", n.Name, n.dialledAddress()),
				Do:   fmt.Sprintf("systemctl status bursar   # on %s", n.Name),
			})
		case n.LagKnown && n.Lag > farBehind:
			j.addFinding(Finding{
				Severity: Warning, ID: "node-behind", About: n.Name,
				What: fmt.Sprintf("node %s is %d entries behind", n.Name, n.Lag),
				Do:   fmt.Sprintf("journalctl -u bursar -n 50   # on %s: its disk or its network is slow", n.Name),
			})
		}
	}
}

// dialledAddress is where the node is dialled, for people.
func (n *Node) dialledAddress() string {
	if n.Listed == "" || n.Listed == n.Address {
		return n.Address
	}
	return fmt.Sprintf("%s (raft.peers; the list of members has %s)", n.Address, n.Listed)
}

// checkAddresses finds nodes that dial another one at an address that is not its own.
func (j *judge) checkAddresses() {
	j.eachHeardNode(func(n *Node) {
		for i := range n.Misplaced {
			m := &n.Misplaced[i]
			j.addFinding(Finding{
				Severity: Warning, ID: "peer-address", About: n.Name,
				What: fmt.Sprintf("%s dials %s at %s, and %s says that it is at %s", n.Name, m.Name, m.Dialled, m.Name, m.Is),
				Do:   fmt.Sprintf("bursar config validate   # on %s and %s: give %s the same address in raft.peers of all nodes, then restart those that differ", n.Name, m.Name, m.Name),
			})
		}
	})
}

// checkOldCopies finds nodes that went back to an older copy of their data, and those that
// would not notice.
func (j *judge) checkOldCopies() {
	j.eachHeardNode(func(n *Node) {
		if n.OldCopy != "" {
			j.addFinding(Finding{
				Severity: Critical, ID: "node-old-copy", About: n.Name,
				What: fmt.Sprintf("the data directory of node %s is an older copy: it does not vote until it has caught up", n.Name),
				Do:   "systemctl start bursar   # on every other node: one of them has the newest data",
			})
		}
		if n.Unrecorded != "" {
			j.addFinding(Finding{
				Severity: Warning, ID: "progress-not-recorded", About: n.Name,
				What: fmt.Sprintf("node %s cannot record its progress and would not notice an older copy of its data: %s", n.Name, n.Unrecorded),
				Do:   fmt.Sprintf("journalctl -u bursar | grep progress   # on %s: make that directory writable for bursar", n.Name),
			})
		}
	})
}

// checkUsageIndexes finds nodes whose usage index was too large.
func (j *judge) checkUsageIndexes() {
	j.eachHeardNode(func(n *Node) {
		if n.Unindexed != "" {
			j.addFinding(Finding{
				Severity: Warning, ID: "usage-unindexed", About: n.Name,
				What: fmt.Sprintf("node %s answers every question about usage from the records, which is slow: %s", n.Name, n.Unindexed),
				Do:   "bursar config diff   # name fewer keys, or none with many values, in usage { dimensions = [...] }, then reload",
			})
		}
	})
}

// checkVoters finds members that do not vote, and a cluster that no node may leave.
func (j *judge) checkVoters() {
	voters := 0
	for i := range j.Nodes {
		if j.Nodes[i].Voter {
			voters++
			continue
		}
		j.addFinding(Finding{
			Severity: Notice, ID: "node-joins", About: j.Nodes[i].Name,
			What: fmt.Sprintf("node %s does not vote yet: it does once it has caught up", j.Nodes[i].Name), Do: "bursar operator raft list-peers",
		})
	}
	if voters == 2 {
		j.addFinding(Finding{
			Severity: Warning, ID: "two-voters",
			What: "the cluster has two voters: it stops when either fails", Do: "start a third node that raft.peers of all nodes names; or: bursar operator raft add ID ADDRESS",
		})
	}
}

// checkFences finds nodes that have stopped for good; what they said last holds until they
// say something else.
func (j *judge) checkFences() {
	for i := range j.Nodes {
		switch n := &j.Nodes[i]; {
		case n.Forked != "":
			j.addFinding(Finding{
				Severity: Critical, ID: "two-histories", About: n.Name,
				What: fmt.Sprintf("there are two histories: node %s has stopped, since it has committed entries that the leader lacks", n.Name),
				Do:   fmt.Sprintf("journalctl -u bursar   # on %s; keep the data of all nodes, and go on as the runbook says", n.Name),
			})
		case n.Fenced != "":
			j.addFinding(Finding{
				Severity: Critical, ID: "node-fenced", About: n.Name, What: fmt.Sprintf("node %s does not serve: %s", n.Name, n.Fenced),
				Do: fmt.Sprintf("bursar operator check   # on %s, stopped; then replace it as the runbook says", n.Name),
			})
		}
	}
}

// checkDisks finds disks that are full, or soon will be.
func (j *judge) checkDisks() {
	j.eachHeardNode(func(n *Node) {
		f := Finding{About: n.Name, Since: n.Disk.Since, ID: "disk-" + string(n.Disk.Level)}
		what := ""
		switch n.Disk.Level {
		case LevelWarn:
			f.Severity, what = Warning, "is filling up"
		case LevelLow:
			f.Severity, what = Critical, "is nearly full: the node neither leads nor pulls"
		case LevelReadOnly:
			f.Severity, what = Critical, "is full: the node writes nothing"
		case LevelNormal, LevelUnknown:
			return
		}
		f.What = fmt.Sprintf("the disk of %s %s (%.1f %% of %s free)", n.Name, what, n.Disk.Share(), formatSize(n.Disk.Size))
		f.Do = fmt.Sprintf("du -xh --max-depth=2 %s | sort -h   # on %s", n.Disk.Path, n.Name)
		if n.Disk.Level != LevelWarn && n.Disk.Ballast > 0 {
			f.Do = fmt.Sprintf("bursar operator disk free-ballast   # on %s, gives %s of room", n.Name, formatSize(n.Disk.Ballast))
		}
		j.addFinding(f)
	})
}

func (j *judge) checkStalls() {
	j.eachHeardNode(func(n *Node) {
		if n.Disk.Stalled > slowWrite {
			j.addFinding(Finding{
				Severity: Critical, ID: "disk-stalled", About: n.Name, Since: j.Now.Add(-n.Disk.Stalled),
				What: fmt.Sprintf("a write to the disk of %s has been hanging for %s", n.Name, n.Disk.Stalled.Round(time.Second)),
				Do:   fmt.Sprintf("dmesg -T | tail -n 30   # on %s", n.Name),
			})
		}
	})
}

// checkPulls finds a leader that does not pull, unless its disk has been spoken of.
func (j *judge) checkPulls() {
	j.eachHeardNode(func(n *Node) {
		full := n.Disk.Level == LevelLow || n.Disk.Level == LevelReadOnly
		if n.Leader && n.Paused != "" && !full {
			j.addFinding(Finding{
				Severity: Critical, ID: "pulls-paused", About: n.Name, What: "nothing is pulled from the agents: " + n.Paused,
				Do: fmt.Sprintf("journalctl -u bursar -n 50   # on %s", n.Name),
			})
		}
	})
}

func (j *judge) checkAgents() {
	for _, a := range j.Agents {
		if a.Connected && a.Error == "" {
			j.checkFailingSources(&a)
			continue
		}
		if a.Remedy != "" {
			j.addFinding(Finding{
				Severity: Critical, ID: "agent-damaged", About: a.Name,
				What: fmt.Sprintf("agent %s cannot hand over what it holds: %s", a.nameAndPlace(), a.Error), Do: a.Remedy,
			})
			continue
		}
		f := Finding{Severity: Warning, ID: "agent-silent", About: a.Name, Since: a.Contact}
		f.Do = a.chooseText("systemctl status bursar-agent", "bursar-agent doctor") + "   # on " + a.Name
		switch {
		case !a.Contact.IsZero() && j.Now.Sub(a.Contact) <= agentSilence, a.Contact.IsZero() && a.Error == "":
			continue // it may be back in a moment
		case a.Contact.IsZero():
			f.What = fmt.Sprintf("agent %s %s", a.nameAndPlace(), a.chooseText("was never reached", "has not dialled in since this node leads"))
		default:
			f.What = fmt.Sprintf("agent %s %s", a.nameAndPlace(), a.chooseText("does not answer", "has not dialled in"))
		}
		if a.Error != "" {
			f.What += ": " + a.Error
		}
		if a.Unasked {
			f.What += "; findings about its records are not known since this node leads"
		}
		j.addFinding(f)
	}
}

// nameAndPlace names the agent and where it is.
func (a *Agent) nameAndPlace() string {
	return a.Name + a.chooseText(" at "+a.Address, ", which dials in,")
}

// chooseText returns listens for an agent that listens, and dials where it dials in.
func (a *Agent) chooseText(listens, dials string) string {
	if a.Address == "" {
		return dials
	}
	return listens
}

// checkFailingSources finds sources that do not collect although their agent answers.
func (j *judge) checkFailingSources(a *Agent) {
	for _, source := range slices.Sorted(maps.Keys(a.Failing)) {
		j.addFinding(Finding{
			Severity: Warning, ID: "source-failing", About: a.Name + "/" + source,
			What: fmt.Sprintf("source %s of agent %s is not collected: %s", source, a.Name, a.Failing[source]), Do: "bursar-agent status   # on " + a.Name,
		})
	}
}

// checkSilentSources finds sources that say nothing though their agent answers. One whose agent
// does not, or that fails, has a finding of its own.
func (j *judge) checkSilentSources() {
	for _, s := range j.Data.Silent {
		for i := range j.Agents {
			a := &j.Agents[i]
			if a.Name != s.Agent || !a.Connected || a.Failing[strings.TrimPrefix(s.Source, a.Name+"/")] != "" {
				continue
			}
			j.addFinding(Finding{
				Severity: Warning, ID: "source-silent", About: s.Source, Since: s.Since,
				What: fmt.Sprintf("source %s says nothing since %s; %s without a word are unusual for it", s.Source, s.Since.UTC().Format("2006-01-02 15:04 MST"), s.Allowed.Round(time.Second)),
				Do:   "bursar-agent status   # on " + a.Name,
			})
		}
	}
}

func (j *judge) checkLateSource() {
	d := j.Data
	if d.Known && !d.CompleteTo.IsZero() && j.Now.Sub(d.CompleteTo) > lateSource {
		j.addFinding(Finding{
			Severity: Warning, ID: "source-late", About: d.Late, Since: d.CompleteTo,
			What: fmt.Sprintf("source %s is complete only to %s", d.Late, d.CompleteTo.UTC().Format("2006-01-02 15:04 MST")), Do: "bursar agents",
		})
	}
}

// checkCertificates finds those that end soon, or could not be renewed.
func (j *judge) checkCertificates() {
	j.eachHeardNode(func(n *Node) {
		if n.CertError != "" {
			j.addFinding(Finding{
				Severity: Warning, ID: "certificate-refused", About: n.Name, What: fmt.Sprintf("new certificates of %s are refused: %s", n.Name, n.CertError),
				Do: fmt.Sprintf("bursar aggregator -check   # on %s", n.Name),
			})
		}
		j.checkCertificate(n.Name, n.CertFrom, n.CertEnds, n.Unrenewed, fmt.Sprintf("bursar tls cert create -role aggregator -name %s   # and put it on %s", n.Name, n.Name))
	})
	for i := range j.Agents {
		a := &j.Agents[i]
		j.checkCertificate("agent "+a.Name, a.CertFrom, a.CertEnds, a.Unrenewed, fmt.Sprintf("bursar token create -role agent -name %s   # and run the printed line on %s", a.Name, a.Name))
	}
}

// checkCertificate judges that of one machine.
func (j *judge) checkCertificate(of string, from, ends time.Time, unrenewed, do string) {
	if ends.IsZero() {
		return
	}
	end := ends.UTC().Format("2006-01-02 15:04 MST")
	f := Finding{ID: "certificate-ends", About: of, What: fmt.Sprintf("the certificate of %s ends on %s", of, end), Do: do}
	if unrenewed != "" {
		f = Finding{
			Severity: Warning, ID: "certificate-not-renewed", About: of, Do: do,
			What: fmt.Sprintf("the certificate of %s ends on %s and is not renewed: %s", of, end, unrenewed),
		}
		if name, agent := strings.CutPrefix(of, "agent "); !agent {
			f.Do = fmt.Sprintf("start bursar on the node with the authority; where it is lost: bursar token create -role aggregator -name %s   # and run the printed line on %s", name, name)
		}
	}
	left, life := ends.Sub(j.Now), ends.Sub(from)
	switch {
	case left <= 0:
		f.Severity, f.Since = Critical, ends
		f.What = fmt.Sprintf("the certificate of %s ended on %s", of, end)
	case left < min(certNow, life/10):
		f.Severity = Critical
	case left < min(certSoon, life/4):
		f.Severity = Warning
	}
	if f.Severity != "" {
		j.addFinding(f)
	}
}

func (j *judge) checkClocks() {
	j.eachHeardNode(func(n *Node) {
		apart := n.ClockOffset.Abs()
		if n.Self || apart < clockApart {
			return
		}
		f := Finding{Severity: Warning, ID: "clock-apart", About: n.Name, Do: "timedatectl   # on both; start chronyd where it says no"}
		if apart >= clockFar {
			f.Severity = Critical
		}
		f.What = fmt.Sprintf("the clocks of %s and %s differ by %s", j.Node, n.Name, apart.Round(100*time.Millisecond))
		j.addFinding(f)
	})
}

func (j *judge) checkConfiguration() {
	j.eachHeardNode(func(n *Node) {
		if n.ConfigProblem != "" {
			j.addFinding(Finding{
				Severity: Critical, ID: "config-disobeyed", About: n.Name, What: fmt.Sprintf("%s cannot do what the cluster's configuration wants: %s", n.Name, n.ConfigProblem),
				Do: fmt.Sprintf("journalctl -u bursar -n 50   # on %s; a newer version may be needed", n.Name),
			})
		}
		if len(n.ConfigDiffers) > 0 {
			j.addFinding(Finding{
				Severity: Warning, ID: "config-differs", About: n.Name, What: fmt.Sprintf("the files of %s differ from what the cluster uses: %s", n.Name, joinThree(n.ConfigDiffers)),
				Do: fmt.Sprintf("bursar config diff   # on %s", n.Name),
			})
		}
	})
}

func (j *judge) checkVersions() {
	by := map[string][]string{}
	j.eachHeardNode(func(n *Node) {
		if n.Version != "" {
			by[n.Version] = append(by[n.Version], n.Name)
		}
	})
	if len(by) < 2 {
		return
	}
	var parts []string
	for v, names := range by {
		slices.Sort(names)
		parts = append(parts, strings.Join(names, ", ")+" "+v)
	}
	slices.Sort(parts)
	j.addFinding(Finding{Severity: Warning, ID: "versions-mixed", What: "the nodes run different versions: " + strings.Join(parts, "; "), Do: "dnf upgrade bursar   # on the older ones, one after the other"})
}

// checkStateHashes finds two nodes that differ at the same index.
func (j *judge) checkStateHashes() {
	seen := map[uint64]*Node{}
	j.eachHeardNode(func(n *Node) {
		if n.Hash == "" {
			return
		}
		o := seen[n.HashIndex]
		seen[n.HashIndex] = n
		if o != nil && o.Hash != n.Hash {
			j.addFinding(Finding{
				Severity: Critical, ID: "state-differs", About: n.Name, What: fmt.Sprintf("%s and %s differ in their state at index %d", o.Name, n.Name, n.HashIndex),
				Do: "bursar operator check   # on each node, stopped, one after the other",
			})
		}
	})
}

// joinThree joins at most three names, and counts the others.
func joinThree(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// formatSize writes bytes for people.
func formatSize(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
