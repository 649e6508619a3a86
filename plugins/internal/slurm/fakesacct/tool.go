package fakesacct

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/programtest"
)

// Tool is how another command of Slurm's behaves: it prints a text that does not
// depend on its arguments but for the last one.
type Tool struct {
	Output string
	Last   map[string]string // outputs by the last argument, where they differ
	Stderr string
	Exit   int
}

// InstallTool writes the command of that name into dir and returns its path.
// Installing again replaces what it prints; Calls of dir has its calls too.
func InstallTool(t testing.TB, dir, name string, tool Tool) string {
	t.Helper()
	write := func(file, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(name+".out", tool.Output, 0o600)
	write(name+".err", tool.Stderr, 0o600)
	write(name+".exit", strconv.Itoa(tool.Exit), 0o600)
	for last, text := range tool.Last {
		write(name+".out."+last, text, 0o600)
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	// Written once: a script that is being written cannot be started.
	script := strings.ReplaceAll(`#!/bin/sh
echo "NAME $*" >>DIR/log
for last; do :; done
[ -f "PATH.out.$last" ] && cat "PATH.out.$last" || cat PATH.out
cat PATH.err >&2
exit "$(cat PATH.exit)"
`, "PATH", path)
	if err := programtest.WriteProgram(path, strings.NewReplacer("NAME", name, "DIR", dir).Replace(script)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Recording is what a real command printed.
func Recording(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(fmt.Errorf("recording: %w", err))
	}
	return string(text)
}
