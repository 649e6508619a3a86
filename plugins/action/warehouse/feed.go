package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// maxPage is the greatest page of /v1/changes.
const maxPage = 10000

// batch is a part of the feed as rows.
type batch struct {
	begun  position // what was asked for
	id     uint64
	cursor string // behind it
	last   uint64
	ledger map[uint32]*rows
	daily  map[uint32]*rows
}

// feed reads the ledger of changes.
type feed struct {
	*session

	data    *sdk.Data
	cluster string
	epoch   string // of the feed now
}

// errBeginAnew is why the rows of the cluster have to be replaced.
type errBeginAnew struct{ reason string }

// Error implements error.
func (e errBeginAnew) Error() string { return e.reason }

// page is what an answer says beside the changes.
type page struct {
	Cluster string `json:"cluster"`
	Epoch   string `json:"epoch"`
	Last    uint64 `json:"last"`
	More    bool   `json:"more"`
	Next    string `json:"next"`
}

// readBatch reads what is behind a position, at most so many pages, and makes rows of it. The
// error is errBeginAnew when the position counts no more.
func (f *feed) readBatch(ctx context.Context, begun position) (*batch, error) {
	b := &batch{begun: begun, cursor: begun.cursor, last: begun.last}
	days := newDays(&f.layout, f.zone)
	var added, removed []row
	more := true
	b.begun.pages = 0
	decode := newChangeDecoder(&f.layout)
	for more && b.begun.pages < begun.pages {
		var formers []wire.Former
		p, err := f.readPage(ctx, b.cursor, &b.begun, func(line []byte) error {
			r, former, err := decode.decodeChange(line)
			if former.Seq > 0 {
				formers = append(formers, former)
			}
			if r != nil {
				added = append(added, *r)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		old, err := f.formerRows(ctx, formers, added)
		if err != nil {
			return nil, err
		}
		removed = append(removed, old...)
		b.cursor, b.last, more = p.Next, p.Last, p.More
		b.begun.pages++
	}
	if !more {
		b.begun.until = b.last // it is the end of the state
	}
	b.begun.epoch = f.epoch
	b.id = batchID(f.cluster, &b.begun)
	b.ledger = map[uint32]*rows{}
	b.addRows(f.cluster, days, added, 1)
	b.addRows(f.cluster, days, removed, -1)
	b.daily = days.encodeRows(f.cluster, b.id)
	return b, nil
}

// addRows encodes rows, each for its month, and adds them to the days.
func (b *batch) addRows(cluster string, days *days, list []row, sign int8) {
	for i := range list {
		r := &list[i]
		out := b.ledger[r.stopMonth()]
		if out == nil {
			out = &rows{}
			b.ledger[r.stopMonth()] = out
		}
		out.count++
		out.bytes = r.appendLedgerRow(out.bytes, cluster, sign, b.id)
		days.addRun(r, int64(sign))
	}
}

// readPage reads the page behind a cursor.
func (f *feed) readPage(ctx context.Context, cursor string, at *position, add func(line []byte) error) (p page, err error) {
	ledger := true
	query := v1.ChangesQuery{Ledger: &ledger, Cursor: cursor, Limit: at.page}
	if at.until > 0 {
		query.Until = &at.until
	}
	first, whole := true, false
	for line, err := range f.data.Lines(ctx, v1.ChangesAddress(&query, "ndjson")) {
		switch {
		case err != nil:
			return p, beginAnew(err)
		case first:
			first = false
			err = json.Unmarshal(line, &p)
			if err == nil && (p.Cluster != f.cluster || p.Epoch != f.epoch) {
				err = fmt.Errorf("/v1/changes: the cluster is now %s in the epoch %q, and was %s in %q", p.Cluster, p.Epoch, f.cluster, f.epoch)
			}
		case bytes.HasPrefix(line, []byte(`{"last"`)):
			whole = true
			err = json.Unmarshal(line, &p)
		default:
			err = add(line)
		}
		if err != nil {
			return p, err
		}
	}
	if !whole {
		return p, errors.New("/v1/changes: the answer ended too early")
	}
	return p, nil
}

// beginAnew makes an errBeginAnew of the status that asks for it.
func beginAnew(err error) error {
	if no, ok := errors.AsType[*sdk.ResponseError](err); ok && no.Status == http.StatusGone {
		return errBeginAnew{no.Detail}
	}
	return err
}

// formersAtOnce is how many rows one query looks for.
const formersAtOnce = 2000

// formerRows returns the rows that are taken away, as the ledger has them or, where the batch
// goes from the end of one part of the feed on to the next, as it adds them.
func (f *feed) formerRows(ctx context.Context, list []wire.Former, added []row) (out []row, err error) {
	for part := range slices.Chunk(list, formersAtOnce) {
		found, err := f.selectRows(ctx, part)
		if err != nil {
			return nil, err
		}
		for i := range part {
			r, ok := found[part[i].Seq]
			if !ok {
				k := slices.IndexFunc(added, func(r row) bool { return r.seq == part[i].Seq })
				if ok = k >= 0; ok {
					r = added[k]
				}
			}
			if !ok {
				return nil, newRefusal("the row of change %d is not in %s: it was removed by hand, or belongs to another cluster; run the action with replace=all", part[i].Seq, f.tableName(ledgerTable))
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// selectRows returns rows by the number of their change.
func (f *feed) selectRows(ctx context.Context, list []wire.Former) (map[uint64]row, error) {
	sets := map[string][]string{}
	for i := range list {
		stop := int64(list[i].Stop)
		r := row{stop: stop}
		sets["month"] = append(sets["month"], strconv.FormatUint(uint64(r.stopMonth()), 10))
		sets["stop_us"] = append(sets["stop_us"], strconv.FormatInt(stop, 10))
		sets["seq"] = append(sets["seq"], strconv.FormatUint(list[i].Seq, 10))
	}
	var where strings.Builder
	for _, name := range []string{"month", "stop_us", "seq"} {
		slices.Sort(sets[name])
		where.WriteString(" AND " + name + " IN (" + strings.Join(slices.Compact(sets[name]), ", ") + ")")
	}
	text, err := f.postStatement(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE cluster = %s AND sign = 1%s FORMAT RowBinary",
		quoteNames(f.layout.storedColumns()), f.tableName(ledgerTable), quoteText(f.cluster), &where), "", nil)
	if err != nil {
		return nil, err
	}
	in := rowReader{Reader: bytes.NewReader(text), layout: &f.layout}
	found := map[uint64]row{}
	for r, ok := in.readRow(); ok; r, ok = in.readRow() {
		found[r.seq] = r
	}
	return found, in.err
}
