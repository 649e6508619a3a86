package health

import "time"

// Facts are what a verdict rests on, as one node knows it.
type Facts struct {
	// Now is the time of the node that judges.
	Now time.Time
	// Node is the name of the node that judges, Version that of its program.
	Node, Version string
	// Cluster is the cluster's id; "" while it has none.
	Cluster string
	// Leader is the id of the node that leads; "" while none is known.
	Leader string
	// LeaderLost is since when no leader is known; zero when one is.
	LeaderLost time.Time
	// Nodes are the members, the one that judges among them.
	Nodes []Node
	// Agents are those that the leader pulls from.
	Agents []Agent
	Data   Data
	Backup Backup
	// Acknowledged are what operators know of findings already.
	Acknowledged []Acknowledgement
	// Others are findings of parts that have their own judgement.
	Others []Finding
	// Unknown is what could not be found out, a sentence each.
	Unknown []string
}

// Node is a member of the cluster.
type Node struct {
	Name, ID string
	// Address is that at which the judge dials the node, Listed that of the members' list:
	// they differ while the configuration has another one and no leader has taken it over.
	Address, Listed string
	Voter, Leader   bool
	// Self says that it is the node that judges.
	Self bool
	// Seen is when the node was last heard; zero for never. Unreached says that it was not
	// reached since, though it was tried.
	Seen      time.Time
	Unreached bool
	// Lag is how many entries of the log it has not applied yet; LagKnown says
	// whether that is known.
	Lag      uint64
	LagKnown bool
	// Applied is the index of the last entry that it has applied.
	Applied uint64
	// Hash is the state hash at HashIndex; "" while unknown.
	Hash      string
	HashIndex uint64
	// ClockOffset is how far the node's clock is ahead of the judge's.
	ClockOffset time.Duration
	Local
}

// Local is what a node knows of itself alone.
type Local struct {
	Version string `json:"version"`
	Disk    Disk   `json:"disk"`
	// CertFrom and CertEnds bound the validity of the node's certificate; zero
	// without one.
	CertFrom time.Time `json:"cert_from,omitzero"`
	CertEnds time.Time `json:"cert_ends,omitzero"`
	// CertError says why renewed certificates were refused.
	CertError string `json:"cert_error,omitempty"`
	// Unrenewed says why the certificate is not renewed although it is time; "" when it is.
	Unrenewed string `json:"unrenewed,omitempty"`
	// Fenced says why the node keeps itself from serving; "" when it serves.
	Fenced string `json:"fenced,omitempty"`
	// Unindexed says why the node keeps no usage index; "" when it keeps one, or is to
	// keep none.
	Unindexed string `json:"unindexed,omitempty"`
	// OldCopy says that the node's data are an older copy, so that it does not vote
	// until it has caught up; "" when they are not.
	OldCopy string `json:"old_copy,omitempty"`
	// Unrecorded says why the node would not notice that its data are an older copy;
	// "" when it would.
	Unrecorded string `json:"unrecorded,omitempty"`
	// Forked says why the node has stopped: it has committed entries that the leader
	// lacks; "" when it has not.
	Forked string `json:"forked,omitempty"`
	// Paused says why the node, when it leads, does not pull; "" when it does.
	Paused string `json:"paused,omitempty"`
	// ConfigDiffers names what the node's files have otherwise than the cluster.
	ConfigDiffers []string `json:"config_differs,omitempty"`
	// Misplaced are the nodes that say they are at another address than the node dials.
	Misplaced []Misplaced `json:"misplaced,omitempty"`
	// ConfigProblem says why the node does not do what the cluster's configuration
	// wants; "" when it does.
	ConfigProblem string `json:"config_problem,omitempty"`
	// Backup says how the node's own backups are doing; nil when it makes none.
	Backup *LocalBackup `json:"backup,omitempty"`
	// Agents are those that the node pulls from; only a leader has any.
	Agents []Agent `json:"agents,omitempty"`
}

// Misplaced is a node that says it is at another address than the one at which it is dialled.
type Misplaced struct {
	Name    string `json:"name"`
	Dialled string `json:"dialled"`
	Is      string `json:"is"`
}

// Level is how full a disk is.
type Level string

// The levels, from good to bad.
const (
	LevelUnknown  Level = ""
	LevelNormal   Level = "normal"
	LevelWarn     Level = "warn"     // act soon
	LevelLow      Level = "low"      // the leader stops pulling and hands over
	LevelReadOnly Level = "readonly" // nothing is written
)

// Disk is the file system of a node's data.
type Disk struct {
	Path  string    `json:"path,omitempty"`
	Free  uint64    `json:"free"`
	Size  uint64    `json:"size"`
	Level Level     `json:"level"`
	Since time.Time `json:"since,omitzero"` // of the level
	// Ballast is the size of the file that can be given up for room.
	Ballast uint64 `json:"ballast"`
	// Stalled is how long a write has been hanging.
	Stalled time.Duration `json:"stalled,omitzero"`
}

// Share is the free part of the disk in percent.
func (d Disk) Share() float64 {
	if d.Size == 0 {
		return 0
	}
	return 100 * float64(d.Free) / float64(d.Size)
}

// Agent is an agent as the leader sees it.
type Agent struct {
	Name      string    `json:"name"`
	Address   string    `json:"address"` // "": it dials in
	Connected bool      `json:"connected"`
	Error     string    `json:"error,omitempty"`
	Remedy    string    `json:"remedy,omitempty"` // the command that mends it, where waiting does not
	Contact   time.Time `json:"contact,omitzero"` // zero: never
	Behind    uint64    `json:"behind"`           // frames that wait on it
	// Failing are its sources that do not collect, by type/label, with why.
	Failing map[string]string `json:"failing,omitempty"`
	// Unasked says that it has not told Failing and Findings since this node leads: they are
	// unknown.
	Unasked bool `json:"unasked,omitempty"`
	// Findings are about the records of its sources.
	Findings []RecordFinding `json:"findings,omitempty"`
	// CertFrom, CertEnds and Unrenewed are those of [Local], of the agent's certificate.
	CertFrom  time.Time `json:"cert_from,omitzero"`
	CertEnds  time.Time `json:"cert_ends,omitzero"`
	Unrenewed string    `json:"unrenewed,omitempty"`
}

// Data is what the store holds.
type Data struct {
	// Known says that the store could be read.
	Known                           bool
	Index, Records                  uint64
	Quarantined, Conflicts, Waiting int
	Gaps                            int
	OldestQuarantined, NewestGap    time.Time
	// CompleteTo is the oldest of the times up to which the sources are complete;
	// zero when none says so.
	CompleteTo time.Time
	// Late names the source that CompleteTo is of.
	Late string
	// Lacking are days of sources that lack runs.
	Lacking []Lacking
	// Silent are sources that say nothing for longer than is usual for them.
	Silent []Silent
	// Negative are, by source, the records that stop before they start.
	Negative []RecordFinding
	// Lost are the sources whose counters do not add up.
	Lost []string
}

// Silent is a source that says nothing for longer than is usual for it.
type Silent struct {
	Agent, Source string
	Since         time.Time     // when it spoke last
	Allowed       time.Duration // after which it is silent
}

// Lacking are days of a source in a row that lack runs.
type Lacking struct {
	Agent, Source  string
	From, To       time.Time
	Runs           int64
	Unread, Shared int64 // of which the source does not give so many, and so many have the id of another run
	Remedy         string
}

// LocalBackup says how the backups are doing that a node makes by itself.
type LocalBackup struct {
	Path  string        `json:"path"`
	Every time.Duration `json:"every"`
	Began time.Time     `json:"began"`         // since when it is to make them
	Last  time.Time     `json:"last,omitzero"` // when the newest good one was made; zero: never
	Bytes int64         `json:"bytes,omitempty"`
	// Error says why the last one failed, Remedy what to do first, and Failing
	// since when it fails; empty when it did not fail.
	Error    string    `json:"error,omitempty"`
	Remedy   string    `json:"remedy,omitempty"`
	Failing  time.Time `json:"failing,omitzero"`
	Failures uint64    `json:"failures,omitempty"`
}

// Backup is the newest archive that is known of.
type Backup struct {
	// Known says that some node makes backups.
	Known bool
	Last  time.Time // zero: never
	// Every is the shortest pause between two of them; zero when it is not known.
	Every time.Duration
}

// newestBackup is the newest of all nodes, those that are not heard included:
// their archives may lie elsewhere.
func newestBackup(nodes []Node) (b Backup) {
	for i := range nodes {
		own := nodes[i].Backup
		if own == nil {
			continue
		}
		if !b.Known || own.Every < b.Every {
			b.Every = own.Every
		}
		if b.Known = true; own.Last.After(b.Last) {
			b.Last = own.Last
		}
	}
	return b
}
