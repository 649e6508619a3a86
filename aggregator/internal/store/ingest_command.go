package store

import (
	"github.com/bursar-accounting/bursar/proto/record"
)

// Epoch names one buffer of an agent on one machine; zero before the first.
type Epoch = [16]byte

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
	Settles     []Settled
	Gaps        []Gap
	Watermarks  []Watermark
	Checkpoints []Checkpoint
	Facts       []Fact
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

// Settled names a quarantined job that a retry on the agent has dealt with.
type Settled struct {
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
)

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

func (*IngestCommand) kind() kind { return kindIngest }

// since is the version from which on a program keeps all the facts of c.
func (c *IngestCommand) since() uint16 {
	for i := range c.Facts {
		if c.Facts[i].Kind == FactCount {
			return 2
		}
	}
	return 1
}

func (c *IngestCommand) encode(e *encoder) {
	e.text(c.Agent)
	e.raw(c.Epoch[:])
	e.uint(c.From)
	e.uint(c.To)
	e.raw(c.Before[:])
	e.raw(c.After[:])
	e.bool(c.Begin != nil)
	if c.Begin != nil {
		e.raw(c.Begin.Replaces[:])
		e.uint(c.Begin.ReplacesSeq)
		e.raw(c.Begin.ReplacesDigest[:])
		e.uint(c.Begin.After)
		e.raw(c.Begin.Digest[:])
	}
	e.time(c.Now)
	e.int(c.Observed)
	e.bytes(c.Rows)
	list(e, c.Writes, (*encoder).write)
	list(e, c.Quarantine, (*encoder).quarantined)
	list(e, c.Settles, (*encoder).settled)
	list(e, c.Gaps, (*encoder).gap)
	list(e, c.Watermarks, (*encoder).watermark)
	list(e, c.Checkpoints, (*encoder).checkpoint)
	list(e, c.Facts, (*encoder).fact)
}

func (c *IngestCommand) decode(d *decoder) {
	c.Agent = d.text()
	c.Epoch = d.sixteen()
	c.From, c.To = d.uint(), d.uint()
	c.Before, c.After = d.sixteen(), d.sixteen()
	if d.bool() {
		c.Begin = &Begin{Replaces: d.sixteen(), ReplacesSeq: d.uint(), ReplacesDigest: d.sixteen(), After: d.uint(), Digest: d.sixteen()}
	}
	c.Now, c.Observed = d.time(), d.int()
	c.Rows = d.view()
	c.Writes = unlist(d, (*decoder).write)
	c.Quarantine = unlist(d, (*decoder).quarantined)
	c.Settles = unlist(d, (*decoder).settled)
	c.Gaps = unlist(d, (*decoder).gap)
	c.Watermarks = unlist(d, (*decoder).watermark)
	c.Checkpoints = unlist(d, (*decoder).checkpoint)
	c.Facts = unlist(d, (*decoder).fact)
}

func list[T any](e *encoder, vs []T, one func(*encoder, *T)) {
	e.uint(uint64(len(vs)))
	for i := range vs {
		one(e, &vs[i])
	}
}

func unlist[T any](d *decoder, one func(*decoder) T) []T {
	n := d.count()
	if n == 0 {
		return nil
	}
	vs := make([]T, 0, min(n, 4096))
	for range n {
		vs = append(vs, one(d))
		if d.err != nil {
			return nil
		}
	}
	return vs
}

func (e *encoder) write(w *record.Write) {
	e.text(w.ID)
	e.byte(byte(w.Op))
	e.origin(w.Origin)
	e.byte(byte(w.Rank))
	e.version(w.Version)
	e.bool(w.Record != nil)
	if w.Record != nil {
		e.body(w.Record)
	}
	e.time(w.Stop)
}

func (d *decoder) write() record.Write {
	w := record.Write{ID: d.text(), Op: record.Op(d.byte()), Origin: d.origin(), Rank: record.Rank(d.byte()), Version: d.version()}
	if d.bool() {
		r := d.body()
		r.ID = w.ID
		w.Record = &r
	}
	w.Stop = d.time()
	return w
}

func (e *encoder) quarantined(q *Quarantined) {
	e.origin(q.Source)
	e.text(q.ID)
	e.text(q.Reason)
	e.text(q.Message)
	e.text(q.RecordID)
	e.bytes(q.Raw)
	e.bool(q.Truncated)
	e.time(q.First)
	e.time(q.Last)
	e.int(q.Count)
}

func (d *decoder) quarantined() Quarantined {
	return Quarantined{Source: d.origin(), ID: d.text(), Reason: d.text(), Message: d.text(), RecordID: d.text(),
		Raw: d.bytes(), Truncated: d.bool(), First: d.time(), Last: d.time(), Count: d.int()}
}

func (e *encoder) settled(s *Settled) {
	e.origin(s.Source)
	e.text(s.ID)
}

func (d *decoder) settled() Settled { return Settled{Source: d.origin(), ID: d.text()} }

func (e *encoder) gap(g *Gap) {
	e.origin(g.Source)
	e.time(g.From)
	e.time(g.To)
	e.text(g.Reason)
	e.time(g.Noticed)
}

func (d *decoder) gap() Gap {
	return Gap{Source: d.origin(), From: d.time(), To: d.time(), Reason: d.text(), Noticed: d.time()}
}

func (e *encoder) watermark(w *Watermark) {
	e.origin(w.Source)
	e.time(w.CompleteTo)
}

func (d *decoder) watermark() Watermark {
	return Watermark{Source: d.origin(), CompleteTo: d.time()}
}

func (e *encoder) checkpoint(c *Checkpoint) {
	e.origin(c.Source)
	e.bytes(c.State)
}

func (d *decoder) checkpoint() Checkpoint { return Checkpoint{Source: d.origin(), State: d.bytes()} }

func (e *encoder) fact(f *Fact) {
	e.byte(byte(f.Kind))
	e.origin(f.Source)
	e.time(f.At)
	e.bytes(f.Data)
}

func (d *decoder) fact() Fact {
	return Fact{Kind: FactKind(d.byte()), Source: d.origin(), At: d.time(), Data: d.bytes()}
}
