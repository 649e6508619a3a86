package buffer_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/proto/frame"
)

var cuts = flag.Int("cuts", 300, "how many times the power is cut")

const (
	sectorSize = 512 // what a disk writes whole
	pageSize   = 4096
	metaPages  = 2 // at the start of a bbolt file
)

// TestAPowerCutAtAnyPointLeavesAllThatWasConfirmed cuts the power in the middle
// of commits. bbolt writes the pages of a commit in place, syncs, writes one of its
// two first pages, and syncs again; what is on the disk in between is made from
// the file before and after the commit: any of the changed sectors, in any
// combination, before the first sync; all of them and the first page old, new or
// torn, after it. The file that is left is opened and goes on.
func TestAPowerCutAtAnyPointLeavesAllThatWasConfirmed(t *testing.T) {
	c := &cutter{t: t, dir: t.TempDir(), rng: rand.New(rand.NewPCG(7, 9))}
	for n := range *cuts {
		if n%200 == 0 {
			c.anew()
		}
		if err := c.cut(false); err != nil {
			t.Fatalf("cut %d: %v", n, err)
		}
	}
}

// TestADiskThatLiesAboutItsSyncsIsFoundOut shows that the test above could fail:
// here the first page is on the disk before the pages that it names.
func TestADiskThatLiesAboutItsSyncsIsFoundOut(t *testing.T) {
	c := &cutter{t: t, dir: t.TempDir(), rng: rand.New(rand.NewPCG(7, 9))}
	for range 100 {
		c.anew()
		if err := c.cut(true); err != nil {
			t.Log(err)
			return
		}
	}
	t.Fatal("no cut on a disk that lies was noticed")
}

// contents are what a buffer has to hold.
type contents struct {
	frames []string
	acked  uint64
}

// cutter drives one buffer through commits and power cuts.
type cutter struct {
	t   *testing.T
	dir string
	rng *rand.Rand

	file      string
	files     int
	confirmed contents
}

func (c *cutter) anew() {
	c.files++
	c.file = filepath.Join(c.dir, fmt.Sprint(c.files))
	c.confirmed = contents{}
	b, err := c.open()
	if err != nil {
		c.t.Fatal(err)
	}
	b.Close()
}

func (c *cutter) open() (*buffer.Buffer, error) {
	return buffer.Open(c.file, buffer.Options{Retain: time.Hour, Machine: "m", NoSync: true})
}

// cut makes some commits, cuts the power in the last of them, and holds what is
// left against what was confirmed.
func (c *cutter) cut(lying bool) error {
	b, err := c.open()
	if err != nil {
		return err
	}
	for range c.rng.IntN(3) {
		c.confirmed = c.commit(b)
	}
	before := c.read()
	next := c.commit(b)
	after := c.read()
	if err := b.Close(); err != nil {
		c.t.Fatal(err)
	}
	if txid(after) != txid(before)+1 {
		return fmt.Errorf("the commit was %d transactions, not one", txid(after)-txid(before))
	}
	if err := os.WriteFile(c.file, c.left(before, after, lying), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return c.verify(next)
}

// commit does one transaction and returns what the buffer then has to hold.
func (c *cutter) commit(b *buffer.Buffer) contents {
	if c.rng.IntN(4) == 0 {
		return c.acknowledge(b)
	}
	start, err := b.Begin(slurm)
	if err != nil {
		c.t.Fatal(err)
	}
	next := contents{frames: slices.Clone(c.confirmed.frames), acked: c.confirmed.acked}
	a := buffer.Append{Source: slurm, Generation: start.Generation}
	for i := range 1 + c.rng.IntN(20) {
		text := fmt.Sprintf("%d/%d/%0*d", len(c.confirmed.frames), i, 1+c.rng.IntN(900), 0)
		next.frames = append(next.frames, text)
		a.Frames = append(a.Frames, []byte(text))
	}
	a.Checkpoint = fmt.Append(nil, len(next.frames))
	if _, err := b.Append(a); err != nil {
		c.t.Fatal(err)
	}
	return next
}

func (c *cutter) acknowledge(b *buffer.Buffer) contents {
	frames, end, err := all(b)
	if err == nil {
		err = b.Ack("x", end)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return contents{frames: frames, acked: end.Seq}
}

func (c *cutter) read() []byte {
	data, err := os.ReadFile(c.file)
	if err != nil {
		c.t.Fatal(err)
	}
	return data
}

// left makes what is on the disk after a cut between before and after.
func (c *cutter) left(before, after []byte, lying bool) []byte {
	synced := c.rng.IntN(2) == 0 && !lying
	out := bytes.Clone(before)
	if len(after) > len(out) && (synced || c.rng.IntN(2) == 0) {
		out = append(out, make([]byte, len(after)-len(out))...)
	}
	share := c.rng.IntN(101)
	for at := metaPages * pageSize; at < len(after); at += sectorSize {
		if at+sectorSize <= len(out) && (synced || c.rng.IntN(100) < share) {
			copy(out[at:at+sectorSize], after[at:])
		}
	}
	switch {
	case lying:
		copy(out[:metaPages*pageSize], after)
	case synced:
		c.tear(out, before, after)
	}
	return out
}

// tear writes the first pages old, new, or new up to any byte.
func (c *cutter) tear(out, before, after []byte) {
	const used = 16 + 64 // bytes of such a page that hold something
	for page := range metaPages {
		at := page * pageSize
		if bytes.Equal(before[at:at+pageSize], after[at:at+pageSize]) {
			continue
		}
		copy(out[at:], after[at:at+c.rng.IntN(used+1)])
	}
}

// txid is the greater of the numbers of transactions in the first pages.
func txid(file []byte) uint64 {
	const at = 16 + 48 // behind the page's header, magic, version, sizes, root and freelist
	return max(binary.NativeEndian.Uint64(file[at:]), binary.NativeEndian.Uint64(file[pageSize+at:]))
}

// verify opens what is left: it holds what was confirmed, or that and the whole of
// the commit in which the power was cut.
func (c *cutter) verify(next contents) error {
	b, err := c.open()
	if err != nil {
		return err
	}
	defer b.Close()
	got, err := whole(b)
	if err != nil {
		return err
	}
	if reflect.DeepEqual(got, next) {
		c.confirmed = next
	}
	if !reflect.DeepEqual(got, c.confirmed) {
		return fmt.Errorf("%d frames are left and %d are acknowledged; confirmed were %d and %d, and with the cut commit %d and %d",
			len(got.frames), got.acked, len(c.confirmed.frames), c.confirmed.acked, len(next.frames), next.acked)
	}
	return nil
}

// whole reads everything and checks that the checkpoint is where the frames end.
func whole(b *buffer.Buffer) (contents, error) {
	frames, _, err := all(b)
	if err != nil {
		return contents{}, err
	}
	stats, err := b.Stats()
	if err != nil {
		return contents{}, err
	}
	start, err := b.Begin(slurm)
	if err != nil {
		return contents{}, err
	}
	if got := string(start.Checkpoint); len(frames) > 0 && got != fmt.Sprint(len(frames)) {
		return contents{}, fmt.Errorf("the checkpoint is %q, and there are %d frames", got, len(frames))
	}
	return contents{frames: frames, acked: stats.Clusters["x"].Through}, nil
}

// all reads every frame from the first on and verifies the chain.
func all(b *buffer.Buffer) ([]string, buffer.Position, error) {
	var out []string
	p := buffer.Position{Epoch: b.Epoch()}
	for {
		chunks, end, err := b.Read(p, 1<<20)
		if err != nil || len(chunks) == 0 {
			return out, p, err
		}
		for _, raw := range chunks {
			chunk, err := frame.Parse(raw)
			if err != nil {
				return nil, p, err
			}
			if err := chunk.Verify(); err != nil {
				return nil, p, err
			}
			for _, text := range chunk.Frames() {
				out = append(out, string(text))
			}
		}
		p = end
	}
}
