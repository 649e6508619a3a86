// Code generated from openapi.yaml by go test ./proto/v1 -update. DO NOT EDIT.

package v1

import "encoding/json"

// RowFilter: The only records that are shown: those that have, for at least one element, under each
// key one of the values.
type RowFilter []map[string][]string

// ArchiveStatement is a part of an answer.
type ArchiveStatement struct {
	// The records stopped at this time or later.
	From Time `json:"from"`
	// And before this time.
	To Time `json:"to"`
	// The change up to which the archive has rows.
	UpTo uint64 `json:"up_to"`
	// How many rows it has.
	Count uint64 `json:"count"`
	// The sum of the rows as read back from the files: 32 hexadecimal digits.
	Digest string `json:"digest"`
	// Where the files are: a folder or s3://bucket/prefix.
	Location string `json:"location"`
	// The name of the manifest below the location.
	Manifest string `json:"manifest"`
	// Of the manifest.
	Sha256 string `json:"sha256"`
	// Totals of the manifest, as decimal numbers.
	Sums map[string]string `json:"sums,omitempty"`
	// Meta keys that stay in the store beside those that usage needs.
	Keep []string `json:"keep,omitempty"`
}

// Archive is a part of an answer.
type Archive struct {
	Name string `json:"name"`
	// While it is checking nothing is removed.
	State string `json:"state"`
	// How many rows lost their details and did not get them back.
	Removed uint64 `json:"removed"`
	// The meta keys that stayed in the store.
	Kept []string `json:"kept"`
	// The records stopped at this time or later.
	From Time `json:"from"`
	// And before this time.
	To Time `json:"to"`
	// The change up to which the archive has rows.
	UpTo uint64 `json:"up_to"`
	// How many rows it has.
	Count uint64 `json:"count"`
	// The sum of the rows as read back from the files: 32 hexadecimal digits.
	Digest string `json:"digest"`
	// Where the files are: a folder or s3://bucket/prefix.
	Location string `json:"location"`
	// The name of the manifest below the location.
	Manifest string `json:"manifest"`
	// Of the manifest.
	Sha256 string `json:"sha256"`
	// Totals of the manifest, as decimal numbers.
	Sums map[string]string `json:"sums,omitempty"`
	// Meta keys that stay in the store beside those that usage needs.
	Keep []string `json:"keep,omitempty"`
}

// AuditEntry is a part of an answer.
type AuditEntry struct {
	Time Time   `json:"time"`
	Kind string `json:"kind"`
	// The principal, such as client/alice or user/bob.
	Who string `json:"who"`
	// The roles that the principal had.
	Roles string `json:"roles"`
	// The address of the client; empty for the unix socket.
	From string `json:"from"`
	// The method and the pattern of the route.
	Route string `json:"route"`
	// The path, and what the query asked for: whose data it was.
	About string `json:"about"`
	// The status of the answer, or words.
	Result string `json:"result"`
	// The node that was asked.
	Node string `json:"node"`
}

// Retention is a part of an answer.
type Retention struct {
	// How many months records keep the names of persons at most. Null is for ever.
	NamesMonths *int `json:"names_months"`
	// Meta keys that such records lose too.
	Drop []string `json:"drop"`
	// When names were removed last.
	Last Time `json:"last"`
	// Records that lost their names then.
	Records int `json:"records"`
	// Records that have lost their names in all.
	Total int `json:"total"`
	// Quarantined jobs that were dropped then.
	Quarantined int `json:"quarantined"`
	// Records that kept their names then, since their details are in archives.
	Archived int `json:"archived"`
}

// RetentionDue is a part of an answer.
type RetentionDue struct {
	// Records that stopped before keep no names. Calendar months go whole.
	Until Time `json:"until"`
	// Records that would lose their names.
	Records int `json:"records"`
	// The persons whom they name.
	People int `json:"people"`
	// Quarantined jobs that would be dropped.
	Quarantined int `json:"quarantined"`
	// Records that would keep their names, since their details are in archives.
	Archived int `json:"archived"`
	// Archives with records of that time. Their files keep names.
	Archives []string `json:"archives"`
	// Meta keys that the records would keep.
	Keys []string `json:"keys"`
}

// ArchiveRestored is a part of an answer.
type ArchiveRestored struct {
	// How many rows have their details again.
	Restored uint64 `json:"restored"`
	// At the end: how many rows lack details, since they changed after the archive was made.
	Left uint64 `json:"left"`
}

// TimeTest is a part of a query.
type TimeTest struct {
	Gt     Time `query:"gt"`
	Gte    Time `query:"gte"`
	Lt     Time `query:"lt"`
	Lte    Time `query:"lte"`
	Equals Time `query:"equals"`
}

// NumberTest is a part of a query.
type NumberTest struct {
	Gt     *int `query:"gt"`
	Gte    *int `query:"gte"`
	Lt     *int `query:"lt"`
	Lte    *int `query:"lte"`
	Equals *int `query:"equals"`
}

// MetaTest is a part of a query.
type MetaTest struct {
	// The list of the key has all of these.
	C []string `query:"c"`
	// It has none of these.
	Dnc []string `query:"dnc"`
	// It has at least one of these.
	Any []string `query:"any"`
}

// Meta is a part of an answer.
type Meta map[string][]string

// Score is a part of an answer.
type Score struct {
	Name  string      `json:"name"`
	Value json.Number `json:"value"`
}

// Component is a part of an answer.
type Component struct {
	Name   string  `json:"name"`
	Amount int64   `json:"amount"`
	Scores []Score `json:"scores"`
}

// FullComponent is a part of an answer.
type FullComponent struct {
	Name   string  `json:"name"`
	Amount int64   `json:"amount"`
	Kind   string  `json:"kind"`
	Scores []Score `json:"scores"`
}

// Record is a part of an answer.
type Record struct {
	RecordID   string      `json:"record_id"`
	Meta       Meta        `json:"meta"`
	Components []Component `json:"components"`
	StartTime  Time        `json:"start_time"`
	StopTime   Time        `json:"stop_time"`
	// Whole seconds; negative when the stop is before the start.
	Runtime *int64 `json:"runtime"`
}

// FullRecord is a part of an answer.
type FullRecord struct {
	RecordID   string          `json:"record_id"`
	Meta       Meta            `json:"meta"`
	Components []FullComponent `json:"components"`
	StartTime  Time            `json:"start_time"`
	StopTime   Time            `json:"stop_time"`
	Runtime    *int64          `json:"runtime"`
	SubmitTime Time            `json:"submit_time"`
	State      Text            `json:"state"`
	ExitCode   *int64          `json:"exit_code"`
	ExitSignal *int64          `json:"exit_signal"`
	// The stop is before the start; nothing was used.
	Negative bool `json:"negative"`
	// Agent/type/label, or pushed.
	Origin   string `json:"origin"`
	Rank     string `json:"rank"`
	Received Time   `json:"received"`
	Changed  Time   `json:"changed"`
	// The place in the change feed.
	Seq uint64 `json:"seq"`
	// True when the details are in an archive: what is here is what usage needs.
	Archived bool `json:"archived,omitempty"`
}

// OpenRunLine: A line of the records that go on, whose fields are those of the first line, of a
// record or of the last line.
type OpenRunLine struct {
	// The id of the cluster.
	Cluster string `json:"cluster,omitempty"`
	// Another one after the cluster was rebuilt, or restored from a snapshot.
	Epoch string `json:"epoch,omitempty"`
	// The last change that is in the answer.
	Last      uint64 `json:"last,omitempty"`
	Now       Time   `json:"now,omitempty"`
	CountedTo Time   `json:"counted_to,omitempty"`
	// Not in the first line and the last one.
	Record *FullRecord `json:"record,omitempty"`
	// How many lines have a record.
	Records uint64 `json:"records,omitempty"`
	// Of each site; the list is there in the last line only.
	Digests []OpenDigest `json:"digests,omitempty"`
}

// OpenDigest is a part of an answer.
type OpenDigest struct {
	// Null for records without one.
	Site    Text   `json:"site"`
	Records uint64 `json:"records"`
	// An exact decimal.
	CoreSeconds string `json:"core_seconds"`
}

// Entry is a part of an answer.
type Entry struct {
	RecordID string `json:"record_id"`
	Deleted  bool   `json:"deleted"`
	Conflict bool   `json:"conflict"`
	// What is shown; null in lists, and when nothing is.
	Record   *FullRecord `json:"record"`
	Holdings []Holding   `json:"holdings"`
}

// Holding: What one origin says.
type Holding struct {
	Origin      string  `json:"origin"`
	Rank        string  `json:"rank"`
	Ended       bool    `json:"ended"`
	Observed    Time    `json:"observed"`
	Withdrawn   bool    `json:"withdrawn"`
	WaitingStop Time    `json:"waiting_stop"`
	Record      *Record `json:"record"`
}

// Counts: pulled is the sum of all others; conserved says that it is.
type Counts struct {
	Pulled      int64 `json:"pulled"`
	Added       int64 `json:"added"`
	Merged      int64 `json:"merged"`
	Unchanged   int64 `json:"unchanged"`
	Stale       int64 `json:"stale"`
	Withdrawn   int64 `json:"withdrawn"`
	Deleted     int64 `json:"deleted"`
	Conflicting int64 `json:"conflicting"`
	Quarantined int64 `json:"quarantined"`
	Conserved   bool  `json:"conserved"`
}

// SourceCounts: What became of all that was written by a source.
type SourceCounts struct {
	// Agent/type/label.
	Source string `json:"source"`
	Counts
}

// Finding is a part of an answer.
type Finding struct {
	// After a notice nothing needs to be done.
	Severity string `json:"severity"`
	// The kind of finding; it stays the same in later versions.
	ID string `json:"id"`
	// What it is about, such as a node; empty for the cluster.
	About string `json:"about"`
	// To who reads only some of the records, or none, without the text of a failure, which may name
	// people.
	What string `json:"what"`
	// What to do first.
	Do    string `json:"do"`
	Since Time   `json:"since"`
}

// Verdict: Whether the cluster is healthy, as a node judges it.
type Verdict struct {
	State    string    `json:"state"`
	Findings []Finding `json:"findings"`
	// The node that says so.
	Node         string `json:"node"`
	Nodes        []Node `json:"nodes"`
	LastSnapshot Time   `json:"last_snapshot"`
}

// Node is a part of an answer.
type Node struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	// At which the node that says so dials it: that of its configuration, or else listed_address.
	Address string `json:"address"`
	// In the cluster's list of members, which a leader makes follow its configuration.
	ListedAddress string `json:"listed_address"`
	Role          string `json:"role"`
	Voter         bool   `json:"voter"`
	// It is the node that says so.
	Self bool `json:"self"`
	// The node that says so hears it: nodes ask each other every two seconds. Otherwise what stands
	// here of it is of last_contact.
	Heard       bool `json:"heard"`
	LastContact Time `json:"last_contact"`
	// How long ago that was, by the clock of the node that says so; null for never.
	AgeSeconds   *float64 `json:"age_seconds"`
	AppliedIndex uint64   `json:"applied_index"`
	// Entries of the log that it has not applied yet; null while unknown, also of a node that is not
	// heard.
	Behind *uint64 `json:"behind"`
	// Of its program.
	Version       string `json:"version"`
	DiskFreeBytes uint64 `json:"disk_free_bytes"`
	DiskSizeBytes uint64 `json:"disk_size_bytes"`
	// low: it neither leads nor pulls; readonly: it writes nothing; empty: unknown.
	DiskLevel string `json:"disk_level"`
	// What `bursar operator disk free-ballast` would free.
	BallastBytes uint64 `json:"ballast_bytes"`
	// How far its clock is ahead of that of the node that says so.
	ClockOffsetSeconds float64 `json:"clock_offset_seconds"`
	// Of its state at hash_index; empty while unknown.
	Hash      string `json:"hash"`
	HashIndex uint64 `json:"hash_index"`
	// Why it does not serve; empty when it does.
	Fenced string `json:"fenced"`
	// Why it does not pull, when it leads; empty when it does.
	Paused string `json:"paused"`
	// What its files have otherwise than the cluster.
	ConfigDiffers    []string `json:"config_differs"`
	CertificateUntil Time     `json:"certificate_until"`
	// The backups that it makes by itself; null when it makes none.
	Backup *NodeBackup `json:"backup"`
}

// NodeBackup is a part of an answer.
type NodeBackup struct {
	Path         string  `json:"path"`
	EverySeconds float64 `json:"every_seconds"`
	Last         Time    `json:"last"`
	// Size of the newest good one.
	Bytes int64 `json:"bytes"`
	// Why the last one failed; empty when it did not.
	Error        string `json:"error"`
	FailingSince Time   `json:"failing_since"`
	// Since the node was started.
	Failures uint64 `json:"failures"`
}

// Amounts: Capacity by component; null where it is unknown.
type Amounts map[string]*json.Number

// CapacityStep is a part of an answer.
type CapacityStep struct {
	From       Time    `json:"from"`
	Components Amounts `json:"components"`
}

// Cluster is a part of an answer.
type Cluster struct {
	Name string `json:"name"`
	// False when it is a cluster because a source says what it has.
	Configured bool `json:"configured"`
	// A record is the first cluster's of which each key has one of the values; `*` is any text.
	Match map[string][]string `json:"match"`
	// Those that say what it has, as agent/type/label.
	Sources []string `json:"sources"`
	// What the configuration says.
	Parts      []ClusterPart `json:"parts"`
	Components Amounts       `json:"components"`
	// Null without a window.
	Steps []CapacityStep `json:"steps"`
}

// ClusterPart is a part of an answer.
type ClusterPart struct {
	Name       string           `json:"name"`
	From       Time             `json:"from"`
	To         Time             `json:"to"`
	Components map[string]int64 `json:"components"`
}

// ClusterGroup is a part of an answer.
type ClusterGroup struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
	Groups   []string `json:"groups"`
	// All its clusters, each once.
	Members []string `json:"members"`
	// Those whose capacity is unknown.
	Unknown    []string       `json:"unknown"`
	Components Amounts        `json:"components"`
	Steps      []CapacityStep `json:"steps"`
}

// Census is a part of an answer.
type Census struct {
	Running int64          `json:"running"`
	Pending int64          `json:"pending"`
	Sources []CensusSource `json:"sources"`
}

// CensusSource is a part of an answer.
type CensusSource struct {
	Source string `json:"source"`
	// When the source looked.
	At      Time        `json:"at"`
	Running int64       `json:"running"`
	Pending int64       `json:"pending"`
	Rows    []CensusRow `json:"rows"`
}

// CensusRow is a part of an answer.
type CensusRow struct {
	User    string `json:"user"`
	Queue   string `json:"queue"`
	Running int64  `json:"running"`
	Pending int64  `json:"pending"`
}

// Gap is a part of an answer.
type Gap struct {
	Agent string `json:"agent"`
	// Empty with source_label where the gap is of the whole agent.
	SourceType  string `json:"source_type"`
	SourceLabel string `json:"source_label"`
	From        Time   `json:"from"`
	To          Time   `json:"to"`
	Reason      string `json:"reason"`
	Noticed     Time   `json:"noticed"`
}

// Day is a part of an answer.
type Day struct {
	// Agent/type/label.
	Source string `json:"source"`
	Day    string `json:"day"`
	State  string `json:"state"`
	// That ended in the day: by the second route or, where it was more, by collecting them again. Null
	// where the day was not counted.
	Runs *int64 `json:"runs"`
	// Records of the source that ended in the day.
	Stored int64 `json:"stored"`
	// Left out by the configuration of the source.
	Filtered *int64 `json:"filtered"`
	// That fail the mapping.
	Quarantined *int64 `json:"quarantined"`
	// Taken out by an operator, as far as that is remembered; looked for where runs seem to be missing.
	Deleted int64 `json:"deleted"`
	// runs - stored - filtered - quarantined - deleted, where it is above 0.
	Missing int64 `json:"missing"`
	// The same where it is below 0.
	Surplus int64 `json:"surplus"`
	// Those of the missing that the source counts and does not collect.
	Unread int64 `json:"unread"`
	// Runs whose mapping gives them the record id of another run.
	Shared *int64 `json:"shared"`
	// Rows that are no runs.
	Skipped   *int64 `json:"skipped"`
	CountedAt Time   `json:"counted_at"`
}

// Stretch is a part of an answer.
type Stretch struct {
	Agent string `json:"agent"`
	// Agent/type/label.
	Source  string `json:"source"`
	From    Time   `json:"from"`
	To      Time   `json:"to"`
	Days    int    `json:"days"`
	Missing int64  `json:"missing"`
	// Those of the missing that collecting the days again brings.
	Lost   int64 `json:"lost"`
	Unread int64 `json:"unread"`
	Shared int64 `json:"shared"`
	// The command that collects the days again, on the agent.
	Do string `json:"do"`
}

// Agent is a part of an answer.
type Agent struct {
	Name string `json:"name"`
	// Where it listens; empty where it dials in, and where it is unknown.
	Address string `json:"address"`
	// It has no address: it connects to the aggregators, and is pulled over its connections.
	DialsIn bool `json:"dials_in"`
	// The leader pulls from it.
	Configured bool `json:"configured"`
	// It joined by a token. An agent block of the same name in the configuration takes precedence.
	Joined bool `json:"joined"`
	// Not an agent but the name of imports, which are not expected to continue.
	Import bool `json:"import"`
	// It answers the leader; null while no leader says, and where it pulls nothing from it.
	Connected *bool  `json:"connected"`
	Error     string `json:"error"`
	// The command that mends it, where waiting does not; otherwise empty.
	Remedy      string `json:"remedy"`
	LastContact Time   `json:"last_contact"`
	LastFrames  Time   `json:"last_frames"`
	// Frames that the agent has and the cluster has not; null as connected.
	Behind *uint64 `json:"behind"`
	Cursor uint64  `json:"cursor"`
	Epoch  string  `json:"epoch"`
	// Those of its sources, and of all of it.
	Gaps    int           `json:"gaps"`
	Sources []AgentSource `json:"sources"`
}

// AgentSource is a part of an answer.
type AgentSource struct {
	Type  string `json:"type"`
	Label string `json:"label"`
	// What the agent said last: configuring, starting, collecting, waiting, silent, paused, failed or
	// stopped; empty where it says nothing of the source.
	State      string `json:"state"`
	CompleteTo Time   `json:"complete_to"`
	Gaps       int    `json:"gaps"`
	// Why the agent cannot collect it, as it said last; otherwise empty.
	Error string `json:"error"`
	// It says nothing for longer than is usual for it.
	Silent bool `json:"silent"`
	// Jobs of it that are in quarantine now, of which quarantined of /v1/status is the sum. That of
	// counts is how often one came there.
	Quarantined uint64 `json:"quarantined"`
	Counts      Counts `json:"counts"`
}

// Action is a part of an answer.
type Action struct {
	Type       string `json:"type"`
	Label      string `json:"label"`
	Configured bool   `json:"configured"`
	State      string `json:"state"`
	// As it is written; null for that of the plugin.
	Schedule Text `json:"schedule"`
	// By whose clock; null for UTC.
	Zone Text `json:"zone"`
	// When the next run is due by the schedule; null when that depends on changes, on the plugin or on
	// a person.
	Next Time `json:"next"`
	// The agent on which its programs run; null for the leader.
	RunOn       Text        `json:"run_on"`
	LastSuccess Time        `json:"last_success"`
	Paused      *ActionMark `json:"paused"`
	Disabled    *ActionMark `json:"disabled"`
	Problem     *ActionMark `json:"problem"`
	// Runs with effects that may have happened; a person decides.
	Doubtful []uint64 `json:"doubtful"`
	// Orders that wait.
	Orders  int        `json:"orders"`
	Current *ActionRun `json:"current"`
	Last    *ActionRun `json:"last"`
}

// Alert is a part of an answer.
type Alert struct {
	// The label of the action.
	Action string `json:"action"`
	Rule   string `json:"rule"`
	// What it is about, such as a source or a budget; empty for the cluster.
	About    string `json:"about"`
	Severity string `json:"severity"`
	// A pending one has not lasted long enough for its rule.
	State string `json:"state"`
	What  string `json:"what"`
	// What to do first.
	Do string `json:"do"`
	// An address.
	Runbook string `json:"runbook"`
	Since   Time   `json:"since"`
	Fired   Time   `json:"fired"`
	// The id of the silence that keeps it from being told.
	Silence Text `json:"silence"`
}

// AlertSilence is a part of an answer.
type AlertSilence struct {
	// The label of the action.
	Action  string            `json:"action"`
	ID      string            `json:"id"`
	Match   map[string]string `json:"match"`
	From    Time              `json:"from"`
	Until   Time              `json:"until"`
	Author  string            `json:"author"`
	Comment string            `json:"comment"`
}

// AlertReceiver is a part of an answer.
type AlertReceiver struct {
	// The label of the action.
	Action string `json:"action"`
	// Its kind, its name and, of a mail, the address.
	Name string `json:"name"`
	Told Time   `json:"told"`
	// Why it does not take the last message.
	Problem      Text `json:"problem"`
	FailingSince Time `json:"failing_since"`
}

// AlertRule is a part of an answer.
type AlertRule struct {
	// The label of the action.
	Action  string `json:"action"`
	Rule    string `json:"rule"`
	Problem string `json:"problem"`
	Since   Time   `json:"since"`
}

// AlertOrdered is a part of an answer.
type AlertOrdered struct {
	Message string `json:"message"`
	// Of the silence.
	ID     string       `json:"id"`
	Orders []AlertOrder `json:"orders"`
}

// AlertOrder is a part of an answer.
type AlertOrder struct {
	// The label of the action.
	Action string `json:"action"`
	// The run with the same value of ordered is this one, once it is planned or could not be.
	Ordered Time `json:"ordered"`
}

// ActionMark: An answer to who reads only some of the records, or none, has no why of disabled and
// problem, which may name people.
type ActionMark struct {
	By  Text `json:"by"`
	At  Time `json:"at"`
	Why Text `json:"why"`
}

// ActionRun: An answer to who reads only some of the records, or none, leaves out failure,
// arguments, notes and effects, which may name people.
type ActionRun struct {
	Run     uint64 `json:"run"`
	Why     string `json:"why"`
	By      Text   `json:"by"`
	Ordered Time   `json:"ordered"`
	// Why the run could not be planned; null when it was.
	Failure   Text              `json:"failure"`
	Arguments map[string]string `json:"arguments"`
	// Of the plugin.
	Version string `json:"version"`
	// The agent on which the programs of its effects were to run when it was planned; null for the
	// leader.
	RunOn   Text `json:"run_on"`
	Planned Time `json:"planned"`
	// Of the log; the plan was made of this state or later ones.
	Index      uint64 `json:"index"`
	Ended      Time   `json:"ended"`
	Effects    int    `json:"effects"`
	Done       int    `json:"done"`
	Rejected   int    `json:"rejected"`
	Unknown    int    `json:"unknown"`
	Skipped    int    `json:"skipped"`
	Superseded int    `json:"superseded"`
	// Something is missing from the plan, and the notes name it.
	Partial bool     `json:"partial"`
	Notes   []string `json:"notes"`
}

// ActionEffect is a part of an answer.
type ActionEffect struct {
	Effect  int    `json:"effect"`
	Name    string `json:"name"`
	Summary string `json:"summary"`
	State   string `json:"state"`
	Size    int    `json:"size"`
	Digest  string `json:"digest"`
	// Of idempotency.
	Key       string `json:"key"`
	Tries     int    `json:"tries"`
	NotBefore Time   `json:"not_before"`
	By        Text   `json:"by"`
	// The last ones.
	Attempts []ActionAttempt `json:"attempts"`
}

// ActionAttempt is a part of an answer.
type ActionAttempt struct {
	Number    int    `json:"number"`
	Node      string `json:"node"`
	Term      uint64 `json:"term"`
	Fence     uint64 `json:"fence"`
	Begun     Time   `json:"begun"`
	Ended     Time   `json:"ended"`
	Outcome   Text   `json:"outcome"`
	Message   string `json:"message"`
	Reference string `json:"reference"`
}

// Quarantined is a part of an answer.
type Quarantined struct {
	Agent       string `json:"agent"`
	SourceType  string `json:"source_type"`
	SourceLabel string `json:"source_label"`
	ID          string `json:"id"`
	Reason      string `json:"reason"`
	Message     string `json:"message"`
	RecordID    string `json:"record_id"`
	First       Time   `json:"first"`
	Last        Time   `json:"last"`
	Count       int64  `json:"count"`
	// The input was cut off.
	Truncated bool `json:"truncated"`
	// What to do where no agent can map the job again; absent where one can.
	Instead string `json:"instead,omitempty"`
	// The input as the source gave it.
	Raw string `json:"raw,omitempty"`
}

// Window: The time from one instant up to, and without, another.
type Window struct {
	From Time `json:"from"`
	To   Time `json:"to"`
}

// Message: What was done, for people.
type Message struct {
	Message string `json:"message"`
}

// UsageSpan is a part of an answer.
type UsageSpan struct {
	// That said it; null when from and to did.
	Word Text `json:"word"`
	From Time `json:"from"`
	To   Time `json:"to"`
}

// KnownSpan is a part of an answer.
type KnownSpan struct {
	From Time `json:"from"`
	To   Time `json:"to"`
	// Sources that have all their runs from later in the window on: before, runs of theirs may be
	// missing in the figures, also where these are not null.
	Later []KnownSpanLater `json:"later"`
}

// KnownSpanLater is a part of an answer.
type KnownSpanLater struct {
	Source string `json:"source"`
	From   Time   `json:"from"`
}

// UsageAbout is a part of an answer.
type UsageAbout struct {
	// Of the log up to which it is in the answer.
	Index uint64 `json:"index"`
	// The last change that is in it.
	Seq uint64 `json:"seq"`
	// How it was found.
	Way          string     `json:"way"`
	Window       UsageSpan  `json:"window"`
	Zone         string     `json:"zone"`
	Bucket       Text       `json:"bucket"`
	Credit       string     `json:"credit"`
	ComparedWith *UsageSpan `json:"compared_with"`
	// Whether all of both windows is known, as far as they have come, so that sums can be compared;
	// null without compare.
	Comparable *bool `json:"comparable"`
	// The part of the window of which records are known: from the day of the first run that ended, or
	// from when the sources have all runs, up to now. A bucket outside of it in which nothing is
	// recorded is null, not 0, and means, utilization and comparisons are of it alone. Null where no
	// part is known.
	Known *KnownSpan `json:"known"`
	By    []string   `json:"by"`
	// Records that go on.
	Open uint64 `json:"open"`
	// Records with several values for a key of by, of which the first counts.
	Several uint64 `json:"several"`
	// How many there are in the window, each once.
	Records uint64 `json:"records"`
	// What energy and CO2 in the window rest on, in kWh; missing where neither was asked for.
	Energy   *UsageEnergy `json:"energy,omitempty"`
	Complete Complete     `json:"complete"`
}

// UsageEnergy: What energy and CO2 rest on, in kWh.
type UsageEnergy struct {
	Total json.Number `json:"total"`
	// The part that is measured; the rest is modelled.
	Measured json.Number `json:"measured"`
	// The part that is in no CO2, because no factor of its time is known; 0 where CO2 was not asked
	// for.
	WithoutFactor json.Number `json:"without_factor"`
	// The part with a PUE of 1 because none is set.
	DefaultPue json.Number `json:"default_pue"`
	// The part that is modelled at full load because records have no CPU time.
	DefaultLoad json.Number `json:"default_load"`
	// Where meters leave something unknown or contradict the jobs; missing where no meter was asked
	// for.
	Meter *UsageMeter `json:"meter,omitempty"`
}

// UsageMeter: Where meters leave something unknown or contradict the jobs; missing where no meter
// was asked for.
type UsageMeter struct {
	Gaps     []MeterGap    `json:"gaps"`
	Exceeded []MeterExcess `json:"exceeded"`
	// How many others are in neither list.
	More int `json:"more"`
}

// MeterGap: A time up to now for which a meter has no reading.
type MeterGap struct {
	Meter string `json:"meter"`
	From  Time   `json:"from"`
	To    Time   `json:"to"`
}

// MeterExcess: By how many kWh the jobs exceed the meters in a bucket.
type MeterExcess struct {
	From Time        `json:"from"`
	To   Time        `json:"to"`
	By   json.Number `json:"by"`
}

// Directory is a part of an answer.
type Directory struct {
	At Time `json:"at"`
	// The meta keys of records that name users, groups and hosts.
	Keys     DirectoryKeys `json:"keys"`
	People   []Person      `json:"people"`
	Projects []Project     `json:"projects"`
	// In the order in which they are tried.
	HostClasses   []HostClass    `json:"host_classes"`
	ServiceUnits  *ServiceUnits  `json:"service_units"`
	Contributions []Contribution `json:"contributions"`
	Unclaimed     *Unclaimed     `json:"unclaimed"`
}

// DirectoryKeys: The meta keys of records that name users, groups and hosts.
type DirectoryKeys struct {
	User  string `json:"user"`
	Group string `json:"group"`
	Host  string `json:"host"`
}

// Person is a part of an answer.
type Person struct {
	ID    string `json:"id"`
	Name  Text   `json:"name"`
	Email Text   `json:"email"`
	// The first one counts where a record has none.
	Groups []string `json:"groups"`
	// Of records without a group.
	Project Text `json:"project"`
	PI      Text `json:"pi"`
}

// Project is a part of an answer.
type Project struct {
	ID     string   `json:"id"`
	PI     Text     `json:"pi"`
	PIName Text     `json:"pi_name"`
	Groups []string `json:"groups"`
	Users  []string `json:"users"`
	Exempt bool     `json:"exempt"`
	// From when on it has been so; null for ever.
	Since Time `json:"since"`
	// When something changes; null for nothing.
	Until Time `json:"until"`
}

// HostClass is a part of an answer.
type HostClass struct {
	ID      string `json:"id"`
	Pattern string `json:"pattern"`
	// Null when it is not known.
	SUFactor *json.Number `json:"su_factor"`
}

// ServiceUnits is a part of an answer.
type ServiceUnits struct {
	Unit string `json:"unit"`
	// What one of a rate is worth for an hour.
	Components map[string]json.Number `json:"components"`
	// What 3600 of a total are worth.
	Seconds       map[string]json.Number `json:"seconds"`
	DefaultFactor *json.Number           `json:"default_factor"`
}

// Contribution is a part of an answer.
type Contribution struct {
	ID     string      `json:"id"`
	By     string      `json:"by"`
	Credit string      `json:"credit"`
	Amount json.Number `json:"amount"`
	// Per cent.
	Split    json.Number `json:"split"`
	SUFactor json.Number `json:"su_factor"`
	// Amount × split × su_factor.
	Units json.Number `json:"units"`
	From  Time        `json:"from"`
	To    Time        `json:"to"`
}

// Unclaimed is a part of an answer.
type Unclaimed struct {
	From  Time             `json:"from"`
	To    Time             `json:"to"`
	Lines []UnclaimedUsage `json:"lines"`
	// How many lines with fewer records are left out.
	More int `json:"more"`
}

// UnclaimedUsage is a part of an answer.
type UnclaimedUsage struct {
	Group   Text   `json:"group"`
	User    Text   `json:"user"`
	Records uint64 `json:"records"`
}

// Report: A report of the catalogue.
type Report struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// What it is for.
	About      string            `json:"about"`
	Parameters []ReportParameter `json:"parameters"`
}

// ReportParameter is a part of an answer.
type ReportParameter struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	About string `json:"about"`
	// A list takes several with commas, pairs are KEY=VALUE; a comma of a value is written `\,` as in
	// `/v1/usage`. A text is one value as it is.
	Kind string `json:"kind"`
	// What counts where nothing is given.
	Default []string `json:"default"`
	// All words of a choice; examples of the others.
	Words []string `json:"words"`
	// How often it may be given.
	Most int `json:"most"`
	// Without it there is no report.
	Needed bool `json:"needed"`
}

// Document: A report. Later versions of the format may add members.
type Document struct {
	Format int    `json:"format"`
	Report string `json:"report"`
	Title  string `json:"title"`
	// Of whom it is; of all without it.
	Subject string           `json:"subject,omitempty"`
	Made    Time             `json:"made"`
	Zone    string           `json:"zone"`
	Periods []DocumentPeriod `json:"periods"`
	Tables  []DocumentTable  `json:"tables"`
	Notes   []string         `json:"notes"`
}

// DocumentPeriod is a part of an answer.
type DocumentPeriod struct {
	// For people.
	Name string `json:"name"`
	From Time   `json:"from"`
	To   Time   `json:"to"`
}

// DocumentTable is a part of an answer.
type DocumentTable struct {
	Name    string                `json:"name"`
	Title   string                `json:"title"`
	Columns []DocumentTableColumn `json:"columns"`
	Rows    [][]Cell              `json:"rows"`
	Totals  []Cell                `json:"totals,omitempty"`
	// Which columns are to be drawn, and how.
	Chart *DocumentTableChart `json:"chart,omitempty"`
}

// DocumentTableColumn is a part of an answer.
type DocumentTableColumn struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// text, number, share, ratio, money, change or duration; of a share, a ratio and a change 1 is 100
	// per cent, and a duration is in seconds.
	Kind string `json:"kind"`
	Unit string `json:"unit,omitempty"`
	// Counted from 1.
	Period int `json:"period,omitempty"`
}

// DocumentTableChart: Which columns are to be drawn, and how.
type DocumentTableChart struct {
	// bars, steps, line, columns or heat.
	Kind   string   `json:"kind"`
	Label  string   `json:"label"`
	Values []string `json:"values"`
	// Columns that are drawn as lines over the others.
	Lines []string `json:"lines,omitempty"`
}

// Subscription is a part of an answer.
type Subscription struct {
	Index  uint64 `json:"index"`
	Window Window `json:"window"`
	Zone   string `json:"zone"`
	// The part of the window of which records are known, as in `/v1/usage`.
	Known  *KnownSpan `json:"known"`
	Credit string     `json:"credit"`
	Unit   string     `json:"unit"`
	// By all principal investigators.
	Used json.Number `json:"used"`
	// Without what is credited to who is exempt.
	Contributed json.Number `json:"contributed"`
	// Used by whom no principal investigator claims.
	Unclaimed json.Number `json:"unclaimed"`
	// What has no worth in units, in hours of a rate or in the unit of a total.
	Unpriced []SubscriptionUnpriced `json:"unpriced"`
	Shares   []SubscriptionShare    `json:"shares"`
	Complete Complete               `json:"complete"`
}

// SubscriptionUnpriced is a part of an answer.
type SubscriptionUnpriced struct {
	Component string      `json:"component"`
	Total     json.Number `json:"total"`
}

// SubscriptionShare is a part of an answer.
type SubscriptionShare struct {
	PI   string `json:"pi"`
	Name Text   `json:"name"`
	// There is usage and a contribution, only one of them, or neither; or all projects are exempt.
	State string      `json:"state"`
	Used  json.Number `json:"used"`
	// The part of it that exempt projects used.
	ExemptUsed        json.Number  `json:"exempt_used"`
	UsedShare         *json.Number `json:"used_share"`
	Contributed       json.Number  `json:"contributed"`
	ContributionShare *json.Number `json:"contribution_share"`
	Ratio             *json.Number `json:"ratio"`
}

// Price is a part of an answer.
type Price struct {
	List      string `json:"list"`
	From      Time   `json:"from"`
	To        Time   `json:"to"`
	Component string `json:"component"`
	// Of an amount of one for an hour, or of one of a total.
	Per string `json:"per"`
	// Exact.
	Price json.Number `json:"price"`
	// Values of keys that a record must have; none is for all.
	Match map[string]string `json:"match"`
}

// Budget is a part of an answer.
type Budget struct {
	Name string `json:"name"`
	// Values of keys of the records that count.
	Match map[string]string `json:"match"`
	// A currency, core-hours, hours of the component such as GPU-hours, service units, kWh or kg CO2e.
	Unit      string `json:"unit"`
	Component Text   `json:"component"`
	// The measure of `/v1/usage` in which it counts, of components in hours.
	Measure string       `json:"measure"`
	Period  BudgetPeriod `json:"period"`
	Amount  json.Number  `json:"amount"`
	// Why there are no figures.
	Problem Text `json:"problem"`
	*BudgetStanding
}

// BudgetPeriod is a part of an answer.
type BudgetPeriod struct {
	Name Text `json:"name"`
	// Null of a single period.
	Every Text   `json:"every"`
	From  Time   `json:"from"`
	To    Time   `json:"to"`
	Zone  string `json:"zone"`
	State string `json:"state"`
}

// BudgetStanding is a part of an answer.
type BudgetStanding struct {
	// Null where nothing is known of what was used: no records of the whole time, or no energy or CO2
	// of them. Share, left and pace are null then, too.
	Used *json.Number `json:"used"`
	// From when records are known, where that is within the period: what was used before is unknown and
	// not in used.
	KnownFrom Time `json:"known_from"`
	// used ÷ amount.
	Share    *json.Number `json:"share"`
	Reserved json.Number  `json:"reserved"`
	// amount - used - reserved; negative when that is too little.
	Left    *json.Number `json:"left"`
	AtLeast bool         `json:"at_least"`
	// How many running runs are in reserved.
	Running int `json:"running"`
	// How many running runs have no known limit and are not.
	Unlimited int              `json:"unlimited"`
	Unvalued  bool             `json:"unvalued"`
	Unpriced  []BudgetUnpriced `json:"unpriced"`
	Pace      *BudgetPace      `json:"pace"`
	Exhausted bool             `json:"exhausted"`
	GoneAt    Time             `json:"gone_at"`
	// What used rests on, in kWh; missing where the unit is neither kWh nor kg CO2e.
	Energy *UsageEnergy `json:"energy,omitempty"`
}

// BudgetUnpriced is a part of an answer.
type BudgetUnpriced struct {
	Component string      `json:"component"`
	Kind      string      `json:"kind"`
	Unit      string      `json:"unit"`
	Used      json.Number `json:"used"`
}

// BudgetPace is a part of an answer.
type BudgetPace struct {
	PerDay json.Number `json:"per_day"`
	From   Time        `json:"from"`
	To     Time        `json:"to"`
}

// Usage is a part of an answer.
type Usage struct {
	UsageAbout
	Edges []Time `json:"edges"`
	// Of the buckets, such as 2026-03; empty without bucket.
	Labels []string `json:"labels"`
	// Whether a bucket is cut by the window, or is not wholly in the known time.
	Partial  []bool       `json:"partial"`
	Groups   []UsageGroup `json:"groups"`
	Measures []Measure    `json:"measures"`
}

// UsageGroup is a part of an answer.
type UsageGroup struct {
	Values []*string `json:"values"`
	// How many groups are in this one; 0 when it is one itself.
	Others int `json:"others"`
}

// UsageLine: A line of an answer in NDJSON, a group in a bucket. The first line is a UsageAbout in
// its place.
type UsageLine struct {
	// Its values by the keys of by.
	Group map[string]*string `json:"group"`
	// How many groups are in this one; 0 when it is one itself.
	Others int `json:"others"`
	// Its name, such as 2026-03; null without bucket.
	Bucket Text `json:"bucket"`
	From   Time `json:"from"`
	To     Time `json:"to"`
	// Whether the bucket is cut by the window, or is not wholly in the known time.
	Partial  bool                    `json:"partial"`
	Measures map[string]*json.Number `json:"measures"`
}

// Figures is a part of an answer.
type Figures []*json.Number

// Measure is a part of an answer.
type Measure struct {
	Name      string `json:"name"`
	Component Text   `json:"component"`
	Score     Text   `json:"score"`
	Kind      string `json:"kind"`
	// hour, second, the unit of a worth, or null. That of a rate is amount × hour or second.
	Unit Text `json:"unit"`
	// Null where there is none – the mean or the quotient of nothing, a bucket of which nothing is
	// known, and people of groups that were put together.
	Values Figures `json:"values"`
	// Of the groups in the whole window.
	Totals Figures `json:"totals"`
	// Of all groups.
	Total *json.Number `json:"total"`
	// Of a worth, the parts of components that have no price, power or factor and are not in it.
	Unpriced []MeasureUnpriced `json:"unpriced"`
	// What of the component has no such score, by group in the whole window; null when all has.
	Lacking *MeasureLacking `json:"lacking"`
	// How many records have no such component, or have it without that score; null for what is neither.
	Without *int `json:"without"`
	// Of capacity and utilization, whether groups have the capacity of the same cluster. The capacity
	// of a group is that of all clusters that its records can belong to: one for a group by cluster,
	// those of the site for one by a key of matches such as site_id, all for one by user. The
	// utilization of such a group is its part of what they share.
	Shared bool `json:"shared"`
	// With the whole other window, by group.
	Compared *MeasureCompared `json:"compared"`
}

// MeasureUnpriced is a part of an answer.
type MeasureUnpriced struct {
	Component string      `json:"component"`
	Unit      Text        `json:"unit"`
	Total     json.Number `json:"total"`
}

// MeasureLacking is a part of an answer.
type MeasureLacking struct {
	Total  json.Number `json:"total"`
	Totals Figures     `json:"totals"`
}

// MeasureCompared is a part of an answer.
type MeasureCompared struct {
	Before     Figures `json:"before"`
	Difference Figures `json:"difference"`
	// The difference as a part of before; null when there was nothing, or less than that.
	Relative Figures `json:"relative"`
}

// Complete: How complete the records of the window are.
type Complete struct {
	// Up to when all sources are complete that say so.
	CompleteTo Time `json:"complete_to"`
	// The principal sees some of the records only, and is not told of the whole: sources and gaps are
	// empty, and quarantined is null.
	Limited bool             `json:"limited"`
	Sources []CompleteSource `json:"sources"`
	// How many sources are silent.
	Silent int `json:"silent"`
	// What sources say that they cannot tell of the window.
	Gaps []CompleteGap `json:"gaps"`
	// Days of the window of which the scheduler has runs that are not counted, as it was compared last.
	Missing []CompleteMissing `json:"missing"`
	// Sources of which it is unknown how complete the window is. Never empty when complete_to is null
	// and limited is false.
	Unknown []CompleteUnknown `json:"unknown"`
	// What is odd about records that are counted and touch the window, at most 32 of a source: a
	// component that other records of the source have is missing, a key of a file was not read, a stop
	// is before its start.
	Findings []CompleteFinding `json:"findings"`
	// Records that go on and count up to now.
	Open uint64 `json:"open"`
	// Jobs that gave no record.
	Quarantined *uint64 `json:"quarantined"`
}

// CompleteSource is a part of an answer.
type CompleteSource struct {
	// Agent/type/label.
	Source     string `json:"source"`
	CompleteTo Time   `json:"complete_to"`
	LastFrames Time   `json:"last_frames"`
	// It said nothing before the end of the window, or before now when that is earlier, for longer than
	// is usual for it; an hour where that is not known.
	Silent bool `json:"silent"`
}

// CompleteGap is a part of an answer.
type CompleteGap struct {
	Source string `json:"source"`
	From   Time   `json:"from"`
	To     Time   `json:"to"`
	Reason string `json:"reason"`
}

// CompleteMissing is a part of an answer.
type CompleteMissing struct {
	Source string `json:"source"`
	From   Time   `json:"from"`
	To     Time   `json:"to"`
	Runs   int64  `json:"runs"`
}

// CompleteUnknown is a part of an answer.
type CompleteUnknown struct {
	// Agent/type/label, the name of an agent, `pushed`, or empty with no_source.
	Source string `json:"source"`
	// no_source: no source is known. no_data: nothing was received from the agent. no_watermark: the
	// source does not report up to when it is complete. not_counted: days were not compared with the
	// scheduler, or the source does not support it.
	Reason string `json:"reason"`
	// How many days of the window should have been counted and were not; 0 with other reasons.
	Days int64 `json:"days"`
}

// CompleteFinding is a part of an answer.
type CompleteFinding struct {
	// component-missing, column-unread or stop-before-start, or what a source plugin calls it.
	Kind string `json:"kind"`
	// Agent/type/label, or `pushed`.
	Source string `json:"source"`
	// For example the component or the key.
	About string `json:"about"`
	What  string `json:"what"`
	// What to do first.
	Do string `json:"do"`
	// Records, also outside of the window.
	Count int64 `json:"count"`
	// The earliest time that these records touch.
	First Time `json:"first"`
	Last  Time `json:"last"`
	// The id of one of the records.
	Example string `json:"example"`
}

// ActionOrder is a part of an answer.
type ActionOrder struct {
	Arguments map[string]string `json:"arguments,omitempty"`
	Why       string            `json:"why,omitempty"`
}

// SortBy is a part of a query.
type SortBy struct {
	Asc  string `query:"asc" enum:"start_time,stop_time,runtime,record_id"`
	Desc string `query:"desc" enum:"start_time,stop_time,runtime,record_id"`
}

// RecordPage is a part of an answer.
type RecordPage struct {
	Records []FullRecord `json:"records"`
	// The cursor of the next page; null on the last one.
	Next Text `json:"next"`
}

// JobRecords is a part of an answer.
type JobRecords struct {
	// Their ids.
	Records []string `json:"records"`
	More    bool     `json:"more"`
}

// Budgets is a part of an answer.
type Budgets struct {
	Now      Time     `json:"now"`
	Budgets  []Budget `json:"budgets"`
	Complete Complete `json:"complete"`
}

// Prices is a part of an answer.
type Prices struct {
	// The time that was asked for; of a window its begin.
	At Time `json:"at"`
	// Null without a price list.
	Currency Text    `json:"currency"`
	Prices   []Price `json:"prices"`
}

// Changes is a part of an answer.
type Changes struct {
	// The id of the cluster.
	Cluster string `json:"cluster"`
	// Another one after the cluster was rebuilt, or restored from a snapshot.
	Epoch   string   `json:"epoch"`
	Changes []Change `json:"changes"`
	// The position to ask from next.
	Last uint64 `json:"last"`
	// Of the ledger: the state is not reached yet.
	More bool `json:"more,omitempty"`
	// Of the ledger: the cursor to ask with next.
	Next string `json:"next,omitempty"`
}

// Change is a part of an answer.
type Change struct {
	Seq      uint64 `json:"seq"`
	RecordID string `json:"record_id"`
	// Null when the id shows nothing any more.
	Record *FullRecord `json:"record"`
	// Of the ledger, the closed record that the change takes the place of; null when there was none.
	Supersedes *FullRecord `json:"supersedes,omitempty"`
}

// ChangesDigest is a part of an answer.
type ChangesDigest struct {
	Cluster string `json:"cluster"`
	Epoch   string `json:"epoch"`
	// The last change that is in the sums.
	Last    uint64   `json:"last"`
	Digests []Digest `json:"digests"`
}

// Digest is a part of an answer.
type Digest struct {
	// Null for records without one.
	Site Text `json:"site"`
	// Such as 2026-03; null for the records that go on, which are not in the ledger.
	Month   Text   `json:"month"`
	Records uint64 `json:"records"`
	// Null for the records that go on.
	CoreSeconds Text `json:"core_seconds"`
}

// Distributions is a part of an answer.
type Distributions struct {
	Window Window `json:"window"`
	Zone   string `json:"zone"`
	// The part of the window of which records are known, as in `/v1/usage`.
	Known *KnownSpan `json:"known"`
	// How many jobs ended in the window: all records but parts of runs, as `jobs` of `/v1/usage`.
	Records    int         `json:"records"`
	Histograms []Histogram `json:"histograms"`
	Complete   Complete    `json:"complete"`
}

// Histogram is a part of an answer.
type Histogram struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// second, or null of cores and of quotients.
	Unit Text `json:"unit"`
	// Where each bin begins; the last one is open.
	From []json.Number `json:"from"`
	// Of each bin.
	Records []int `json:"records"`
	// Of each bin, rounded.
	CoreHours []json.Number `json:"core_hours"`
	// Runs of which it is not known.
	Unknown int `json:"unknown"`
	// Of the runs of which it is known.
	Mean *json.Number `json:"mean"`
}

// Reports is a part of an answer.
type Reports struct {
	// The meta keys of records that name users and groups, as the directory says.
	Keys    ReportKeys `json:"keys"`
	Reports []Report   `json:"reports"`
}

// ReportKeys: The meta keys of records that name users and groups, as the directory says.
type ReportKeys struct {
	User  string `json:"user"`
	Group string `json:"group"`
}

// Agents is a part of an answer.
type Agents struct {
	Agents []Agent `json:"agents"`
}

// Counters is a part of an answer.
type Counters struct {
	Counters []SourceCounts `json:"counters"`
}

// Alerts is a part of an answer.
type Alerts struct {
	Alerts    []Alert         `json:"alerts"`
	Silences  []AlertSilence  `json:"silences"`
	Receivers []AlertReceiver `json:"receivers"`
	// Those that cannot be evaluated.
	Rules []AlertRule `json:"rules"`
}

// AlertSilenceOrder is a part of an answer.
type AlertSilenceOrder struct {
	// The label of the action; without it all.
	Action string `json:"action,omitempty"`
	// Patterns of `rule`, `about` and `severity`, in which `*` is any text; all must match.
	Match map[string]string `json:"match"`
	// How long it lasts.
	Seconds int    `json:"seconds"`
	Comment string `json:"comment,omitempty"`
}

// Actions is a part of an answer.
type Actions struct {
	Actions []Action `json:"actions"`
}

// ActionRuns is a part of an answer.
type ActionRuns struct {
	Runs []ActionRun `json:"runs"`
	More bool        `json:"more"`
}

// ActionRunEffects is a part of an answer.
type ActionRunEffects struct {
	Run     ActionRun      `json:"run"`
	Effects []ActionEffect `json:"effects"`
}

// EffectPayload is a part of an answer.
type EffectPayload struct {
	Show    string `json:"show"`
	Payload []byte `json:"payload"`
}

// ActionOrdered is a part of an answer.
type ActionOrdered struct {
	Message string `json:"message"`
	// The run with the same value of ordered is this one, once it is planned or could not be.
	Ordered Time `json:"ordered"`
}

// ActionPlan is a part of an answer.
type ActionPlan struct {
	Planned Time   `json:"planned"`
	Index   uint64 `json:"index"`
	// Of the plugin.
	Version string `json:"version"`
	// The agent on which the programs of its effects would run; null for the leader.
	RunOn   Text            `json:"run_on"`
	Class   string          `json:"class"`
	Effects []PlannedEffect `json:"effects"`
	Notes   []string        `json:"notes"`
	Partial bool            `json:"partial"`
}

// PlannedEffect is a part of an answer.
type PlannedEffect struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Size    int    `json:"size"`
	Show    string `json:"show"`
}

// Quarantine is a part of an answer.
type Quarantine struct {
	Quarantine []Quarantined `json:"quarantine"`
	More       bool          `json:"more"`
}

// Import is a part of an answer.
type Import struct {
	Name string `json:"name"`
	// Names this import; its frames begin with 1.
	Epoch string `json:"epoch"`
	// The greatest time of observation under the name so far, in microseconds; those of this import are
	// greater.
	Observed int64 `json:"observed"`
	// The epoch of the import of that name before; empty where there was none.
	Previous string `json:"previous"`
	// Of that import, how many frames are committed.
	PreviousFrames int64 `json:"previous_frames"`
}

// ImportProgress is a part of an answer.
type ImportProgress struct {
	// Number of the last frame that is committed.
	Cursor uint64 `json:"cursor"`
	Counts Counts `json:"counts"`
}

// Conflicts is a part of an answer.
type Conflicts struct {
	Conflicts []Entry `json:"conflicts"`
	More      bool    `json:"more"`
}

// Holdings is a part of an answer.
type Holdings struct {
	Holdings []Entry `json:"holdings"`
	More     bool    `json:"more"`
}

// Waiting is a part of an answer.
type Waiting struct {
	Waiting []Entry `json:"waiting"`
	More    bool    `json:"more"`
}

// Audit is a part of an answer.
type Audit struct {
	Window  Window       `json:"window"`
	Entries []AuditEntry `json:"entries"`
	More    bool         `json:"more"`
	// How many months entries are kept.
	KeptMonths int64 `json:"kept_months"`
}

// AuditErasure is a part of an answer.
type AuditErasure struct {
	Name string `json:"name"`
	// The replacement. It does not have the name in it.
	As string `json:"as"`
}

// AuditErased is a part of an answer.
type AuditErased struct {
	// How many entries have changed.
	Entries int64 `json:"entries"`
}

// RetentionPlan is a part of an answer.
type RetentionPlan struct {
	Retention Retention `json:"retention"`
	// Null where names are kept for ever.
	Due *RetentionDue `json:"due"`
}

// Archives is a part of an answer.
type Archives struct {
	Archives []Archive `json:"archives"`
}

// Kinds is a part of an answer.
type Kinds struct {
	// How many records it would change.
	Records int    `json:"records"`
	Kinds   []Kind `json:"kinds"`
}

// Kind is a part of an answer.
type Kind struct {
	Component string `json:"component"`
	Stored    string `json:"stored"`
	// What the configuration says.
	Kind    string `json:"kind"`
	Records int    `json:"records"`
}

// KindsRepair is a part of an answer.
type KindsRepair struct {
	Repaired int    `json:"repaired"`
	After    uint64 `json:"after"`
	More     bool   `json:"more"`
}

// Capacity is a part of an answer.
type Capacity struct {
	At     Time    `json:"at"`
	Window *Window `json:"window"`
	// In the order in which they take records.
	Clusters []Cluster      `json:"clusters"`
	Groups   []ClusterGroup `json:"groups"`
	Census   *Census        `json:"census"`
}

// Gaps is a part of an answer.
type Gaps struct {
	Gaps []Gap `json:"gaps"`
	More bool  `json:"more"`
}

// Completeness is a part of an answer.
type Completeness struct {
	Window Window `json:"window"`
	Days   []Day  `json:"days"`
	// Days in a row that lack runs.
	Stretches []Stretch `json:"stretches"`
	// Runs of all these days that have no record.
	Missing int64 `json:"missing"`
}

// Config is a part of an answer.
type Config struct {
	// Of the document.
	Digest Text `json:"digest"`
	// The node or the person whose files it comes from.
	CommittedBy Text            `json:"committed_by"`
	CommittedAt Time            `json:"committed_at"`
	Document    json.RawMessage `json:"document"`
	// What the files of the nodes say, as far as this node knows.
	Nodes []ConfigFiles `json:"nodes"`
}

// ConfigFiles is a part of an answer.
type ConfigFiles struct {
	Node    string `json:"node"`
	Digest  string `json:"digest"`
	Differs bool   `json:"differs"`
}

// ConfigDigest is a part of an answer.
type ConfigDigest struct {
	Digest string `json:"digest"`
}

// Status is a part of an answer.
type Status struct {
	*Verdict
	// A majority confirmed the numbers. Otherwise they are what this node has, and null where it cannot
	// read what it has.
	Confirmed bool `json:"confirmed"`
	// How old the numbers may be: how long ago this node last knew that it had all that was committed.
	// 0 where they are confirmed, null where it never knew.
	AgeSeconds *float64 `json:"age_seconds"`
	// Of the program.
	Version string `json:"version"`
	// Its id.
	Cluster        string `json:"cluster"`
	ClusterVersion *int   `json:"cluster_version"`
	// Of the last entry of the log that is applied.
	Index *uint64 `json:"index"`
	Term  *uint64 `json:"term"`
	// Of the records; equal on all nodes at the same index. Empty while unknown.
	Hash       string  `json:"hash"`
	Records    *uint64 `json:"records"`
	LastChange *uint64 `json:"last_change"`
	// Jobs that are in quarantine now.
	Quarantined  *int `json:"quarantined"`
	Conflicts    *int `json:"conflicts"`
	WaitingStops *int `json:"waiting_stops"`
	// Not there where this node cannot read it.
	Retention *Retention `json:"retention,omitempty"`
	// Empty where this node cannot read which there are.
	Agents []Agent `json:"agents"`
}

// Restored is a part of an answer.
type Restored struct {
	Cluster string `json:"cluster"`
	// The life of the cluster that begins.
	Incarnation string `json:"incarnation"`
	Restores    int    `json:"restores"`
	Records     uint64 `json:"records"`
	FromIndex   uint64 `json:"from_index"`
	Hash        string `json:"hash"`
	Made        Time   `json:"made"`
	// Joined agents of the archive that were removed since it was made. They stay removed.
	AgentsRemoved []string `json:"agents_removed,omitempty"`
	// Joined agents of the archive of another cluster. The cluster pulls from them; whether any was
	// removed since the archive was made is not known.
	AgentsUnverified []string `json:"agents_unverified,omitempty"`
}

// Members is a part of an answer.
type Members struct {
	Members []Member `json:"members"`
}

// Member is a part of an answer.
type Member struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// In the cluster's list of members, which a leader makes follow its configuration.
	Address string `json:"address"`
	// At which the node that answers dials it: that of its configuration, or else address.
	DialledAddress string `json:"dialled_address"`
	Version        string `json:"version"`
	Voter          bool   `json:"voter"`
	Leader         bool   `json:"leader"`
	Applied        uint64 `json:"applied"`
	Match          uint64 `json:"match"`
	LastContact    Time   `json:"last_contact"`
}

// NewMember is a part of an answer.
type NewMember struct {
	ID      string `json:"id"`
	Address string `json:"address"`
}

// Check is a part of an answer.
type Check struct {
	// The index of the log that was checked.
	Index uint64 `json:"index"`
	// What differs, in words.
	Wrong []string `json:"wrong"`
}

// Session is a part of an answer.
type Session struct {
	URL     string `json:"url"`
	Expires Time   `json:"expires"`
}

// JoinOffer is a part of an answer.
type JoinOffer struct {
	// Certificates in PEM.
	Authorities string `json:"authorities"`
}

// JoinRequest is a part of an answer.
type JoinRequest struct {
	Token string `json:"token"`
	// agent or aggregator.
	Role string `json:"role"`
	// The name that the certificate is to have.
	Name string `json:"name"`
	// Where the cluster reaches the machine, as host:port; empty for an agent that dials in.
	Address string `json:"address,omitempty"`
	// DNS names and addresses of an aggregator.
	Hosts []string `json:"hosts,omitempty"`
	// A certificate signing request in PEM.
	Request string `json:"request"`
}

// Joined is a part of an answer.
type Joined struct {
	Name string `json:"name"`
	// In PEM.
	Certificate string `json:"certificate"`
	// Certificates in PEM.
	Authorities string `json:"authorities"`
	// The id of the cluster.
	Cluster string `json:"cluster"`
	// For an aggregator: the certificate of the authority, in PEM.
	Authority string `json:"authority,omitempty"`
	// For an aggregator: its key, in PEM.
	AuthorityKey string `json:"authority_key,omitempty"`
	// For an agent that dials in: the TLS addresses of the nodes, as host:port, first that of the node
	// that answers.
	Aggregators []string `json:"aggregators,omitempty"`
	// For an aggregator: the nodes of the cluster.
	Nodes []JoinNode `json:"nodes,omitempty"`
	// For an aggregator: the block `retention` of the cluster's configuration, which all nodes have
	// alike. Not there where names are kept for ever.
	Retention *JoinRetention `json:"retention,omitempty"`
}

// JoinNode is a part of an answer.
type JoinNode struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

// JoinRetention is a part of an answer.
type JoinRetention struct {
	NamesMonths int      `json:"names_months"`
	AuditMonths int      `json:"audit_months"`
	Drop        []string `json:"drop"`
}

// Tokens is a part of an answer.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}

// Token is a part of an answer.
type Token struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	// Of a machine: the only name that it gives, empty for any. Of the API: what people call it.
	Name      string `json:"name"`
	State     string `json:"state"`
	CreatedBy string `json:"created_by"`
	Created   Time   `json:"created"`
	Expires   Time   `json:"expires"`
	// The last use; of the API about a minute exact.
	Used Time `json:"used"`
	// The name of the machine that used it.
	UsedBy string `json:"used_by"`
	// The address from which it was used.
	UsedFrom string    `json:"used_from"`
	Rows     RowFilter `json:"rows,omitempty"`
	// The user whose records it shows.
	Person string `json:"person,omitempty"`
	// It shows pseudonyms in the place of the names of persons.
	Pseudonyms bool `json:"pseudonyms,omitempty"`
}

// NewToken is a part of an answer.
type NewToken struct {
	// agent or aggregator: a machine joins by it. Else roles of the API, such as `read` or
	// `read,monitor`.
	Role string `json:"role"`
	// Of a machine: the only name that it gives, also one in use; empty for any new one. Of the API:
	// what people call it.
	Name string `json:"name,omitempty"`
	// How long it lasts; at most a week, of the API a year.
	LifetimeSeconds int64     `json:"lifetime_seconds"`
	Rows            RowFilter `json:"rows,omitempty"`
	// The user whose records it shows: their own, and those of the projects and groups that they lead
	// by the directory.
	Person string `json:"person,omitempty"`
	// It shows pseudonyms in the place of the names of persons, and of other meta only keys of groups
	// and places, and dimensions. It goes with the role read alone, and not with a person.
	Pseudonyms bool `json:"pseudonyms,omitempty"`
}

// IssuedToken is a part of an answer.
type IssuedToken struct {
	ID    string `json:"id"`
	Token string `json:"token"`
	// Where a machine joins, as host:port; empty of the API.
	Address string `json:"address"`
	Expires Time   `json:"expires"`
}

// ClusterNodes is a part of an answer.
type ClusterNodes struct {
	// Its id.
	Cluster string `json:"cluster"`
	// The node that says so.
	Node string `json:"node"`
	// Its name.
	Leader Text   `json:"leader"`
	Nodes  []Node `json:"nodes"`
}
