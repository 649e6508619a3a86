package hcl_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/hcl"
)

func TestDurationIsReadExactlyOrRefusedWithAReason(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		in   string
		want time.Duration
		err  string
	}{
		{"1m", time.Minute, ""},
		{"30d", 30 * day, ""},
		{"1h30m", 90 * time.Minute, ""},
		{"1w", 7 * day, ""},
		{"1w2d3h4m5s6ms7us8ns", 9*day + 3*time.Hour + 4*time.Minute + 5*time.Second + 6007008, ""},
		{"1.5h", 90 * time.Minute, ""},
		{"0", 0, ""},
		{"0s", 0, ""},
		{" 90s ", 90 * time.Second, ""},
		{"3µs", 3 * time.Microsecond, ""},
		{"", 0, "empty"},
		{"60", 0, `did you mean "60s"?`},
		{"-1m", 0, "cannot be negative"},
		{"+1m", 0, "sign"},
		{"m", 0, "not a duration"},
		{"1y", 0, `unknown unit "y"`},
		{"1..5h", 0, "not a duration"},
		{"1h30", 0, "has no unit"},
		{"300000d", 0, "longer than 292 years"},
		{strings.Repeat("9", 1000) + "s", 0, "not a duration"},
	} {
		got, err := hcl.ParseDuration(c.in)
		check(t, "duration "+c.in, got, c.want, err, c.err)
	}
}

func TestSizeIsReadExactlyOrRefusedWithAReason(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		err  string
	}{
		{"8GiB", 8 << 30, ""},
		{"64MiB", 64 << 20, ""},
		{"500MB", 500_000_000, ""},
		{"4096", 4096, ""},
		{"0", 0, ""},
		{"100B", 100, ""},
		{"1.5TB", 1_500_000_000_000, ""},
		{"2kB", 2000, ""},
		{"2 KiB", 2048, ""},
		{"7EiB", 7 << 60, ""},
		{"8EiB", 0, "too large"},
		{"8G", 0, `did you mean "8GiB" (powers of 1024) or "8GB" (powers of 1000)?`},
		{"8gib", 0, "unknown unit"},
		{"0.3B", 0, "whole number of bytes"},
		{"-1MB", 0, "not a size"},
		{"MB", 0, "not a size"},
		{"", 0, "not a size"},
		{"1MB2", 0, "not a size"},
	} {
		got, err := hcl.ParseSize(c.in)
		check(t, "size "+c.in, got, c.want, err, c.err)
	}
}

func TestBytesReadsWhatSchedulersWrite(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		err  string
	}{
		{"16G", 16 << 30, ""},
		{"16Gi", 16 << 30, ""},
		{"16GiB", 16 << 30, ""},
		{"16gb", 16 << 30, ""},
		{"2000M", 2000 << 20, ""},
		{"16Gn", 16 << 30, ""},
		{"16Gc", 16 << 30, ""},
		{"4000n", 4000, ""},
		{"512", 512, ""},
		{"0", 0, ""},
		{"1.50K", 1536, ""},
		{"0.1K", 102, ""},
		{"2.5", 2, ""},
		{"3.5", 4, ""},
		{"1T", 1 << 40, ""},
		{"8E", 0, "too large"},
		{"", 0, "not an amount"},
		{"16?", 0, "not an amount"},
		{"16X", 0, "not an amount"},
		{"-16G", 0, "not an amount"},
		{"16Gnc", 0, "not an amount"},
		{"16 G 2", 0, "not an amount"},
	} {
		got, err := hcl.ParseBytes(c.in)
		check(t, "bytes "+c.in, got, c.want, err, c.err)
	}
}

func TestSecondsReadsWhatSchedulersWrite(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		in   string
		want time.Duration
		err  string
	}{
		{"1-02:03:04", day + 2*time.Hour + 3*time.Minute + 4*time.Second, ""},
		{"02:03:04", 2*time.Hour + 3*time.Minute + 4*time.Second, ""},
		{"03:04", 3*time.Minute + 4*time.Second, ""},
		{"03:04.567", 3*time.Minute + 4567*time.Millisecond, ""},
		{"1-02", day + 2*time.Hour, ""},
		{"1-02:03", day + 2*time.Hour + 3*time.Minute, ""},
		{"90:00", 90 * time.Minute, ""},
		{"100:00:00", 100 * time.Hour, ""},
		{"365-00:00:00", 365 * day, ""},
		{"1h30m", 90 * time.Minute, ""},
		{"90", 90 * time.Second, ""},
		{"1.5", 1500 * time.Millisecond, ""},
		{"00:00:00", 0, ""},
		{"00:60", 0, "not a length of time"},
		{"1-24:00:00", 0, "not a length of time"},
		{"1.5:00", 0, "not a length of time"},
		{"-1:00", 0, "sign"},
		{"1:2:3:4", 0, "not a length of time"},
		{"1-", 0, "not a length of time"},
		{"1-2-3", 0, "not a length of time"},
		{"UNLIMITED", 0, "not a duration"},
		{"", 0, "empty"},
		{"INVALID", 0, "not a duration"},
		{"999999999-00:00:00", 0, "longer than 292 years"},
	} {
		got, err := hcl.ParseSeconds(c.in)
		check(t, "seconds "+c.in, got, c.want, err, c.err)
	}
}

func TestAddressIsHostAndPort(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string
		err  string
	}{
		{"head1:7070", "head1:7070", ""},
		{":7070", ":7070", ""},
		{"[::1]:7070", "[::1]:7070", ""},
		{"127.0.0.1:0", "127.0.0.1:0", ""},
		{"head1", "", "has no port"},
		{"::1:7070", "", "brackets"},
		{"http://head1:80", "", "URL"},
		{"head1:http", "", "0 to 65535"},
		{"head1:65536", "", "0 to 65535"},
		{"head1:", "", "0 to 65535"},
		{"he ad:1", "", "not an address"},
		{"", "", "not an address"},
	} {
		var a hcl.Address
		err := a.DecodeHCL(cty.StringVal(c.in), hcl.Range{Filename: "x"})
		check(t, "address "+c.in, a.String(), c.want, err, c.err)
	}
}

func check[T comparable](t *testing.T, name string, got, want T, err error, wantErr string) {
	t.Helper()
	switch {
	case wantErr == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
		t.Errorf("%s: error %v, want %q", name, err, wantErr)
	case got != want:
		t.Errorf("%s: got %v, want %v", name, got, want)
	}
}

func TestSizeStringIsReadBackAsTheSameSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, math.MaxInt64).Draw(t, "bytes") >> rapid.IntRange(0, 62).Draw(t, "shift") << rapid.IntRange(0, 3).Draw(t, "tens")
		n = max(n, 0)
		got, err := hcl.ParseSize(hcl.Size{Bytes: n}.String())
		if err != nil || got != n {
			t.Fatalf("%d became %d, %v", n, got, err)
		}
	})
}

func TestSlurmElapsedIsReadBackAsTheSameSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "ms")) * time.Millisecond
		got, err := hcl.ParseSeconds(slurm(d))
		if err != nil || got != d {
			t.Fatalf("%v became %v, %v", d, got, errors.Join(err))
		}
	})
}
