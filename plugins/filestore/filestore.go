// Package filestore keeps files in a directory or in a bucket of an S3-compatible server:
// each appears whole, and is read back before it counts.
package filestore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/hcl/preflight"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Store keeps files by names with slashes, such as year=2024/month=03/a.parquet. A file that
// is not there is fs.ErrNotExist. An error says what failed and where.
type Store interface {
	// String is where the files are: the path of a folder, or s3://bucket/prefix.
	String() string

	// Put writes a file and returns when it is there for good. Check, unless it is nil, reads
	// it back; only when check finds no fault, or where the store cannot do so before, the
	// name shows it. After an error the name is what it was, or, in a bucket, is removed or
	// shows the file that check refused. Two calls for one name do not mix what they write.
	Put(ctx context.Context, name string, write func(io.Writer) error, check func(*File) error) error

	// Open opens a file to be read.
	Open(ctx context.Context, name string) (*File, error)

	// List gives the names of the files below a folder, such as year=2024/, in their order;
	// "" is all. Hidden files, whose names begin with a dot, are left out.
	List(ctx context.Context, folder string) ([]string, error)

	// Remove removes a file. A missing file is no error.
	Remove(ctx context.Context, name string) error
}

// File is a file that is read, from several places at once if need be.
type File struct {
	io.ReaderAt
	io.Closer

	Name string
	Size int64
}

// Reader reads a file from its beginning.
func (f *File) Reader() io.Reader { return io.NewSectionReader(f.ReaderAt, 0, f.Size) }

// ReadFile reads a file of at most limit bytes.
func ReadFile(ctx context.Context, s Store, name string, limit int64) ([]byte, error) {
	f, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size > limit {
		return nil, tooLarge(name, f.Size, limit)
	}
	text := make([]byte, f.Size)
	_, err = io.ReadFull(f.Reader(), text)
	return text, err
}

// WriteFile puts a file.
func WriteFile(ctx context.Context, s Store, name string, text []byte) error {
	return s.Put(ctx, name, func(w io.Writer) error { _, err := w.Write(text); return err }, nil)
}

// Bucket says where a bucket is: the settings of a block.
type Bucket struct {
	Endpoint  string        `hcl:"endpoint" doc:"the address of the server, such as \"https://s3.example.org\""`
	Bucket    string        `hcl:"bucket" doc:"the bucket, which is there"`
	Prefix    string        `hcl:"prefix,optional" unset:"none" doc:"the folder in the bucket, such as \"bursar\""`
	Region    string        `hcl:"region,optional" default:"us-east-1" doc:"the region; most servers of your own take any"`
	AccessKey string        `hcl:"access_key" doc:"the access key: env(\"…\") or file(\"…\") keeps it out of the shared configuration"`
	SecretKey string        `hcl:"secret_key" doc:"the secret key, likewise"`
	CA        hcl.Absolute  `hcl:"ca,optional" unset:"those of the system" doc:"a PEM file of the authorities to trust"`
	HostStyle bool          `hcl:"host_style,optional" doc:"the bucket is part of the host name, as Amazon wants it; else of the path"`
	Timeout   time.Duration `hcl:"timeout,optional" default:"1m" min:"1s" max:"10m" doc:"for a connection, and for each step in which nothing arrives or leaves"`
}

// Of returns the store that a directory or a bucket names, the settings of a block of which
// one is set, and reports what is wrong with them.
func Of(block *sdk.Body, dir hcl.Absolute, b *Bucket) Store {
	switch {
	case (dir == "") == (b == nil):
		block.Errorf("directory", "set directory or a bucket block, and not both")
		return nil
	case b == nil:
		CheckDirectory(block, dir)
		return Directory(string(dir))
	}
	s, setting, err := b.openStore()
	if err != nil {
		block.Block("bucket").Errorf(setting, "%v", err)
	}
	return s
}

// CheckDirectory reports what is wrong with the setting directory on this machine: an error
// where it never can be a folder, a warning where it may become one, or writable, later.
func CheckDirectory(block *sdk.Body, dir hcl.Absolute) {
	info, err := os.Stat(string(dir))
	switch {
	case dir == "": // not set, or refused
	case errors.Is(err, fs.ErrNotExist):
		block.Warnf("directory", "the directory %[1]s is not there: mount it, or make it with install -d -o bursar -g bursar %[1]s", dir)
	case err == nil && !info.IsDir(), errors.Is(err, syscall.ENOTDIR):
		block.Errorf("directory", "%s cannot be a directory: it is a file, or below one", dir)
	case err != nil:
		block.Warnf("directory", "%v", err)
	default:
		for _, d := range preflight.Folder(string(dir), hcl.Range{}) {
			block.Warnf("directory", "%s", d.Detail)
		}
	}
}
