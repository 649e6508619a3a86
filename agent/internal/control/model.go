package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/mapping"
	"github.com/bursar-accounting/bursar/plugins/translate"
)

// Status is how the agent is doing.
type Status struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Listen  string    `json:"listen,omitempty"` // where aggregators pull; empty: nowhere
	Dial    []Dial    `json:"dial,omitempty"`   // the aggregators at which the agent dials in
	Buffer  Buffer    `json:"buffer"`
	Sources []Source  `json:"sources"`
	// Certificate is the agent's; nil: it has none.
	Certificate *Certificate `json:"certificate,omitempty"`
}

// Dial is how the connection to an aggregator is doing at which the agent dials in.
type Dial struct {
	Address    string `json:"address"`
	Aggregator string `json:"aggregator,omitempty"` // its name, where it has proved it
	State      string `json:"state"`                // connecting, connected, not reachable, duplicate
	Problem    string `json:"problem,omitempty"`    // why it is not connected
}

// Certificate is what the agent proves itself with.
type Certificate struct {
	Ends    time.Time `json:"ends"`
	RenewAt time.Time `json:"renew_at"` // when a cluster that has its authority renews it
	// Problem says why it is not renewed, or why new files are refused.
	Problem string `json:"problem,omitempty"`
}

// Late reports whether the certificate should have been renewed some time ago.
func (c *Certificate) Late(now time.Time) bool {
	return c.Problem != "" || now.After(c.RenewAt.Add(c.Ends.Sub(c.RenewAt)/4))
}

// Buffer is how full the buffer is, and who has acknowledged how much.
type Buffer struct {
	Epoch    string    `json:"epoch"`
	First    uint64    `json:"first"` // sequence number of the oldest frame; last+1 when there is none
	Last     uint64    `json:"last"`
	Bytes    int64     `json:"bytes"`
	MaxBytes int64     `json:"max_bytes"`
	Clusters []Cluster `json:"clusters"`
	// Damage says which frames are there and cannot be read, so that no aggregator
	// gets beyond them; Remedy is the command that mends it.
	Damage string `json:"damage,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Cluster is an aggregator cluster that has pulled and was not forgotten since.
type Cluster struct {
	ID      string    `json:"id"`
	Through uint64    `json:"through"`
	Behind  uint64    `json:"behind"` // frames that it has not acknowledged
	At      time.Time `json:"at"`     // when it last agreed where to go on, or acknowledged
	Away    bool      `json:"away"`   // it has not been back since the buffer's epoch changed; Through is 0
}

// Source is how one source is doing. Times that are not known are absent.
type Source struct {
	Type        string     `json:"type"`
	Label       string     `json:"label"`
	State       string     `json:"state"` // configuring, starting, collecting, waiting, silent, paused, failed, stopped
	Error       string     `json:"error,omitempty"`
	Plugin      string     `json:"plugin_version,omitempty"`
	Hangs       int        `json:"plugin_hangs,omitempty"` // how often the plugin hung and was killed since it was configured
	LastSuccess *time.Time `json:"last_success,omitempty"`
	CompleteTo  *time.Time `json:"complete_to,omitempty"`
	Progress    *Progress  `json:"progress,omitempty"`
	Counts      Counts     `json:"counts"`
	// Findings are about records that it sent, those of most records first; they are kept
	// over restarts.
	Findings []translate.Finding `json:"findings,omitempty"`
}

// Counts are what became of jobs since the agent was started.
type Counts struct {
	Records     int64 `json:"records"`
	Unchanged   int64 `json:"unchanged"`
	Filtered    int64 `json:"filtered"`
	Withdrawn   int64 `json:"withdrawn"`
	Quarantined int64 `json:"quarantined"`
	Refused     int64 `json:"refused"`
	Skipped     int64 `json:"skipped"`
}

// Progress of a back-fill. Total is 0 when it is not known.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Unit  string `json:"unit,omitempty"`
	At    string `json:"at,omitempty"`
}

// Reloaded says what a reload has changed.
type Reloaded struct {
	Added   []string `json:"added"`
	Changed []string `json:"changed"`
	Removed []string `json:"removed"`
	Restart []string `json:"needs_restart"` // settings that take effect at the next start only
	// Configuring are the sources whose plugins have not answered yet.
	Configuring []string `json:"configuring,omitempty"`
	Warnings    string   `json:"warnings,omitempty"`
	// RecordBlocks are those of the sources that were added or changed.
	RecordBlocks []RecordBlock `json:"record_blocks,omitempty"`
}

// RecordBlock says what the record block of a source changes of the plugin's default
// mapping.
type RecordBlock struct {
	Source string `json:"source"` // TYPE/LABEL
	mapping.Changes
}

// String names the source and each part, one line for each kind of change.
func (r RecordBlock) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Record block of %s, beside the default mapping:", r.Source)
	for _, p := range []struct {
		what  string
		parts []string
	}{{"changes", r.Replaced}, {"adds", r.Added}, {"leaves out", r.LeftOut}} {
		if len(p.parts) > 0 {
			fmt.Fprintf(&b, "\n  %-10s  %s", p.what, strings.Join(p.parts, ", "))
		}
	}
	if len(r.Replaced)+len(r.Added)+len(r.LeftOut) == 0 {
		b.WriteString(" nothing")
	}
	return b.String()
}

// Refusal is the answer to what was refused.
type Refusal struct {
	Message string `json:"error"`
}

// Recollect asks to collect a window again.
type Recollect struct {
	Source string    `json:"source"` // type/label, or a label that only one source has
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Plan   bool      `json:"plan"` // only count
}

// Step tells how far something has come. The last one is Done, and Error says
// whether it failed.
type Step struct {
	Progress *Progress `json:"progress,omitempty"`
	Counts   Counts    `json:"counts"`
	Done     bool      `json:"done"`
	Error    string    `json:"error,omitempty"`
}

// Forget asks that a cluster which is permanently gone holds no frames back.
type Forget struct {
	Cluster string `json:"cluster"`
}

// Forgotten says what came of it.
type Forgotten struct {
	Cluster Cluster `json:"cluster"` // as it was last known
	Dropped int     `json:"dropped"` // frames that went at once, because they are old and all others have them
}

// Agent is what is controlled.
type Agent interface {
	Status() Status
	// Reload takes the configuration over, or refuses all of it with an error.
	Reload(ctx context.Context) (Reloaded, error)
	// Forget makes a cluster unknown, so that it holds nothing back any more.
	Forget(ctx context.Context, f Forget) (Forgotten, error)
	// Recollect calls send after every batch and returns the totals.
	Recollect(ctx context.Context, r Recollect, send func(Step) error) (Counts, error)
}

// String says the counts in words; those that are zero are left out.
func (c Counts) String() string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{
		{c.Records, "sent"}, {c.Unchanged, "unchanged"}, {c.Filtered, "left out"}, {c.Withdrawn, "withdrawn"},
		{c.Quarantined, "quarantined"}, {c.Refused, "refused"}, {c.Skipped, "skipped"},
	} {
		if p.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "no jobs"
	}
	return strings.Join(parts, ", ")
}
