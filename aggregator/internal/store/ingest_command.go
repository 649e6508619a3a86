package store

import (
	"github.com/bursar-accounting/bursar/proto/record"
)

// Epoch names one buffer of an agent on one machine; zero before the first.
type Epoch = [16]byte

// ImportMark begins the epochs of imports; an agent's are random.
const ImportMark = "IMPORT1:"

// IsImport reports whether an epoch is that of an import.
func IsImport(e Epoch) bool { return string(e[:len(ImportMark)]) == ImportMark }

// Chain is the digest that an agent's buffer has at a sequence number.
type Chain = [16]byte

// IngestCommand carries the frames From to To of an agent's buffer. It is
// accepted only when it continues the agent's cursor: the same Epoch, From one
// above the cursor's Seq, and Before the cursor's Digest. Then the records, the
// quarantine, the counters and the cursor change together. Otherwise nothing
// changes and the result says Accepted false. The result is an [IngestResult].
//
// Within a command the rows come first, then Writes, Quarantine and Settles, each
// in its order: a job in both Quarantine and Settles is settled. Whoever fills a
// command leaves out a settle that a later failure of the same job follows.
type IngestCommand struct {
	Agent    string
	Epoch    Epoch
	From, To uint64 // To == From-1: no frames, as when only Begin is wanted
	Before   Chain
	After    Chain
	// Begin, when set, makes Epoch the agent's epoch and sets the cursor to it
	// before the frames are looked at.
	Begin *Begin
	Now   record.Time // the leader's clock

	// Rows is a batch of package columns with the plain puts. Origin, Rank,
	// Version and Record count; the rest is set by Apply.
	Rows []byte
	// Writes are the writes that are no puts: stops and withdrawals.
	Writes []record.Write

	Quarantine  []Quarantined
	Resolved    []QuarantineKey
	Gaps        []Gap
	Watermarks  []Watermark
	Checkpoints []Checkpoint
	Facts       []Fact
	// Reusing lists the origins in the command that reuse ids: see [record.Locate].
	Reusing []record.Origin
	// Observed is the greatest observed time among the frames, 0 for none.
	Observed int64
}

// Begin is where a new epoch starts: the agent's answer to Resume. It is taken
// only while the cursor is where it was when the agent was asked, so that one that
// comes late cannot set the cursor back. What it replaces is zero for an agent
// that was never pulled.
type Begin struct {
	Replaces       Epoch  // the Epoch that the cursor must have
	ReplacesSeq    uint64 // its Seq
	ReplacesDigest Chain  // its Digest
	After          uint64 // the first frame to come is After+1
	Digest         Chain  // of the new buffer at After
}

// Quarantined is a job that gave no valid record. Source and ID are its key; a
// repetition replaces it.
type Quarantined struct {
	Source    record.Origin
	ID        string
	Reason    string // mapping, validation, input, size
	Message   string
	RecordID  string
	Raw       []byte
	Truncated bool
	// First and Last are the leader's times of the first and the last arrival,
	// Count is how often it came. They are set by Apply.
	First, Last record.Time
	Count       int64
}

// QuarantineKey names a quarantined job that a retry on the agent has dealt with.
type QuarantineKey struct {
	Source record.Origin
	ID     string
}

// Gap is a part of a source's history that cannot be had or was lost.
type Gap struct {
	Source   record.Origin
	From, To record.Time
	Reason   string
	Noticed  record.Time // set by Apply
}

// Watermark says that a source is complete up to a time.
type Watermark struct {
	Source     record.Origin
	CompleteTo record.Time
}

// Checkpoint is how far a source has come, in words that only it understands.
type Checkpoint struct {
	Source record.Origin
	State  []byte
}

// FactKind says what a [Fact] holds.
type FactKind uint8

// The kinds of facts. Their numbers are part of the stored formats.
const (
	FactCensus    FactKind = 1 // running and pending jobs; only the newest is kept
	FactCapacity  FactKind = 2 // what a cluster has from At on; one is kept for every At
	FactDirectory FactKind = 3 // people and groups; only the newest is kept
	FactCount     FactKind = 4 // what the runs of the day that begins at At come to; the last is kept for every At; since version 2
	FactBegin     FactKind = 5 // runs that ended before At may be missing; the least At is kept, without Data; since version 8
)

// BeginVersion is the version of commands that came with [FactBegin].
const BeginVersion = 8

// Fact is something that an agent says about its site beside records. Data is
// the whole encoded frame of the agent, which the store does not look into.
type Fact struct {
	Kind   FactKind
	Source record.Origin
	At     record.Time
	Data   []byte
}

// IngestResult says what became of an [IngestCommand].
type IngestResult struct {
	// Accepted is false when the command did not continue the cursor.
	Accepted bool
	// Cursor is the agent's cursor after the command: what may be acknowledged.
	Cursor Cursor
	// Counts is what the command's writes did.
	Counts Counts
}

func (*IngestCommand) commandKind() kind { return kindIngest }

// minVersion is the version from which on a program reads all of c and keeps its facts.
func (c *IngestCommand) minVersion() uint16 {
	version := uint16(1)
	if len(c.Reusing) > 0 {
		version = 7
	}
	for i := range c.Facts {
		switch c.Facts[i].Kind {
		case FactBegin:
			version = BeginVersion
		case FactCount:
			version = max(version, 2)
		case FactCensus, FactCapacity, FactDirectory:
		}
	}
	return version
}

func (c *IngestCommand) visitFields(f fields) {
	f.visitText(&c.Agent)
	f.visitBytes16(&c.Epoch)
	f.visitUint(&c.From)
	f.visitUint(&c.To)
	f.visitBytes16(&c.Before)
	f.visitBytes16(&c.After)
	begins := c.Begin != nil
	if f.visitBool(&begins); begins {
		if c.Begin == nil {
			c.Begin = new(Begin)
		}
		f.visitBytes16(&c.Begin.Replaces)
		f.visitUint(&c.Begin.ReplacesSeq)
		f.visitBytes16(&c.Begin.ReplacesDigest)
		f.visitUint(&c.Begin.After)
		f.visitBytes16(&c.Begin.Digest)
	}
	f.visitTime(&c.Now)
	f.visitInt(&c.Observed)
	f.visitView(&c.Rows)
	visitList(f, &c.Writes, fields.visitWrite)
	visitList(f, &c.Quarantine, fields.visitQuarantined)
	visitList(f, &c.Resolved, fields.visitSettled)
	visitList(f, &c.Gaps, fields.visitGap)
	visitList(f, &c.Watermarks, fields.visitWatermark)
	visitList(f, &c.Checkpoints, fields.visitCheckpoint)
	visitList(f, &c.Facts, fields.visitFact)
	if f.e != nil && len(c.Reusing) > 0 || f.d != nil && len(f.d.b) > 0 {
		visitList(f, &c.Reusing, func(f fields, o *record.Origin) { f.visitOrigin(o) })
	}
}

func (f fields) visitQuarantined(q *Quarantined) {
	f.visitOrigin(&q.Source)
	f.visitText(&q.ID)
	f.visitText(&q.Reason)
	f.visitText(&q.Message)
	f.visitText(&q.RecordID)
	f.visitBytes(&q.Raw)
	f.visitBool(&q.Truncated)
	f.visitTime(&q.First)
	f.visitTime(&q.Last)
	f.visitInt(&q.Count)
}

func (f fields) visitSettled(s *QuarantineKey) {
	f.visitOrigin(&s.Source)
	f.visitText(&s.ID)
}

func (f fields) visitGap(g *Gap) {
	f.visitOrigin(&g.Source)
	f.visitTime(&g.From)
	f.visitTime(&g.To)
	f.visitText(&g.Reason)
	f.visitTime(&g.Noticed)
}

func (f fields) visitWatermark(w *Watermark) {
	f.visitOrigin(&w.Source)
	f.visitTime(&w.CompleteTo)
}

func (f fields) visitCheckpoint(c *Checkpoint) {
	f.visitOrigin(&c.Source)
	f.visitBytes(&c.State)
}

func (f fields) visitFact(v *Fact) {
	visitByte(f, &v.Kind)
	f.visitOrigin(&v.Source)
	f.visitTime(&v.At)
	f.visitBytes(&v.Data)
}

// The values of small tables are those of the command that brought them.

func (q *Quarantined) visitFields(f fields) { f.visitQuarantined(q) }
func (g *Gap) visitFields(f fields)         { f.visitGap(g) }
func (v *Fact) visitFields(f fields)        { f.visitFact(v) }
