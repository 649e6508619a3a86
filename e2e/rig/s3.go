//go:build e2e

package rig

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// S3 is a versitygw, a server of S3 over a folder, whose folders are the buckets.
type S3 struct {
	Address, CA       string
	AccessKey, Secret string

	t         testing.TB
	dir       string
	cert, key string
	cmd       *exec.Cmd
	out       bytes.Buffer
}

// NewS3 starts a server on an address of 127.0.0.1, which ends with the test. Ca, cert and
// key are files in PEM.
func NewS3(t testing.TB, address, ca, cert, key string) *S3 {
	t.Helper()
	s := &S3{Address: address, CA: ca, AccessKey: "e2e-access", Secret: "e2e-s3-s3cret", t: t, dir: tempDir(t, "s3"), cert: cert, key: key}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Bucket is the folder of a bucket, which is made.
func (s *S3) Bucket(name string) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, "buckets", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// Start starts the server and waits until it listens.
func (s *S3) Start() {
	s.t.Helper()
	s.Bucket("")
	meta := filepath.Join(s.dir, "meta")
	if err := os.MkdirAll(meta, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(requireInstalled(s.t, filepath.Join(Cache(), "versitygw-1.8.0/versitygw")), "--port", s.Address, "--cert", s.cert, "--key", s.key,
		"--access", s.AccessKey, "--secret", s.Secret, "--quiet", "posix", "--sidecar", meta, filepath.Join(s.dir, "buckets"))
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", s.Address)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("rig: versitygw does not listen on %s: %v", s.Address, err)
		}
	}
}

// Stop kills the server.
func (s *S3) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it has ended otherwise
	_ = s.cmd.Wait()
	s.cmd = nil
	if s.t.Failed() {
		s.t.Logf("versitygw: %s", s.out.String())
	}
}
