//go:build e2e

package e2e_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/benchmark"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

const archiveAction = `
action "archive" "site" {
  schedule = "@manual"
  config {
    remove_after_months = 1
    %s
  }
}
`

// archiving is an aggregator that archives benchmark records of past years.
type archiving struct {
	archive
	*postOffice

	site *site.Site
	last time.Time // of measure
}

func newArchiving(t *testing.T, folder string) *archiving {
	s := site.New(t)
	agg := s.Aggregator()
	return &archiving{archive: archive{T: t, agg: agg, folder: folder}, postOffice: &postOffice{T: t, site: s, agg: agg}, site: s, last: time.Now()}
}

// inBucket has the archive in a bucket of a real server, and returns what the action needs for it.
func (a *archiving) inBucket(t *testing.T) (place string) {
	t.Helper()
	s := newS3(t, a.site)
	a.folder = s.Bucket("accounting")
	return fmt.Sprintf("bucket {\n endpoint = \"https://%s\"\n bucket = \"accounting\"\n access_key = %q\n secret_key = file(%q)\n ca = %q\n}",
		s.Address, s.AccessKey, a.site.Write("s3.secret", s.Secret), s.CA)
}

// fill starts the aggregator and posts records.
func (a *archiving) fill(t *testing.T, n int) {
	t.Helper()
	agg := a.archive.agg
	agg.Start()
	agg.AwaitReady()
	g := benchmark.Generator(11, n, benchmark.UUID)
	body := []byte{'['}
	post := func() {
		body[len(body)-1] = ']'
		agg.Post("/records", string(body))
		body = append(body[:0], '[')
	}
	for r := range g.All() {
		if body = append(wire.AppendV1JSON(body, &r, wire.V1Extra{}), ','); len(body) > 4<<20 {
			post()
		}
	}
	if len(body) > 1 {
		post()
	}
}

// answer is all that /v1 says of all records: its sha256, and a sum of lines that does not
// depend on their order.
type answer struct {
	sha256 [sha256.Size]byte
	lines  archived.Sum
}

// records are all that /v1 says of all records. The state hash cannot tell, since it has the
// runs of actions in it.
func (a *archiving) records(args ...string) (out answer) {
	a.archive.Helper()
	text := a.bursar(append([]string{"records", "-limit", "-1", "-sort", "record_id", "-format", "json"}, args...)...)
	out.sha256 = sha256.Sum256([]byte(text))
	for line := range strings.Lines(text) {
		out.lines.Add([]byte(line))
	}
	return out
}

// size is what the store has on the disk.
func (a *archiving) size() (size int64) {
	a.archive.Helper()
	err := filepath.WalkDir(filepath.Join(a.archive.agg.DataDir, "store"), func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	if err != nil {
		a.archive.Fatal(err)
	}
	return size
}

// measure logs how long a step took, and returns what the store then has on the disk.
func (a *archiving) measure(step string) (size int64) {
	a.archive.Helper()
	size = a.size()
	now := time.Now()
	a.archive.Logf("%s: %s, the store has %.1f MiB", step, now.Sub(a.last).Round(100*time.Millisecond), float64(size)/(1<<20))
	a.last = now
	return size
}

func (a *archiving) run(t *testing.T, action string, n int) v1.ActionRunEffects {
	t.Helper()
	a.bursar("actions", "run", action)
	out := a.ran(action, n)
	if out.Run.Done != out.Run.Effects || out.Run.Effects == 0 {
		t.Fatalf("%+v", out)
	}
	return out
}

const agree = "the files, the manifest and the store agree"

func TestArchive_RemovedAndRestored_StateAndTotalsAreAsBefore(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"directory", "bucket"} {
		t.Run(where, func(t *testing.T) {
			a := newArchiving(t, t.TempDir())
			place := fmt.Sprintf("directory = %q", a.folder)
			if where == "bucket" {
				place = a.inBucket(t)
			}
			a.archive.agg.Add(fmt.Sprintf(archiveAction, place))
			a.fill(t, *archivedRecords)
			a.measure("posted")
			before, used := a.records(), a.used()
			full := a.measure("read")
			run := a.run(t, "archive/site", 1)
			a.measure("archived")
			a.rewritten(t, full)
			if records, sums := a.lake(); records != *archivedRecords || !maps.Equal(sums, used) {
				t.Errorf("the files have %d records and %v, /v1/usage says %v", records, sums, used)
			}
			if got := a.used(); !maps.Equal(got, used) {
				t.Errorf("without the records usage is %v, want %v", got, used)
			}
			if out := a.bursar("archive", "verify", "archive/site"); strings.Count(out, agree) != len(run.Effects)/2 {
				t.Errorf("%d effects:\n%s", len(run.Effects), out)
			}
			if a.records() == before {
				t.Error("no record has left")
			}
			if list := a.bursar("archive", "list"); !strings.Contains(list, "2024-03") {
				t.Error(list)
			}
			a.readsAsBefore(t, before)
			a.measure("verified and read")
			a.bursar("archive", "restore", "archive/site", "all")
			a.measure("restored")
			if a.records() != before {
				t.Error("a record is not what it was")
			}
			if got := a.used(); !maps.Equal(got, used) {
				t.Errorf("restored: usage is %v, want %v", got, used)
			}
			a.archive.agg.Stop()
			nowhere(t, a.archive.agg.DataDir, "e2e-s3-s3cret")
		})
	}
}

// rewritten waits until the node has taken what was removed out of its files, which it does once a
// day if it is not told otherwise: they are smaller than they were then.
func (a *archiving) rewritten(t *testing.T, before int64) {
	t.Helper()
	agg := a.archive.agg
	agg.Stop()
	agg.Settings = "compaction { files = \"1s\" }"
	agg.Configure()
	agg.Start()
	agg.AwaitReady()
	a.site.Eventually("the files of the store are smaller", func() (bool, string) {
		left := a.size()
		return left < before, fmt.Sprintf("%d bytes without the records, and %d before", left, before)
	})
	a.measure("rewritten")
}

// readsAsBefore reads the records of archives in several orders, and takes a file away.
func (a *archiving) readsAsBefore(t *testing.T, before answer) {
	t.Helper()
	begun := time.Now()
	if a.records("-archived") != before {
		t.Error("read from its file, a record is not what it was")
	}
	t.Logf("with -archived by record_id: %s", time.Since(begun).Round(100*time.Millisecond))
	for _, order := range []string{"stop_time", "start_time"} {
		begun := time.Now()
		if got := a.records("-archived", "-sort", order, "-ascending"); got.lines != before.lines {
			t.Errorf("by %s: %d records, want %d", order, got.lines.Count, before.lines.Count)
		}
		t.Logf("with -archived by %s: %s", order, time.Since(begun).Round(100*time.Millisecond))
	}
	files, err := filepath.Glob(filepath.Join(a.folder, "year=2024/month=03/records-*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	away := filepath.Join(t.TempDir(), "away")
	if err := os.Rename(files[0], away); err != nil {
		t.Fatal(err)
	}
	_, err = a.archive.agg.Bursar("records", "-archived", "-limit", "-1", "-format", "json")
	if err == nil || !strings.Contains(err.Error(), "archive 2024-03 in ") || !strings.Contains(err.Error(), filepath.Base(files[0])) {
		t.Errorf("without its file: %v", err)
	}
	if err := os.Rename(away, files[0]); err != nil {
		t.Fatal(err)
	}
}

func TestArchive_DiskFull_RemovesNothingAndGoesOn(t *testing.T) {
	t.Parallel()
	a := newArchiving(t, filepath.Join(t.TempDir(), "archive"))
	disk := a.site.SmallDisk(a.folder, "4m")
	a.archive.agg.Add(fmt.Sprintf(archiveAction, fmt.Sprintf("directory = %q", a.folder)))
	a.fill(t, 5000)
	before := a.records()
	disk.Fill(16 << 10)
	a.bursar("actions", "run", "archive/site")
	a.site.Eventually("the full disk is in the history", func() (bool, string) {
		out, _ := a.archive.agg.Bursar("actions", "history", "archive/site", "1")
		return strings.Contains(out, "no space left on device"), out
	})
	if a.records() != before {
		t.Error("the full disk had records removed")
	}
	disk.Empty()
	if run := a.ran("archive/site", 1); run.Run.Done == 0 {
		t.Errorf("%+v", run)
	}
	a.bursar("actions", "run", "archive/site")
	a.ran("archive/site", 2)
	if out := a.bursar("archive", "verify", "archive/site"); !strings.Contains(out, agree) {
		t.Error(out)
	}
	if records, sums := a.lake(); records != 5000 || !maps.Equal(sums, a.used()) {
		t.Errorf("%d records, %v, want %v", records, sums, a.used())
	}
}

// What left the store before the bucket went is in the bucket, and nothing leaves it meanwhile.
func TestArchive_BucketGone_RemovesNothingAndGoesOnWhenItIsBack(t *testing.T) {
	t.Parallel()
	a := newArchiving(t, "")
	a.archive.agg.Add(fmt.Sprintf(archiveAction, a.inBucket(t)))
	a.fill(t, 5000)
	before := a.records()
	a.bursar("actions", "run", "archive/site")
	a.site.Eventually("some months have left the store", func() (bool, string) {
		list := a.archives()
		return len(list) > 2, fmt.Sprint(len(list))
	})
	away := filepath.Join(filepath.Dir(filepath.Dir(a.folder)), "away")
	if err := os.Rename(a.folder, away); err != nil {
		t.Fatal(err)
	}
	named := func(command ...string) {
		t.Helper()
		a.site.Eventually(fmt.Sprint(command, " names the bucket"), func() (bool, string) {
			out, _ := a.archive.agg.Bursar(command...)
			return strings.Contains(out, "the bucket accounting is not there"), out
		})
	}
	named("actions", "history", "archive/site", "1")
	left := a.records()
	inFiles := 0
	for _, r := range a.archives() {
		if _, err := os.Stat(filepath.Join(away, r.Manifest)); err != nil {
			t.Error(err)
		}
		inFiles += int(r.Count)
	}
	if left.lines.Count == before.lines.Count || inFiles == 0 {
		t.Errorf("%d lines of records are left of %d, and %d records are in files", left.lines.Count, before.lines.Count, inFiles)
	}
	named("status")
	if got := a.records(); got != left {
		t.Errorf("without the bucket %d lines of records are left, there were %d", got.lines.Count, left.lines.Count)
	}
	if err := os.Rename(away, a.folder); err != nil {
		t.Fatal(err)
	}
	a.ran("archive/site", 1)
	a.bursar("actions", "run", "archive/site")
	if run := a.ran("archive/site", 2); run.Run.Done != run.Run.Effects {
		t.Errorf("%+v", run.Run)
	}
	if out := a.bursar("archive", "verify", "archive/site"); !strings.Contains(out, agree) {
		t.Error(out)
	}
	if a.records("-archived") != before {
		t.Error("a record is not what it was")
	}
	if records, sums := a.lake(); records != 5000 || !maps.Equal(sums, a.used()) {
		t.Errorf("%d records, %v, want %v", records, sums, a.used())
	}
}

// archives are those of the store.
func (a *archiving) archives() []v1.Archive {
	a.archive.Helper()
	var list v1.Archives
	if err := a.archive.agg.Get("/v1/archives", &list); err != nil {
		a.archive.Fatal(err)
	}
	return list.Archives
}

// Whenever the aggregator is killed, what has left its store is in files that can be read.
func TestArchive_KilledWhileItWritesAndRemoves_LosesNothing(t *testing.T) {
	t.Parallel()
	a := newArchiving(t, t.TempDir())
	agg := a.archive.agg
	agg.Add(fmt.Sprintf(archiveAction, fmt.Sprintf("directory = %q", a.folder)))
	a.fill(t, 3000)
	before := a.records()
	a.bursar("actions", "run", "archive/site")
	done := func() (v1.ActionRunEffects, error) {
		var run v1.ActionRunEffects
		err := agg.Get("/v1/actions/archive/site/runs/1", &run)
		return run, err
	}
	for kills := 1; kills <= 8; kills++ {
		a.site.Eventually("more effects are done", func() (bool, string) {
			run, err := done()
			return err == nil && run.Run.Effects > 0 && run.Run.Done >= run.Run.Effects*kills/10, fmt.Sprintf("%d of %d, %v", run.Run.Done, run.Run.Effects, err)
		})
		agg.Kill()
		agg.Start()
		agg.AwaitReady()
		if a.records("-archived") != before {
			t.Errorf("after kill %d a record is not what it was", kills)
		}
	}
	if run := a.ran("archive/site", 1); run.Run.Done != run.Run.Effects {
		t.Errorf("%+v", run.Run)
	}
	a.bursar("actions", "run", "archive/site") // nothing is left to do
	if run := a.ran("archive/site", 2); run.Run.Effects != 0 {
		t.Errorf("%+v", run)
	}
	if out := a.bursar("archive", "verify", "archive/site"); !strings.Contains(out, agree) {
		t.Error(out)
	}
	if records, sums := a.lake(); records != 3000 || !maps.Equal(sums, a.used()) {
		t.Errorf("%d records, %v, want %v", records, sums, a.used())
	}
	a.bursar("archive", "restore", "archive/site", "all")
	if a.records() != before {
		t.Error("restored, a record is not what it was")
	}
}
