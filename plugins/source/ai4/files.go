package main

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a snapshot file.
type file struct {
	path string
	at   time.Time // from its name; zero: it says none
	size int64
}

// findFiles finds the files that the paths name, in the order of their times: files,
// patterns, and folders, of which the *.json count. A file that is named twice
// counts once.
func findFiles[P ~string](paths []P) ([]file, error) {
	var all []file
	for _, p := range paths {
		found, err := filepath.Glob(string(p))
		if err != nil || len(found) == 0 {
			found = []string{string(p)}
		}
		for _, one := range found {
			more, err := listFiles(one)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	slices.SortFunc(all, func(a, b file) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.path, b.path)) })
	all = slices.CompactFunc(all, func(a, b file) bool { return a.path == b.path })
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no snapshot files (*.json) in %s", paths)
	}
	return all, nil
}

func listFiles(path string) ([]file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		at, _ := timeOf(filepath.Base(path))
		return []file{{path, at, info.Size()}}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var all []file
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".json" {
			continue
		}
		one, err := listFiles(filepath.Join(path, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// filesDigest tells a list of files from others.
func filesDigest(files []file) string {
	h := fnv.New64a()
	for _, f := range files {
		fmt.Fprintf(h, "%s\x00%d\x00", f.path, f.size)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
