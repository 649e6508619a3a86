package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// blocksAtOnce is how many blocks the leader has compacted by one command.
const blocksAtOnce = 8

// measureCompaction deletes every third record of a copy of the store, which leaves no block as
// it was, and measures how fast the blocks are rewritten and what the store takes then.
func (b *bench) measureCompaction(ctx context.Context) error {
	s, err := b.firstSet(ctx)
	if err != nil {
		return err
	}
	if err := s.node.stopNode(); err != nil {
		return err
	}
	b.progress.beginPiece("compacting the blocks of %d records", b.n)
	dir := filepath.Join(b.dir, "compaction")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(s.node.dir, "store"))); err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // the folder of all goes at the end
	before, _, err := compactStore(dir)
	if err != nil {
		return err
	}
	var c *thinning
	if _, err := withOpenStore(dir, func(s *store.Store) (err error) {
		c, err = thinRecords(ctx, s)
		return err
	}); err != nil {
		return err
	}
	_, after, err := compactStore(dir)
	if err != nil {
		return err
	}
	rate := float64(c.blocks) / c.took.Seconds()
	b.addLine(overRuns("compaction", "blocks rewritten without the third of their rows that is deleted", "blocks/s", goal{}, []float64{rate}).
		addNote("%.1f MB/s of blocks; the disk is %.2f of what it was, with %.2f of the records", rate*c.bytes/float64(c.blocks)/1e6, float64(after)/float64(before), c.left))
	return nil
}

// thinning is what became of a store.
type thinning struct {
	blocks int
	bytes  float64 // of these blocks before
	took   time.Duration
	left   float64 // the share of the records that are left
}

// thinRecords deletes every third record and has all blocks rewritten.
func thinRecords(ctx context.Context, s *store.Store) (*thinning, error) {
	view, err := s.View()
	if err != nil {
		return nil, err
	}
	index, term := view.Applied()
	all := view.Count()
	var ids []string
	n := 0
	err = view.Query(ctx, store.Query{Order: store.BySeq}, func(row *columns.Row) error {
		if n++; n%3 == 0 {
			ids = append(ids, row.Record.ID)
		}
		return nil
	})
	if err := errors.Join(err, view.Close()); err != nil {
		return nil, err
	}
	apply := func(c store.Command) error {
		index++
		_, err := s.Apply(index, term, store.Encode(c))
		return err
	}
	for part := range slices.Chunk(ids, 1000) {
		if err := apply(&store.DeleteCommand{IDs: part, By: "bench", Now: record.Time(time.Now().UnixMicro())}); err != nil {
			return nil, err
		}
	}
	commands, blocks, bytes, err := rewriteBlocks(ctx, s)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	for _, c := range commands {
		if err := apply(c); err != nil {
			return nil, err
		}
	}
	return &thinning{blocks: blocks, bytes: bytes, took: time.Since(begun), left: 1 - float64(len(ids))/float64(all)}, nil
}

// rewriteBlocks are the commands that rewrite the blocks with rows that nothing shows. It says how
// many blocks these are, and about how many bytes they have.
func rewriteBlocks(ctx context.Context, s *store.Store) (commands []store.Command, blocks int, bytes float64, err error) {
	view, err := s.View()
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	old, err := view.Droppable(ctx, record.MaxTime)
	if err != nil {
		return nil, 0, 0, err
	}
	rows := 0
	var names []uint64
	for _, k := range view.Candidates(0) {
		names, rows = append(names, k.First), rows+k.Rows
	}
	for part := range slices.Chunk(names, blocksAtOnce) {
		of, err := old.Of(part)
		if err != nil {
			return nil, 0, 0, err
		}
		commands = append(commands, &store.CompactBlockCommand{Blocks: part, Of: of})
	}
	if len(names) == 0 {
		err = errors.New("no block has a row that nothing shows")
	}
	return commands, len(names), float64(rows) * blockBytes, err
}

// blockBytes is what a record of the benchmark takes in a block.
const blockBytes = 18
