package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Conditions are under which the lines were measured.
type Conditions struct {
	Command  string `json:"command"`
	At       string `json:"at"`
	Records  int    `json:"records"`
	CPUs     int    `json:"cpus"`
	CPU      string `json:"cpu"`
	Memory   int64  `json:"memory_bytes"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	Bursar   string `json:"bursar"`
	Postgres string `json:"postgres,omitempty"`
	// FsyncMicros is the median time of a write of 4 KiB made durable.
	FsyncMicros float64 `json:"fsync_us"`
	// Load is the load average of one minute before and after.
	LoadBefore float64 `json:"load_before"`
	LoadAfter  float64 `json:"load_after"`
}

func readConditions(ctx context.Context, o *options, dir string) (Conditions, error) {
	c := Conditions{
		Command: "make bench BENCHARGS='" + strings.Join(os.Args[1:], " ") + "'", At: time.Now().UTC().Format(time.RFC3339),
		Records: o.n, CPUs: runtime.NumCPU(), CPU: fileField("/proc/cpuinfo", "model name"), Memory: totalMemory(),
		Kernel: kernelRelease(), Go: runtime.Version(), LoadBefore: loadAverage(),
	}
	version, err := exec.CommandContext(ctx, o.programPath("bursar"), "version").Output()
	if err != nil {
		return c, fmt.Errorf("%s version: %w (make build makes it)", o.programPath("bursar"), err)
	}
	c.Bursar, _, _ = strings.Cut(strings.TrimSpace(string(version)), "\n")
	c.FsyncMicros, err = fsyncMicros(dir)
	return c, err
}

func (c *Conditions) writeConditions(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\n%s: %d records; %d CPUs %s, %d GiB, Linux %s, %s, %s; fsync %.0f µs; load %.1f before, %.1f after\n%s\n\n",
		c.Command, c.At, c.Records, c.CPUs, c.CPU, c.Memory>>30, c.Kernel, c.Go, c.Bursar, c.FsyncMicros, c.LoadBefore, c.LoadAfter, c.Postgres)
	return err
}

// fileField returns the value of the first line "name : value" of a file.
func fileField(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func totalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

func loadAverage() float64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return float64(info.Loads[0]) / (1 << 16)
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// fsyncMicros makes 200 writes of 4 KiB durable, one by one.
func fsyncMicros(dir string) (micros float64, err error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4<<10)
	var times []float64
	for range 200 {
		begun := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		times = append(times, float64(time.Since(begun).Nanoseconds())/1e3)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// freeBytes returns the bytes that are free where dir is.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}
