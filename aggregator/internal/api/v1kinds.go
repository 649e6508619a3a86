package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

const (
	// kindsAtOnce is how many records one request corrects.
	kindsAtOnce = 5000
	// kindsBytes is how many bytes of records one command carries, and kindsMost how many
	// records.
	kindsBytes = 128 << 10
	kindsMost  = 500
)

// v1Kinds is GET /v1/kinds: the components of pushed records that are stored with
// another kind than the configuration says.
func (s *Server) v1Kinds(w http.ResponseWriter, r *http.Request, view *access.View) error {
	kinds, records := s.opt.Kinds(), 0
	found := map[v1.Kind]int{}
	count := func(body *record.Record) {
		records++
		for i := range body.Components {
			c := &body.Components[i]
			if kind, named := kinds[c.Name]; named && kind != c.Kind {
				found[v1.Kind{Component: c.Name, Stored: c.Kind.String(), Kind: kind.String()}]++
			}
		}
	}
	err := errors.Join(
		eachPushedMismatch(r.Context(), view, kinds, 0, func(row *columns.Row) error { count(&row.Record); return nil }),
		eachHiddenMismatch(view, kinds, func(e *record.Entry) error { count(e.Holding(record.Pushed).Record); return nil }),
	)
	if err != nil {
		return err
	}
	list := []v1.Kind{}
	for of, n := range found {
		of.Records = n
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b v1.Kind) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Stored, b.Stored))
	})
	s.extendWrite(w)
	answerJSON(w, http.StatusOK, v1.Kinds{Records: records, Kinds: list})
	return nil
}

// v1KindsRepair is POST /v1/kinds:repair: it corrects some of what GET /v1/kinds
// counts, from a change on.
func (s *Server) v1KindsRepair(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	q, err := decodeQuery[v1.RepairKindsQuery](r)
	if err != nil {
		return err
	}
	after, c, kinds := q.After, corrections{server: s, ctx: r.Context()}, s.opt.Kinds()
	more := false
	err = eachPushedMismatch(r.Context(), view, kinds, after, func(row *columns.Row) error {
		if more = c.seen == kindsAtOnce; more {
			return errEnough
		}
		after = row.Seq
		e, err := view.Entry(row.Record.ID)
		if err != nil {
			return err
		}
		return c.addEntry(&e, kinds)
	})
	if err == nil {
		err = eachHiddenMismatch(view, kinds, func(e *record.Entry) error { return c.addEntry(e, kinds) })
	}
	if err == nil || errors.Is(err, errEnough) {
		err = c.commitWrites()
	}
	if err != nil {
		return err
	}
	s.extendWrite(w)
	answerJSON(w, http.StatusOK, v1.KindsRepair{Repaired: c.changed, After: after, More: more})
	return nil
}

// eachPushedMismatch calls yield with the rows of clients, in the order of their changes, of which
// a component has another kind than kinds says.
func eachPushedMismatch(ctx context.Context, view *access.View, kinds record.Kinds, after uint64, yield func(*columns.Row) error) error {
	return view.Query(ctx, store.Query{Origin: &record.Origin{}, After: after, Order: store.BySeq}, func(row *columns.Row) error {
		if _, wrong := kinds.Apply(&row.Record); !wrong {
			return nil
		}
		return yield(row)
	})
}

// eachHiddenMismatch is the same for what clients pushed and another origin is shown for.
func eachHiddenMismatch(view *access.View, kinds record.Kinds, yield func(*record.Entry) error) error {
	return view.Held(func(e *record.Entry) error {
		h, best := e.Holding(record.Pushed), e.Best()
		if h == nil || h.Record == nil || best == nil || best.Origin.IsPushed() {
			return nil
		}
		if _, wrong := kinds.Apply(h.Record); !wrong {
			return nil
		}
		return yield(e)
	})
}

// corrections gathers corrected records into commands.
type corrections struct {
	server  *Server
	ctx     context.Context
	writes  []record.Write
	size    int
	seen    int // entries that were added
	changed int // of these, by the store's word
}

// addEntry takes in what e shows of clients with the kinds in the place of its own.
func (c *corrections) addEntry(e *record.Entry, kinds record.Kinds) error {
	h := e.Holding(record.Pushed)
	if h == nil || h.Record == nil {
		return nil
	}
	c.seen++
	right, wrong := kinds.Apply(h.Record)
	if !wrong {
		return nil
	}
	write, ok := e.Correction(&right)
	if !ok {
		return fmt.Errorf("record %s was observed at the earliest possible time, so that no version can precede it", e.ID)
	}
	c.writes, c.size = append(c.writes, write), c.size+sizeOf(&right)
	if c.size < kindsBytes && len(c.writes) < kindsMost {
		return nil
	}
	return c.commitWrites()
}

func (c *corrections) commitWrites() error {
	if len(c.writes) == 0 {
		return nil
	}
	result, err := c.server.commitResult(c.ctx, &store.CorrectCommand{Writes: c.writes, Now: clockNow()})
	if err != nil {
		return err
	}
	if done, ok := result.(store.DeleteResult); ok {
		c.changed += done.Changed
	}
	c.writes, c.size = nil, 0
	return nil
}
