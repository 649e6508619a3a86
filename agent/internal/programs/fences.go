package programs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// Fences are the greatest fences of all actions, in a file.
type Fences struct {
	path string

	mu    sync.Mutex
	known *fences // as it is in the file; nil: it has not been read
}

// NewFences makes fences of a file, which need not be there yet. It is read when the
// first fence comes, so that a damaged one keeps nothing else from working.
func NewFences(path string) *Fences { return &Fences{path: path} }

// fences are the content of the file.
type fences struct {
	Clusters []fencesOf `json:"clusters"`
}

// fencesOf are those of a cluster. A restore of it begins again, maybe with lesser
// fences; what comes of the time before it is refused from then on.
type fencesOf struct {
	Cluster     string            `json:"cluster"`
	Incarnation string            `json:"incarnation"`
	Before      []string          `json:"before"` // incarnations that are over
	Actions     map[string]uint64 `json:"actions"`
}

// Errors of fences.
var (
	// ErrOutdated says that a newer attempt is known.
	ErrOutdated = errors.New("outdated")
	errFormat   = errors.New("the file of fences cannot be read")
)

// The bounds of the file. They keep a caller from filling the disk.
const (
	maxClusters = 64
	maxActions  = 1000 // of a cluster
	maxBefore   = 100
	maxName     = 512
	maxFile     = 8 << 20
)

// attempt names an attempt of an action.
type attempt struct {
	cluster, incarnation, action string
	fence                        uint64
}

func (a *attempt) checkAttempt() error {
	switch {
	case a.cluster == "" || a.action == "" || a.fence == 0:
		return errors.New("the request lacks its cluster, its action or its fence")
	case len(a.cluster) > maxName || len(a.incarnation) > maxName || len(a.action) > maxName:
		return errors.New("a name of the request is too long")
	}
	return nil
}

// raiseFence stores a fence, so that lesser ones are refused from then on. It is on the disk
// when raiseFence returns nil.
func (f *Fences) raiseFence(a *attempt) error {
	if err := a.checkAttempt(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.loadFences(); err != nil {
		return err
	}
	next, changed, err := f.known.withAttempt(a)
	if err != nil || !changed {
		return err
	}
	if err := durable.Replace(f.path, next.encodeFences()); err != nil {
		return fmt.Errorf("keep the fence: %w", err)
	}
	f.known = next
	return nil
}

// isNewest reports whether no greater fence was taken since.
func (f *Fences) isNewest(a *attempt) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		return false
	}
	_, changed, err := f.known.withAttempt(a)
	return err == nil && !changed
}

func (f *Fences) loadFences() error {
	if f.known != nil {
		return nil
	}
	raw, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.known = &fences{}
		return nil
	}
	if err == nil {
		f.known, err = decodeFences(raw)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; which attempts were the newest is not known. When none of the actions that use this agent runs, remove the file", f.path, err)
	}
	return nil
}

// withAttempt returns the fences with one more, and whether anything is other than before.
func (s *fences) withAttempt(a *attempt) (*fences, bool, error) {
	at := slices.IndexFunc(s.Clusters, func(c fencesOf) bool { return c.Cluster == a.cluster })
	next := &fences{Clusters: slices.Clone(s.Clusters)}
	if at < 0 {
		if len(s.Clusters) >= maxClusters {
			return nil, false, fmt.Errorf("programs of %d clusters have run here, which is the most that is kept", maxClusters)
		}
		next.Clusters = append(next.Clusters, fencesOf{Cluster: a.cluster, Incarnation: a.incarnation, Actions: map[string]uint64{}})
		at = len(next.Clusters) - 1
	}
	c := &next.Clusters[at]
	switch {
	case c.Incarnation == a.incarnation:
	case slices.Contains(c.Before, a.incarnation):
		return nil, false, fmt.Errorf("%w: the cluster was restored since, and what it began before that is not done any more", ErrOutdated)
	default:
		c.Before = append(slices.Clone(c.Before[max(0, len(c.Before)-maxBefore+1):]), c.Incarnation)
		c.Incarnation, c.Actions = a.incarnation, nil
	}
	known := c.Actions[a.action]
	switch {
	case a.fence < known:
		return nil, false, fmt.Errorf("%w: fence %d is less than %d, with which a later attempt of %s has come: another node leads now", ErrOutdated, a.fence, known, a.action)
	case a.fence == known:
		return next, false, nil
	case known == 0 && len(c.Actions) >= maxActions:
		return nil, false, fmt.Errorf("programs of %d actions have run here, which is the most that is kept", maxActions)
	}
	actions := map[string]uint64{a.action: a.fence}
	for name, fence := range c.Actions {
		if name != a.action {
			actions[name] = fence
		}
	}
	c.Actions = actions
	return next, true, nil
}

// The file is a line with its format and the checksum of what follows, which is JSON.
const header = "bursar-fences 1 "

func (s *fences) encodeFences() []byte {
	body, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("programs: fences are not to be encoded: %v", err)) // they are strings and numbers
	}
	return sealBody(body)
}

// sealBody is a file with that body.
func sealBody(body []byte) []byte {
	return fmt.Appendf(nil, "%s%08x\n%s\n", header, checksumOf(body), body)
}

func checksumOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func decodeFences(raw []byte) (*fences, error) {
	line, body, ok := bytes.Cut(raw, []byte("\n"))
	sum, known := bytes.CutPrefix(line, []byte(header))
	body, whole := bytes.CutSuffix(body, []byte("\n"))
	switch {
	case !bytes.HasPrefix(line, []byte("bursar-fences ")):
		return nil, fmt.Errorf("%w: it is no such file, or its beginning is damaged", errFormat)
	case !known:
		return nil, fmt.Errorf("%w: a newer program has written it", errFormat)
	case !ok || !whole || len(raw) > maxFile || string(sum) != fmt.Sprintf("%08x", checksumOf(body)):
		return nil, fmt.Errorf("%w: it is damaged", errFormat)
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	s := &fences{}
	if err := in.Decode(s); err != nil || in.More() {
		return nil, fmt.Errorf("%w: its body is damaged", errors.Join(errFormat, err))
	}
	return s, nil
}
