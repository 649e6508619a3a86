package cluster

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
)

// A node whose raft log was cut or has a flipped byte refuses to start with a sentence
// that names the remedy, or starts and has every command.
func TestOpen_CutOrFlippedLog_RefusedOrComplete(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), &memory{}
	n := lead(t, lone(t, dir, state))
	want := numbered(0, 60)
	for i := range want {
		want[i] += strings.Repeat("x", i*i)
		propose(t, n.Node, want[i])
	}
	n.stop(t)
	sound, err := os.ReadFile(n.conf.logPath())
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 120 {
		file, what := bytes.Clone(sound), ""
		if i%3 == 0 {
			file = file[:rng.IntN(len(file))]
			what = fmt.Sprintf("cut to %d of %d bytes", len(file), len(sound))
		} else {
			at := rng.IntN(len(file))
			if i%3 == 1 { // the head of a page
				at = at&^4095 + rng.IntN(80)
			}
			file[at] ^= byte(1 + rng.IntN(255))
			what = fmt.Sprintf("byte %d flipped", at)
		}
		opens(t, dir, state, file, want, what)
	}
}

// opens puts the raft log into a copy of the data directory and opens it.
func opens(t *testing.T, dir string, state *memory, log []byte, want []string, what string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	conf := lone(t, other, state.afterCrash())
	if err := os.WriteFile(conf.logPath(), log, 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := Open(conf)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrForgotten) && !errors.Is(err, ErrMismatch) && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v is not an error that names a remedy", what, err)
		}
		if !strings.Contains(err.Error(), conf.DataDir) {
			t.Errorf("%s: %v names no file", what, err)
		}
		return
	}
	defer n.Shutdown(t.Context())
	eventually(t, what+": leads", n.IsLeader)
	if err := n.Linearizable(t.Context()); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if got := conf.State.(*memory).commands(); !slices.Equal(got, want) {
		t.Errorf("%s: %d of %d commands without an error", what, len(got), len(want))
	}
}
