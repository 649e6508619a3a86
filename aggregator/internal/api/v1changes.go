package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// beginAnew is what a reader of the ledger does whose cursor counts no more.
const beginAnew = "ask for ledger=true without a cursor, and replace what you have of this cluster by the answers"

// v1Changes is GET /v1/changes: the change feed behind after, tombstones included, and the
// position to ask from next; or the ledger of closed records, by cursor.
func (s *Server) v1Changes(w http.ResponseWriter, r *http.Request, view *access.View) error {
	ask, err := parseChanges(r)
	if err != nil {
		return err
	}
	epoch, err := view.Epoch(archive.Epoch)
	if err != nil {
		return err
	}
	cluster, _ := view.Cluster()
	head, err := json.Marshal(map[string]string{"cluster": cluster, "epoch": epoch})
	if err != nil {
		return err
	}
	f := ask.plainFeed(view)
	switch {
	case ask.ledger:
		if f, err = ask.ledgerFeed(view, epoch); err != nil {
			return err
		}
	case ask.after > view.Seq():
		return newRefusal(http.StatusBadRequest, "after is %d, but the feed ends at %d: the position is not of this cluster", ask.after, view.Seq())
	}
	if ask.format == "ndjson" {
		return s.changeLines(w, r, head, &f)
	}
	body := append(head[:len(head)-1], `,"changes":[`...)
	room := newPageRoom(r, ask.limit)
	begun := len(body)
	err = f.eachChange(r.Context(), func(now, former *columns.Row) error {
		if err := room.grow(len(body)); err != nil {
			return err
		}
		if len(body) > begun {
			body = append(body, ',')
		}
		body = f.appendChange(body, now, former)
		return nil
	})
	if err != nil {
		return err
	}
	body = append(body, `],`...)
	body = append(f.appendPosition(body), "}\n"...)
	room.shrink(len(body))
	answerRawJSON(w, http.StatusOK, body)
	return nil
}

// changeLines streams a line about the cluster, one for each change, and the position last:
// an answer without it is not whole.
func (s *Server) changeLines(w http.ResponseWriter, r *http.Request, head []byte, f *changeFeed) error {
	out := newStream(w, r, "application/x-ndjson")
	out.buf = append(head, '\n')
	out.lease.Also(streamBytes)
	err := f.eachChange(r.Context(), func(now, former *columns.Row) error {
		if out.buf = append(f.appendChange(out.buf, now, former), '\n'); len(out.buf) < pieceSize {
			return nil
		}
		return out.flush()
	})
	if err == nil {
		out.buf = append(f.appendPosition(append(out.buf, '{')), "}\n"...)
		err = out.flush()
	}
	return s.endStream(r, out, err)
}

// changesAsk is a query of /v1/changes.
type changesAsk struct {
	after  uint64
	limit  int // 0 is none
	format string
	ledger bool
	cursor *ledgerCursor // nil at the beginning
	until  *uint64
}

// parseChanges reads a query of /v1/changes. It has no filters: a feed that
// passes one over would have holes.
func parseChanges(r *http.Request) (a changesAsk, err error) {
	in, err := decodeQuery[struct {
		v1.ChangesQuery
		Format string `query:"format" enum:"json,ndjson"`
	}](r)
	if err != nil {
		return a, err
	}
	a = changesAsk{after: in.After, limit: in.Limit, format: in.Format, ledger: in.Ledger != nil && *in.Ledger, until: in.Until}
	if a.format == "" && formatOf(r.Header.Get("Accept")) == "ndjson" {
		a.format = "ndjson"
	}
	if a.format != "ndjson" {
		a.format, a.limit = "json", cmp.Or(a.limit, defaultPage)
	}
	if in.Cursor != "" {
		if a.cursor, err = decodeLedgerCursor(in.Cursor); err != nil {
			return a, err
		}
		a.ledger = true
	}
	switch {
	case a.ledger && a.after > 0:
		return a, newRefusal(http.StatusBadRequest, "after cannot be combined with ledger or cursor; use cursor with the next of the former answer")
	case !a.ledger && a.until != nil:
		return a, newRefusal(http.StatusBadRequest, "until is only allowed with ledger=true or a cursor")
	}
	return a, nil
}

// changeFeed is what is answered.
type changeFeed struct {
	limit  int
	read   func(ctx context.Context, yield func(now, former *columns.Row) error) error
	cursor *ledgerCursor // of the ledger; it moves on with the changes
	last   uint64        // of the answer when it is whole
	full   bool          // there may be more up to last
}

var errPageFull = errors.New("the page is full")

// eachChange calls yield with at most limit changes, and finds the position behind them.
func (f *changeFeed) eachChange(ctx context.Context, yield func(now, former *columns.Row) error) error {
	n, last := 0, uint64(0)
	err := f.read(ctx, func(now, former *columns.Row) error {
		if err := yield(now, former); err != nil {
			return err
		}
		last = now.Seq
		if n++; n == f.limit {
			return errPageFull
		}
		return nil
	})
	if errors.Is(err, errPageFull) {
		f.last, f.full, err = last, true, nil
	}
	return err
}

// appendChange appends {"seq":…,"record_id":…,"record":…}; record is null when the id shows nothing any
// more. In the ledger there is what the change supersedes, or null.
func (f *changeFeed) appendChange(b []byte, now, former *columns.Row) []byte {
	b = strconv.AppendUint(append(b, `{"seq":`...), now.Seq, 10)
	id, _ := json.Marshal(now.Record.ID) // a string always has a JSON text
	b = append(append(b, `,"record_id":`...), id...)
	b = appendRowOrNull(append(b, `,"record":`...), now)
	if f.cursor != nil {
		b = appendRowOrNull(append(b, `,"supersedes":`...), former)
	}
	return append(b, '}')
}

func appendRowOrNull(b []byte, row *columns.Row) []byte {
	if row == nil || row.Tombstone {
		return append(b, "null"...)
	}
	return row.AppendV1(b)
}

// appendPosition appends the position to ask from next.
func (f *changeFeed) appendPosition(b []byte) []byte {
	b = strconv.AppendUint(append(b, `"last":`...), f.last, 10)
	if f.cursor == nil {
		return b
	}
	next := *f.cursor
	next.At = f.last
	b = strconv.AppendBool(append(b, `,"more":`...), f.full)
	return strconv.AppendQuote(append(b, `,"next":`...), next.encodeLedgerCursor())
}

// plainFeed is the feed of what each id shows now.
func (a *changesAsk) plainFeed(view *access.View) changeFeed {
	q := store.Query{Order: store.BySeq, Tombstones: true, Limit: a.limit, ReuseRows: true, After: a.after}
	return changeFeed{limit: a.limit, last: view.Seq(), read: func(ctx context.Context, yield func(now, former *columns.Row) error) error {
		return view.Query(ctx, q, func(row *columns.Row) error { return yield(row, nil) })
	}}
}

// ledgerCursor is a place in a part of the ledger. The reader has the records of the change
// From, and of the part up to To the changes up to At.
type ledgerCursor struct {
	Epoch        string
	Rows         string `json:",omitempty"` // the fingerprint of the reader's filter
	From, To, At uint64
}

func (c *ledgerCursor) encodeLedgerCursor() string {
	text, _ := json.Marshal(c) // has only texts and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeLedgerCursor(s string) (*ledgerCursor, error) {
	c := &ledgerCursor{}
	text, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil || c.From > c.At || c.At > c.To {
		return nil, newRefusal(http.StatusBadRequest, "invalid cursor: use next of the former answer as it was given")
	}
	return c, nil
}

// ledgerFeed is the rest of the part of the cursor or, behind it, the part from there to now.
func (a *changesAsk) ledgerFeed(view *access.View, epoch string) (changeFeed, error) {
	rows := view.Fingerprint()
	c := ledgerCursor{Epoch: epoch, Rows: rows}
	if a.cursor != nil {
		c = *a.cursor
	}
	switch {
	case c.Epoch != epoch:
		return changeFeed{}, newRefusal(http.StatusGone, "the cursor is of the epoch %q, and the cluster is in %q: it was rebuilt or restored; %s", c.Epoch, epoch, beginAnew)
	case c.Rows != rows:
		return changeFeed{}, newRefusal(http.StatusGone, "the records that you may see have changed since the cursor was given; %s", beginAnew)
	}
	if c.At == c.To {
		c.From, c.To = c.To, view.Seq()
		if a.until != nil && *a.until < c.To {
			c.To = *a.until
		}
		if c.To < c.From {
			return changeFeed{}, newRefusal(http.StatusBadRequest, "until is %d, and the cursor is at %d already; use a later change", c.To, c.From)
		}
	}
	part := store.LedgerPart{From: c.From, To: c.To, After: c.At}
	return changeFeed{limit: a.limit, last: c.To, cursor: &c, read: func(ctx context.Context, yield func(now, former *columns.Row) error) error {
		return view.Ledger(ctx, part, yield)
	}}, nil
}

// v1ChangesDigest is GET /v1/changes/digest.
func (s *Server) v1ChangesDigest(w http.ResponseWriter, r *http.Request, view *access.View) error {
	epoch, err := view.Epoch(archive.Epoch)
	if err != nil {
		return err
	}
	list, err := view.Digests(r.Context())
	if err != nil {
		return err
	}
	cluster, _ := view.Cluster()
	out := v1.ChangesDigest{Cluster: cluster, Epoch: epoch, Last: view.Seq(), Digests: []v1.Digest{}}
	for i := range list {
		d := &list[i]
		line := v1.Digest{Site: v1.Text(d.Site), Month: v1.Text(d.Month), Records: d.Records}
		if d.Month != "" {
			line.CoreSeconds = v1.Text(d.CoreSeconds.AppendDecimal(nil))
		}
		out.Digests = append(out.Digests, line)
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}
