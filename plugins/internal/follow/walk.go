package follow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// State is what a source keeps in its checkpoint: how far the lines of a log were
// read. The zero State is the beginning of the oldest file.
type State struct {
	Cursor

	// Before is the file that was current before, as long as a program that had
	// it open may still write to it.
	Before *Cursor `json:"before,omitempty"`
}

// Check returns why s cannot be a state.
func (s *State) Check() error {
	if s.Before != nil {
		if err := s.Before.Check(); err != nil {
			return err
		}
	}
	return s.Cursor.Check()
}

// idleTime is how long after its last change no one writes to a file any more that
// a rotation has put aside.
const idleTime = 10 * time.Minute

// Lost says that lines were not found again.
type Lost struct{ Reason string }

// Walk gives the lines of a log. It is used by one goroutine.
type Walk struct {
	banner string
	parts  []part
	at     int // of the part that is read
	reader *reader
	ended  bool
	held   *Line // that was handed back

	state    State
	modified int64 // the latest of all files as they were listed
	lost     *Lost
	shut     []string

	read  int64 // of the parts before
	total int64
}

// part is a file that is to be read.
type part struct {
	file

	from   Cursor
	closed bool
	before bool // it is State.Before
	newest bool // of those that were put aside: the next part is the current file
}

// Follow goes on behind s: what is left of the file that was read last, those that
// came after it, and the current one. An unfinished line at the end waits. From
// the zero State it begins with the oldest file. Where there is no file at all the
// error is an fs.ErrNotExist.
func (l *Log) Follow(s State, now time.Time) (*Walk, error) {
	// A rotation may be under way while we look: one that has ended is seen whole.
	for range looks - 1 {
		if w, err := l.followFrom(s, now); err == nil && w.lost == nil {
			return w, nil
		}
	}
	return l.followFrom(s, now)
}

const looks = 3

func (l *Log) followFrom(s State, now time.Time) (*Walk, error) {
	current, old, shut, err := l.listFiles()
	if err != nil {
		return nil, err
	}
	w := &Walk{banner: l.Banner, state: s, shut: shut}
	files := old
	if current.path != "" {
		files = append(files, current)
	}
	for _, f := range files {
		w.modified = max(w.modified, f.modified.UnixNano())
	}
	first, from, found, err := w.findLastRead(files, current, l.Fresh)
	switch {
	case err != nil:
		return nil, err
	case !found && current.path == "":
		return nil, fmt.Errorf("%s: %w", l.Path, fs.ErrNotExist)
	case !found && s.Known():
		w.noteLost(l.Path)
		first = len(files) - 1
		if s.Modified != 0 {
			first -= len(changedAfter(old, time.Unix(0, s.Modified+1)))
		}
	}
	files = files[first:]
	if err := w.planRecheck(old, files[0], now); err != nil {
		return nil, err
	}
	w.planParts(files, from, current, now)
	return w, nil
}

// listFiles lists the files; current is the zero file when it is not there.
func (l *Log) listFiles() (current file, old []file, shut []string, err error) {
	current, err = statFile(l.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file{}, nil, nil, err
	}
	old, shut, err = l.rotatedFiles()
	return current, old, shut, err
}

// planParts makes parts of files, of which the first is read from a cursor on.
func (w *Walk) planParts(files []file, from Cursor, current file, now time.Time) {
	newest := len(files) - 1 // of those that were put aside
	if current.path != "" {
		newest--
	}
	for i, f := range files {
		p := part{file: f, closed: i < newest || i == newest && now.Sub(f.modified) > idleTime}
		p.newest = i == newest && current.path != ""
		if i == 0 {
			p.from = from
		}
		w.addPart(p)
	}
}

func (w *Walk) addPart(p part) {
	p.closed = p.closed || p.pack != ""
	w.parts = append(w.parts, p)
	w.total += p.size
	if p.pack == "" {
		w.total -= min(p.from.Offset, p.size)
	}
}

// findLastRead looks for the file that was read last, and says from where to read on.
func (w *Walk) findLastRead(files []file, current file, fresh bool) (first int, from Cursor, found bool, err error) {
	c := w.state.Cursor
	if !c.Known() {
		if fresh {
			return len(files) - 1, Cursor{}, current.path != "", nil
		}
		return 0, Cursor{}, len(files) > 0, nil
	}
	if last := len(files) - 1; current.path != "" && !c.isWeak() && c.Inode != 0 && c.Inode == current.inode {
		if same, err := c.isFile(current, false); err == nil && same { // as it nearly always is
			return last, c, true, nil
		}
	}
	var like []int
	for i := range files {
		same, err := c.isFile(files[i], files[i].path != current.path)
		if err == nil && same && files[i].path != current.path {
			same, err = w.otherThanBefore(files[i])
		}
		if err != nil {
			return 0, c, false, fmt.Errorf("look for the file that was read last: %w", err)
		}
		if same {
			like = append(like, i)
		}
	}
	if len(like) == 0 {
		return 0, Cursor{}, false, nil
	}
	i := c.chooseFile(files, like, current)
	if files[i].pack == "" && files[i].size < c.Offset { // a copy that lacks what was read already
		c.Offset, c.Tail = files[i].size, ""
	}
	return i, c, true, nil
}

// otherThanBefore reports whether f is not the file that was current before, which
// is looked at on its own.
func (w *Walk) otherThanBefore(f file) (bool, error) {
	b := w.state.Before
	if b == nil || b.Inode == w.state.Inode {
		return true, nil
	}
	if f.pack == "" {
		return f.inode != b.Inode, nil
	}
	same, err := b.isFile(f, false)
	return !same || b.Length == 0, err
}

// chooseFile picks from files that have the head of c. Usually there is one.
func (c *Cursor) chooseFile(files []file, like []int, current file) int {
	last := like[len(like)-1]
	if files[last].path != current.path {
		like = append(like, last)
	}
	for _, i := range like[:len(like)-1] {
		f := files[i]
		renamed := c.Inode != 0 && f.inode == c.Inode && current.inode != c.Inode
		// Of a head that is weak, the oldest of the files that were written after
		// the last look; what is read twice for it costs little.
		unsure := c.isWeak() && c.Modified != 0 && f.modified.UnixNano() > c.Modified && (f.pack != "" || f.size > c.Offset)
		if renamed || unsure {
			return i
		}
	}
	return last
}

// noteLost notes that the file that was read last is not there any more.
func (w *Walk) noteLost(path string) {
	reason := fmt.Sprintf("%s was replaced, and the file that was read up to byte %d is not beside it any more", path, w.state.Offset)
	if len(w.shut) > 0 {
		reason += fmt.Sprintf("; %s may be it, in a compression that cannot be read", w.shut[len(w.shut)-1])
	}
	w.lost = &Lost{Reason: reason}
	w.state.Cursor = Cursor{}
}

// planRecheck plans to look again at the file that was current before first.
func (w *Walk) planRecheck(old []file, first file, now time.Time) error {
	c := w.state.Before
	if c == nil {
		return nil
	}
	for _, f := range slices.Backward(old) {
		if f.path == first.path || f.pack == "" && c.Inode != f.inode {
			continue
		}
		same, err := c.isFile(f, false)
		if err != nil {
			return err
		}
		if same {
			w.addPart(part{file: f, from: *c, closed: now.Sub(f.modified) > idleTime, before: true})
			return nil
		}
	}
	w.state.Before = nil // it was removed, or compressed and read to its end
	return nil
}

// Read gives all lines of all files that were changed at since or later, the
// current one last; an unfinished line at its end is left out.
func (l *Log) Read(since, now time.Time) (*Walk, error) {
	current, old, shut, err := l.listFiles()
	if err != nil {
		return nil, err
	}
	w := &Walk{banner: l.Banner, shut: shut}
	files := changedAfter(old, since)
	if current.path != "" {
		files = append(files, current)
	}
	w.planParts(files, Cursor{}, current, now)
	return w, nil
}

// Files gives all lines of files, in their order, from an offset in the first. The
// last line of each needs no end. Of l, only the banner counts.
func (l *Log) Files(paths []string, offset int64) (*Walk, error) {
	w := &Walk{banner: l.Banner}
	for i, path := range paths {
		f, err := statFile(path)
		if err != nil {
			return nil, err
		}
		if f.path == "" {
			return nil, fmt.Errorf("%s is no plain file", path)
		}
		p := part{file: f, closed: true}
		if i == 0 {
			p.from.Offset = offset
		}
		w.addPart(p)
	}
	return w, nil
}

// Back hands back the line that Next gave last: Next gives it again, and State
// stands before it.
func (w *Walk) Back(l Line) {
	w.held = &l
	w.reader.cursor.Offset -= l.Size
}

// Next returns the next line, and io.EOF when there are no more now.
func (w *Walk) Next() (Line, error) {
	if l := w.held; l != nil {
		w.held = nil
		w.reader.cursor.Offset += l.Size
		return *l, nil
	}
	for {
		if w.reader == nil {
			if err := w.openNext(); err != nil {
				return Line{}, err
			}
		}
		line := Line{}
		err := io.EOF
		if !w.ended {
			line, err = w.reader.nextLine()
		}
		if !errors.Is(err, io.EOF) {
			return line, err
		}
		w.ended = true
		if w.at == len(w.parts)-1 {
			return Line{}, io.EOF
		}
		if err := w.leavePart(); err != nil {
			return Line{}, err
		}
	}
}

// openNext opens the part that is next.
func (w *Walk) openNext() error {
	if w.at >= len(w.parts) {
		return io.EOF
	}
	p := &w.parts[w.at]
	r, err := openReader(p.file, p.from, p.closed, w.banner)
	if err != nil {
		return err
	}
	w.reader, w.ended = r, false
	return nil
}

// leavePart closes a part that was read to its end.
func (w *Walk) leavePart() error {
	p := &w.parts[w.at]
	c, err := w.reader.cursorState()
	if err != nil {
		return err
	}
	switch {
	case p.before && p.closed:
		w.state.Before = nil
	case p.before:
		w.state.Before = &c
	case p.newest && !p.closed:
		w.state.Before = &c
	}
	if !p.before {
		w.state.Cursor = Cursor{}
	}
	w.read += w.reader.bytesDone()
	w.reader.closeReader()
	w.reader = nil
	w.at++
	return nil
}

// State returns how far the lines were given. It fails with ErrChanged where the
// file was truncated meanwhile: then the lines since the last State may be none.
func (w *Walk) State() (State, error) {
	if w.reader == nil {
		return w.state, nil
	}
	c, err := w.reader.cursorState()
	if err != nil {
		return w.state, err
	}
	s := w.state
	p := &w.parts[w.at]
	switch {
	case !p.before:
		s.Cursor = c
		s.Modified = max(w.modified, 1)
	case p.closed && w.ended && w.held == nil:
		s.Before = nil
	default:
		s.Before = &c
	}
	return s, nil
}

// Lost says that lines were not found again, where that is so.
func (w *Walk) Lost() *Lost { return w.lost }

// Closed are the names of files of the rotation that cannot be read, since they
// are compressed in an unknown way.
func (w *Walk) Closed() []string { return w.shut }

// Path is the file that is read.
func (w *Walk) Path() string {
	if len(w.parts) == 0 {
		return ""
	}
	return w.parts[min(w.at, len(w.parts)-1)].path
}

// Offset is how far that file was read.
func (w *Walk) Offset() int64 {
	if w.reader == nil {
		return 0
	}
	return w.reader.cursor.Offset
}

// Progress returns how many bytes of the files, as they are on the disk, were
// read, of how many.
func (w *Walk) Progress() (done, total int64) {
	done = w.read
	if w.reader != nil {
		done += w.reader.bytesDone()
	}
	return done, max(done, w.total)
}

// Close ends the walk.
func (w *Walk) Close() {
	if w.reader != nil {
		w.reader.closeReader()
		w.reader = nil
	}
}
