package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Command is what the leader proposes and every node applies. The commands are
// the types of this package whose names end in Command; [Encode] gives the bytes
// that travel in the log.
type Command interface {
	commandKind() kind
	stored
	applyTo(*tx) (any, error)
}

// kind numbers the commands. The numbers are part of the log's format: they are
// never reused; 5 and 14 were of commands that no program proposed.
type kind uint16

const (
	kindIngest         kind = 1
	kindPost           kind = 2
	kindStage          kind = 3
	kindCommitStage    kind = 4
	kindPutStop        kind = 6
	kindDelete         kind = 7
	kindUndelete       kind = 8
	kindQuarantineDrop kind = 9
	kindSetCluster     kind = 10
	kindSetVersion     kind = 11
	kindCompactBlock   kind = 12
	kindHashCheck      kind = 13
	kindDocument       kind = 15
	kindCorrect        kind = 16
	kindDismissStops   kind = 17
	kindForget         kind = 18
	kindPutStops       kind = 19
	kindArchive        kind = 20
	kindReplace        kind = 21
)

// CommandFormat is the greatest version of a command that this program can
// apply. The leader proposes a command of a newer version only when the cluster
// version, set by [SetVersionCommand], has reached it.
//
// Version 2 came with facts of kind [FactCount], version 3 with [CorrectCommand] and
// [DismissStopsCommand]; from it on a row supersedes the tombstone before it. Version 4 came
// with [DocumentCommand.Needs], for the configuration of a cluster as typed settings. From
// version 5 on, the rows of a post go from its batch into blocks as those of an agent do;
// [PutStopsCommand] came with it. Version 6 came with [ArchiveCommand],
// version 7 with [IngestCommand.Reusing], version 8 with facts of kind [FactBegin], version 9
// with [ReplaceCommand], version 10 with [CompactBlockCommand] and [ForgetCommand].
const CommandFormat = 10

// A cluster has these versions once its nodes have agreed on one, soon after it was founded.
const (
	// supersededTombstones is the version from which on rows supersede tombstones.
	supersededTombstones = 3
	// batchPosts is the version from which on all nodes take the rows of a post out of its
	// batch: what is new in the dictionary gets other numbers than one by one.
	batchPosts = 5
)

// ErrCommand is wrapped by the errors of [Decode] and [Store.Apply] for a
// command that is damaged, of an unknown type or of a newer version. The node
// must stop: it cannot know what the others did.
var ErrCommand = errors.New("unknown or damaged command")

// commandMagic starts every command.
var commandMagic = [2]byte{'B', 'C'}

const (
	headerSize  = 6 // magic, version, type
	trailerSize = 4 // CRC32C of all before it
)

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// VersionOf returns the version from which on a program can apply the command:
// that of a new type of command, or of one that is written in a new way. The
// cluster must have agreed on it before the command is proposed.
func VersionOf(c Command) uint32 {
	if c, ok := c.(interface{ minVersion() uint16 }); ok { // of commands that came after the first version
		return uint32(c.minVersion())
	}
	return 1
}

// Encode returns the command as bytes for the log: magic, format version, type,
// payload, CRC32C.
func Encode(c Command) []byte {
	e := encoder{b: append(make([]byte, 0, 256), commandMagic[:]...)}
	e.b = binary.BigEndian.AppendUint16(e.b, uint16(VersionOf(c)))
	e.b = binary.BigEndian.AppendUint16(e.b, uint16(c.commandKind()))
	c.visitFields(fields{e: &e})
	return binary.BigEndian.AppendUint32(e.b, castagnoli(e.b))
}

// Decode reads what [Encode] wrote. Byte slices of the command are views into
// data. The error wraps [ErrCommand].
func Decode(data []byte) (Command, error) {
	if len(data) < headerSize+trailerSize || [2]byte(data[:2]) != commandMagic {
		return nil, fmt.Errorf("%w: no command", ErrCommand)
	}
	body, sum := data[:len(data)-trailerSize], data[len(data)-trailerSize:]
	if castagnoli(body) != binary.BigEndian.Uint32(sum) {
		return nil, fmt.Errorf("%w: checksum differs", ErrCommand)
	}
	version, k := binary.BigEndian.Uint16(body[2:]), kind(binary.BigEndian.Uint16(body[4:]))
	if version == 0 || version > CommandFormat {
		return nil, fmt.Errorf("%w: format version %d, this program knows %d", ErrCommand, version, CommandFormat)
	}
	c := newCommand(k)
	if c == nil {
		return nil, fmt.Errorf("%w: type %d", ErrCommand, k)
	}
	if least := VersionOf(c); uint32(version) < least {
		return nil, fmt.Errorf("%w: a command of type %d in format version %d, this program reads it from %d on", ErrCommand, k, version, least)
	}
	d := decoder{b: body[headerSize:]}
	c.visitFields(fields{d: &d})
	if document, ok := c.(*DocumentCommand); ok && version > 1 {
		document.Needs = version
	}
	if err := d.checkEnd(fmt.Sprintf("command of type %d", k)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	return c, nil
}

func newCommand(k kind) Command {
	switch k {
	case kindIngest:
		return &IngestCommand{}
	case kindPost:
		return &PostCommand{}
	case kindStage:
		return &StageCommand{}
	case kindCommitStage:
		return &CommitStageCommand{}
	case kindPutStop:
		return &PutStopCommand{}
	case kindDelete:
		return &DeleteCommand{}
	case kindUndelete:
		return &UndeleteCommand{}
	case kindQuarantineDrop:
		return &QuarantineDropCommand{}
	case kindSetCluster:
		return &SetClusterCommand{}
	case kindSetVersion:
		return &SetVersionCommand{}
	case kindCompactBlock:
		return &CompactBlockCommand{}
	case kindHashCheck:
		return &HashCheckCommand{}
	case kindDocument:
		return &DocumentCommand{}
	case kindCorrect:
		return &CorrectCommand{}
	case kindDismissStops:
		return &DismissStopsCommand{}
	case kindForget:
		return &ForgetCommand{}
	case kindPutStops:
		return &PutStopsCommand{}
	case kindArchive:
		return &ArchiveCommand{}
	case kindReplace:
		return &ReplaceCommand{}
	}
	return nil
}
