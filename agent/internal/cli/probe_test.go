package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
)

// buffered makes a buffer with some frames and returns its file.
func buffered(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "buffer.db")
	b, err := buffer.Open(file, buffer.Options{Machine: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := b.Append(buffer.Append{Frames: [][]byte{fmt.Appendf(nil, "%d/%01000d", i, 0)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func probing(t *testing.T) *app {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &app{Env: Env{Executable: executable}}
}

func TestADamagedBufferIsNamedWithItsRemedy(t *testing.T) {
	a, file := probing(t), buffered(t)
	if err := a.probe(t.Context(), file); err != nil {
		t.Fatalf("a sound buffer: %v", err)
	}
	if err := a.probe(t.Context(), filepath.Join(t.TempDir(), "none.db")); err != nil {
		t.Fatalf("no buffer: %v", err)
	}
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"first pages wiped": func(b []byte) []byte { clear(b[:8192]); return b },
		"cut short":         func(b []byte) []byte { return b[:12<<10] },
		"pages wiped":       func(b []byte) []byte { clear(b[8192:]); return b },
		"another file":      func([]byte) []byte { return bytes.Repeat([]byte("not a buffer"), 9999) },
	} {
		if err := os.WriteFile(file, damage(bytes.Clone(sound)), 0o600); err != nil {
			t.Fatal(err)
		}
		err := a.probe(t.Context(), file)
		if err == nil || !strings.Contains(err.Error(), buffer.ErrDamaged.Error()) || !strings.Contains(err.Error(), "mv "+file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACheckThatWasKilledIsNoDamageAndIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	script := func(text string) *app {
		file := filepath.Join(dir, "check")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
		return &app{Env: Env{Executable: file}}
	}
	once := script(`[ -e "$0.again" ] && exit 0; : > "$0.again"; kill -9 $$`)
	if err := once.probe(t.Context(), "buffer.db"); err != nil {
		t.Errorf("killed once: %v", err)
	}
	err := script(`kill -9 $$`).probe(t.Context(), "buffer.db")
	if err == nil || strings.Contains(err.Error(), buffer.ErrDamaged.Error()) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("killed each time: %v", err)
	}
}

func TestABufferThatPassesTheProbeNeverEndsTheProcessWhenItIsOpened(t *testing.T) {
	a, file := probing(t), buffered(t)
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		bad := bytes.Clone(sound)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if a.probe(t.Context(), file) != nil {
			continue
		}
		b, err := buffer.Open(file, buffer.Options{Machine: "m"})
		if err != nil {
			continue
		}
		p := buffer.Position{Epoch: b.Epoch()}
		_, _, _ = b.Read(p, 1<<20) // right or an error
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
