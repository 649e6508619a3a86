package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/recordfile"
)

// archive are Parquet files that AUDITOR, or the action archive, has written.
type archive struct {
	path string // a file, a pattern or a folder
}

// name implements input.
func (a *archive) name() string { return a.path }

// archiveFiles are those of the path, in the order of their names, which is that of months.
func (a *archive) archiveFiles() ([]string, error) {
	found, err := filepath.Glob(a.path)
	if err != nil || len(found) == 0 {
		found = []string{a.path}
	}
	var all []string
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			all = append(all, path)
			continue
		}
		inside, err := filepath.Glob(filepath.Join(strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path), "*.parquet"))
		if err != nil || len(inside) == 0 {
			return nil, fmt.Errorf("no archives (*.parquet) in %s: %w", path, errors.Join(err, os.ErrNotExist))
		}
		all = append(all, inside...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// collectRecords implements input. What cannot be read of a file is refused, and the others go on.
// Files that come later are read if their names are behind.
func (a *archive) collectRecords(ctx context.Context, c *collection, at *place) error {
	files, err := a.archiveFiles()
	if err != nil {
		return err
	}
	if c.from.Rewind > 0 {
		*at = place{}
	}
	rows := map[string]int64{}
	for _, path := range files {
		if rows[path], err = rowsOf(path); err != nil {
			c.refuseArchive(path, err)
			delete(rows, path)
		}
		c.total += rows[path]
	}
	for _, path := range files {
		if _, sound := rows[path]; !sound || path < at.File {
			continue
		}
		if path != at.File {
			at.File, at.Row = path, 0
		}
		if err := a.sendFile(ctx, c, path, at); err != nil {
			return err
		}
		if at.Row < rows[path] {
			c.refuseArchive(path, fmt.Errorf("it has %d records, and its end says %d", at.Row, rows[path]))
		}
	}
	return nil
}

// sendFile hands on the records of a file from a place on. What cannot be read of a row group is
// refused, and the next one is read. An error is one of handing on.
func (a *archive) sendFile(ctx context.Context, c *collection, path string, at *place) error {
	for {
		var failed error
		err := a.readLines(ctx, path, at.Row, func(raw []byte) error {
			at.Row, at.Done = at.Row+1, at.Done+1
			c.setProgress(at.Done, c.total, "records", filepath.Base(path))
			_, _, failed = c.decodeAndAdd(ctx, raw, c.kinds)
			return failed
		})
		if failed != nil || err == nil {
			return failed
		}
		number, of, end := groupOf(path, at.Row)
		if end <= at.Row { // the file cannot be opened any more
			c.refuseArchive(path, fmt.Errorf("behind row %d: %w", at.Row, err))
			at.Row = math.MaxInt64
			return nil
		}
		c.refuseFile(fmt.Sprintf("%s, row group %d", filepath.Base(path), number), path,
			fmt.Errorf("row group %d of %d is damaged behind row %d: %d records of it cannot be read: %w", number, of, at.Row, end-at.Row, err))
		at.Done += end - at.Row
		at.Row = end
	}
}

// groupOf is the number of the row group, from 1, that a row of a file is in, of how many, and
// the row behind it; 0 where the file cannot be read.
func groupOf(path string, row int64) (number, of int, end int64) {
	_ = withFile(path, func(f *recordfile.File) error { // an error is end 0
		groups := f.RowGroups()
		for of = len(groups); number < of && end <= row; number++ {
			end += groups[number].NumRows()
		}
		return nil
	})
	return number, of, end
}

// refuseArchive refuses an archive, or the rest of it.
func (c *collection) refuseArchive(path string, why error) {
	c.refuseFile(filepath.Base(path), path, why)
}

// refuseFile refuses what is named run, of an archive.
func (c *collection) refuseFile(run, path string, why error) {
	c.batch.Refused = append(c.batch.Refused, sdk.Refused{Run: run, Message: fmt.Sprintf("%s: %v", path, why)})
}

// rowsOf is how many records a file has, as its end says.
func rowsOf(path string) (n int64, err error) {
	err = withFile(path, func(f *recordfile.File) error { n = f.NumRows(); return nil })
	return n, err
}

func withFile(path string, do func(*recordfile.File) error) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	f, err := recordfile.Open(in, info.Size())
	if err != nil {
		return err
	}
	return do(f)
}

// readLines yields the records behind a row as a server gives them. A record is valid until
// yield returns.
func (a *archive) readLines(ctx context.Context, path string, from int64, yield func([]byte) error) error {
	return withFile(path, func(f *recordfile.File) error {
		return f.Lines(from, func(line []byte) error {
			sdk.Alive(ctx)
			return yield(line)
		})
	})
}

// countWindow implements input.
func (a *archive) countWindow(ctx context.Context, w sdk.Window) (n int64, err error) {
	files, err := a.archiveFiles()
	if err != nil {
		return 0, err
	}
	for _, path := range files {
		err := a.readLines(ctx, path, 0, func(raw []byte) error {
			var r struct {
				Stop time.Time `json:"stop_time"`
			}
			if json.Unmarshal(raw, &r) == nil && w.Holds(r.Stop) {
				n++
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	return n, nil
}
