package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Ledger calls yield with the changes of a part of the ledger as [store.View.Ledger] does,
// for the rows that the principal sees: a record that leaves them is a tombstone with what it
// was, one that comes to them has no former. The error wraps [store.ErrArchived] where the row
// filter is about keys that left with an archive.
func (v *View) Ledger(ctx context.Context, p store.LedgerPart, yield func(now, former *columns.Row) error) error {
	if err := v.ledgerKeys(); err != nil {
		return err
	}
	if pseudonyms, seen := v.pseudonyms, yield; pseudonyms != nil {
		yield = func(now, former *columns.Row) error {
			return seen(pseudonyms.maskRow(now), pseudonyms.maskRow(former))
		}
	}
	if v.who.Rows.All() {
		return v.view.Ledger(ctx, p, yield)
	}
	return v.view.Ledger(ctx, p, func(now, former *columns.Row) error {
		if former != nil && !v.who.Rows.hasMeta(former.Record.Meta) {
			former = nil
		}
		if !now.Tombstone && !v.who.Rows.hasMeta(now.Record.Meta) {
			left := &columns.Row{Seq: now.Seq, Tombstone: true, Changed: now.Changed}
			left.Record.ID = now.Record.ID
			now = left
		}
		if now.Tombstone && former == nil {
			return nil
		}
		return yield(now, former)
	})
}

// Digests returns the digests of the records that the principal sees. Errors are those of
// Ledger.
func (v *View) Digests(ctx context.Context) ([]sums.Digest, error) {
	if err := v.ledgerKeys(); err != nil {
		return nil, err
	}
	return sums.Digests(ctx, v.view, v.who.Rows.allowedTests())
}

// OpenRuns calls yield with each record that goes on and the time up to which it counts at now,
// as usage has it, and returns their digests.
func (v *View) OpenRuns(ctx context.Context, now record.Time, yield func(row *columns.Row, end record.Time) error) ([]sums.Digest, error) {
	if err := v.ledgerKeys(); err != nil {
		return nil, err
	}
	ends, err := sums.ReadOpenEnds(v.view)
	if err != nil {
		return nil, err
	}
	var d sums.OpenDigester
	err = v.Query(ctx, store.Query{Order: store.BySeq, Open: store.OnlyOpen, Details: true, ReuseRows: true}, func(row *columns.Row) error {
		end := ends.EndOf(row.Record.Start, now, row.Origin)
		d.AddRow(row, end)
		return yield(row, end)
	})
	return d.Digests(), err
}

// ledgerKeys returns an error when the principal reads no records, or when the row filter
// cannot be applied to all of them.
func (v *View) ledgerKeys() error {
	if err := v.requireRows(); err != nil {
		return err
	}
	var keys []string
	for _, tests := range v.who.Rows.some {
		for i := range tests {
			keys = append(keys, tests[i].Key)
		}
	}
	return v.view.HasKeys(math.MinInt64, math.MaxInt64, keys...)
}

// Epoch names the history that the view is the present of, as name reads it. Whoever reads
// records may know it.
func (v *View) Epoch(name func(*store.View) (string, error)) (string, error) {
	if err := v.requireRows(); err != nil {
		return "", err
	}
	return name(v.view)
}

// Fingerprint tells apart what principals see: other rows, or pseudonyms in the place of names,
// have another one.
func (v *View) Fingerprint() string {
	if v.who.Pseudonyms {
		return "pseudonyms " + v.who.Rows.fingerprint()
	}
	return v.who.Rows.fingerprint()
}

// fingerprint tells filters apart: another filter has another one.
func (r Rows) fingerprint() string {
	if r.all {
		return ""
	}
	text, _ := json.Marshal(r.some) // has only texts
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
