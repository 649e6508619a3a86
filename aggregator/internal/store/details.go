package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/record"
)

// ArchiveFiles reads the files of archives.
type ArchiveFiles interface {
	// Check returns an error that names the file when files of an archive are missing, or
	// differ in size from what the manifest lists. It does not read them whole.
	Check(ctx context.Context, archives []string) error
	// Rows calls yield with the bytes of each row of an archive in the order of stop, as
	// [archived.Row.Append] gives them. They are valid until yield returns.
	Rows(ctx context.Context, archive string, yield func(row []byte) error) error
}

// Details gives rows the details that archives took, for one answer. It reads an archive
// when the first row needs it, and keeps its rows in a file beside those in which queries
// sort; when rows come in the order of stop, only the archives of one time.
type Details struct {
	view    *View
	files   ArchiveFiles
	inOrder bool // rows come in the order of stop
	read    []*detailsFile
}

// detailsBytes is what a Details takes in memory, about.
const detailsBytes = 1 << 20

// NewDetails returns what gives rows of the query their details. The caller closes it. Its
// memory is taken with the next use of the lease of ctx.
func (v *View) NewDetails(ctx context.Context, q *Query, files ArchiveFiles) *Details {
	LeaseOf(ctx).Also(detailsBytes)
	return &Details{view: v, files: files, inOrder: q.Order == ByStop}
}

// Check returns an error that wraps [ErrDetails] when files of an archive of the query's
// time are missing.
func (d *Details) Check(ctx context.Context, q *Query) error {
	names := d.view.ArchivesOf(q)
	if len(names) == 0 {
		return nil
	}
	return detailsError(d.files.Check(ctx, names))
}

// Whole returns a row with its details. An error wraps [ErrDetails] when its archive cannot
// be read, or has other rows than the store knows.
func (d *Details) Whole(ctx context.Context, row *columns.Row) (columns.Row, error) {
	if !row.Archived {
		return *row, nil
	}
	whole := *row
	err := d.readArchivesAt(ctx, row.ShownStop())
	if err == nil {
		whole.Record, err = d.findRecord(row)
	}
	whole.Archived = false
	return whole, detailsError(err)
}

func detailsError(err error) error {
	if err == nil || errors.Is(err, ErrSpill) || errors.Is(err, ErrNoRoom) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDetails, err)
}

// readArchivesAt reads the archives of a time that were not read yet.
func (d *Details) readArchivesAt(ctx context.Context, stop record.Time) error {
	var missing []*Archive
	for _, a := range d.view.memory.archives {
		if a.State != ArchiveChecking && a.From <= stop && stop < a.To &&
			!slices.ContainsFunc(d.read, func(f *detailsFile) bool { return f.archive.Name == a.Name }) {
			missing = append(missing, a)
		}
	}
	if d.inOrder && len(missing) > 0 {
		past := func(f *detailsFile) bool { return stop < f.archive.From || stop >= f.archive.To }
		for _, f := range d.read {
			if past(f) {
				f.file.Close()
			}
		}
		d.read = slices.DeleteFunc(d.read, past)
	}
	for _, a := range missing {
		f, err := d.readArchive(ctx, a)
		if err != nil {
			return fmt.Errorf("archive %s in %s: %w", a.Name, a.Location, err)
		}
		d.read = append(d.read, f)
	}
	return nil
}

// findRecord returns the record that an archive took the details of. A row that changed since in
// nothing that is kept has another number than in the archive.
func (d *Details) findRecord(row *columns.Row) (record.Record, error) {
	var names []string
	for _, exact := range []bool{true, false} {
		for _, f := range d.read {
			if stop := row.ShownStop(); stop < f.archive.From || stop >= f.archive.To {
				continue
			}
			r, err := f.findRecord(d.view, row, exact)
			if r != nil || err != nil {
				return *cmp.Or(r, &record.Record{}), err
			}
			names = append(names, f.archive.Name)
		}
	}
	slices.Sort(names)
	return record.Record{}, fmt.Errorf("the files of %v have no details of the record of change %d", slices.Compact(names), row.Seq)
}

// Close removes what was read.
func (d *Details) Close() (err error) {
	for _, f := range d.read {
		err = errors.Join(err, f.file.Close())
	}
	d.read = nil
	return err
}

// detailsFile has the rows of an archive in the order of stop: pieces of about a size, in
// which each row stands behind a head of its stop, number and length.
type detailsFile struct {
	archive *Archive
	file    *os.File
	pieces  []piece
	piece   []byte // the one that was read last
	at      int    // its place in pieces; -1: none
}

// piece is where a piece is, and the least stop in it.
type piece struct {
	stop      record.Time
	from, len int64
}

const (
	detailsPiece = 64 << 10
	detailsHead  = 8 + 8 + 4
)

// readArchive reads the rows of an archive and compares their sum with the statement.
func (d *Details) readArchive(ctx context.Context, a *Archive) (f *detailsFile, err error) {
	spill := d.view.store.options.newSpill()
	f = &detailsFile{archive: a, at: -1}
	if f.file, err = spill.createFile(); err != nil {
		return nil, err
	}
	var sum archived.Sum
	last := record.None
	err = d.files.Rows(ctx, a.Name, func(bytes []byte) error {
		row, err := archived.Decode(bytes)
		if err != nil {
			return err
		}
		stop := row.ShownStop()
		if sum.Count > 0 && stop < last {
			return fmt.Errorf("row %d is not in the order of stop", row.Seq)
		}
		last = stop
		sum.Add(bytes)
		f.appendRow(stop, row.Seq, bytes)
		if len(f.piece) < detailsPiece {
			return nil
		}
		return errors.Join(spill.checkRoom(), f.flushPiece())
	})
	if err == nil && sum != a.Rows {
		err = fmt.Errorf("%s has %d rows with the digest %s, and the store knows %d with %s", a.Manifest, sum.Count, sum.Digest(), a.Rows.Count, a.Rows.Digest())
	}
	if err == nil {
		err = f.flushPiece()
	}
	if err != nil {
		return nil, errors.Join(err, f.file.Close())
	}
	return f, nil
}

// appendRow adds a row to the piece that is written next.
func (f *detailsFile) appendRow(stop record.Time, seq uint64, row []byte) {
	if len(f.piece) == 0 {
		from := int64(0)
		if n := len(f.pieces); n > 0 {
			from = f.pieces[n-1].from + f.pieces[n-1].len
		}
		f.pieces = append(f.pieces, piece{stop: stop, from: from})
	}
	f.piece = binary.BigEndian.AppendUint64(f.piece, uint64(stop))
	f.piece = binary.BigEndian.AppendUint64(f.piece, seq)
	f.piece = append(binary.BigEndian.AppendUint32(f.piece, uint32(len(row))), row...)
}

// flushPiece writes the piece.
func (f *detailsFile) flushPiece() error {
	if len(f.piece) == 0 {
		return nil
	}
	f.pieces[len(f.pieces)-1].len = int64(len(f.piece))
	_, err := f.file.Write(f.piece)
	f.piece = f.piece[:0]
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSpill, err)
	}
	return nil
}

// findRecord returns the record of which the row is what its archive left; nil for none. Exact
// looks only for the row's own number.
func (f *detailsFile) findRecord(v *View, row *columns.Row, exact bool) (*record.Record, error) {
	stop := row.ShownStop()
	first := sort.Search(len(f.pieces), func(i int) bool { return f.pieces[i].stop >= stop })
	for i := max(first-1, 0); i < len(f.pieces) && f.pieces[i].stop <= stop; i++ {
		if err := f.readPiece(i); err != nil {
			return nil, err
		}
		for b := f.piece; len(b) > 0; {
			end := detailsHead + int(binary.BigEndian.Uint32(b[16:]))
			head, bytes := b[:detailsHead], b[detailsHead:end]
			b = b[end:]
			at := record.Time(binary.BigEndian.Uint64(head))
			if at > stop {
				break
			}
			if at < stop || exact && binary.BigEndian.Uint64(head[8:]) != row.Seq {
				continue
			}
			saved, err := archived.Decode(bytes)
			if err != nil {
				return nil, err
			}
			if saved.Record.ID == row.Record.ID && v.memory.isArchivedAs(&saved.Record, &row.Record, stop) {
				return &saved.Record, nil
			}
		}
	}
	return nil, nil
}

func (f *detailsFile) readPiece(i int) error {
	if f.at == i {
		return nil
	}
	p := f.pieces[i]
	f.piece, f.at = slices.Grow(f.piece[:0], int(p.len))[:p.len], i
	if _, err := f.file.ReadAt(f.piece, p.from); err != nil {
		f.at = -1
		return fmt.Errorf("%w: %w", ErrSpill, err)
	}
	return nil
}
