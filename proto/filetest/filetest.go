// Package filetest looks into the files that a test has made.
package filetest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Containing returns the paths of the regular files below dir that have a text in them. Files
// that are removed meanwhile are passed over; it fails the test where one cannot be read.
func Containing(t testing.TB, dir, text string) (list []string) {
	t.Helper()
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var content []byte
			if content, err = fs.ReadFile(files, path); bytes.Contains(content, []byte(text)) {
				list = append(list, filepath.Join(dir, path))
			}
		}
		if errors.Is(err, fs.ErrNotExist) && path != "." {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
