package filestore

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// partSize is how much of a file is in memory while it is sent: a file has at most
	// 10 000 parts.
	partSize = 32 << 20
	inOne    = 8 << 20 // what is smaller is sent in one request
	tries    = 3       // of a request
)

// bucket is a store in a bucket.
type bucket struct {
	*Bucket

	client *minio.Core
}

// Open returns the store.
func (b *Bucket) Open() (Store, error) {
	s, _, err := b.openStore()
	return s, err
}

// openStore returns the store, or the setting that is wrong.
func (b *Bucket) openStore() (s Store, setting string, err error) {
	u, err := url.Parse(b.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" {
		return nil, "endpoint", fmt.Errorf("invalid address %q: use one such as https://s3.example.org", b.Endpoint)
	}
	if b.Prefix != "" && path.Clean(b.Prefix) != b.Prefix || strings.HasPrefix(b.Prefix, "/") {
		return nil, "prefix", fmt.Errorf("invalid folder %q: use one such as \"bursar\"", b.Prefix)
	}
	trusted, err := b.tlsConfig()
	if err != nil {
		return nil, "ca", err
	}
	style := minio.BucketLookupPath
	if b.HostStyle {
		style = minio.BucketLookupDNS
	}
	client, err := minio.NewCore(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(strings.TrimSpace(b.AccessKey), strings.TrimSpace(b.SecretKey), ""), Secure: u.Scheme == "https", Region: b.Region,
		BucketLookup: style, MaxRetries: tries, Transport: b.newTransport(trusted),
	})
	if err != nil {
		return nil, "endpoint", err
	}
	return &bucket{b, client}, "", nil
}

func (b *Bucket) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if b.CA == "" {
		return c, nil
	}
	text, err := os.ReadFile(string(b.CA))
	if err != nil {
		return nil, err
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificates in PEM", b.CA)
	}
	return c, nil
}

// newTransport is one of which each step has a deadline.
func (b *Bucket) newTransport(trusted *tls.Config) http.RoundTripper {
	dialer := &net.Dialer{Timeout: b.Timeout}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &steady{c, b.Timeout}, nil
		},
		TLSClientConfig: trusted, TLSHandshakeTimeout: b.Timeout, ResponseHeaderTimeout: b.Timeout,
		IdleConnTimeout: b.Timeout, DisableCompression: true,
	}
}

// steady is a connection that ends when nothing arrives or leaves for a time.
type steady struct {
	net.Conn

	limit time.Duration
}

// Read implements net.Conn.
func (c *steady) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *steady) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.limit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// String implements Store.
func (b *bucket) String() string { return "s3://" + path.Join(b.Bucket.Bucket, b.Prefix) }

func (b *bucket) objectKey(name string) string { return path.Join(b.Prefix, name) }

// Put implements Store. A bucket shows an object when all of it has arrived.
func (b *bucket) Put(ctx context.Context, name string, write func(io.Writer) error, check func(*File) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		w.CloseWithError(err)
		written <- err
	}()
	err := b.sendObject(ctx, name, r)
	r.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // so that write ends
	if e := <-written; e != nil && !errors.Is(e, io.ErrClosedPipe) {
		return e
	}
	if err != nil {
		return b.explainFailure("write", name, err)
	}
	if check == nil {
		return nil
	}
	f, err := b.Open(ctx, name)
	if err != nil {
		return err
	}
	if err := errors.Join(check(f), f.Close()); err != nil {
		return errors.Join(err, b.Remove(ctx, name))
	}
	return nil
}

// sendObject sends what r has: what is small in one request, all else in parts.
func (b *bucket) sendObject(ctx context.Context, name string, r io.Reader) error {
	var head bytes.Buffer
	if _, err := head.ReadFrom(io.LimitReader(r, inOne)); err != nil {
		return err
	}
	size := int64(head.Len())
	if size == inOne {
		r, size = io.MultiReader(&head, r), -1
	} else {
		r = &head
	}
	_, err := b.client.Client.PutObject(ctx, b.Bucket.Bucket, b.objectKey(name), r, size, minio.PutObjectOptions{PartSize: partSize, ContentType: contentType(name)})
	return err
}

// contentType is the type of a file by its name, for browsers.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".xml":
		return "application/atom+xml"
	case ".json":
		return "application/json"
	case ".parquet":
		return "application/vnd.apache.parquet"
	}
	return "application/octet-stream"
}

// explainFailure says what failed, and what to do where that is known.
func (b *bucket) explainFailure(what, name string, err error) error {
	said := minio.ToErrorResponse(err)
	switch said.Code {
	case "NoSuchBucket":
		return fmt.Errorf("%s %s: the bucket %s is not there; make it, or mend bucket", what, name, b.Bucket.Bucket)
	case "NoSuchKey":
		return fmt.Errorf("%s %s in %s: %w", what, name, b, fs.ErrNotExist)
	}
	if said.StatusCode == http.StatusForbidden || said.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%s %s: the server refuses the credentials (%s: %w); mend access_key, secret_key or the rights", what, name, said.Code, err)
	}
	return fmt.Errorf("%s %s in %s: %w", what, name, b, err)
}

// object reads parts of an object, as long as it is the one that was opened.
type object struct {
	*bucket

	ctx  context.Context //nolint:containedctx // of the call that reads
	name string
	etag string
	size int64
}

// Open implements Store.
func (b *bucket) Open(ctx context.Context, name string) (*File, error) {
	info, err := b.client.StatObject(ctx, b.Bucket.Bucket, b.objectKey(name), minio.StatObjectOptions{})
	if err != nil {
		return nil, b.explainFailure("read", name, err)
	}
	o := &object{b, ctx, name, info.ETag, info.Size}
	return &File{ReaderAt: o, Closer: io.NopCloser(nil), Name: name, Size: info.Size}, nil
}

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= o.size || len(p) == 0 {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), o.size-offset)]
	options := minio.GetObjectOptions{}
	err := errors.Join(options.SetRange(offset, offset+int64(len(want))-1), options.SetMatchETag(o.etag))
	if err != nil {
		return 0, err
	}
	body, _, _, err := o.client.GetObject(o.ctx, o.Bucket.Bucket, o.objectKey(o.name), options)
	if err != nil {
		return 0, o.explainFailure("read", o.name, err)
	}
	n, err := io.ReadFull(body, want)
	if err = errors.Join(err, body.Close()); err != nil {
		return n, o.explainFailure("read", o.name, err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// List implements Store.
func (b *bucket) List(ctx context.Context, folder string) (names []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prefix := b.Prefix
	if prefix != "" {
		prefix += "/"
	}
	for o := range b.client.Client.ListObjects(ctx, b.Bucket.Bucket, minio.ListObjectsOptions{Prefix: prefix + folder, Recursive: true}) {
		if o.Err != nil {
			return nil, b.explainFailure("list", folder, o.Err)
		}
		name := strings.TrimPrefix(o.Key, prefix)
		if !strings.HasPrefix(path.Base(name), ".") && !strings.HasSuffix(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove implements Store.
func (b *bucket) Remove(ctx context.Context, name string) error {
	err := b.client.RemoveObject(ctx, b.Bucket.Bucket, b.objectKey(name), minio.RemoveObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code != "NoSuchKey" {
		return b.explainFailure("remove", name, err)
	}
	return nil
}

func tooLarge(name string, size, limit int64) error {
	return fmt.Errorf("%s has %d bytes, and at most %d are read", name, size, limit)
}
