package record

import (
	"cmp"
	"strings"
)

// Origin is who says something about a run: a source of an agent, or, as the
// zero Origin, [Pushed].
type Origin struct {
	Agent string // the agent's name
	Type  string // the source plugin's type, for example slurm
	Label string // the source's label in the agent's configuration
}

// Pushed is the origin that all writes of AUDITOR's interface share, whether
// they came to an agent's receiver or to the aggregator.
var Pushed = Origin{}

// IsPushed reports whether o is [Pushed].
func (o Origin) IsPushed() bool { return o == Pushed }

// Compare orders origins by agent, type and label.
func (o Origin) Compare(p Origin) int {
	return cmp.Or(strings.Compare(o.Agent, p.Agent), strings.Compare(o.Type, p.Type), strings.Compare(o.Label, p.Label))
}

// String returns agent/type/label, or "pushed"; agent/pushed of an agent alone, by
// which what was pushed to it is counted.
func (o Origin) String() string {
	switch {
	case o.IsPushed():
		return "pushed"
	case o.Type == "" && o.Label == "":
		return o.Agent + "/pushed"
	}
	return o.Agent + "/" + o.Type + "/" + o.Label
}

// Rank orders origins by how well they know: the greater one is shown. Zero is
// no rank.
type Rank uint8

// The ranks. Their numbers are part of the stored formats.
const (
	RankImport    Rank = 1 // loaded from another system's files
	RankPush      Rank = 2 // said by a client of AUDITOR's interface
	RankEpilog    Rank = 3 // said by the scheduler as the job ended
	RankScheduler Rank = 4 // read from the scheduler's own accounting
)

// Valid reports whether r is one of the ranks.
func (r Rank) Valid() bool { return r >= RankImport && r <= RankScheduler }

// String returns the rank's name.
func (r Rank) String() string {
	switch r {
	case RankImport:
		return "import"
	case RankPush:
		return "pushed"
	case RankEpilog:
		return "epilog"
	case RankScheduler:
		return "scheduler"
	}
	return "unknown"
}

// Version orders the writes of one origin about one run. The zero Version is
// below every write.
type Version struct {
	// Ended is false while the run goes on.
	Ended bool
	// Observed is when it was seen: microseconds since the epoch of a
	// persisted hybrid clock that never goes back and never stands still.
	// It is greater than zero.
	Observed int64
}

// Compare orders versions by Ended, then by Observed.
func (v Version) Compare(w Version) int {
	if v.Ended != w.Ended {
		if w.Ended {
			return -1
		}
		return 1
	}
	return cmp.Compare(v.Observed, w.Observed)
}
