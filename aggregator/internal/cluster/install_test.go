package cluster

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// backup writes an image that a cluster of another time made.
func backup(t *testing.T, commands ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	old := &memory{live: content{Index: 1 << 40, Term: 99, Commands: commands}}
	if err := old.Checkpoint(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAnInstalledImageReplacesTheStateOfAllNodesInOrder(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 10)
	f.install("a", "b")
	f.say(10, 13)
	want := append([]string{"a", "b"}, numbered(10, 13)...)
	f.agree(want, f.ships...)
	index, term := f.ships[0].state.Applied()
	if index >= 1<<40 || term >= 99 {
		t.Fatalf("the state says that it is at entry %d of term %d", index, term)
	}
	for _, s := range f.ships { // and it stays so
		s.kill()
		s.restart()
		f.agree(want, s)
	}
}

func TestAnInstallReachesANodeThatWasDown(t *testing.T) {
	t.Parallel()
	for name, shorten := range map[string]bool{"by the log": false, "by an image of the state": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3).found(3)
			f.say(0, 5)
			down := f.followers()[0]
			down.kill()
			f.install("a")
			f.say(5, 6)
			rush(t, f.leader().Node, 6, 80)
			if shorten {
				for _, s := range f.up() {
					s.running.conf.TrailingBytes = 1
					takeSnapshot(t, s.Node)
				}
			}
			down.restart()
			f.agree(append([]string{"a"}, numbered(5, 80)...), down)
		})
	}
}

func TestAnInstallWaitsForTheImageAndSurvivesAKillMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 5)
	down := f.followers()[0]
	down.kill()
	f.install("a")
	for _, s := range f.up() { // no one hands the image out for now
		s.trans.serveImages(func(_ greeting, c *Conn) { c.Close() })
	}
	down.restart()
	eventually(t, "it asks for the image", func() bool { return down.Stats().Commit >= f.leader().Stats().Commit && down.Stats().Last > 5 })
	if got := down.state.commands(); len(got) > 0 && got[0] == "a" {
		t.Fatal(got)
	}
	down.stop()
	for _, s := range f.up() {
		s.trans.serveImages(s.handleCalls)
	}
	down.restart()
	f.say(5, 7)
	f.agree(append([]string{"a"}, numbered(5, 7)...), f.ships...)
}

func TestANodeWhoseImageIsGoneEverywhereStopsAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 5)
	down := f.followers()[0]
	down.kill()
	f.install("a")
	f.agree([]string{"a"}, f.up()...)
	for _, s := range f.up() {
		if err := os.RemoveAll(s.imageStore.dir); err != nil {
			t.Fatal(err)
		}
	}
	down.restart()
	if err := <-down.done; !errors.Is(err, ErrImageGone) || !strings.Contains(err.Error(), "move its data directory away") {
		t.Fatal(err)
	}
}

func TestADamagedImageIsFetchedAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 5)
	victim := f.followers()[0]
	f.install("a")
	f.agree([]string{"a"}, victim)
	old := victim.conf
	victim.kill()
	files, err := filepath.Glob(filepath.Join(victim.conf.DataDir, "raft", "images", "*.tar"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	flipMiddle(t, files[0])
	victim.state = &memory{} // nothing was flushed: all is applied again
	victim.conf = old
	victim.restart()
	f.say(5, 6)
	f.agree([]string{"a", "c5"}, victim)
}

// flipMiddle changes one bit in the middle of a file.
func flipMiddle(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnInstallIsRefusedBeforeAnythingHasChanged(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 5)
	good := backup(t, "a")
	if err := f.followers()[0].Install(t.Context(), good); !errors.Is(err, ErrNotLeader) {
		t.Fatal(err)
	}
	if err := f.leader().Install(t.Context(), t.TempDir()); err == nil {
		t.Fatal("an empty directory was installed")
	}
	bad := backup(t, "a")
	if err := os.WriteFile(filepath.Join(bad, "content"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.leader().Install(t.Context(), bad); err == nil {
		t.Fatal("what the state cannot read was installed")
	}
	leader := f.leader()
	for _, s := range f.followers() {
		s.trans.serveImages(func(_ greeting, c *Conn) { c.Close() })
	}
	if err := leader.Install(t.Context(), good); !errors.Is(err, ErrQuorum) {
		t.Fatal(err)
	}
	f.say(5, 6)
	f.agree(numbered(0, 6), f.ships...)
}

func TestALoneNodeInstallsAnImageAndBeginsItsTermAnew(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	n := lead(t, lone(t, dir, state))
	propose(t, n.Node, "c0")
	term, _ := n.leadership.currentTerm()
	if err := n.Install(t.Context(), backup(t, "a")); err != nil {
		t.Fatal(err)
	}
	if term.Err() == nil {
		t.Fatal("the duties go on with what they knew")
	}
	propose(t, n.Node, "c1")
	n.stop(t)
	again := &memory{} // the state was lost before it was flushed: the log has all
	lead(t, lone(t, dir, again))
	eventually(t, "all is applied", func() bool { return len(again.commands()) == 2 })
	if diff := cmp.Diff([]string{"a", "c1"}, again.commands()); diff != "" {
		t.Fatal(diff)
	}
}

func TestAnAnnouncedImageIsKeptOnlyIfItIsTheOne(t *testing.T) {
	t.Parallel()
	s, err := openImageStore(filepath.Join(t.TempDir(), "images"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.packImage(backup(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := openImageStore(filepath.Join(t.TempDir(), "images"))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(s.imagePath(o.SHA256))
	if err != nil {
		t.Fatal(err)
	}
	wrong := o
	wrong.SHA256 = strings.Repeat("0", 64)
	if err := other.receiveImage(wrong, strings.NewReader(string(archive))); !errors.Is(err, ErrCorrupt) || other.hasImage(wrong) || other.hasImage(o) {
		t.Fatal(err)
	}
	if err := other.receiveImage(o, io.LimitReader(strings.NewReader(string(archive)), o.Size/2)); err == nil {
		t.Fatal("half an image was kept")
	}
	if err := other.receiveImage(o, strings.NewReader(string(archive))); err != nil || !other.hasImage(o) {
		t.Fatal(err)
	}
	if err := other.sweepImages(nil); err != nil || !other.hasImage(o) {
		t.Fatal("a new image was swept away", err)
	}
	if left, err := filepath.Glob(filepath.Join(other.dir, "in-*")); len(left) > 0 || err != nil {
		t.Fatal(left, err)
	}
}

func FuzzOrder(f *testing.F) {
	f.Add([]byte(`{"format":1,"sha256":"` + strings.Repeat("a", 64) + `","size":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := readOrder(data)
		if err != nil {
			return
		}
		again, err := o.encodeOrder()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := readOrder(again); err != nil || back != o {
			t.Fatal(back, err)
		}
	})
}

var _ net.Conn = (*Conn)(nil)
