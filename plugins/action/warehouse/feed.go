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
	rows   map[string]map[uint32]*rows // by table and partition
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

// part is a part of the feed that was read, and not yet looked up in the tables.
type part struct {
	begun   position // what was asked for
	cursor  string   // behind it
	last    uint64
	added   []row
	formers []wire.Former
}

// readBatch reads what is behind a position, at most so many pages, and makes rows of it. The
// error is errBeginAnew when the position counts no more.
func (f *feed) readBatch(ctx context.Context, begun position) (*batch, error) {
	p, err := f.readPart(ctx, begun)
	if err != nil {
		return nil, err
	}
	return f.makeBatch(ctx, p)
}

// readPart reads what is behind a position. It asks the cluster and not the tables.
func (f *feed) readPart(ctx context.Context, begun position) (*part, error) {
	p := &part{begun: begun, cursor: begun.cursor, last: begun.last}
	p.begun.epoch, p.begun.pages = f.epoch, 0
	decode, more := newChangeDecoder(&f.layout), true
	for more && p.begun.pages < begun.pages {
		end, err := f.readPage(ctx, p.cursor, &p.begun, func(line []byte) error {
			r, former, err := decode.decodeChange(line)
			if former.Seq > 0 {
				p.formers = append(p.formers, former)
			}
			if r != nil {
				p.added = append(p.added, *r)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		p.cursor, p.last, more = end.Next, end.Last, end.More
		p.begun.pages++
	}
	if !more {
		p.begun.until = p.last // it is the end of the state
	}
	return p, nil
}

// makeBatch makes rows of a part of the feed. The tables have all that is before it.
func (f *feed) makeBatch(ctx context.Context, p *part) (*batch, error) {
	removed, err := f.formerRows(ctx, p.formers, p.added)
	if err != nil {
		return nil, err
	}
	b := &batch{begun: p.begun, id: batchID(f.cluster, &p.begun), cursor: p.cursor, last: p.last}
	ledger := map[uint32]*rows{}
	days, months := newUsage(&f.layout, f.zone, byDay), newUsage(&f.layout, f.zone, byMonth)
	for i := range p.added {
		addRow(ledger, &p.added[i], f.cluster, 1, b.id)
		days.addRun(&p.added[i], 1)
		months.addRun(&p.added[i], 1)
	}
	for i := range removed {
		addRow(ledger, &removed[i], f.cluster, -1, b.id)
		days.addRun(&removed[i], -1)
		months.addRun(&removed[i], -1)
	}
	b.rows = map[string]map[uint32]*rows{
		ledgerTable: ledger, dailyTable: days.encodeRows(f.cluster, b.id), monthlyTable: months.encodeRows(f.cluster, b.id),
	}
	return b, nil
}

// addRow encodes a row of the ledger for its month.
func addRow(ledger map[uint32]*rows, r *row, cluster string, sign int8, batch uint64) {
	out := ledger[r.stopMonth()]
	if out == nil {
		out = &rows{}
		ledger[r.stopMonth()] = out
	}
	out.count++
	out.bytes = r.appendLedgerRow(out.bytes, cluster, sign, batch)
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
