package boltfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/boltfile"
)

// openFolder names a folder whose files a process of this test opens and reads.
const openFolder = "BURSAR_TEST_BOLTFILES"

func TestMain(m *testing.M) {
	dir := os.Getenv(openFolder)
	if dir == "" {
		os.Exit(m.Run())
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		panic(err)
	}
	for _, path := range files {
		fmt.Println("open", path)
		fmt.Println(readAll(path))
	}
}

// readAll opens a file as the daemons do, and reads and writes it.
func readAll(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	sum := 0
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			if err := b.ForEach(func(k, v []byte) error {
				for _, c := range v {
					sum += int(c)
				}
				return nil
			}); err != nil {
				return err
			}
			return b.Put([]byte("more"), make([]byte, 9000))
		})
	})
	return errors.Join(err, db.Close())
}

// random differs from run to run; a failure prints how to repeat it.
func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// write makes a file of random keys, values, buckets and deletions.
func write(t *testing.T, rng *rand.Rand, opt *bbolt.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.db")
	db, err := bbolt.Open(path, 0o600, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 1 + rng.IntN(12) {
		if err := db.Update(func(tx *bbolt.Tx) error { return change(tx, rng) }); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func change(tx *bbolt.Tx, rng *rand.Rand) error {
	b, err := tx.CreateBucketIfNotExists(fmt.Appendf(nil, "bucket %d", rng.IntN(4)))
	if err != nil {
		return err
	}
	if rng.IntN(3) == 0 {
		if b, err = b.CreateBucketIfNotExists([]byte("nested")); err != nil {
			return err
		}
	}
	for range rng.IntN(300) {
		key := fmt.Appendf(nil, "%0*d", 1+rng.IntN(40), rng.IntN(500))
		if rng.IntN(4) == 0 {
			if err := b.Delete(key); err != nil {
				return err
			}
			continue
		}
		size := rng.IntN(60)
		if rng.IntN(40) == 0 {
			size = rng.IntN(30000)
		}
		if err := b.Put(key, make([]byte, size)); err != nil {
			return err
		}
	}
	return nil
}

var layouts = map[string]*bbolt.Options{
	"free pages in the file": {NoSync: true},
	"free pages not written": {NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
	"large pages":            {NoSync: true, PageSize: 16384},
}

func TestCheck_SoundFiles_Pass(t *testing.T) {
	rng := random(t)
	for _, name := range slices.Sorted(maps.Keys(layouts)) {
		for range 40 {
			if err := boltfile.Check(write(t, rng, layouts[name])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := boltfile.Check(filepath.Join(t.TempDir(), "missing")); err != nil {
		t.Error(err)
	}
}

func TestCheck_FileOfAnotherProcess_Passes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := os.WriteFile(path, []byte("another process writes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := boltfile.Check(path); err != nil {
		t.Error(err)
	}
}

// Each file that is cut or has a flipped byte is refused, or bbolt opens, reads and
// writes it without a panic and without hanging.
func TestCheck_CutOrFlippedFile_BboltNeverPanics(t *testing.T) {
	rng := random(t)
	refused, passed, dir := 0, 0, t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(layouts)) {
		for range 6 {
			whole, err := os.ReadFile(write(t, rng, layouts[name]))
			if err != nil {
				t.Fatal(err)
			}
			for n := range 25 {
				file := damage(rng, whole, n)
				path := filepath.Join(dir, fmt.Sprintf("%03d.db", refused+passed))
				if err := os.WriteFile(path, file, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := boltfile.Check(path); err != nil {
					if !errors.Is(err, boltfile.ErrDamaged) {
						t.Errorf("%s: %v does not say that the file is damaged", name, err)
					}
					refused++
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
					continue
				}
				passed++
			}
		}
	}
	survive(t, dir)
	t.Logf("%d refused, %d passed", refused, passed)
	if refused == 0 || passed == 0 {
		t.Errorf("%d refused and %d passed show nothing", refused, passed)
	}
}

// bbolt frees the page that a bucket within a value says to be, and faults where the file
// has no such page.
func TestCheck_InlineBucketWithAPage_IsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("within"))
		if err != nil {
			return err
		}
		return b.Put([]byte("key"), []byte("value"))
	})
	if err := errors.Join(err, db.Close(), boltfile.Check(path)); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(file, []byte("within")) + len("within") + 16 // behind the bucket's head
	file[at+5] = 1
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := boltfile.Check(path); !errors.Is(err, boltfile.ErrDamaged) {
		t.Errorf("got %v, want %v", err, boltfile.ErrDamaged)
	}
}

// damage cuts every fifth copy and flips a byte in the others, in half of them in the
// head of a page.
func damage(rng *rand.Rand, whole []byte, n int) []byte {
	if n%5 == 0 {
		return whole[:1+rng.IntN(len(whole)-1)]
	}
	out := append([]byte(nil), whole...)
	at := rng.IntN(len(bytes.TrimRight(out, "\x00"))) // bbolt grows a file before it uses it
	if n%2 == 0 {
		at = at&^4095 + rng.IntN(64)
	}
	out[min(at, len(out)-1)] ^= byte(1 + rng.IntN(255))
	return out
}

// survive opens the files of a folder in a process of its own. Only errors that bbolt
// returns are allowed.
func survive(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), openFolder+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the check passed, then: %v\n%s", err, out[max(0, len(out)-2000):])
	}
}
