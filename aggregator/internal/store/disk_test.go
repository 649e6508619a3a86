package store

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestWhichDatabaseIsTheCurrentOneIsNeverGuessed(t *testing.T) {
	for _, c := range []struct {
		name    string
		current string // "": there is none
		dirs    []string
		want    string // "": ErrCorrupt
	}{
		{"a new store", "", nil, "db-000001"},
		{"killed before the first database was made", formatCurrent("db-000001"), nil, "db-000001"},
		{"the second, and what is left of the first", formatCurrent("db-000002"), []string{"db-000001", "db-000002"}, "db-000002"},
		{"without a checksum", "db-000002\n", []string{"db-000002"}, ""},
		{"a flipped bit in the name", "db-000003 " + formatCurrent("db-000002")[10:], []string{"db-000002", "db-000003"}, ""},
		{"a name that is not there", formatCurrent("db-000007"), []string{"db-000001"}, ""},
		{"lost", "", []string{"db-000002"}, ""},
		{"empty", " ", []string{"db-000001"}, ""},
		{"cut short", "db-000001", []string{"db-000001"}, ""},
		{"elsewhere", formatCurrent("db-/../x"), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			for _, d := range append(c.dirs, "") {
				if err := fs.MkdirAll("s/"+d, 0o750); err != nil {
					t.Fatal(err)
				}
			}
			if c.current != "" {
				if err := writeSynced(fs, "s/CURRENT", c.current); err != nil {
					t.Fatal(err)
				}
			}
			got, err := currentDir(fs, "s")
			if got != c.want && err == nil || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}
