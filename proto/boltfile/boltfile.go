// Package boltfile opens bbolt files, after it has checked their structure.
//
// bbolt maps its file and takes every page at its word: on a file that was cut short
// or damaged it panics in goroutines of its own, reads beyond the end of the file
// (SIGBUS) or follows a cycle for ever, and none of that can be recovered from. Check
// reads the file with ordinary reads and follows each page once, so damage becomes an
// error. The format is that of go.etcd.io/bbolt v1.5.0, internal/common, version 2.
package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrDamaged is wrapped by the errors of [Check] that say what is wrong with a file.
var ErrDamaged = errors.New("damaged file")

const (
	pageHeader  = 16 // id u64, flags u16, count u16, overflow u32
	elementSize = 16 // of a branch: pos u32, ksize u32, pgid u64; of a leaf: flags, pos, ksize, vsize u32
	bucketSize  = 16 // root u64, sequence u64

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	flagBucket   = 0x01 // of an element of a leaf

	magic      = 0xED0CDAED
	version    = 2
	noFreelist = ^uint64(0)

	minPage  = 1 << 10
	maxPage  = 1 << 24
	maxDepth = 64 // of nested pages; a sound file of 2^63 bytes has fewer
)

// Check reads the structure of the bbolt file at path: both meta pages, and every
// page that they lead to, of which all must lie within the file, be what their parent
// takes them for, belong to one parent, and have their keys in order. It does not read
// values; who stores them keeps their checksums.
//
// It returns nil for a sound file, for one that is missing or empty (bbolt makes a new
// one), and for one that another process holds. Errors wrap [ErrDamaged], or are those
// of the file system. Check changes nothing.
func Check(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	// bbolt locks its file for writing, and what it writes meanwhile looks damaged.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	if err := checkFile(file, info.Size()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func checkFile(file io.ReaderAt, size int64) error {
	m, err := readMeta(file, size)
	if err != nil {
		return err
	}
	if have := uint64(size) / m.pageSize; m.pages > have { //nolint:gosec // a file's size is not negative
		return damagedError("%d of its %d pages are missing: the file was cut short", m.pages-have, m.pages)
	}
	w := &walk{file: file, meta: m, owner: make([]bool, m.pages)}
	if err := w.checkFreelist(); err != nil {
		return err
	}
	if err := w.claimPages(m.root, 0); err != nil {
		return err
	}
	return w.checkPage(m.root, 0, nil, nil)
}

func damagedError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// meta is the content of a meta page.
type meta struct {
	pageSize uint64
	root     uint64 // page of the root bucket
	freelist uint64
	pages    uint64 // number of pages that are in use or free
	txid     uint64
}

// readMeta returns the newer of the meta pages that are sound, as bbolt does. Where
// the first is not, the size of pages, and so the place of the second, is tried.
func readMeta(file io.ReaderAt, size int64) (meta, error) {
	best, found := parseMeta(file, 0)
	if found {
		second, ok := parseMeta(file, int64(best.pageSize)) //nolint:gosec // at most maxPage
		if ok && second.txid > best.txid {
			best = second
		}
		return best, nil
	}
	for at := int64(minPage); at <= maxPage && at < size; at *= 2 {
		if m, ok := parseMeta(file, at); ok && m.pageSize == uint64(at) {
			return m, nil
		}
	}
	return meta{}, damagedError("neither of its first two pages is valid")
}

func parseMeta(file io.ReaderAt, at int64) (m meta, ok bool) {
	var b [pageHeader + 64]byte
	if _, err := file.ReadAt(b[:], at); err != nil {
		return meta{}, false
	}
	body := b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(body[:56])
	m = meta{
		pageSize: uint64(binary.NativeEndian.Uint32(body[8:])),
		root:     binary.NativeEndian.Uint64(body[16:]),
		freelist: binary.NativeEndian.Uint64(body[32:]),
		pages:    binary.NativeEndian.Uint64(body[40:]),
		txid:     binary.NativeEndian.Uint64(body[48:]),
	}
	ok = binary.NativeEndian.Uint32(body) == magic && binary.NativeEndian.Uint32(body[4:]) == version &&
		binary.NativeEndian.Uint64(body[56:]) == sum.Sum64() &&
		m.pageSize >= minPage && m.pageSize <= maxPage && m.pageSize&(m.pageSize-1) == 0
	return m, ok
}

// walk follows the pages of a file.
type walk struct {
	file  io.ReaderAt
	meta  meta
	owner []bool // which pages belong to something that was met
}

// claimPages notes that the page id and its overflow pages are used, by one only.
func (w *walk) claimPages(id, overflow uint64) error {
	if id < 2 || id >= w.meta.pages || overflow >= w.meta.pages-id {
		return damagedError("page %d with %d more does not exist; there are %d", id, overflow, w.meta.pages)
	}
	for i := id; i <= id+overflow; i++ {
		if w.owner[i] {
			return damagedError("page %d is used more than once", i)
		}
		w.owner[i] = true
	}
	return nil
}

// head is the header of a page.
type head struct {
	flags    uint16
	count    int
	overflow uint64
	size     uint64 // of the page and its overflow
}

func (w *walk) readHead(id uint64) (head, error) {
	var b [pageHeader]byte
	if err := w.readPage(b[:], id, 0); err != nil {
		return head{}, err
	}
	if says := binary.NativeEndian.Uint64(b[:]); says != id {
		return head{}, damagedError("page %d says that it is page %d", id, says)
	}
	h := parseHead(b[:])
	if h.overflow >= w.meta.pages-id {
		return head{}, damagedError("page %d is longer than the file", id)
	}
	h.size = (h.overflow + 1) * w.meta.pageSize
	return h, nil
}

func parseHead(b []byte) head {
	return head{
		flags:    binary.NativeEndian.Uint16(b[8:]),
		count:    int(binary.NativeEndian.Uint16(b[10:])),
		overflow: uint64(binary.NativeEndian.Uint32(b[12:])),
	}
}

// readPage fills b from the page id, beginning at offset.
func (w *walk) readPage(b []byte, id, offset uint64) error {
	if _, err := w.file.ReadAt(b, w.pageOffset(id)+int64(offset)); err != nil { //nolint:gosec // below the file's size
		return fmt.Errorf("read page %d: %w", id, err)
	}
	return nil
}

// checkFreelist checks the list of free pages, where the file has one.
func (w *walk) checkFreelist() error {
	id := w.meta.freelist
	if id == noFreelist {
		return nil
	}
	if id < 2 || id >= w.meta.pages {
		return damagedError("the list of free pages is in page %d of %d", id, w.meta.pages)
	}
	h, err := w.readHead(id)
	if err != nil {
		return err
	}
	if h.flags != flagFreelist {
		return damagedError("page %d should be the list of free pages and has the flags %#x", id, h.flags)
	}
	if err := w.claimPages(id, h.overflow); err != nil {
		return err
	}
	list := make([]byte, h.size-pageHeader)
	if err := w.readPage(list, id, pageHeader); err != nil {
		return err
	}
	count := uint64(h.count) //nolint:gosec // of 16 bits
	if h.count == 0xFFFF {   // the number did not fit and comes first
		count, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if count > uint64(len(list))/8 {
		return damagedError("the list of free pages, page %d, has no room for %d", id, count)
	}
	for i := range count {
		if err := w.claimPages(binary.NativeEndian.Uint64(list[8*i:]), 0); err != nil {
			return fmt.Errorf("free: %w", err)
		}
	}
	return nil
}

// checkPage checks a page that its parent has claimed, but for its overflow. Its keys are
// at least from, and below to unless that is nil.
func (w *walk) checkPage(id uint64, depth int, from, to []byte) error {
	if depth > maxDepth {
		return damagedError("page %d is nested too deeply", id)
	}
	h, err := w.readHead(id)
	if err != nil {
		return err
	}
	if h.overflow > 0 {
		if err := w.claimPages(id+1, h.overflow-1); err != nil {
			return err
		}
	}
	p := content{what: fmt.Sprintf("page %d", id), head: h, from: io.NewSectionReader(w.file, w.pageOffset(id), int64(h.size))} //nolint:gosec // within the file
	if h.overflow == 0 {                                                                                                        // one read for all its keys
		whole := make([]byte, h.size)
		if err := w.readPage(whole, id, 0); err != nil {
			return err
		}
		p.from = bytes.NewReader(whole)
	}
	return w.checkContent(p, depth, from, to)
}

// pageOffset returns where a page begins.
func (w *walk) pageOffset(id uint64) int64 { return int64(id * w.meta.pageSize) } //nolint:gosec // below the file's size

// content is a page, or one that lies within the value of a bucket.
type content struct {
	what string
	head head
	from io.ReaderAt
}

// readAt fills b with what begins at offset, which the caller knows to be within.
func (p content) readAt(b []byte, offset uint64) error {
	if len(b) == 0 { // at the very end that would be io.EOF
		return nil
	}
	if _, err := p.from.ReadAt(b, int64(offset)); err != nil { //nolint:gosec // below 2^37
		return fmt.Errorf("read %s: %w", p.what, err)
	}
	return nil
}

func (w *walk) checkContent(p content, depth int, from, to []byte) error {
	if p.head.flags != flagBranch && p.head.flags != flagLeaf {
		return damagedError("%s is neither branch nor leaf: flags %#x", p.what, p.head.flags)
	}
	if p.head.flags == flagBranch && p.head.count == 0 {
		return damagedError("%s is a branch without children", p.what)
	}
	elements, err := w.readElements(p)
	if err != nil {
		return err
	}
	for i, e := range elements {
		if bytes.Compare(e.key, from) < 0 || (to != nil && bytes.Compare(e.key, to) >= 0) {
			return damagedError("%s: key %d is out of order", p.what, i)
		}
		if i > 0 && bytes.Compare(elements[i-1].key, e.key) >= 0 {
			return damagedError("%s: keys %d and %d are out of order", p.what, i-1, i)
		}
	}
	for i, e := range elements {
		next := to
		if i+1 < len(elements) {
			next = elements[i+1].key
		}
		if err := w.followElement(p, e, depth, next); err != nil {
			return err
		}
	}
	return nil
}

// followElement goes on with what an element leads to; next is the key behind it.
func (w *walk) followElement(p content, e element, depth int, next []byte) error {
	switch {
	case p.head.flags == flagBranch:
		if err := w.claimPages(e.child, 0); err != nil {
			return err
		}
		return w.checkPage(e.child, depth+1, e.key, next)
	case e.bucket && e.child != 0:
		if err := w.claimPages(e.child, 0); err != nil {
			return err
		}
		return w.checkPage(e.child, depth+1, nil, nil)
	case e.bucket:
		return w.checkInline(p, e, depth)
	}
	return nil
}

// checkInline checks a bucket whose only page is in its value.
func (w *walk) checkInline(p content, e element, depth int) error {
	if depth > maxDepth || e.vsize < bucketSize+pageHeader {
		return damagedError("%s: the bucket %q has no page", p.what, e.key)
	}
	var b [pageHeader]byte
	start := e.value + bucketSize
	if err := p.readAt(b[:], start); err != nil {
		return err
	}
	if id := binary.NativeEndian.Uint64(b[:]); id != 0 { // bbolt would free that page
		return damagedError("%s: the bucket %q says that it is page %d", p.what, e.key, id)
	}
	h := parseHead(b[:])
	h.size = e.vsize - bucketSize
	if h.flags != flagLeaf {
		return damagedError("%s: the bucket %q is no leaf: flags %#x", p.what, e.key, h.flags)
	}
	in := content{
		what: fmt.Sprintf("%s: bucket %q", p.what, e.key), head: h,
		from: io.NewSectionReader(p.from, int64(start), int64(h.size)), //nolint:gosec // below 2^37
	}
	return w.checkContent(in, depth+1, nil, nil)
}

// element is an entry of a page.
type element struct {
	key    []byte
	child  uint64 // page of a branch's child, or of a bucket's root; 0: the bucket is inline
	bucket bool
	value  uint64 // where the value begins in the page
	vsize  uint64
}

// readElements reads the entries of a page with their keys.
func (w *walk) readElements(p content) ([]element, error) {
	table := uint64(p.head.count) * elementSize //nolint:gosec // of 16 bits
	if pageHeader+table > p.head.size {
		return nil, damagedError("%s has no room for its %d entries", p.what, p.head.count)
	}
	raw := make([]byte, table)
	if err := p.readAt(raw, pageHeader); err != nil {
		return nil, err
	}
	out := make([]element, p.head.count)
	for i := range out {
		b, at := raw[i*elementSize:], pageHeader+uint64(i)*elementSize //nolint:gosec // of 16 bits
		e, pos, ksize := element{}, uint64(0), uint64(0)
		if p.head.flags == flagBranch {
			pos, ksize = uint64(binary.NativeEndian.Uint32(b)), uint64(binary.NativeEndian.Uint32(b[4:]))
			e.child = binary.NativeEndian.Uint64(b[8:])
		} else {
			flags := binary.NativeEndian.Uint32(b)
			if flags > flagBucket {
				return nil, damagedError("%s: entry %d has the flags %#x", p.what, i, flags)
			}
			e.bucket = flags == flagBucket
			pos, ksize = uint64(binary.NativeEndian.Uint32(b[4:])), uint64(binary.NativeEndian.Uint32(b[8:]))
			e.vsize = uint64(binary.NativeEndian.Uint32(b[12:]))
		}
		e.value = at + pos + ksize
		if at+pos < pageHeader+table || e.value+e.vsize > p.head.size {
			return nil, damagedError("%s: entry %d lies outside of it", p.what, i)
		}
		if err := p.readElementKey(&e, at+pos, ksize); err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

// readElementKey reads the key of an element, and where its bucket begins.
func (p content) readElementKey(e *element, at, ksize uint64) error {
	e.key = make([]byte, ksize)
	if err := p.readAt(e.key, at); err != nil || !e.bucket {
		return err
	}
	var b [bucketSize]byte
	if e.vsize < bucketSize {
		return damagedError("%s: the bucket %q is cut", p.what, e.key)
	}
	if err := p.readAt(b[:], e.value); err != nil {
		return err
	}
	e.child = binary.NativeEndian.Uint64(b[:])
	return nil
}
