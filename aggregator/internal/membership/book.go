package membership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// bookFile is where a [Book] is kept in the data directory.
const bookFile = "peers.book"

const bookFormat = 1

// ErrBook is wrapped by the errors of [OpenBook] for a file that is damaged or of
// a newer program. The message has the remedy.
var ErrBook = errors.New("peers.book cannot be used")

// Book is what a node remembers of the others: its promises while a cluster
// gathers, and afterwards which name belongs to which id. One goroutine at a time may
// write it, and any number may read it meanwhile.
type Book struct {
	path string

	mu   sync.RWMutex // guards page
	page bookPage
}

// bookPage is the body of the file.
type bookPage struct {
	Node  string   `json:"node"` // id of the node whose book it is
	Oath  Oath     `json:"oath"`
	Nodes []Listed `json:"nodes,omitempty"` // sorted by name
}

// sealedBook is the file.
type sealedBook struct {
	Format int             `json:"format"`
	CRC    uint32          `json:"crc32c"` // of the body
	Body   json.RawMessage `json:"body"`
}

// OpenBook reads the book of the node with that id; it is empty when there is
// none, or when it is of an id that the node has no longer.
func OpenBook(dataDir, id string) (*Book, error) {
	b := &Book{path: filepath.Join(dataDir, bookFile), page: bookPage{Node: id}}
	raw, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the book of peers: %w", err)
	}
	page, err := decodeBook(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; a node that has joined its cluster needs it no more and may start without: move it away then. A node that has never joined one starts with an empty data directory instead", ErrBook, b.path, err)
	}
	if page.Node == id {
		b.page = page
	}
	return b, nil
}

func checksumOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func encodeBook(page bookPage) ([]byte, error) {
	body, err := json.Marshal(page)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealedBook{Format: bookFormat, CRC: checksumOf(body), Body: body})
}

func decodeBook(raw []byte) (page bookPage, err error) {
	var sealed sealedBook
	if err := json.Unmarshal(raw, &sealed); err != nil {
		return page, err
	}
	if sealed.Format != bookFormat {
		return page, fmt.Errorf("format %d, this program knows %d", sealed.Format, bookFormat)
	}
	if checksumOf(sealed.Body) != sealed.CRC {
		return page, errors.New("its checksum differs")
	}
	d := json.NewDecoder(bytes.NewReader(sealed.Body))
	d.DisallowUnknownFields()
	err = d.Decode(&page)
	if err == nil && !page.Oath.Held.None() && len(page.Oath.Held.Nodes) == 0 {
		err = errors.New("a promise without nodes")
	}
	return page, err
}

// currentPage returns the page. What is in it is never changed, only replaced.
func (b *Book) currentPage() bookPage {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.page
}

// Oath returns what the node has promised.
func (b *Book) Oath() Oath { return b.currentPage().Oath }

// Swear makes the oath durable.
func (b *Book) Swear(o Oath) error {
	next := b.currentPage()
	next.Oath = o
	return b.writePage(next)
}

// Nodes returns the nodes that were seen as members, sorted by name.
func (b *Book) Nodes() []Listed { return b.currentPage().Nodes }

// NameOf returns the name of the node with that id; "" when the book does not say.
func (b *Book) NameOf(id string) string {
	page := b.currentPage()
	for _, n := range slices.Concat(page.Nodes, page.Oath.Held.Nodes) {
		if n.ID == id {
			return n.Name
		}
	}
	return ""
}

// idOf returns the id of the node with that name; "" when the book does not say.
func (b *Book) idOf(name string) string {
	page := b.currentPage()
	for _, n := range slices.Concat(page.Nodes, page.Oath.Held.Nodes) {
		if n.Name == name {
			return n.ID
		}
	}
	return ""
}

// Configured returns the name and the address that peers, the addresses of a configuration
// by name, have for the node with that id; both are empty for one that they do not name.
func (b *Book) Configured(peers map[string]string, id string) (name, addr string) {
	if name = b.NameOf(id); peers[name] == "" {
		return "", ""
	}
	return name, peers[name]
}

// Note makes durable which name belongs to which id. What is known already costs
// nothing.
func (b *Book) Note(n Listed) error {
	next := b.currentPage()
	was := next.Nodes
	next.Nodes = nil
	for _, known := range was {
		if known == n {
			return nil
		}
		if known.Name != n.Name && known.ID != n.ID {
			next.Nodes = append(next.Nodes, known)
		}
	}
	next.Nodes = append(next.Nodes, n)
	sortListed(next.Nodes)
	return b.writePage(next)
}

// writePage replaces the file, durably, and then the page.
func (b *Book) writePage(next bookPage) error {
	raw, err := encodeBook(next)
	if err == nil {
		err = durable.Replace(b.path, raw)
	}
	if err != nil {
		return fmt.Errorf("write the book of peers: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.page = next
	return nil
}
