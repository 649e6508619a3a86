//go:build e2e

package packages

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// command runs a command in dir, with env beside the test's own.
func command(t testing.TB, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// buildPackages makes the packages of the sources in src, for this machine's architecture,
// with the tools of this repository, and returns the folder that they are in.
func buildPackages(t testing.TB, src string, env ...string) string {
	t.Helper()
	if src != site.Top() {
		if err := os.MkdirAll(filepath.Join(src, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(site.Top(), "bin/tools"), filepath.Join(src, "bin/tools")); err != nil {
			t.Fatal(err)
		}
	}
	dist := t.TempDir()
	env = append(env, "ARCHES="+runtime.GOARCH, "DIST="+dist, "WORK="+filepath.Join(t.TempDir(), "work"))
	command(t, src, env, "make", "packages")
	return dist
}

// buildPrevious makes the packages of the commit before this one; where there is none, or
// it had no packages yet, those of the same sources. Their version is a lower one.
func buildPrevious(t testing.TB) string {
	t.Helper()
	env := []string{"PACKAGE_VERSION=0.0.0+0.before", "SOURCE_DATE_EPOCH=" + command(t, site.Top(), nil, "git", "log", "-1", "--format=%ct")}
	if exec.Command("git", "-C", site.Top(), "cat-file", "-e", "HEAD~1:agent/packaging/build.sh").Run() != nil {
		t.Log("no commit before this one has packages: the same sources are built with a lower version")
		return buildPackages(t, site.Top(), env...)
	}
	src := t.TempDir()
	command(t, site.Top(), nil, "/bin/sh", "-c", "git archive HEAD~1 | tar -x -C "+src)
	return buildPackages(t, src, env...)
}

// copySources copies the sources, without what is built and without git, to another
// folder.
func copySources(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "another-place")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, site.Top(), nil, "/bin/bash", "-c", "git ls-files -z -c -o --exclude-standard | while IFS= read -r -d '' f; do [ -e \"$f\" ] && printf '%s\\0' \"$f\"; done | tar -c --null -T - | tar -x -C \"$1\"", "copy", dir)
	return dir
}

// packageFiles are the packages in a folder, by the name of the package, for rpm or deb. The
// old ones may lack what is new.
func packageFiles(t testing.TB, dir, format string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range packageNames(t) {
		pattern := fmt.Sprintf("%s[_\\-][0-9]*.%s", name, format)
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err == nil && len(found) == 0 && filepath.Base(dir) == "old" {
			continue
		}
		if err != nil || len(found) != 1 {
			t.Fatalf("%s in %s: %v, %v", pattern, dir, found, err)
		}
		all[name] = filepath.Base(found[0])
	}
	return all
}

// makeSystemRPM makes system.rpm in dir: a package without files that stands for what rpm
// machines have.
func makeSystemRPM(t testing.TB, dir string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "nfpm.yaml")
	text := "name: systemd\narch: all\nplatform: linux\nversion: \"252\"\nmaintainer: nobody <nobody@example.org>\ndescription: stands for the system\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(site.Top(), "bin/tools/nfpm-*"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	command(t, dir, nil, found[0], "package", "-f", config, "-p", "rpm", "-t", filepath.Join(dir, "system.rpm"))
}

// packageNames are the packages in an order in which they can be installed one by one: the
// daemons, and a package for each plugin but the example.
func packageNames(t testing.TB) []string {
	t.Helper()
	list := []string{"bursar", "bursar-agent", "bursar-epilog"}
	found, err := filepath.Glob(filepath.Join(site.Top(), "plugins/*/*/main.go"))
	if err != nil || len(found) < 9 {
		t.Fatal(found, err)
	}
	for _, main := range found {
		dir := filepath.Dir(main)
		if typ := filepath.Base(dir); typ != "example" {
			list = append(list, "bursar-"+filepath.Base(filepath.Dir(dir))+"-"+typ)
		}
	}
	return list
}
