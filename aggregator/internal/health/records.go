package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

// RecordFinding is something that people should know of records that are stored: what an
// agent found about those of a source, or what is wrong with those of any origin.
type RecordFinding struct {
	Kind    string    `json:"kind"`
	Source  string    `json:"source"` // agent/type/label, or pushed
	About   string    `json:"about,omitempty"`
	What    string    `json:"what"` // a sentence without a full stop
	Do      string    `json:"do"`
	Count   int64     `json:"count"` // records
	First   time.Time `json:"first"` // earliest and latest time that these records touch
	Last    time.Time `json:"last"`
	Example string    `json:"example"` // id of one of the records
	Noticed time.Time `json:"noticed"` // when the latest of them came
}

// Text says it in one line, without what to do.
func (f *RecordFinding) Text() string {
	const layout = "2006-01-02 15:04"
	return fmt.Sprintf("%s of %s: %s (from %s to %s UTC, for example %s)", plural(int(f.Count), "record", "records"), f.Source, f.What,
		f.First.UTC().Format(layout), f.Last.UTC().Format(layout), f.Example)
}

// Records returns the findings about records, those of agents and those of the store, by
// source.
func (f *Facts) Records() []RecordFinding {
	out := slices.Clone(f.Data.Negative)
	for i := range f.Agents {
		out = append(out, f.Agents[i].Findings...)
	}
	slices.SortStableFunc(out, func(a, b RecordFinding) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.About, b.About))
	})
	return out
}

// checkRecords finds what people should know of stored records.
func (j *judge) checkRecords() {
	list := j.Facts.Records()
	for i := range list {
		f := &list[i]
		out := Finding{Severity: Warning, ID: "records-odd", About: f.Source + " " + f.Kind, Count: f.Count, What: f.Text(), Do: f.Do}
		if f.About != "" {
			out.About += " " + f.About
		}
		if j.Now.Sub(f.Noticed) > oldGap {
			out.Severity = Notice
		}
		j.addFinding(out)
	}
}

// Survey follows the records of a store: which of them stop before they start, since AUDITOR's
// interface takes them and their usage is 0, and what those of a source have in common. It is
// safe for use by many goroutines.
type Survey struct {
	// View opens a view of the store, which is closed again.
	View func() (*store.View, error)
	// Life names the store's history; another one begins at the start.
	Life func(*store.View) (string, error)
	Log  *slog.Logger

	mu      sync.Mutex
	started bool
	life    string
	seq     uint64
	runs    map[uint64]negative // by the number of the row
	common  common

	last atomic.Pointer[surveyed]
}

// surveyed is what the last look found. It is never changed.
type surveyed struct {
	negative []RecordFinding
	common   map[record.Origin]record.Meta
}

// negative is a row that stops before it starts.
type negative struct {
	id          string
	origin      record.Origin
	start, stop record.Time
	changed     record.Time
}

// surveyEvery is how often the store is looked at.
const surveyEvery = 15 * time.Second

// Run follows the store until ctx ends.
func (n *Survey) Run(ctx context.Context) error {
	told := ""
	repeat.Every(ctx, surveyEvery, func() bool {
		if err := n.Follow(ctx); err != nil && ctx.Err() == nil && err.Error() != told {
			n.Log.Error("the records cannot be surveyed", "error", err)
			told = err.Error()
		}
		return true
	})
	return nil
}

// Follow takes in what has changed. After an error it begins at the start.
func (n *Survey) Follow(ctx context.Context) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, err := n.View()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	life, err := n.Life(v)
	if err != nil {
		return err
	}
	if !n.started || life != n.life || v.Seq() < n.seq || n.seq < v.Floor() {
		n.started, n.life, n.seq, n.runs, n.common = true, life, 0, map[uint64]negative{}, common{}
	}
	if v.Seq() == n.seq {
		return nil
	}
	if err := v.Changes(ctx, n.seq, n.surveyBlock, n.surveyRow); err != nil {
		n.started = false // half of the changes may be in it
		return err
	}
	n.seq = v.Seq()
	n.last.Store(&surveyed{n.negativeFindings(), maps.Clone(n.common)})
	return nil
}

func (n *Survey) surveyBlock(b *columns.Block, rows, shown columns.Mask) error {
	if err := n.common.addBlock(b, shown); err != nil {
		return err
	}
	supersedes, err := b.Supersedes()
	if err != nil {
		return err
	}
	if len(n.runs) > 0 {
		for i := range rows.Rows() {
			delete(n.runs, supersedes[i])
		}
	}
	starts, err := b.Starts()
	if err != nil {
		return err
	}
	stops, err := b.Stops()
	if err != nil {
		return err
	}
	for i := range shown.Rows() {
		if stops[i] == record.None || stops[i] >= starts[i] {
			continue
		}
		row, err := b.Row(i)
		if err != nil {
			return err
		}
		n.addNegative(&row)
	}
	return nil
}

func (n *Survey) surveyRow(row *columns.Row, shown bool) error {
	delete(n.runs, row.Supersedes)
	if shown {
		n.common.addMeta(row.Origin, row.Record.Meta)
	}
	if stop := row.ShownStop(); shown && stop != record.None && stop < row.Record.Start {
		n.addNegative(row)
	}
	return nil
}

func (n *Survey) addNegative(row *columns.Row) {
	n.runs[row.Seq] = negative{id: row.Record.ID, origin: row.Origin, start: row.Record.Start, stop: row.ShownStop(), changed: row.Changed}
}

// maxNegativeSources is how many sources have a finding of their own.
const maxNegativeSources = 32

// List returns a finding for each source that has records which stop before they start, as of
// when the store was last looked at; none before the first look. It does not wait for one, which
// takes seconds after a start.
func (n *Survey) List() []RecordFinding {
	if last := n.last.Load(); last != nil {
		return slices.Clone(last.negative)
	}
	return nil
}

// Common returns, for each source, the keys that the metas of all of its records have with the
// same values, likewise. The caller must not change it.
func (n *Survey) Common() map[record.Origin]record.Meta {
	if last := n.last.Load(); last != nil {
		return last.common
	}
	return nil
}

// negativeFindings returns a finding for each source that has such records.
func (n *Survey) negativeFindings() []RecordFinding {
	by := map[string]*RecordFinding{}
	for _, r := range n.runs {
		source := r.origin.String()
		f := by[source]
		if f == nil {
			f = &RecordFinding{
				Kind: "stop-before-start", Source: source, What: "the stop is before the start, so the usage counts as 0",
				First: r.stop.Std(), Last: r.start.Std(), Example: r.id,
			}
			by[source] = f
		}
		f.Count++
		f.Example = min(f.Example, r.id)
		f.First, f.Last, f.Noticed = earlier(f.First, r.stop.Std()), later(f.Last, r.start.Std()), later(f.Noticed, r.changed.Std())
	}
	out := []RecordFinding{}
	for _, f := range by {
		f.Do = "bursar records -id " + f.Example + "   # then correct the times where the record comes from"
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b RecordFinding) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Source, b.Source))
	})
	return out[:min(len(out), maxNegativeSources)]
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
