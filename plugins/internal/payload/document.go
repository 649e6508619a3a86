package payload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Format is the version of a document.
const Format = 1

// Delivery is what there is to hand over.
type Delivery struct {
	Documents []Document
	State     []byte // of the plan
	Notes     []string
}

// Document is what is handed over at once.
type Document struct {
	Text []byte
	What string // is in it: "12 rows of usage"; "" when nothing was asked for
	Part string // of a delivery in several documents: "changes=8-1007"
}

// document is the text of a Document.
type document struct {
	Format  int               `json:"format"`
	Now     string            `json:"now"`
	Since   *string           `json:"since"`
	Args    map[string]string `json:"arguments,omitempty"`
	Usage   []json.RawMessage `json:"usage,omitempty"`
	Changes []json.RawMessage `json:"changes,omitempty"`
}

func newDocument(start sdk.PlanStart) *document {
	d := &document{Format: Format, Now: start.Now.UTC().Format(time.RFC3339Nano), Args: start.Arguments}
	if !start.Since.IsZero() {
		since := start.Since.UTC().Format(time.RFC3339Nano)
		d.Since = &since
	}
	return d
}

// jsonText is the document as it is sent, as JSON.
func (d *document) jsonText() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	if b.Len() > sdk.MaxPayload {
		return nil, fmt.Errorf("a document of %d rows has %d bytes; at most %d are allowed: ask for fewer groups or buckets", len(d.Usage)+len(d.Changes), b.Len(), sdk.MaxPayload)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Make reads what there is to hand over.
func (q *Question) Make(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (Delivery, error) {
	switch {
	case q.changes:
		return q.makeChanges(ctx, start, data)
	case q.usage != nil:
		return q.makeUsage(ctx, start, data)
	}
	text, err := newDocument(start).jsonText()
	return Delivery{Documents: []Document{{Text: text}}}, err
}

// usageRow is a row as it is handed over.
type usageRow struct {
	Group    map[string]string      `json:"group"`
	Others   int                    `json:"others,omitempty"`
	Bucket   string                 `json:"bucket,omitempty"`
	From     string                 `json:"from"`
	To       string                 `json:"to"`
	Measures map[string]json.Number `json:"measures"`
}

func (q *Question) makeUsage(ctx context.Context, start sdk.PlanStart, data *sdk.Data) (Delivery, error) {
	d := newDocument(start)
	for row, err := range data.Usage(ctx, q.usage) {
		if err != nil {
			return Delivery{}, err
		}
		text, err := json.Marshal(usageRow{
			Group: row.Group, Others: row.Others, Bucket: row.Bucket, Measures: row.Measures,
			From: row.From.UTC().Format(time.RFC3339Nano), To: row.To.UTC().Format(time.RFC3339Nano),
		})
		if err != nil {
			return Delivery{}, err
		}
		d.Usage = append(d.Usage, text)
	}
	if len(d.Usage) == 0 && q.quiet {
		return Delivery{Notes: []string{"nothing was used, so nothing is handed over"}}, nil
	}
	text, err := d.jsonText()
	return Delivery{Documents: []Document{{Text: text, What: fmt.Sprintf("%d rows of usage", len(d.Usage))}}}, err
}

// maxShow is how much of a document a plan shows.
const maxShow = 16 << 10

// Plan is one effect for each document. Its name begins with name, summary makes its
// one line from what the document has, and about is shown before the text.
func (h *Delivery) Plan(name, about string, summary func(what string) string) sdk.Plan {
	p := sdk.Plan{State: h.State, Notes: h.Notes}
	for i := range h.Documents {
		d := &h.Documents[i]
		e := sdk.Effect{Name: name, Summary: summary(d.What), Payload: d.Text, Show: about + "\n" + string(d.Text[:min(len(d.Text), maxShow)])}
		if d.Part != "" {
			e.Name += " " + d.Part
		}
		p.Effects = append(p.Effects, e)
	}
	return p
}
