package buffer_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
)

// filled makes a buffer with frames of random length and returns its file, its frames,
// and how many of them were there before the last commit.
func filled(t *testing.T, rng *rand.Rand) (file []byte, frames []string, before int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "buffer.db")
	b, err := buffer.Open(path, buffer.Options{Machine: "m", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 1 + rng.IntN(30) {
		var a buffer.Append
		before = len(frames)
		for range 1 + rng.IntN(10) {
			text := fmt.Sprintf("%d/%0*d", len(frames), 1+rng.IntN(2000), rng.IntN(9))
			frames = append(frames, text)
			a.Frames = append(a.Frames, []byte(text))
		}
		if _, err := b.Append(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return file, frames, before
}

// A buffer that was cut or has a flipped byte is refused with its remedy, or gives the
// frames that it had: all of them, or those before a damage that the error names. Only
// where the newer of bbolt's two first pages is hit it is taken back by one commit, as
// after a power cut in the middle of one, with the checkpoints of the sources.
func TestOpen_CutOrFlippedFile_RightFramesOrRemedy(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	refused := 0
	for range 8 {
		sound, frames, before := filled(t, rng)
		for n := range 30 {
			file := bytes.Clone(sound)
			if n%3 == 0 {
				file = file[:1+rng.IntN(len(file)-1)]
			} else {
				file[rng.IntN(len(file))] ^= byte(1 + rng.IntN(255))
			}
			path := filepath.Join(t.TempDir(), "buffer.db")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			b, err := buffer.Open(path, buffer.Options{Machine: "m", NoSync: true})
			if err != nil {
				refused++
				if !errors.Is(err, buffer.ErrFormat) && (!errors.Is(err, buffer.ErrDamaged) || !strings.Contains(err.Error(), buffer.Remedy(path))) {
					t.Errorf("no remedy: %v", err)
				}
				continue
			}
			rightOrDamaged(t, b, frames, before)
		}
	}
	if refused == 0 {
		t.Error("no damaged file was refused")
	}
}

func rightOrDamaged(t *testing.T, b *buffer.Buffer, frames []string, before int) {
	t.Helper()
	got, end, err := all(b)
	stats, statsErr := b.Stats()
	if err := errors.Join(statsErr, b.Close()); err != nil {
		t.Fatal(err)
	}
	if n := min(len(got), len(frames)); !slices.Equal(got, frames[:n]) || len(got) > len(frames) {
		t.Errorf("%d frames are not those that were written", len(got))
	}
	if len(got) < len(frames) && len(got) != before && !errors.Is(err, buffer.ErrDamaged) {
		t.Errorf("%d of %d frames, first %d, last %d, end %d, without an error that names the damage: %v",
			len(got), len(frames), stats.First, stats.Last, end.Seq, err)
	}
}
