//go:build e2e

package packages

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"go.yaml.in/yaml/v3"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// A container is an image's files and how it starts.
type container struct {
	t    *testing.T
	root string
	user string // uid:gid
	args []string
}

// unpack makes a root of the one image in an archive.
func unpack(t *testing.T, archive string) container {
	t.Helper()
	dir, c := t.TempDir(), container{t: t, root: t.TempDir()}
	command(t, dir, nil, "tar", "-xf", archive)
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	names, err := outer.IndexManifest()
	if err != nil || len(names.Manifests) != 1 || names.Manifests[0].Annotations["io.containerd.image.name"] == "" {
		t.Fatalf("%v, %v: want one index with a name", names, err)
	}
	index, err := outer.ImageIndex(names.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil || len(images.Manifests) != 1 || images.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("%v, %v: want one image of this architecture", images, err)
	}
	image, err := index.Image(images.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c.user, c.args = settings.Config.User, append(settings.Config.Entrypoint, settings.Config.Cmd...)
	files := mutate.Extract(image)
	defer files.Close()
	cmd := exec.Command("tar", "-xp", "-C", c.root)
	cmd.Stdin = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c
}

// command is a command in the container, on a machine of its own with the name agg1.
func (c container) command(args ...string) *exec.Cmd {
	script := fmt.Sprintf(`ip link set lo up; hostname agg1; exec env -i PATH=/usr/bin /usr/sbin/chroot --userspec=%s %s "$@"`, c.user, c.root)
	return exec.Command("unshare", append([]string{"-u", "-n", "sh", "-c", script, "sh"}, args...)...)
}

// run returns what a command prints, which must succeed.
func (c container) run(args ...string) string {
	c.t.Helper()
	out, err := c.command(args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestImages(t *testing.T) {
	t.Parallel()
	dist, work := t.TempDir(), filepath.Join(t.TempDir(), "work")
	command(t, site.Top(), []string{"ARCHES=" + runtime.GOARCH, "DIST=" + dist, "WORK=" + work}, "make", "images")
	archives, err := filepath.Glob(filepath.Join(dist, "*.oci.tar"))
	if err != nil || len(archives) != 2 {
		t.Fatalf("%v, %v", archives, err)
	}
	for _, archive := range archives {
		c := unpack(t, archive)
		name := filepath.Base(c.args[0])
		t.Run(name, func(t *testing.T) {
			c.t = t
			if c.user == "" || strings.HasPrefix(c.user, "0") {
				t.Errorf("the image runs as %q", c.user)
			}
			if _, err := os.Stat(filepath.Join(c.root, "bin/sh")); err == nil {
				t.Error("the image has a shell")
			}
			if got := c.run(c.args[0], "-version"); !strings.HasPrefix(got, name+" ") {
				t.Errorf("-version prints %q", got)
			}
			checkPlugins(c)
		})
		if name == "bursar" {
			t.Run("a node runs in the image", func(t *testing.T) { c.t = t; checkNode(c) })
		}
	}
	t.Run("the same binaries give the same bytes", func(t *testing.T) {
		again := t.TempDir()
		version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archives[0]), "bursar-"), ".oci.tar")
		epoch := command(t, site.Top(), nil, "git", "log", "-1", "--format=%ct")
		command(t, site.Top(), []string{"TZ=Asia/Tokyo"}, "go", "run", "./agent/packaging/images", "-version", version, "-epoch", epoch,
			"-binaries", work, "-out", again, runtime.GOARCH)
		for _, archive := range archives {
			first, err := os.ReadFile(archive)
			if err != nil {
				t.Fatal(err)
			}
			second, err := os.ReadFile(filepath.Join(again, filepath.Base(archive)))
			if err != nil || !bytes.Equal(first, second) {
				t.Errorf("%s differs, %v", filepath.Base(archive), err)
			}
		}
	})
}

// checkPlugins starts each plugin, which says by what a plugin is started.
func checkPlugins(c container) {
	c.t.Helper()
	plugins, err := filepath.Glob(filepath.Join(c.root, "usr/libexec/bursar/plugins/*"))
	if err != nil || len(plugins) == 0 {
		c.t.Fatalf("no plugins, %v", err)
	}
	for _, plugin := range plugins {
		out, err := c.command("/usr/libexec/bursar/plugins/" + filepath.Base(plugin)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "plugin") {
			c.t.Errorf("%s alone: %v\n%s", filepath.Base(plugin), err, out)
		}
	}
}

// healthCheck is the command by which compose.yaml asks a container.
func healthCheck(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(site.Top(), "aggregator/packaging/containers/compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Healthcheck struct{ Test []string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	test := file.Services["agg1"].Healthcheck.Test
	if len(test) < 2 || test[0] != "CMD" {
		t.Fatalf("the health check is %q", test)
	}
	return test[1:]
}

// checkNode makes certificates by the image's own program, checks the configuration of a
// node of three, and runs a node alone by its image's arguments.
func checkNode(c container) {
	c.t.Helper()
	data := filepath.Join(c.root, "var/lib/bursar")
	site.SmallDisk(c.t, data, "1g") // how full the machine's disk is shall not matter
	command(c.t, "/", nil, "chown", c.user, data)
	tls := filepath.Join(c.root, "etc/bursar/tls")
	command(c.t, "/", nil, "chown", c.user, tls)
	c.run("/usr/bin/bursar", "tls", "ca", "create", "-dir", "/etc/bursar/tls")
	c.run("/usr/bin/bursar", "tls", "cert", "create", "-dir", "/etc/bursar/tls", "-role", "aggregator", "-name", "agg1", "-host", "agg1")
	config := filepath.Join(c.root, "etc/bursar/aggregator.hcl")
	three, err := os.ReadFile(filepath.Join(site.Top(), "aggregator/packaging/containers/aggregator.hcl"))
	if err != nil {
		c.t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(three), "  raft {")
	_, after, found2 := strings.Cut(rest, "\n\n")
	if !found || !found2 {
		c.t.Fatal("no block raft in the configuration")
	}
	for _, text := range []string{string(three), before + after} {
		if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
		c.run(append(c.args, "-check")...)
	}
	check := healthCheck(c.t)
	var exit *exec.ExitError
	if out, err := c.command(check...).CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		c.t.Errorf("the health check before the node has started: %v\n%s", err, out)
	}
	node := c.command(c.args...)
	var log bytes.Buffer
	node.Stdout, node.Stderr = &log, &log
	if err := node.Start(); err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		err := node.Process.Signal(os.Interrupt)
		if waited := node.Wait(); err != nil || waited != nil {
			c.t.Errorf("the node does not end well: %v, %v\n%s", err, waited, log.String())
		}
	}()
	site.Eventually(c.t, "the health check of compose.yaml succeeds", func() (bool, string) {
		out, err := c.command(check...).CombinedOutput()
		return err == nil && len(out) == 0, string(out)
	})
	site.Eventually(c.t, "the node in the image is healthy", func() (bool, string) {
		out, err := c.command("/usr/bin/bursar", "status").CombinedOutput()
		return err == nil, string(out)
	})
}
