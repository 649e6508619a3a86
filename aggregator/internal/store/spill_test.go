package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// TestFilesOfASortLieBelowTheStoreAndOutliveNoProcess looks into the folder while a
// query sorts, and at what is left there by a kill.
func TestFilesOfASortLieBelowTheStoreAndOutliveNoProcess(t *testing.T) {
	dir := t.TempDir()
	spills := filepath.Join(dir, spillDir)
	full := errors.New("the disk is full")
	var may error
	o := Options{Dir: dir, SortBytes: 10_000, MaySpill: func() error { return may }}
	if err := os.MkdirAll(spills, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(spills, "run-123"), []byte("left"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	named := func() int {
		list, err := os.ReadDir(spills)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if named() != 0 {
		t.Error("a file of an earlier process is still there")
	}
	var rs []record.Record
	for i := range 2500 {
		rs = append(rs, sample(fmt.Sprint("x", i), i))
	}
	if _, err := s.Apply(1, 1, Encode(&PostCommand{Rows: postRows(rs...), Now: t0})); err != nil {
		t.Fatal(err)
	}
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	rows := 0
	err = v.Query(context.Background(), Query{Order: ByRuntime}, func(*columns.Row) error {
		if rows++; named() != 0 {
			return errors.New("a file has a name while the query runs")
		}
		return nil
	})
	if err != nil || rows != len(rs) {
		t.Error(rows, err)
	}
	may, rows = full, 0
	err = v.Query(context.Background(), Query{Order: ByRuntime}, func(*columns.Row) error { rows++; return nil })
	if !errors.Is(err, ErrSpill) || !errors.Is(err, full) || rows != 0 {
		t.Error(rows, err)
	}
}
