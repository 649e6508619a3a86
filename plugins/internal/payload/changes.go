package payload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Bounds of the changes of one plan; the rest is that of the next ones.
const (
	maxDocuments = 100
	maxText      = 32 << 20
)

// changesPage is an answer of /v1/changes.
type changesPage struct {
	Changes []json.RawMessage `json:"changes"`
	Last    uint64            `json:"last"`
	more    bool
}

// makeChanges hands over the changes behind the last position, in documents of a
// batch each. The first run begins with the first change; the argument after of a
// manual run begins elsewhere.
func (q *Question) makeChanges(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (Delivery, error) {
	var h Delivery
	after, err := lastNumber(start)
	if err != nil {
		return h, err
	}
	for size := 0; ; {
		page, err := changesAfter(ctx, data, after, q.batch)
		if err != nil {
			return h, err
		}
		if len(page.Changes) == 0 && (q.quiet || len(h.Documents) > 0) {
			after = page.Last
			break
		}
		d, err := page.toDocument(start, after)
		if err != nil {
			return h, err
		}
		h.Documents, size, after = append(h.Documents, d), size+len(d.Text), page.Last
		if !page.more {
			break
		}
		if size+sdk.MaxPayload > maxText || len(h.Documents) == maxDocuments {
			h.Notes = append(h.Notes, fmt.Sprintf("there is more behind change %d: it is for the next run", after))
			break
		}
	}
	h.State = strconv.AppendUint(nil, after, 10)
	if len(h.Documents) == 0 {
		h.Notes = append(h.Notes, "no record has changed, so nothing is handed over")
	}
	return h, nil
}

// toDocument makes the document that hands the page over.
func (p *changesPage) toDocument(start sdk.PlanStart, after uint64) (Document, error) {
	d := newDocument(start)
	d.Changes = p.Changes
	text, err := d.jsonText()
	return Document{
		Text: text,
		What: fmt.Sprintf("%d changes, up to number %d", len(p.Changes), p.Last),
		Part: fmt.Sprintf("changes=%d-%d", after+1, p.Last),
	}, err
}

// lastNumber is the number of the last change that was handed over.
func lastNumber(start sdk.PlanStart) (uint64, error) {
	text := string(start.State)
	if given, ok := start.Arguments["after"]; ok {
		text = given
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not the number of a change", text)
	}
	return n, nil
}

// changesAfter reads a page of the feed. One that is too large for a document is
// read again with half as many.
func changesAfter(ctx context.Context, data *sdk.Data, after uint64, limit int) (*changesPage, error) {
	for {
		page, err := readChanges(ctx, data, after, limit)
		if !errors.Is(err, errLarge) || limit == 1 {
			return page, err
		}
		limit /= 2
	}
}

// errLarge says that a page does not fit into a payload.
var errLarge = errors.New("the changes do not fit into a document")

func readChanges(ctx context.Context, data *sdk.Data, after uint64, limit int) (*changesPage, error) {
	body, err := data.Get(ctx, v1.ChangesAddress(&v1.ChangesQuery{After: after, Limit: limit}, ""), "application/json")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(&bounded{body, sdk.MaxPayload - 64<<10}); err != nil {
		return nil, err
	}
	page := &changesPage{}
	if err := json.Unmarshal(text.Bytes(), page); err != nil {
		return nil, fmt.Errorf("the changes: %w", err)
	}
	page.more = len(page.Changes) >= limit
	return page, nil
}

// bounded reads at most so many bytes; more are an error.
type bounded struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLarge
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
