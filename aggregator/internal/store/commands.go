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

// PutResult says whether a record is shown under the id of a [PutStopCommand].
type PutResult struct{ Found bool }

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

// DeleteResult is how many ids changed their mark.
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

// CompactBlockCommand rewrites blocks without their superseded rows; a block of
// which nothing is left goes, and small ones that follow each other become one.
// Tombstones stay. The leader proposes it for blocks of [View.Candidates] and
// [View.Small] when those who follow the feed are past them. The result
// is a [DeleteResult] with the number of rows dropped.
type CompactBlockCommand struct {
	Blocks []uint64 // the first sequence number of each
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
func (*DeleteCommand) kind() kind         { return kindDelete }
func (*UndeleteCommand) kind() kind       { return kindUndelete }
func (*QuarantineDropCommand) kind() kind { return kindQuarantineDrop }
func (*SetClusterCommand) kind() kind     { return kindSetCluster }
func (*SetVersionCommand) kind() kind     { return kindSetVersion }
func (*CompactBlockCommand) kind() kind   { return kindCompactBlock }
func (*HashCheckCommand) kind() kind      { return kindHashCheck }
func (*DocumentCommand) kind() kind       { return kindDocument }

func (c *PostCommand) encode(e *encoder) {
	e.bytes(c.Rows)
	e.bool(c.IgnoreExisting)
	e.time(c.Now)
}

func (c *PostCommand) decode(d *decoder) {
	c.Rows, c.IgnoreExisting, c.Now = d.view(), d.bool(), d.time()
}

func (c *StageCommand) encode(e *encoder) {
	e.raw(c.Upload[:])
	e.uint(uint64(c.Part))
	e.bytes(c.Rows)
	e.time(c.Now)
}

func (c *StageCommand) decode(d *decoder) {
	c.Upload, c.Part, c.Rows, c.Now = d.sixteen(), uint32(d.uint()), d.view(), d.time()
}

func (c *CommitStageCommand) encode(e *encoder) {
	e.raw(c.Upload[:])
	e.uint(uint64(c.Parts))
	e.bool(c.IgnoreExisting)
	e.time(c.Now)
}

func (c *CommitStageCommand) decode(d *decoder) {
	c.Upload, c.Parts, c.IgnoreExisting, c.Now = d.sixteen(), uint32(d.uint()), d.bool(), d.time()
}

func (c *PutStopCommand) encode(e *encoder) {
	e.text(c.ID)
	e.time(c.Stop)
	e.time(c.Now)
}

func (c *PutStopCommand) decode(d *decoder) { c.ID, c.Stop, c.Now = d.text(), d.time(), d.time() }

func (e *encoder) textp(s *string) { e.text(*s) }

func (c *DeleteCommand) encode(e *encoder) {
	list(e, c.IDs, (*encoder).textp)
	e.text(c.By)
	e.time(c.Now)
}

func (c *DeleteCommand) decode(d *decoder) {
	c.IDs, c.By, c.Now = unlist(d, (*decoder).text), d.text(), d.time()
}

func (c *UndeleteCommand) encode(e *encoder) {
	list(e, c.IDs, (*encoder).textp)
	e.text(c.By)
	e.time(c.Now)
}

func (c *UndeleteCommand) decode(d *decoder) {
	c.IDs, c.By, c.Now = unlist(d, (*decoder).text), d.text(), d.time()
}

func (c *QuarantineDropCommand) encode(e *encoder) { list(e, c.Keys, (*encoder).settled) }
func (c *QuarantineDropCommand) decode(d *decoder) { c.Keys = unlist(d, (*decoder).settled) }

func (c *SetClusterCommand) encode(e *encoder) { e.text(c.ID) }
func (c *SetClusterCommand) decode(d *decoder) { c.ID = d.text() }

func (c *SetVersionCommand) encode(e *encoder) { e.uint(uint64(c.Version)) }
func (c *SetVersionCommand) decode(d *decoder) { c.Version = uint32(d.uint()) }

func (c *CompactBlockCommand) encode(e *encoder) {
	list(e, c.Blocks, func(e *encoder, v *uint64) { e.uint(*v) })
}
func (c *CompactBlockCommand) decode(d *decoder) { c.Blocks = unlist(d, (*decoder).uint) }

func (c *HashCheckCommand) encode(*encoder) {}
func (c *HashCheckCommand) decode(*decoder) {}

func (e *encoder) document(v *Document) {
	e.text(v.Space)
	e.text(v.Key)
	e.bool(v.Value != nil)
	if v.Value != nil {
		e.bytes(v.Value)
	}
}

func (d *decoder) document() Document {
	v := Document{Space: d.text(), Key: d.text()}
	if d.bool() {
		v.Value = append([]byte{}, d.view()...)
	}
	return v
}

func (c *DocumentCommand) since() uint16 { return max(1, c.Needs) }

func (c *DocumentCommand) encode(e *encoder) {
	list(e, c.If, (*encoder).document)
	list(e, c.Sets, (*encoder).document)
}

func (c *DocumentCommand) decode(d *decoder) {
	c.If, c.Sets = unlist(d, (*decoder).document), unlist(d, (*decoder).document)
}
