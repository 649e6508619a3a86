package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

// position is a row of the table cursors: where the copy of a cluster is. The one with the
// greatest number counts.
type position struct {
	number uint64
	fence  uint64 // of the attempt that wrote it
	state  string
	epoch  string // of the feed
	cursor string // to ask with next; "" at the beginning
	last   uint64 // the change up to which the tables are, by the feed
	reason string // why the rows are replaced

	// Of a batch that was begun: what was asked for.
	until uint64
	page  int // changes of a page
	pages int

	// generation is the number of the last position that replaced all rows, where tables have
	// replicas: it is in no row of cursors, but in the ids of batches.
	generation uint64

	// Of a batch that was written.
	batch uint64
	rows  int64
}

// The states.
const (
	stateReplacing = "replacing" // the rows of the cluster are being removed
	stateBegun     = "begun"     // the batch behind cursor is being written
	stateWritten   = "written"   // all up to cursor is there
)

// readPosition returns the position of a cluster; number 0 when there is none.
func (s *session) readPosition(ctx context.Context, cluster string) (position, error) {
	rows, err := s.queryRows(ctx, fmt.Sprintf("SELECT number, fence, state, epoch, cursor, last, reason, until, page, pages, batch FROM %s WHERE cluster = %s ORDER BY number DESC, fence DESC LIMIT 1", s.tableName(cursorsTable), quoteText(cluster)))
	if err != nil || len(rows) == 0 {
		return position{}, err
	}
	r := rows[0]
	var bad error
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			bad = newRefusal("the table %s has the number %q: %w", s.tableName(cursorsTable), text, err)
		}
		return n
	}
	return position{
		number: number(r[0]), fence: number(r[1]), state: r[2], epoch: r[3], cursor: r[4], last: number(r[5]), reason: r[6],
		until: number(r[7]), page: int(number(r[8])), pages: int(number(r[9])), batch: number(r[10]),
	}, bad
}

// readGeneration returns the number of the last position that replaced all rows of a cluster.
func (s *session) readGeneration(ctx context.Context, cluster string) (uint64, error) {
	text, err := s.queryOne(ctx, fmt.Sprintf("SELECT max(number) FROM %s WHERE cluster = %s AND state = %s", s.tableName(cursorsTable), quoteText(cluster), quoteText(stateReplacing)))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// writePosition appends a position.
func (s *session) writePosition(ctx context.Context, cluster string, p *position) error {
	return s.executeStatement(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s, %d, %d, %s, %s, %s, %d, %d, %d, %d, %d, %d, %s, %d)",
		s.tableName(cursorsTable), quoteNames(columnNames(cursorColumns())), quoteText(cluster), p.number, p.fence, quoteText(p.state), quoteText(p.epoch), quoteText(p.cursor),
		p.until, p.page, p.pages, p.last, p.batch, p.rows, quoteText(p.reason), time.Now().Unix()))
}

// batchID names what a batch has: the same for the same part of the feed, and never 0. Tables with
// replicas drop a block that they have had before, also when its rows were removed since; so there
// a batch has another id after each replacement.
func batchID(cluster string, begun *position) uint64 {
	name := fmt.Appendf(nil, "%q %q %q %d %d %d", cluster, begun.epoch, begun.cursor, begun.until, begun.page, begun.pages)
	if begun.generation > 0 {
		name = fmt.Appendf(name, " %d", begun.generation)
	}
	sum := sha256.Sum256(name)
	return binary.LittleEndian.Uint64(sum[:8]) | 1
}
