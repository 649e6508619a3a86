package store

import "github.com/bursar-accounting/bursar/proto/record"

// Upload names a staged post; it is random and chosen by the proposer.
type Upload = [16]byte

// PostCommand adds records as AUDITOR's POST does: all or nothing. A record
// whose id has a body of any origin, or is deleted, or is there twice in Rows,
// exists. With IgnoreExisting the others are stored all the same. The result is
// a [PostResult].
type PostCommand struct {
	Rows           []byte // a batch of package columns; only Record counts
	IgnoreExisting bool
	Now            record.Time
}

// PostResult says what became of a post.
type PostResult struct {
	// Existing are the ids that exist, in the order of the post, at most
	// [MaxExisting]. Without IgnoreExisting nothing was stored if there are any.
	Existing []string
	// Refused says what is wrong with the first record that is not valid; then
	// nothing was stored. "" when all are.
	Refused string
	// Unknown is true when the upload of a [CommitStageCommand] is not there, or
	// not whole: it expired or was committed before.
	Unknown bool
	Added   int
	// Seq is the feed's position after the post.
	Seq uint64
}

// MaxExisting bounds the ids that a [PostResult] names.
const MaxExisting = 1000

// StageCommand keeps a part of a post that is larger than one entry, unseen
// until [CommitStageCommand]. Parts count from 0. A part that comes again
// replaces the former one. Stages older than [StageLife] by the Now of a later
// stage command are dropped. It has no result.
type StageCommand struct {
	Upload Upload
	Part   uint32
	Rows   []byte
	Now    record.Time
}

// CommitStageCommand makes all parts of an upload visible as one [PostCommand]
// would. The result is a [PostResult]; the parts are gone afterwards.
type CommitStageCommand struct {
	Upload         Upload
	Parts          uint32
	IgnoreExisting bool
	Now            record.Time
}

// StageLife is how long an upload may stay uncommitted.
const StageLife = record.Hour

// PutStopCommand sets the stop of the shown record as AUDITOR's PUT does. The
// result is a [PutResult].
type PutStopCommand struct {
	ID   string
	Stop record.Time
	Now  record.Time
}

// PutStopsCommand does what a [PutStopCommand] for each of Puts does, one after the other.
// The result is a []any with a [PutResult] for each.
type PutStopsCommand struct {
	Puts []PutStop
	Now  record.Time
}

// PutStop is the stop of a record.
type PutStop struct {
	ID   string
	Stop record.Time
}

// PutResult says whether a record is shown under the id of a [PutStopCommand].
type PutResult struct {
	Found bool
	// Archived is the archive that has the details of the record, where the stop is not
	// that of the record: then nothing was changed. "" else.
	Archived string
}

// DeleteCommand marks ids as deleted, known or not. The marks beat every later
// write. The result is a [DeleteResult].
type DeleteCommand struct {
	IDs []string
	By  string // who asked, for the mark
	Now record.Time
}

// UndeleteCommand lifts the mark of ids; they hold nothing until someone writes
// again. The result is a [DeleteResult].
type UndeleteCommand struct {
	IDs []string
	By  string
	Now record.Time
}

// DeleteResult is how many ids, jobs, rows or values a command changed or dropped.
type DeleteResult struct{ Changed int }

// QuarantineDropCommand forgets quarantined jobs. The result is a [DeleteResult].
type QuarantineDropCommand struct {
	Keys []Settled
}

// SetClusterCommand is the first command of a new cluster and gives it its id.
// A second one changes nothing. The result is the id that holds, a string.
type SetClusterCommand struct{ ID string }

// SetVersionCommand raises the cluster version; it never falls. The result is
// the version that holds, a uint32.
type SetVersionCommand struct{ Version uint32 }

// CompactBlockCommand rewrites blocks without superseded rows; a block of
// which nothing is left goes, and small ones that follow each other become one.
// Tombstones that nothing superseded stay. The leader proposes it for blocks of
// [Droppable.Candidates] and [View.Small]. The result is a [DeleteResult] with the
// number of rows dropped.
type CompactBlockCommand struct {
	Blocks []uint64    // the first sequence number of each
	Of     *Superseded // the rows to drop; nil: all superseded ones, as earlier releases did
}

// HashCheckCommand makes every node remember its state hash at this index, see
// [Store.HashAt]. The result is a [HashResult].
type HashCheckCommand struct{}

// HashResult is the state hash at an index of the log.
type HashResult struct {
	Index uint64
	Hash  Hash
}

// DocumentCommand changes small named values that other packages keep in the
// replicated state: configuration, the ledger of actions, tokens. All or
// nothing: when a value of If does not hold, nothing changes. The result is a
// [DocumentResult].
type DocumentCommand struct {
	If   []Document // what must be there; a nil Value: must not be there
	Sets []Document // a nil Value deletes
	// Needs is the version from which on programs can read the values, the least that
	// the cluster must have agreed on; 0 is 1.
	Needs uint16
}

// Document is a value under a space and a key of the caller's choice.
type Document struct {
	Space, Key string
	Value      []byte
}

// DocumentResult says whether the conditions of a [DocumentCommand] held. Index
// is the command's index of the log.
type DocumentResult struct {
	Done  bool
	Index uint64
}

func (*PostCommand) kind() kind           { return kindPost }
func (*StageCommand) kind() kind          { return kindStage }
func (*CommitStageCommand) kind() kind    { return kindCommitStage }
func (*PutStopCommand) kind() kind        { return kindPutStop }
func (*PutStopsCommand) kind() kind       { return kindPutStops }
func (*DeleteCommand) kind() kind         { return kindDelete }
func (*UndeleteCommand) kind() kind       { return kindUndelete }
func (*QuarantineDropCommand) kind() kind { return kindQuarantineDrop }
func (*SetClusterCommand) kind() kind     { return kindSetCluster }
func (*SetVersionCommand) kind() kind     { return kindSetVersion }
func (*CompactBlockCommand) kind() kind   { return kindCompactBlock }
func (*HashCheckCommand) kind() kind      { return kindHashCheck }
func (*DocumentCommand) kind() kind       { return kindDocument }

func (c *PostCommand) fields(f fields) {
	f.view(&c.Rows)
	f.bool(&c.IgnoreExisting)
	f.time(&c.Now)
}

func (c *StageCommand) fields(f fields) {
	f.sixteen(&c.Upload)
	small(f, &c.Part)
	f.view(&c.Rows)
	f.time(&c.Now)
}

func (c *CommitStageCommand) fields(f fields) {
	f.sixteen(&c.Upload)
	small(f, &c.Parts)
	f.bool(&c.IgnoreExisting)
	f.time(&c.Now)
}

func (c *PutStopCommand) fields(f fields) {
	f.text(&c.ID)
	f.time(&c.Stop)
	f.time(&c.Now)
}

func (*PutStopsCommand) since() uint16 { return 5 }

func (c *PutStopsCommand) fields(f fields) {
	list(f, &c.Puts, fields.putStop)
	f.time(&c.Now)
}

func (f fields) putStop(p *PutStop) {
	f.text(&p.ID)
	f.time(&p.Stop)
}

func (c *DeleteCommand) fields(f fields) {
	list(f, &c.IDs, fields.text)
	f.text(&c.By)
	f.time(&c.Now)
}

func (c *UndeleteCommand) fields(f fields)       { (*DeleteCommand)(c).fields(f) }
func (c *QuarantineDropCommand) fields(f fields) { list(f, &c.Keys, fields.settled) }
func (c *SetClusterCommand) fields(f fields)     { f.text(&c.ID) }
func (c *SetVersionCommand) fields(f fields)     { small(f, &c.Version) }
func (c *HashCheckCommand) fields(fields)        {}

func (c *CompactBlockCommand) since() uint16 { return c.Of.since(1) }

func (c *CompactBlockCommand) fields(f fields) {
	list(f, &c.Blocks, fields.uint)
	f.superseded(&c.Of)
}

func (c *DocumentCommand) since() uint16 { return max(1, c.Needs) }

func (c *DocumentCommand) fields(f fields) {
	list(f, &c.If, fields.document)
	list(f, &c.Sets, fields.document)
}

func (f fields) document(v *Document) {
	f.text(&v.Space)
	f.text(&v.Key)
	has := v.Value != nil
	if f.bool(&has); has {
		if f.bytes(&v.Value); v.Value == nil {
			v.Value = []byte{} // there, and empty
		}
	}
}
