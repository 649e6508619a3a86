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

// peerFileName is where a [PeerFile] is kept in the data directory.
const peerFileName = "peers.book"

const peerFileFormat = 1

// ErrPeerFile is wrapped by the errors of [OpenPeerFile] for a file that is damaged or of
// a newer program. The message has the remedy.
var ErrPeerFile = errors.New("peers.book cannot be used")

// PeerFile is what a node remembers of the others: its promises while a cluster
// gathers, and afterwards which name belongs to which id. One goroutine at a time may
// write it, and any number may read it meanwhile.
type PeerFile struct {
	path string

	mu   sync.RWMutex // guards page
	page peerFileBody
}

// peerFileBody is the body of the file.
type peerFileBody struct {
	Node     string   `json:"node"` // id of the node whose file it is
	Promises Promises `json:"oath"`
	Nodes    []Listed `json:"nodes,omitempty"` // sorted by name
}

// sealedPeerFile is the file.
type sealedPeerFile struct {
	Format int             `json:"format"`
	CRC    uint32          `json:"crc32c"` // of the body
	Body   json.RawMessage `json:"body"`
}

// OpenPeerFile reads the file of the node with that id; it is empty when there is
// none, or when it is of an id that the node has no longer.
func OpenPeerFile(dataDir, id string) (*PeerFile, error) {
	b := &PeerFile{path: filepath.Join(dataDir, peerFileName), page: peerFileBody{Node: id}}
	raw, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the file of peers: %w", err)
	}
	page, err := decodePeerFile(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; a node that has joined its cluster needs it no more and may start without: move it away then. A node that has never joined one starts with an empty data directory instead", ErrPeerFile, b.path, err)
	}
	if page.Node == id {
		b.page = page
	}
	return b, nil
}

func checksumOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func encodePeerFile(page peerFileBody) ([]byte, error) {
	body, err := json.Marshal(page)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealedPeerFile{Format: peerFileFormat, CRC: checksumOf(body), Body: body})
}

func decodePeerFile(raw []byte) (page peerFileBody, err error) {
	var sealed sealedPeerFile
	if err := json.Unmarshal(raw, &sealed); err != nil {
		return page, err
	}
	if sealed.Format != peerFileFormat {
		return page, fmt.Errorf("format %d, this program knows %d", sealed.Format, peerFileFormat)
	}
	if checksumOf(sealed.Body) != sealed.CRC {
		return page, errors.New("its checksum differs")
	}
	d := json.NewDecoder(bytes.NewReader(sealed.Body))
	d.DisallowUnknownFields()
	err = d.Decode(&page)
	if err == nil && !page.Promises.Held.None() && len(page.Promises.Held.Nodes) == 0 {
		err = errors.New("a promise without nodes")
	}
	return page, err
}

// currentPage returns the page. What is in it is never changed, only replaced.
func (b *PeerFile) currentPage() peerFileBody {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.page
}

// Promises returns what the node has promised.
func (b *PeerFile) Promises() Promises { return b.currentPage().Promises }

// SavePromises makes the promises durable.
func (b *PeerFile) SavePromises(o Promises) error {
	next := b.currentPage()
	next.Promises = o
	return b.writePage(next)
}

// Nodes returns the nodes that were seen as members, sorted by name.
func (b *PeerFile) Nodes() []Listed { return b.currentPage().Nodes }

// NameOf returns the name of the node with that id; "" when the file does not say.
func (b *PeerFile) NameOf(id string) string {
	page := b.currentPage()
	for _, n := range slices.Concat(page.Nodes, page.Promises.Held.Nodes) {
		if n.ID == id {
			return n.Name
		}
	}
	return ""
}

// idOf returns the id of the node with that name; "" when the file does not say.
func (b *PeerFile) idOf(name string) string {
	page := b.currentPage()
	for _, n := range slices.Concat(page.Nodes, page.Promises.Held.Nodes) {
		if n.Name == name {
			return n.ID
		}
	}
	return ""
}

// Configured returns the name and the address that peers, the addresses of a configuration
// by name, have for the node with that id; both are empty for one that they do not name.
func (b *PeerFile) Configured(peers map[string]string, id string) (name, addr string) {
	if name = b.NameOf(id); peers[name] == "" {
		return "", ""
	}
	return name, peers[name]
}

// SaveNode makes durable which name belongs to which id. What is known already costs
// nothing.
func (b *PeerFile) SaveNode(n Listed) error {
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
func (b *PeerFile) writePage(next peerFileBody) error {
	raw, err := encodePeerFile(next)
	if err == nil {
		err = durable.Replace(b.path, raw)
	}
	if err != nil {
		return fmt.Errorf("write the file of peers: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.page = next
	return nil
}
