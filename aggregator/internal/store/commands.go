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
	Keys []QuarantineKey
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
	Blocks []uint64   // the first sequence number of each
	Of     Superseded // the rows to drop
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

func (*PostCommand) commandKind() kind           { return kindPost }
func (*StageCommand) commandKind() kind          { return kindStage }
func (*CommitStageCommand) commandKind() kind    { return kindCommitStage }
func (*PutStopCommand) commandKind() kind        { return kindPutStop }
func (*PutStopsCommand) commandKind() kind       { return kindPutStops }
func (*DeleteCommand) commandKind() kind         { return kindDelete }
func (*UndeleteCommand) commandKind() kind       { return kindUndelete }
func (*QuarantineDropCommand) commandKind() kind { return kindQuarantineDrop }
func (*SetClusterCommand) commandKind() kind     { return kindSetCluster }
func (*SetVersionCommand) commandKind() kind     { return kindSetVersion }
func (*CompactBlockCommand) commandKind() kind   { return kindCompactBlock }
func (*HashCheckCommand) commandKind() kind      { return kindHashCheck }
func (*DocumentCommand) commandKind() kind       { return kindDocument }

func (c *PostCommand) visitFields(f fields) {
	f.visitView(&c.Rows)
	f.visitBool(&c.IgnoreExisting)
	f.visitTime(&c.Now)
}

func (c *StageCommand) visitFields(f fields) {
	f.visitBytes16(&c.Upload)
	visitSmallUint(f, &c.Part)
	f.visitView(&c.Rows)
	f.visitTime(&c.Now)
}

func (c *CommitStageCommand) visitFields(f fields) {
	f.visitBytes16(&c.Upload)
	visitSmallUint(f, &c.Parts)
	f.visitBool(&c.IgnoreExisting)
	f.visitTime(&c.Now)
}

func (c *PutStopCommand) visitFields(f fields) {
	f.visitText(&c.ID)
	f.visitTime(&c.Stop)
	f.visitTime(&c.Now)
}

func (*PutStopsCommand) minVersion() uint16 { return 5 }

func (c *PutStopsCommand) visitFields(f fields) {
	visitList(f, &c.Puts, fields.visitPutStop)
	f.visitTime(&c.Now)
}

func (f fields) visitPutStop(p *PutStop) {
	f.visitText(&p.ID)
	f.visitTime(&p.Stop)
}

func (c *DeleteCommand) visitFields(f fields) {
	visitList(f, &c.IDs, fields.visitText)
	f.visitText(&c.By)
	f.visitTime(&c.Now)
}

func (c *UndeleteCommand) visitFields(f fields)       { (*DeleteCommand)(c).visitFields(f) }
func (c *QuarantineDropCommand) visitFields(f fields) { visitList(f, &c.Keys, fields.visitSettled) }
func (c *SetClusterCommand) visitFields(f fields)     { f.visitText(&c.ID) }
func (c *SetVersionCommand) visitFields(f fields)     { visitSmallUint(f, &c.Version) }
func (c *HashCheckCommand) visitFields(fields)        {}

func (*CompactBlockCommand) minVersion() uint16 { return supersededVersion }

func (c *CompactBlockCommand) visitFields(f fields) {
	visitList(f, &c.Blocks, fields.visitUint)
	f.visitSuperseded(&c.Of)
}

func (c *DocumentCommand) minVersion() uint16 { return max(1, c.Needs) }

func (c *DocumentCommand) visitFields(f fields) {
	visitList(f, &c.If, fields.visitDocument)
	visitList(f, &c.Sets, fields.visitDocument)
}

func (f fields) visitDocument(v *Document) {
	f.visitText(&v.Space)
	f.visitText(&v.Key)
	has := v.Value != nil
	if f.visitBool(&has); has {
		if f.visitBytes(&v.Value); v.Value == nil {
			v.Value = []byte{} // there, and empty
		}
	}
}
