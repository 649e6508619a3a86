package action

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// A program that others could have changed is not started where the leader runs it
// itself, by whatever path it is named.
func TestLocal_ProgramThatOthersCanChange_IsNotStarted(t *testing.T) {
	real, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(mode os.FileMode, names ...string) string {
		t.Helper()
		path := filepath.Join(append([]string{real}, names...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := programtest.WriteProgram(path, "#!/bin/sh\necho ran >>"+filepath.Join(real, "ran")+"\necho fine\n"); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(target, name string) string {
		t.Helper()
		path := filepath.Join(real, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write(0o755, "good", "p")
	open := write(0o755, "open", "p")
	if err := os.Chmod(filepath.Dir(open), 0o777); err != nil {
		t.Fatal(err)
	}
	below := write(0o755, "open", "below", "p")
	loose, script := write(0o775, "good", "loose"), write(0o666, "good", "script")
	folder := link(filepath.Dir(below), "folder")
	for name, c := range map[string]struct {
		arguments []string
		runs      bool
	}{
		"its own":                        {[]string{good}, true},
		"by a link":                      {[]string{link(good, "link")}, true},
		"with a script":                  {[]string{"/bin/sh", good}, true},
		"none":                           {nil, false},
		"a relative path":                {[]string{"good/p"}, false},
		"written by its group":           {[]string{loose}, false},
		"in an open folder":              {[]string{open}, false},
		"below an open folder":           {[]string{below}, false},
		"behind .. of a linked folder":   {[]string{folder + "/../p"}, false},
		"by a link to one that is open":  {[]string{link(loose, "other")}, false},
		"a script that others may write": {[]string{"/bin/sh", script}, false},
		"a script in an open folder":     {[]string{"/usr/bin/env", "/bin/sh", open}, false},
		"no program":                     {[]string{filepath.Join(real, "none")}, false},
		"one that may not be executed":   {[]string{write(0o600, "good", "text")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := Local{Dev: true}.Run(t.Context(), ProgramRun{}, sdk.Program{Arguments: c.arguments})
			_, touched := os.Stat(filepath.Join(real, "ran"))
			_ = os.Remove(filepath.Join(real, "ran"))
			switch {
			case c.runs && (err != nil || !strings.Contains(string(out.Stdout), "fine")):
				t.Error(fmt.Sprintf("%q", out.Stdout), err)
			case !c.runs && (!sdk.NotRun(err) || touched == nil):
				t.Errorf("%q, %v, ran %t", out.Stdout, err, touched == nil)
			}
		})
	}
	if _, err := (Local{}).Run(t.Context(), ProgramRun{}, sdk.Program{Arguments: []string{good}}); !sdk.NotRun(err) || !strings.Contains(err.Error(), host.ErrUnsafe.Error()) {
		t.Errorf("below a folder such as /tmp without dev: %v", err)
	}
}
