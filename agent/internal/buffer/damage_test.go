package buffer_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
)

// rot flips a bit in the body of the chunk that begins with the frame seq.
func rot(t *testing.T, file string, seq byte) {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		chunks, key := tx.Bucket([]byte("chunks")), []byte{0, 0, 0, 0, 0, 0, 0, seq}
		value := append([]byte{}, chunks.Get(key)...)
		value[len(value)-3] ^= 4
		return chunks.Put(key, value)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// rotten is a buffer of ten frames of which the fifth cannot be read.
func rotten(t *testing.T) (*buffer.Buffer, string, *clock) {
	t.Helper()
	file, c := path(t), newClock()
	opt := buffer.Options{Retain: time.Hour, Now: c.now}
	b := open(t, file, opt)
	fill(t, b, 10, 1)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	rot(t, file, 5)
	return open(t, file, opt), file, c
}

func TestFramesThatCannotBeReadAreNeitherSentNorSkippedAndTheErrorSaysWhatToDo(t *testing.T) {
	b, file, _ := rotten(t)
	from := resume(t, b, "a", buffer.Position{})
	chunks, end, err := b.Read(from, 1<<20)
	if err != nil || len(chunks) != 4 || end.Seq != 4 {
		t.Fatalf("%d chunks to frame %d, %v; what is before the damage is good", len(chunks), end.Seq, err)
	}
	_, _, err = b.Read(end, 1<<20)
	var damage *buffer.DamageError
	if !errors.As(err, &damage) || !errors.Is(err, buffer.ErrDamaged) || damage.After != 4 || damage.Path != file {
		t.Fatal(err)
	}
	if want := "the frames behind 4 in " + file + " cannot be read"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if want := "systemctl stop bursar-agent && mv " + file + " " + file + ".damaged && systemctl start bursar-agent"; damage.Remedy() != want {
		t.Errorf("%q", damage.Remedy())
	}
	if stats, err := b.Stats(); err != nil || stats.Damage != damage {
		t.Errorf("%+v, %v", stats.Damage, err)
	}
}

func TestADamageIsNoOtherBuffer(t *testing.T) {
	b, _, _ := rotten(t)
	before := b.Epoch()
	_, err := b.Resume(buffer.Resume{Cluster: "a", Epoch: before, Known: buffer.Position{Epoch: before, Seq: 4}})
	if !errors.Is(err, buffer.ErrDamaged) || b.Epoch() != before {
		t.Errorf("%v, epoch %x", err, b.Epoch())
	}
}

func TestADamageIsOverWhenTheRemedyWasFollowed(t *testing.T) {
	b, file, c := rotten(t)
	known := resume(t, b, "a", buffer.Position{})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, file+".damaged"); err != nil {
		t.Fatal(err)
	}
	b = open(t, file, buffer.Options{Retain: time.Hour, Now: c.now})
	from := resume(t, b, "a", known)
	fill(t, b, 3, 1)
	if got, _ := drain(t, b, from, 1); len(got) != 3 {
		t.Errorf("%q", got)
	}
	if stats, err := b.Stats(); err != nil || stats.Damage != nil {
		t.Errorf("%+v, %v", stats.Damage, err)
	}
}
