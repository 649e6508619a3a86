// Command images makes OCI images of the daemons from their static binaries: no shell, no
// distribution, the authorities of TLS, a user of its own. It needs no daemon and no root.
//
//	go run ./agent/packaging/images -version 1.2.0 -epoch 1767225600 -binaries bin/packages -out dist amd64 arm64
//
// It reads binaries/ARCH/PROGRAM and writes out/bursar-VERSION.oci.tar and
// out/bursar-agent-VERSION.oci.tar, an OCI image layout each
// (https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md) with an image for
// each architecture. The same binaries give the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the uid and gid that the daemons run as in a container.
const user = 65532

// An image is what differs between the images.
type image struct {
	name    string   // of the image, and of its program
	summary string   // one line
	plugins string   // what the names of its plugins begin with
	args    []string // of the program
	folders []string // that the daemon writes to
	port    string
}

func allImages() []image {
	return []image{
		{
			name: "bursar", summary: "the aggregator of bursar, and the command line", plugins: "bursar-action-",
			args: []string{"aggregator", "-config", "/etc/bursar/aggregator.hcl"}, port: "8443/tcp",
			folders: []string{"var/lib/bursar", "var/lib/bursar-progress", "var/backups/bursar"},
		},
		{
			name: "bursar-agent", summary: "the agent of bursar, with all sources", plugins: "bursar-source-",
			args: []string{"-config", "/etc/bursar/agent.hcl"}, port: "7070/tcp",
			folders: []string{"var/lib/bursar-agent"},
		},
	}
}

func main() {
	var (
		version  = flag.String("version", "dev", "version of the programs, and tag of the images")
		epoch    = flag.Int64("epoch", 0, "time of all files, in seconds since 1970")
		binaries = flag.String("binaries", "bin/packages", "folder with a folder of programs for each architecture")
		out      = flag.String("out", "dist", "folder that the images are written to")
	)
	flag.Parse()
	for _, im := range allImages() {
		b := builder{image: im, version: *version, made: time.Unix(*epoch, 0).UTC(), binaries: *binaries}
		file := filepath.Join(*out, im.name+"-"+*version+".oci.tar")
		if err := b.writeArchive(file, flag.Args()); err != nil {
			fmt.Fprintf(os.Stderr, "images: make the image %s: %v\n", im.name, err)
			os.Exit(1)
		}
		fmt.Println("created image:", file)
	}
}

// A builder makes one image, for each architecture.
type builder struct {
	image
	version  string
	made     time.Time
	binaries string
}

// writeArchive writes an archive of an image layout. It replaces file.
func (b builder) writeArchive(file string, architectures []string) (err error) {
	dir, err := os.MkdirTemp("", "bursar-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		img, err := b.buildImage(arch)
		if err != nil {
			return fmt.Errorf("for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	all, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// The names by which `docker load`, `podman load` and containerd take it.
	name := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          b.name + ":" + b.version,
		"org.opencontainers.image.ref.name": b.version,
	})
	if err := all.AppendIndex(index, name); err != nil {
		return err
	}
	return b.archiveFolder(dir, file)
}

// buildImage makes the image of one architecture.
func (b builder) buildImage(arch string) (v1.Image, error) {
	files, err := b.layerArchive(arch)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil })
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer:     layer,
		MediaType: types.OCILayer,
		History:   v1.History{Created: v1.Time{Time: b.made}, CreatedBy: "bursar", Comment: "static binaries"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(mutate.ConfigMediaType(img, types.OCIConfigJSON), b.imageConfig(img, arch))
}

// imageConfig is how a container of the image starts.
func (b builder) imageConfig(img v1.Image, arch string) *v1.ConfigFile {
	had, err := img.ConfigFile()
	if err != nil {
		had = &v1.ConfigFile{}
	}
	file := had.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: b.made}
	file.Config = v1.Config{
		Entrypoint:   []string{"/usr/bin/" + b.name},
		Cmd:          b.args,
		User:         fmt.Sprintf("%d:%d", user, user),
		Env:          []string{"PATH=/usr/bin"},
		ExposedPorts: map[string]struct{}{b.port: {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":       b.name,
			"org.opencontainers.image.description": b.summary,
			"org.opencontainers.image.version":     b.version,
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.source":      "https://github.com/bursar-accounting/bursar",
		},
	}
	return file
}

// layerArchive is the layer: an archive with all that the image holds.
func (b builder) layerArchive(arch string) ([]byte, error) {
	var out bytes.Buffer
	l := layerWriter{tar: tar.NewWriter(&out), made: b.made}
	for _, dir := range []string{
		"etc", "etc/bursar", "etc/bursar/tls", "etc/ssl", "etc/ssl/certs", "run", "usr", "usr/bin", "usr/libexec",
		"usr/libexec/bursar", "usr/libexec/bursar/plugins", "var", "var/backups", "var/lib",
	} {
		l.addFolder(dir, 0o755, 0)
	}
	l.addFolder("tmp", 0o1777, 0)
	for _, dir := range b.folders {
		l.addFolder(dir, 0o750, user)
	}
	l.addFile("etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0::/:\nbursar:x:%d:%d::/:\n", user, user))
	l.addFile("etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nbursar:x:%d:\n", user))
	l.addFile("etc/ssl/certs/ca-certificates.crt", 0o644, rootCertificates())
	l.addProgram("usr/bin/"+b.name, filepath.Join(b.binaries, arch, b.name))
	plugins, err := filepath.Glob(filepath.Join(b.binaries, arch, b.plugins+"*"))
	if err != nil || len(plugins) == 0 {
		return nil, errors.Join(err, fmt.Errorf("folder %s has no plugins: make the binaries first", filepath.Join(b.binaries, arch)))
	}
	for _, plugin := range plugins {
		l.addProgram("usr/libexec/bursar/plugins/"+filepath.Base(plugin), plugin)
	}
	return out.Bytes(), errors.Join(l.err, l.tar.Close())
}

// rootCertificates are those of Mozilla's list that may sign for any name and time, as PEM: a
// file cannot say more of one.
func rootCertificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
		}
	}
	return out.Bytes()
}

// A layerWriter writes an archive of which nothing but the content differs. It keeps the
// first error.
type layerWriter struct {
	tar  *tar.Writer
	made time.Time
	err  error
}

func (l *layerWriter) writeEntry(h tar.Header, content []byte) {
	if l.err != nil {
		return
	}
	h.ModTime, h.Size, h.Format = l.made, int64(len(content)), tar.FormatPAX
	if err := l.tar.WriteHeader(&h); err != nil {
		l.err = fmt.Errorf("%s: %w", h.Name, err)
		return
	}
	if _, err := l.tar.Write(content); err != nil {
		l.err = fmt.Errorf("%s: %w", h.Name, err)
	}
}

func (l *layerWriter) addFolder(name string, mode int64, owner int) {
	l.writeEntry(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, Uid: owner, Gid: owner}, nil)
}

func (l *layerWriter) addFile(name string, mode int64, content []byte) {
	l.writeEntry(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, content)
}

func (l *layerWriter) addProgram(name, from string) {
	content, err := os.ReadFile(from)
	if err != nil {
		l.err = cmp.Or(l.err, err)
		return
	}
	l.addFile(name, 0o755, content)
}

// archiveFolder writes the files of a layout, in the order of their names, into one file.
func (b builder) archiveFolder(dir, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	l := layerWriter{tar: tar.NewWriter(f), made: b.made}
	files := os.DirFS(dir)
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			l.addFolder(name, 0o755, 0)
			return l.err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		l.addFile(name, 0o644, content)
		return l.err
	})
	return errors.Join(err, l.tar.Close(), f.Close())
}
