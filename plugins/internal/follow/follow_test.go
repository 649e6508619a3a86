package follow

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// site is a folder with a log, its writer, and a reader that keeps its state as a
// daemon does.
type site struct {
	t       *testing.T
	log     Log
	written int
	header  string
	state   State
	got     []string
	lost    int
	now     time.Time
}

func newSite(t *testing.T) *site {
	return &site{t: t, log: Log{Path: filepath.Join(t.TempDir(), "accounting")}, now: time.Now()}
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// write appends n lines; each is told by its number.
func (s *site) write(n int) {
	s.t.Helper()
	var b strings.Builder
	if _, err := os.Stat(s.log.Path); errors.Is(err, fs.ErrNotExist) {
		b.WriteString(s.header)
	}
	for range n {
		fmt.Fprintf(&b, "line %d %s\n", s.written, strings.Repeat("x", 20))
		s.written++
	}
	s.raw(b.String())
}

func (s *site) raw(text string) {
	s.t.Helper()
	f, err := os.OpenFile(s.log.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	s.must(err)
	_, err = f.WriteString(text)
	s.must(err)
	s.must(f.Close())
}

// collect reads what there is, with the state as it is after JSON.
func (s *site) collect() error {
	s.t.Helper()
	text, err := json.Marshal(s.state)
	s.must(err)
	var from State
	s.must(json.Unmarshal(text, &from))
	s.must(from.Check())
	w, err := s.log.Follow(from, s.now)
	if err != nil {
		return err
	}
	defer w.Close()
	if w.Lost() != nil {
		s.lost++
	}
	for {
		line, err := w.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		s.take(string(line.Text))
	}
	s.state, err = w.State()
	return err
}

func (s *site) take(line string) {
	if strings.HasPrefix(line, "line ") {
		s.got = append(s.got, strings.Fields(line)[1])
	}
}

// want checks that each line came, in order, and once unless repeats are allowed.
func (s *site) want(repeats bool) {
	s.t.Helper()
	got := s.got
	if repeats {
		got = slices.Clone(got)
		slices.SortFunc(got, func(a, b string) int { return len(a) - len(b) + 100*strings.Compare(pad(a), pad(b)) })
		got = slices.Compact(got)
	}
	for i := range s.written {
		if i >= len(got) || got[i] != fmt.Sprint(i) {
			s.t.Fatalf("line %d of %d is not in its place: %.300v, lost %d", i, s.written, got, s.lost)
		}
	}
	if len(got) != s.written || s.lost > 0 {
		s.t.Fatalf("%d lines were written, %d came, lost %d", s.written, len(got), s.lost)
	}
}

func pad(s string) string { return fmt.Sprintf("%09s", s) }

// The ways to rotate.
func (s *site) rename() {
	s.shift()
	s.must(os.Rename(s.log.Path, s.log.Path+".1"))
}

func (s *site) renameAndCreate() {
	s.rename()
	s.must(os.WriteFile(s.log.Path, []byte(s.header), 0o600))
}

func (s *site) copyTruncate() {
	s.shift()
	text, err := os.ReadFile(s.log.Path)
	s.must(err)
	s.must(os.WriteFile(s.log.Path+".1", text, 0o600))
	s.must(os.Truncate(s.log.Path, 0))
	s.raw(s.header)
}

func (s *site) renameAndCompress() {
	s.rename()
	s.compress(s.log.Path + ".1")
}

// shift makes room for a new .1.
func (s *site) shift() {
	for n := 30; n > 0; n-- {
		for _, pack := range []string{"", ".gz"} {
			err := os.Rename(fmt.Sprintf("%s.%d%s", s.log.Path, n, pack), fmt.Sprintf("%s.%d%s", s.log.Path, n+1, pack))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.t.Fatal(err)
			}
		}
	}
}

func (s *site) compress(path string) {
	info, err := os.Stat(path)
	s.must(err)
	text, err := os.ReadFile(path)
	s.must(err)
	f, err := os.Create(path + ".gz")
	s.must(err)
	z := gzip.NewWriter(f)
	_, err = z.Write(text)
	s.must(err)
	s.must(z.Close())
	s.must(f.Close())
	s.must(os.Chtimes(path+".gz", info.ModTime(), info.ModTime())) // as gzip does
	s.must(os.Remove(path))
}

func rotations() map[string]func(*site) {
	return map[string]func(*site){
		"rename": (*site).rename, "rename and create": (*site).renameAndCreate,
		"copytruncate": (*site).copyTruncate, "rename and compress": (*site).renameAndCompress,
	}
}

const header = "# Version: 8.1.9\n#\n"

func TestEveryLineComesOnceHoweverTheFileIsRotated(t *testing.T) {
	for name, rotate := range rotations() {
		for _, head := range []string{"", header} {
			for _, before := range []int{0, 1, 5, 100} { // lines at the first look; a kilobyte is 30
				for _, unread := range []int{0, 1, 100} { // and behind it
					t.Run(fmt.Sprintf("%s/%d/%d/%d", name, len(head), before, unread), func(t *testing.T) {
						s := newSite(t)
						s.header = head
						s.write(before)
						s.must(s.collect())
						s.write(unread)
						for range 3 {
							rotate(s)
							s.write(3)
							s.must(s.collect())
							s.must(s.collect())
							s.write(40)
						}
						s.must(s.collect())
						s.want(before < 30) // of a short file some come twice rather than not
					})
				}
			}
		}
	}
}

func TestManyRotationsBetweenTwoLooksLoseNothing(t *testing.T) {
	for name, rotate := range rotations() {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.header = header
			s.write(100)
			s.must(s.collect())
			for range 5 {
				s.write(50)
				rotate(s)
			}
			s.write(10)
			s.must(s.collect())
			s.want(false)
		})
	}
}

func TestTheFirstLookReadsTheOldFilesOldestFirst(t *testing.T) {
	s := newSite(t)
	for range 12 {
		s.write(20)
		s.renameAndCompress()
	}
	s.write(20)
	s.must(s.collect())
	s.want(false)
}

func TestAFreshLogBeginsWithTheCurrentFile(t *testing.T) {
	s := newSite(t)
	s.log.Fresh = true
	s.write(20)
	s.rename()
	s.written = 0
	s.write(40)
	s.must(s.collect())
	s.want(false)
}

func TestHalfALineWaitsForItsEnd(t *testing.T) {
	s := newSite(t)
	s.write(40)
	for _, half := range []string{"li", "ne 40", " x"} {
		s.raw(half)
		s.must(s.collect())
	}
	s.want(false)
	s.raw("\n")
	s.written++
	s.must(s.collect())
	s.want(false)
}

func TestHalfALineAtARotationIsNotLost(t *testing.T) {
	s := newSite(t)
	s.write(40)
	s.must(s.collect())
	s.raw("line 40 half")
	s.rename()
	s.must(s.collect())
	s.must(os.WriteFile(s.log.Path, nil, 0o600))
	s.must(s.collect())
	s.want(false)
	// Who had the file open writes the rest.
	f, err := os.OpenFile(s.log.Path+".1", os.O_APPEND|os.O_WRONLY, 0)
	s.must(err)
	_, err = f.WriteString(" done\nline 41 late\nline 42")
	s.must(err)
	s.must(f.Close())
	s.written = 42
	s.must(s.collect())
	s.want(false)
	// After a while what has no end has none.
	s.now = s.now.Add(time.Hour)
	s.written = 43
	s.must(s.collect())
	s.must(s.collect())
	s.want(false)
	if s.state.Before != nil {
		t.Errorf("the file before is still looked at: %+v", s.state)
	}
}

func TestALateLineOfAFileThatWasPutAsideComesInTheEnd(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		s := newSite(t)
		s.write(40)
		s.must(s.collect())
		s.renameAndCreate()
		s.must(s.collect())
		f, err := os.OpenFile(s.log.Path+".1", os.O_APPEND|os.O_WRONLY, 0)
		s.must(err)
		_, err = f.WriteString("line 40 late\n")
		s.must(err)
		s.must(f.Close())
		if compressed {
			s.compress(s.log.Path + ".1")
		}
		s.written++
		s.must(s.collect())
		s.must(s.collect())
		s.want(false)
	}
}

func TestAFileThatIsGoneIsAnErrorAndComesBackAsALoss(t *testing.T) {
	s := newSite(t)
	if err := s.collect(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	s.write(50)
	s.must(s.collect())
	s.must(os.Remove(s.log.Path))
	if err := s.collect(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleted: %v", err)
	}
	s.write(5)
	s.must(s.collect())
	if s.lost != 1 {
		t.Errorf("lost %d times", s.lost)
	}
	s.lost = 0
	s.want(false)
}

func TestATruncatedFileIsALossAndIsReadAgain(t *testing.T) {
	for _, size := range []int64{0, 100, 2000} {
		s := newSite(t)
		s.write(100)
		s.must(s.collect())
		s.must(os.Truncate(s.log.Path, size))
		s.raw("\nline new\n")
		s.must(s.collect())
		if s.lost != 1 || s.got[len(s.got)-1] != "new" {
			t.Errorf("truncated to %d: lost %d, %v", size, s.lost, s.got[len(s.got)-3:])
		}
	}
}

func TestARewrittenFileIsReadAgainFromItsBeginning(t *testing.T) {
	s := newSite(t)
	s.write(100)
	s.must(s.collect())
	text, err := os.ReadFile(s.log.Path)
	s.must(err)
	lines := strings.SplitAfter(string(text), "\n")
	edited := strings.Join(append(slices.Clone(lines[:60]), lines[61:]...), "") + "line 100 x\nline 101 x\nline 102 x\n"
	s.must(os.WriteFile(s.log.Path, []byte(edited), 0o600))
	s.must(s.collect())
	if s.lost != 1 || s.got[len(s.got)-1] != "102" {
		t.Errorf("lost %d, %v", s.lost, s.got[len(s.got)-3:])
	}
}

func TestACopyBesideTheFileChangesNothing(t *testing.T) {
	s := newSite(t)
	s.write(100)
	s.must(s.collect())
	text, err := os.ReadFile(s.log.Path)
	s.must(err)
	s.must(os.WriteFile(s.log.Path+"-20260101", text, 0o600))
	s.write(10)
	s.must(s.collect())
	s.want(false)
}

func TestACompressionThatCannotBeReadIsNamed(t *testing.T) {
	s := newSite(t)
	s.write(100)
	s.must(s.collect())
	s.must(os.Rename(s.log.Path, s.log.Path+".1.xz"))
	s.write(1)
	w, err := s.log.Follow(s.state, s.now)
	s.must(err)
	defer w.Close()
	if w.Lost() == nil || !strings.Contains(w.Lost().Reason, ".1.xz may be it") || len(w.Closed()) != 1 {
		t.Errorf("%+v, %v", w.Lost(), w.Closed())
	}
}

func TestABrokenCompressedFileIsAnError(t *testing.T) {
	s := newSite(t)
	s.write(100)
	s.must(s.collect())
	s.write(100)
	s.renameAndCompress()
	path := s.log.Path + ".1.gz"
	info, err := os.Stat(path)
	s.must(err)
	whole, err := os.ReadFile(path)
	s.must(err)
	s.write(1)
	s.must(os.Truncate(path, info.Size()-20))
	if err := s.collect(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	s.must(os.WriteFile(path, whole, 0o600))
	s.must(s.collect())
	s.want(true)
}

func TestALongLineIsCutAndTheNextIsWhole(t *testing.T) {
	s := newSite(t)
	s.raw(strings.Repeat("x", MaxLine+100) + "\n" + strings.Repeat("y", MaxLine) + "\nz\n")
	w, err := s.log.Follow(State{}, s.now)
	s.must(err)
	defer w.Close()
	for i, want := range []struct {
		first byte
		long  bool
		n     int
	}{{'x', true, MaxLine}, {'y', false, MaxLine}, {'z', false, 1}} {
		l, err := w.Next()
		s.must(err)
		if l.Text[0] != want.first || l.Long() != want.long || len(l.Text) != want.n {
			t.Errorf("line %d: %d bytes of %c, long %t", i, len(l.Text), l.Text[0], l.Long())
		}
	}
}

func TestAFileThatIsTruncatedUnderOurHandsIsNoticed(t *testing.T) {
	s := newSite(t)
	s.write(100)
	w, err := s.log.Follow(State{}, s.now)
	s.must(err)
	defer w.Close()
	_, err = w.Next()
	s.must(err)
	if _, err := w.State(); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		_, err = w.Next()
		s.must(err)
	}
	s.must(os.WriteFile(s.log.Path, []byte(strings.Repeat("other\n", 2000)), 0o600))
	if _, err := w.State(); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v", err)
	}
}

func TestProgressEndsWhereTheFilesEnd(t *testing.T) {
	s := newSite(t)
	s.write(100)
	s.renameAndCompress()
	s.write(100)
	w, err := s.log.Follow(State{}, s.now)
	s.must(err)
	defer w.Close()
	n, last := 0, int64(0)
	for ; err == nil; n++ {
		done, total := w.Progress()
		if done < last || done > total {
			t.Fatalf("%d of %d after %d", done, total, last)
		}
		last = done
		_, err = w.Next()
	}
	if done, total := w.Progress(); done != total || n != 201 {
		t.Errorf("%d of %d after %d lines", done, total, n)
	}
}

func TestFilesAreReadInTheirOrderFromAnOffset(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, text := range []string{"a\nb\n", "c", "d\n"} {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	w, err := new(Log).Files(paths, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	got := ""
	for {
		l, err := w.Next()
		if err != nil {
			break
		}
		got += string(l.Text)
	}
	if got != "bcd" {
		t.Errorf("%q", got)
	}
	if _, err := new(Log).Files([]string{dir}, 0); err == nil {
		t.Error("a folder is no file")
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"offset":100,"head_length":20,"head":"x","tail":"y","inode":7,"modified":9,"before":{"offset":1,"head_length":1,"head":"z"}}`))
	path := filepath.Join(f.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("line\n", 500)), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s State
		if json.Unmarshal(text, &s) != nil || s.Check() != nil {
			return
		}
		w, err := (&Log{Path: path}).Follow(s, time.Now())
		if err != nil {
			return
		}
		defer w.Close()
		for {
			if _, err := w.Next(); err != nil {
				break
			}
		}
		if after, err := w.State(); err == nil && after.Check() != nil {
			t.Errorf("%s gives %+v", text, after)
		}
	})
}

// A log of entries of several lines gives each entry once through rotations, and waits
// for the banner of an entry that is being written.
func TestEntries_ThroughRotations_ComeWholeAndOnce(t *testing.T) {
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 1))
		s := newSite(t)
		s.log.Banner = "*** "
		var want, got []string
		half := ""
		for round := range 40 {
			text := half
			for range chance.IntN(5) {
				entry := strings.Repeat(fmt.Sprintf("a = %d %s\n", chance.IntN(1000), strings.Repeat([]string{"x", "*** "}[chance.IntN(2)], chance.IntN(200))), chance.IntN(6))
				want = append(want, entry+fmt.Sprintf("*** %d", len(want)))
				text += want[len(want)-1] + "\n"
			}
			cut := len(text) - chance.IntN(len(text)+1)/3
			s.raw(text[:cut])
			half = text[cut:]
			if chance.IntN(3) == 0 {
				s.raw(half)
				half = ""
				s.must(os.Rename(s.log.Path, fmt.Sprintf("%s.20260510T1200%02d", s.log.Path, round)))
				s.raw("")
			}
			if chance.IntN(2) == 0 {
				got = append(got, s.entries()...)
			}
		}
		s.raw(half)
		got = append(got, s.entries()...)
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: %d entries of %d", seed, len(got), len(want))
		}
	}
}

// entries reads what there is.
func (s *site) entries() (out []string) {
	s.t.Helper()
	w, err := s.log.Follow(s.state, s.now)
	s.must(err)
	defer w.Close()
	for {
		line, err := w.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		s.must(err)
		if len(out)%3 == 2 { // handed back and given again
			w.Back(line)
			line, err = w.Next()
			s.must(err)
		}
		out = append(out, string(line.Text))
	}
	s.state, err = w.State()
	s.must(err)
	return out
}
