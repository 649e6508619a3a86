package columns

// shared is what many rows have in common, each decoded once. It belongs to one
// goroutine; the views of several blocks may share one when they have the same
// dictionary, whose entries never change.
type shared struct {
	metas     paged[metaForm]
	templates paged[template]
	shapes    paged[idShape]
	ends      paged[endKey]
	origins   paged[originKey]
}

const (
	pageSize = 64
	// maxShared is how many values of a kind are kept before all are forgotten:
	// so memory stays flat however many a store has.
	maxShared = 1 << 15
)

// paged holds values by the number of their entry, in pages that are made when
// they are needed.
type paged[T any] struct {
	pages []*[pageSize]cell[T]
	n     int
}

type cell[T any] struct {
	value T
	isSet bool
}

// getValue returns the value that was set; nil for none.
func (p *paged[T]) getValue(id uint32) *T {
	if k := int(id / pageSize); k < len(p.pages) && p.pages[k] != nil {
		if c := &p.pages[k][id%pageSize]; c.isSet {
			return &c.value
		}
	}
	return nil
}

// setOnce keeps a value of an entry that has none, and returns it.
func (p *paged[T]) setOnce(id uint32, v T) *T {
	if p.n >= maxShared {
		*p = paged[T]{}
	}
	k := int(id / pageSize)
	for len(p.pages) <= k {
		p.pages = append(p.pages, nil)
	}
	if p.pages[k] == nil {
		p.pages[k] = new([pageSize]cell[T])
	}
	c := &p.pages[k][id%pageSize]
	c.value, c.isSet = v, true
	p.n++
	return &c.value
}

// Reader decodes blocks of one dictionary. What their rows have in common is
// decoded once and shared by all its blocks. A reader and its blocks belong to
// one goroutine.
type Reader struct {
	dict   *Dict
	shared *shared
}

// NewReader returns a reader of blocks that were encoded against d.
func NewReader(d *Dict) *Reader { return &Reader{dict: d, shared: &shared{}} }

// Block reads a block. It keeps views of data, which must stay unchanged as long
// as the block is used. The error wraps [ErrCorrupt] or [ErrFormat].
func (r *Reader) Block(data []byte) (*Block, error) {
	f := &frame{}
	if err := f.parseFrame(data, kindBlock); err != nil {
		return nil, err
	}
	for t := range numTables {
		if f.parts[blobTable+t] != nil {
			return nil, corruptError("a block has no tables")
		}
	}
	t := r.dict.current.Load()
	return &Block{v: view{frame: f, n: f.header.Rows, tables: func() *tables { return t }, shared: r.shared}}, nil
}
