package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bursar-accounting/bursar/proto/wire"
)

// changeDecoder makes rows of lines of the ledger of changes. What a row has is a copy: of
// texts that come again and again there is one.
type changeDecoder struct {
	layout *layout
	lender wire.Lender
	texts  map[string]string
}

func newChangeDecoder(l *layout) *changeDecoder {
	return &changeDecoder{layout: l, texts: map[string]string{}}
}

// decodeChange returns the row that a change adds, nil for none, and what it supersedes. That
// may be in an archive by now, so the table and not the feed says which row it is.
func (d *changeDecoder) decodeChange(line []byte) (*row, wire.Former, error) {
	d.lender.Reset()
	c, err := d.lender.Change(line)
	if err == nil && c.Shown && c.Record.Open() {
		err = errors.New("an open record is not in the ledger")
	}
	if err != nil {
		return nil, wire.Former{}, fmt.Errorf("change %d: record %q: %w", c.Seq, c.ID, err)
	}
	if !c.Shown {
		return nil, c.Former, nil
	}
	r := d.layout.rowOf(&c.Record, c.Seq)
	r.id, r.site, r.state = strings.Clone(r.id), d.ownText(r.site), d.ownText(r.state)
	for i, v := range r.dimensions {
		r.dimensions[i] = d.ownText(v)
	}
	return &r, c.Former, nil
}

// ownText returns a copy of a text, the same one for the same text.
func (d *changeDecoder) ownText(text string) string {
	own, ok := d.texts[text]
	if !ok {
		own = strings.Clone(text)
		d.texts[own] = own
	}
	return own
}
