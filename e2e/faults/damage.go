//go:build e2e

package faults

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Damage is one bit of one file that was turned over.
type Damage struct {
	Class string // of the file
	Path  string
	At    int64
	Bit   uint
}

// String says where it is.
func (d Damage) String() string {
	return fmt.Sprintf("bit %d of byte %d of %s (%s)", d.Bit, d.At, d.Path, d.Class)
}

var digits = regexp.MustCompile(`[0-9]+`)

// fileClass names the kind of a file: its folder and name, without the numbers.
func fileClass(name string) string { return digits.ReplaceAllString(name, "N") }

// FlipBit turns over one bit of one file below a data directory, whose daemon does
// not run. It takes a kind of file that was damaged least often so far.
func FlipBit(data string, salt uint64, before map[string]int) (Damage, error) {
	chance := rand.New(rand.NewPCG(salt, 9))
	files := map[string][]string{}
	err := filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() > 0 {
			c := fileClass(path[len(data)+1:])
			files[c] = append(files[c], path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		return Damage{}, fmt.Errorf("look for a file to damage below %s: %w", data, err)
	}
	least := math.MaxInt
	for c := range files {
		least = min(least, before[c])
	}
	maps.DeleteFunc(files, func(c string, _ []string) bool { return before[c] > least })
	classes := slices.Sorted(maps.Keys(files))
	d := Damage{Class: classes[chance.IntN(len(classes))]}
	d.Path = files[d.Class][chance.IntN(len(files[d.Class]))]
	info, err := os.Stat(d.Path)
	if err != nil {
		return d, err
	}
	before[d.Class]++
	d.At, d.Bit = drawOffset(chance, info.Size()), uint(chance.IntN(8))
	return d, d.Turn()
}

// drawOffset is a byte of a file: in its first pages, where most programs keep what the
// rest hangs on, in its last ones, or anywhere.
func drawOffset(chance *rand.Rand, size int64) int64 {
	const pages = 16 << 10
	near := chance.Int64N(min(size, pages))
	switch chance.IntN(3) {
	case 0:
		return near
	case 1:
		return size - 1 - near
	default:
		return chance.Int64N(size)
	}
}

// Turn turns the bit over; a second time, it is as it was.
func (d Damage) Turn() error {
	f, err := os.OpenFile(d.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, d.At); err != nil {
		return err
	}
	b[0] ^= 1 << d.Bit
	if _, err := f.WriteAt(b, d.At); err != nil {
		return err
	}
	return f.Sync()
}
