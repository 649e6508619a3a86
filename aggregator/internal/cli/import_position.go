package cli

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"google.golang.org/protobuf/proto"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// importPosition is how far an import came, in a file of JSON lines: the first says of
// what, each other one is written when the cluster has committed what it counts.
type importPosition struct {
	file *os.File
	head positionHead
	was  positionHead // that of the file; zero where there was none

	last positionLine // that was written, and all ids
	ids  []byte
	size int64 // of the lines that are sound
}

type positionHead struct {
	Format int    `json:"format"`
	Source string `json:"source"` // NAME/TYPE/LABEL
	Inputs string `json:"inputs"` // digest of the files, the configuration and the plugin
}

type positionLine struct {
	Epoch  string          `json:"epoch"`  // of the import at the cluster
	Frames uint64          `json:"frames"` // of that import
	At     []byte          `json:"at"`     // the source's checkpoint
	Result json.RawMessage `json:"result"` // an ImportResult
	Counts v1.Counts       `json:"counts"`
	IDs    []byte          `json:"ids"` // since the line before, as in ImportSums
}

// inputDigest identifies what an import reads, and how it is mapped.
func (s *settings) inputDigest(spec *ImportSpec, plugin string) (string, error) {
	tree, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.tree)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q ", plugin, spec.Files, tree)
	for _, name := range slices.Sorted(maps.Keys(s.sources)) {
		fmt.Fprintf(h, "%q %q ", name, s.sources[name])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// openPosition opens the position of an import, or begins one; it is nil where none is
// kept. Other sources than auditor read all of their files to know a run.
func (p *Program) openPosition(src *ImportSource, opt *importOptions) (*importPosition, error) {
	dir := p.Getenv("XDG_STATE_HOME")
	if home := p.Getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".local", "state")
	}
	if src.Type != "auditor" || opt.dry || dir == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	path := filepath.Join(dir, "bursar", fmt.Sprintf("import-%s-%s-%s.position", src.Name, src.Type, src.Label))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("position %s: another import uses it; wait for its end, or give this one another -name", path), file.Close())
	}
	of := fmt.Sprintf("%s withdraw=%t compare=%t", src.inputs, opt.withdraw, opt.compare)
	at := &importPosition{file: file, head: positionHead{Format: 1, Source: src.originText(), Inputs: of}}
	if err := at.readLines(); err != nil {
		return nil, errors.Join(fmt.Errorf("position %s: %w", path, err), file.Close())
	}
	return at, nil
}

// readLines reads the file up to the first line that broke off.
func (a *importPosition) readLines() error {
	for in := bufio.NewReader(a.file); ; {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		into := any(&a.was)
		line := positionLine{}
		if a.size > 0 {
			into = &line
		}
		if json.Unmarshal(text, into) != nil || len(line.IDs)%8 != 0 {
			return nil //nolint:nilerr // a line that broke off
		}
		a.size += int64(len(text))
		a.ids, line.IDs = append(a.ids, line.IDs...), nil
		a.last = line
	}
}

// resumeFrom returns from where on to read, as the cluster began the import: the counts of what
// it has, nil from the start.
func (a *importPosition) resumeFrom(begun *v1.Import, say func(string, ...any)) (*ImportResult, error) {
	if a == nil {
		return nil, nil //nolint:nilnil // from the start
	}
	result, err := a.usableCounts(begun)
	switch {
	case err != nil:
		say("Reading from the start, since the position %s cannot be used: %v", a.file.Name(), err)
	case result != nil:
		say("Continuing at %s, behind %d records", a.file.Name(), result.Records)
	}
	if result == nil {
		a.size, a.last = 0, positionLine{Counts: v1.Counts{Conserved: true}}
	}
	if err := a.file.Truncate(a.size); err != nil {
		return nil, err
	}
	if a.size == 0 {
		if err := a.appendLine(&a.head); err != nil {
			return nil, err
		}
	}
	a.last.Epoch, a.last.Frames = begun.Epoch, 0
	return result, a.appendLine(&a.last)
}

// usableCounts returns the counts of the position; the error says why it is none of this import.
func (a *importPosition) usableCounts(begun *v1.Import) (*ImportResult, error) {
	switch {
	case a.was == positionHead{}:
		return nil, nil //nolint:nilnil // it is new
	case a.was != a.head:
		return nil, errors.New("it is of other files, or of another configuration, release or option; imports with other -name have positions of their own")
	case a.last.Epoch != begun.Previous || a.last.Frames > uint64(begun.PreviousFrames):
		return nil, errors.New("the cluster is another one or was restored, or another import of that name began there since")
	case len(a.last.At) == 0:
		return nil, nil //nolint:nilnil // nothing was committed
	}
	result := &ImportResult{}
	if err := json.Unmarshal(a.last.Result, result); err != nil {
		return nil, err
	}
	if result.Sums != nil {
		result.Sums.ids = make(map[uint64]struct{}, len(a.ids)/8)
		for id := range slices.Chunk(a.ids, 8) {
			result.Sums.ids[binary.LittleEndian.Uint64(id)] = struct{}{}
		}
	}
	return result, nil
}

// appendLine writes a line, with fsync.
func (a *importPosition) appendLine(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err := a.file.WriteAt(text, a.size); err != nil {
		return err
	}
	a.size += int64(len(text))
	return a.file.Sync()
}

// close keeps the position, unless all was done.
func (a *importPosition) close(done bool) error {
	if a == nil {
		return nil
	}
	var err error
	if done {
		err = os.Remove(a.file.Name())
	}
	return errors.Join(err, a.file.Close())
}

// Mark implements ImportSink: when the frames so far are committed, the source may go on at
// the checkpoint.
func (c *ImportCluster) Mark(checkpoint []byte, r *ImportResult) error {
	if c.position == nil {
		r.Sums.drainFresh()
		return nil
	}
	if len(checkpoint) == 0 {
		return nil
	}
	text, err := json.Marshal(r)
	c.mark.At, c.mark.Result, c.mark.Frames = bytes.Clone(checkpoint), text, c.builder.Last()
	c.mark.IDs = append(c.mark.IDs, r.Sums.drainFresh()...)
	return err
}

// drainFresh returns the ids since the last call, until the next record is read.
func (s *ImportSums) drainFresh() []byte {
	if s == nil {
		return nil
	}
	ids := s.fresh
	s.fresh = s.fresh[:0]
	return ids
}

// writeMark writes a mark whose frames are committed.
func (c *ImportCluster) writeMark(mark *positionLine) error {
	if len(mark.At) == 0 {
		return nil
	}
	mark.Epoch, mark.Counts = c.epoch, c.counts
	if err := c.position.appendLine(mark); err != nil {
		return fmt.Errorf("position %s: %w", c.position.file.Name(), err)
	}
	return nil
}
