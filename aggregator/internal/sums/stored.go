package sums

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/durable"
	"github.com/bursar-accounting/bursar/proto/record"
)

// The folder of an index has headFile, which names the files of the months.
const (
	headFile  = "head"
	headMagic = "bursar sums by day\x01" // the last byte is the version
)

// errOther says that stored sums are not those of the store.
var errOther = errors.New("the stored sums are of another state of the store")

// savedState is what is known of the files of an index.
type savedState struct {
	seq   uint64 // up to which change they go; 0: there are none
	size  int64  // of all
	begun int    // how often the sums had begun again
}

// anchor is a row as it was when the sums were stored. A store that has the same rows
// under the numbers of all anchors has the history that the sums are of.
type anchor struct{ seq, hash uint64 }

// identityHash is the hash of what an index is of, whatever the state of the store.
func (x *Index) identityHash() []byte {
	w := &storedWriter{}
	w.putText(x.zoneName())
	for _, t := range x.grid.starts {
		w.putInt(int64(t))
	}
	w.putTexts(x.dims)
	for i := range x.Classes {
		c := &x.Classes[i]
		w.putTexts([]string{c.Name, c.From})
		for _, rule := range c.Rules {
			w.putTexts([]string{rule.Pattern.String(), rule.Value})
		}
	}
	sum := sha256.Sum256(w.b)
	return sum[:]
}

// sumsFolder is where the sums are stored; "" when they are not.
func (x *Index) sumsFolder() string {
	if x.Dir == "" {
		return ""
	}
	return filepath.Join(x.Dir, hex.EncodeToString(x.identityHash()[:8]))
}

// Load takes over the sums that were stored, if they are of the store; false when there
// are none. An error says why they are not taken: they are removed then, and the index
// is as it was.
func (x *Index) Load(ctx context.Context) (loaded bool, err error) {
	dir := x.sumsFolder()
	if dir == "" {
		return false, nil
	}
	loaded, err = x.loadFrom(ctx, dir)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return loaded, err
}

func (x *Index) loadFrom(ctx context.Context, dir string) (bool, error) {
	b, err := os.ReadFile(filepath.Join(dir, headFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h, err := x.readHead(b)
	if err != nil {
		return false, err
	}
	if _, err := store.With(x.Views, func(v *store.View) (bool, error) { return true, x.checkHead(v, h) }); err != nil {
		return false, err
	}
	size := int64(len(b))
	for _, n := range slices.Sorted(maps.Keys(h.months)) {
		m := h.months[n]
		r, err := m.readFile(ctx, dir)
		if err == nil {
			err = h.loadMonth(n, r)
		}
		if err := firstError(ctx.Err(), err); err != nil {
			return false, err
		}
		h.evictOldest(x.targetBytes())
		size += m.size
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sums = h.sums
	x.saved = savedState{seq: h.seq, size: size, begun: x.begun}
	return true, nil
}

// head is what the file of that name has.
type head struct {
	sums
	index   uint64 // of the log, that was applied
	anchors []anchor
}

// checkHead returns an error unless the sums are of a state that the view came from.
func (x *Index) checkHead(v *store.View, h *head) error {
	life, err := x.Life(v)
	if err != nil {
		return err
	}
	index, _ := v.Applied()
	switch {
	case life != h.life:
		return fmt.Errorf("%w: it was restored, or is of another cluster", errOther)
	case v.Seq() < h.seq || index < h.index:
		return fmt.Errorf("%w: they go up to change %d, and the store to change %d", errOther, h.seq, v.Seq())
	case h.seq < v.Floor():
		return fmt.Errorf("%w: they go up to change %d, and rows up to change %d were dropped since", errOther, h.seq, v.Floor())
	}
	now, err := anchorsOf(v, h.anchors)
	if err != nil {
		return err
	}
	if len(now) == 0 && h.seq > 0 {
		return fmt.Errorf("%w: none of the rows that are its anchors are left", errOther)
	}
	for _, a := range now {
		if !slices.Contains(h.anchors, a) {
			return fmt.Errorf("%w: change %d is another one", errOther, a.seq)
		}
	}
	return nil
}

// anchorsOf are the rows of a view that have the numbers of a list. Some may be gone.
func anchorsOf(v *store.View, list []anchor) (now []anchor, err error) {
	for _, a := range list {
		row, ok, err := v.RowAt(a.seq)
		if err != nil {
			return nil, err
		}
		if ok {
			now = append(now, anchor{seq: a.seq, hash: hashRow(&row)})
		}
	}
	return now, nil
}

// anchorsAt are the numbers of rows up to a change, fewer the further back.
func anchorsAt(seq uint64) (list []anchor) {
	for back := uint64(0); back < seq; back = max(1, 2*back) {
		list = append(list, anchor{seq: seq - back})
	}
	return list
}

// hashRow tells rows apart.
func hashRow(row *columns.Row) uint64 {
	w := &storedWriter{}
	w.putText(row.Record.ID)
	for _, v := range []int64{int64(row.Record.Start), int64(row.ShownStop()), int64(row.Record.Submit), row.Version.Observed, int64(row.Received), int64(row.Changed)} {
		w.putInt(v)
	}
	w.putUint(row.Supersedes)
	for i := range row.Record.Components {
		w.putInt(row.Record.Components[i].Amount)
	}
	sum := sha256.Sum256(w.b)
	return binary.LittleEndian.Uint64(sum[:])
}

// writeHead begins the file of that name; the anchors follow.
func (s *sums) writeHead(identity []byte, index uint64) *storedWriter {
	w := &storedWriter{}
	w.b = append(w.b, headMagic...)
	w.b = append(w.b, identity...)
	w.putText(s.life)
	w.putUint(s.seq)
	w.putUint(index)
	w.putInt(int64(s.patience))
	w.putUint(uint64(len(s.tuples)))
	for i := range s.tuples {
		w.b = s.tuples[i].appendTo(w.b)
	}
	w.putUint(uint64(len(s.layouts.list)))
	for _, sh := range s.layouts.list {
		w.putUint(uint64(len(sh.parts)))
		for i := range sh.parts {
			w.putPart(&sh.parts[i])
		}
	}
	w.putUint(uint64(len(s.seriesKeys.list)))
	for _, k := range s.seriesKeys.list {
		w.putPart(&k.part)
		w.putTexts(k.mates)
		w.putUint(uint64(oneIf(k.again)))
	}
	w.putUint(uint64(len(s.ofSet)))
	for _, n := range s.ofSet {
		w.putUint(uint64(n))
	}
	w.putUint(uint64(len(s.short)))
	for _, from := range s.short {
		w.putInt(int64(from))
	}
	w.putRuns(slices.Collect(maps.Values(s.open)))
	w.putRuns(slices.Collect(maps.Values(s.long)))
	w.putUint(uint64(len(s.months)))
	for _, n := range slices.Sorted(maps.Keys(s.months)) {
		m := s.months[n]
		w.putUint(uint64(n))
		w.putText(m.name)
		w.putUint(uint64(m.size))
		w.putUint(uint64(m.sum))
	}
	return w
}

// finishHead returns the file of the head with the anchors at its end.
func (w *storedWriter) finishHead(anchors []anchor) []byte {
	w.putUint(uint64(len(anchors)))
	for _, a := range anchors {
		w.putUint(a.seq)
		w.putFixed(a.hash)
	}
	return binary.LittleEndian.AppendUint32(w.b, crc32.Checksum(w.b, castagnoliTable()))
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// readHead reads what writeHead and finishHead wrote, and checks that it is of this index.
func (x *Index) readHead(b []byte) (*head, error) {
	end := len(b) - 4
	if end < len(headMagic) || crc32.Checksum(b[:end], castagnoliTable()) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, fmt.Errorf("%w: %s", errStored, headFile)
	}
	r := &storedReader{b: b[:end]}
	if magic := r.readBytes(uint64(len(headMagic))); string(magic) != headMagic {
		return nil, fmt.Errorf("%w: it has another format", errOther)
	}
	if id := r.readBytes(sha256.Size); !slices.Equal(id, x.identityHash()) {
		return nil, fmt.Errorf("%w: they are of other dimensions or another zone", errOther)
	}
	h := &head{sums: newSums(x.grid, x.dims, x.Classes)}
	h.life, h.seq, h.index = r.readText(), r.readUint(), r.readUint()
	h.patience = record.Time(r.readInt())
	for range r.readCount() {
		h.addTuple(r.readTuple(len(x.dims)))
	}
	for range r.readCount() {
		h.layouts.readLayout(r)
	}
	for range r.readCount() {
		h.seriesKeys.addKey(&seriesKey{part: r.readPart(), mates: r.readTexts(), again: r.readBelow(2) == 1})
	}
	h.ofSet = make([]uint32, r.readCount())
	for i := range h.ofSet {
		h.ofSet[i] = uint32(r.readBelow(varies + 1))
		if n := h.ofSet[i]; n != varies && int(n) > len(h.tuples) {
			r.fail()
		}
	}
	for range r.readCount() {
		h.short = append(h.short, record.Time(r.readInt()))
	}
	for range r.readCount() {
		run := r.readRun(&h.sums)
		h.open[run.id] = run
	}
	for range r.readCount() {
		run := r.readRun(&h.sums)
		h.long[run.seq] = run
	}
	for range r.readCount() {
		n := int32(r.readBelow(len(h.changed)))
		h.months[n] = month{name: filepath.Base(r.readText()), size: int64(r.readUint()), sum: uint32(r.readUint())}
	}
	for range r.readCount() {
		h.anchors = append(h.anchors, anchor{seq: r.readUint(), hash: r.readFixed()})
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	if r.err != nil {
		return nil, fmt.Errorf("%w: %s", r.err, headFile)
	}
	return h, nil
}

// readTuple reads what [tuple.appendTo] wrote of n values.
func (r *storedReader) readTuple(n int) tuple {
	t := emptyTuple(n)
	if n == 0 {
		t.part = r.readBelow(2*partFlag) == partFlag
	}
	for i := range t.values {
		flags := r.readBelow(2 * partFlag)
		t.part = flags&partFlag != 0
		t.lacks[i], t.several[i] = flags&1 != 0, flags&2 != 0
		t.values[i] = r.readText()
	}
	return t
}

// readLayout reads a layout and adds it.
func (s *layouts) readLayout(r *storedReader) {
	var cs []record.Component
	for range r.readCount() {
		p := r.readPart()
		cs = append(cs, record.Component{Name: p.name, Kind: p.kind, Scores: p.scores})
	}
	s.layoutOf(cs)
}

// Save stores the sums, so that a node that starts again has them. Questions are answered
// meanwhile, and the index does not wait for the disk. An error leaves what was stored
// before.
func (x *Index) Save(ctx context.Context) error {
	dir := x.sumsFolder()
	if dir == "" {
		return nil
	}
	x.saving.Lock()
	defer x.saving.Unlock()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	w := &saver{Index: x, dir: dir}
	err := w.saveAll(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("store the sums by day: %w", err), w.undoWrites())
	}
	return err
}

// saver stores an index once.
type saver struct {
	*Index
	dir   string
	wrote map[int32]month // files that are written, or are to be
	named []int32         // chunks whose file was there, but in no head
	saved savedState
}

func (w *saver) saveAll(ctx context.Context) error {
	w.wrote = map[int32]month{}
	for n := range w.grid.chunks() { // most of the work, with the index free in between
		if err := firstError(ctx.Err(), w.saveMonth(ctx, n)); err != nil {
			return err
		}
	}
	view, head, files, err := w.encodeRest(ctx)
	if err != nil {
		return err
	}
	anchors, err := anchorsOf(view, anchorsAt(w.saved.seq))
	if err = errors.Join(err, view.Close()); err != nil {
		return err
	}
	for _, f := range files {
		if err := firstError(ctx.Err(), f.writeFile(w.dir)); err != nil {
			return err
		}
	}
	if err := firstError(ctx.Err(), durable.SyncDir(w.dir)); err != nil {
		return err
	}
	file := head.finishHead(anchors)
	if err := durable.Replace(filepath.Join(w.dir, headFile), file); err != nil {
		return err
	}
	w.saved.size += int64(len(file))
	w.wrote, w.named = nil, nil // the head names them
	w.mu.Lock()
	w.Index.saved = w.saved
	w.mu.Unlock()
	w.evictSaved()
	return w.removeLeftovers()
}

// monthFile is a file of a month that is to be on the disk.
type monthFile struct {
	name    string
	content []byte // nil: it is written, but a loss of power may take it away
}

// writeFile returns when the content is on the disk, though maybe not the name of the file.
func (f *monthFile) writeFile(dir string) error {
	flags := os.O_CREATE | os.O_EXCL | os.O_WRONLY
	if f.content == nil {
		flags = os.O_WRONLY
	}
	file, err := os.OpenFile(filepath.Join(dir, f.name), flags, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.content)
	return errors.Join(err, file.Sync(), file.Close())
}

// encodeChanged returns the file of a chunk of days if it has changed; nil otherwise. The index
// does not move meanwhile. Of a chunk that is away, base is the file that has it.
func (w *saver) encodeChanged(n int32, base *storedReader) (*monthFile, error) {
	switch m, away := w.away[n]; {
	case !w.changed[n]:
		return nil, nil
	case away && !w.held[n]:
		w.changed[n], w.months[n] = false, m
		w.named = append(w.named, n)
		return &monthFile{name: m.name}, nil
	}
	if _, away := w.away[n]; !away { // the index began anew
		base = nil
	}
	m, content, err := w.encodeMonth(n, base)
	if err != nil {
		return nil, err
	}
	w.changed[n] = false
	w.months[n], w.wrote[n] = m, m
	return &monthFile{name: m.name, content: content}, nil
}

// saveMonth writes a chunk of days if it has changed. What the disk has of it is read while
// the index may move.
func (w *saver) saveMonth(ctx context.Context, n int32) error {
	w.mu.RLock()
	before, merge := w.fileToMerge(n)
	w.mu.RUnlock()
	var base *storedReader
	if merge {
		var err error
		if base, err = before.readFile(ctx, w.dir); err != nil {
			return w.baseError(n, before, err)
		}
	}
	w.mu.RLock()
	var f *monthFile
	var err error
	if now, merge := w.fileToMerge(n); !merge || now == before {
		f, err = w.encodeChanged(n, base)
	} // else encodeRest does it
	w.mu.RUnlock()
	if f != nil && err == nil {
		err = f.writeFile(w.dir)
	}
	return err
}

// fileToMerge returns the file to which what memory has of a chunk must be added.
func (w *saver) fileToMerge(n int32) (m month, merge bool) {
	m, away := w.away[n]
	return m, away && w.held[n] && w.changed[n]
}

// baseError is the error of reading the file that had a chunk of days; nil when another
// file has it by now, which encodeRest reads.
func (w *saver) baseError(n int32, m month, err error) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if now := w.away[n]; now != m {
		return nil
	}
	return asDamaged(err)
}

// asDamaged makes the lack of a file that the index needs the same error as damage to it.
func asDamaged(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errStored, err)
	}
	return err
}

// encodeRest returns the files of what has changed meanwhile, and the beginning of the head: at
// one state, which the view is not before. The caller closes it.
func (w *saver) encodeRest(ctx context.Context) (view *store.View, head *storedWriter, files []*monthFile, err error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for n := range w.grid.chunks() {
		var base *storedReader
		if m, merge := w.fileToMerge(n); merge {
			if base, err = m.readFile(ctx, w.dir); err != nil {
				return nil, nil, nil, asDamaged(err)
			}
		}
		f, err := w.encodeChanged(n, base)
		if err != nil {
			return nil, nil, nil, err
		}
		if f != nil {
			files = append(files, f)
		}
	}
	w.saved.seq, w.saved.begun = w.seq, w.begun
	for _, m := range w.months {
		w.saved.size += m.size
	}
	if view, err = w.Views.View(); err == nil {
		index, _ := view.Applied()
		head = w.writeHead(w.identityHash(), index)
	}
	return view, head, files, err
}

// firstError is the first error.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// undoWrites forgets what was written: it counts as changed again.
func (w *saver) undoWrites() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for n, m := range w.wrote {
		w.changed[n] = true
		if err := os.Remove(filepath.Join(w.dir, m.name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, n := range w.named {
		w.changed[n] = true
	}
	return errors.Join(errs...)
}

// evictSaved drops what memory has of the chunks that are away, now that files have it, and
// then of the oldest others, until there is room. The index may move in between.
func (w *saver) evictSaved() {
	for n := range w.grid.chunks() {
		w.mu.Lock()
		m, stored := w.months[n]
		if _, away := w.away[n]; stored && !w.changed[n] && (away || w.held[n] && w.bytes > w.targetBytes()) {
			w.evictMonth(n, m)
		}
		w.mu.Unlock()
	}
}

// removeLeftovers removes the files that are left over.
func (w *saver) removeLeftovers() error {
	list, err := os.ReadDir(w.dir)
	used := map[string]bool{headFile: true}
	w.mu.RLock()
	for _, months := range []map[int32]month{w.months, w.away} {
		for _, m := range months {
			used[m.name] = true
		}
	}
	w.mu.RUnlock()
	for _, file := range list {
		if !used[file.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(w.dir, file.Name())))
		}
	}
	return err
}
