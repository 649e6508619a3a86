package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// ErrNotNow is wrapped by errors of [Writer] that say: nothing was written, and a
// later try may succeed.
var ErrNotNow = errors.New("cannot be written now")

// ErrUnknown is what errors of [Writer] are after which no one knows whether the command was
// written. Its text is not part of theirs.
var ErrUnknown = errors.New("outcome unknown")

// writePause is how long a write that cannot be done now waits for the next try.
const writePause = 50 * time.Millisecond

func now() record.Time { return record.FromStd(calendar.Now()) }

// try commits a command and waits while the cluster cannot, as long as patience
// lasts. The error wraps [ErrNotNow] when nothing was written; after any other
// one no one knows.
func (s *Server) try(ctx context.Context, c store.Command) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.Patience)
	defer cancel()
	for {
		result, err := s.opt.Writer.Write(ctx, c)
		if err == nil || !errors.Is(err, ErrNotNow) {
			return result, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(writePause):
		}
	}
}

// write commits a command of AUDITOR's interface. When it could not be committed,
// or no one knows, the connection is broken off.
func (s *Server) write(r *http.Request, c store.Command) any {
	result, err := s.try(r.Context(), c)
	if err != nil {
		s.lost(r, err)
	}
	return result
}

// lost breaks off after a write that was not committed, or perhaps was.
func (s *Server) lost(r *http.Request, err error) {
	s.opt.Log.Warn("a write was not committed; its connection is broken off", "path", r.URL.Path, "error", err)
	breakOff()
}

// odd breaks off after a result that says nothing about what was written.
func (s *Server) odd(r *http.Request, result any) {
	s.opt.Log.Error("unexpected result of a write; its connection is broken off", "path", r.URL.Path, "result", fmt.Sprintf("%T %+v", result, result))
	breakOff()
}

// postRecord is POST /record.
func (s *Server) postRecord(w http.ResponseWriter, r *http.Request) {
	s.body(w, r, func(body []byte) {
		rec, err := new(wire.Lender).Add(body, s.opt.Kinds()) // what it lends is used until the answer
		if err != nil {
			text(w, http.StatusBadRequest, err.Error())
			return
		}
		p := newPost(&rec)
		if p.alone() {
			s.post(w, r, auditor.OneIgnored, func(b *bulk) error { b.add(&rec); return nil })
			return
		}
		switch {
		case !s.queued(r, p):
			empty(w, http.StatusOK)
		case s.opt.IgnoreExisting:
			raw(w, http.StatusOK, []byte(auditor.OneIgnored))
		default:
			auditor.AlreadyExists(w)
		}
	})
}

// queued commits a post with others that come at the same time, and reports whether a record
// of its id was known.
func (s *Server) queued(r *http.Request, p *post) (known bool) {
	ctx, cancel := context.WithTimeout(r.Context(), s.opt.Patience)
	defer cancel()
	known, err := s.queue.add(ctx, p)
	if err != nil {
		s.lost(r, err)
	}
	return known
}

// postRecords is POST /records: all or nothing at any size.
func (s *Server) postRecords(w http.ResponseWriter, r *http.Request) {
	s.body(w, r, func(body []byte) {
		s.post(w, r, auditor.SomeIgnored, func(b *bulk) error {
			var lender wire.Lender
			return lender.Adds(body, s.opt.Kinds(), func(rec record.Record) error {
				b.add(&rec)
				lender.Reset() // of the record, b has its texts
				return nil
			})
		})
	})
}

// post commits the records with which fill fills a bulk and answers what became of them.
func (s *Server) post(w http.ResponseWriter, r *http.Request, ignored string, fill func(*bulk) error) {
	parts, err := s.builders.bulk(fill)
	switch {
	case errors.Is(err, errRecordSize):
		text(w, http.StatusRequestEntityTooLarge, err.Error())
	case err != nil:
		text(w, http.StatusBadRequest, err.Error())
	case len(parts) == 0:
		empty(w, http.StatusOK)
	case len(parts) == 1:
		s.posted(w, r, s.write(r, &store.PostCommand{Rows: parts[0], IgnoreExisting: s.opt.IgnoreExisting, Now: now()}), ignored)
	default:
		s.posted(w, r, s.stage(r, parts), ignored)
	}
}

// posted answers what became of a post.
func (s *Server) posted(w http.ResponseWriter, r *http.Request, result any, ignored string) {
	post, ok := result.(store.PostResult)
	switch {
	case !ok || post.Unknown:
		s.odd(r, result)
	case post.Refused != "":
		text(w, http.StatusBadRequest, post.Refused)
	case len(post.Existing) == 0:
		empty(w, http.StatusOK)
	case s.opt.IgnoreExisting:
		raw(w, http.StatusOK, []byte(ignored))
	default:
		auditor.AlreadyExists(w)
	}
}

// stage commits a post that is larger than one entry: its parts are kept unseen,
// and one last entry makes all of them visible. Parts of a post that is not
// finished are forgotten by the store.
func (s *Server) stage(r *http.Request, parts [][]byte) any {
	var upload store.Upload
	if _, err := rand.Read(upload[:]); err != nil {
		s.odd(r, err)
	}
	for i, rows := range parts {
		s.write(r, &store.StageCommand{Upload: upload, Part: uint32(i), Rows: rows, Now: now()})
	}
	return s.write(r, &store.CommitStageCommand{Upload: upload, Parts: uint32(len(parts)), IgnoreExisting: s.opt.IgnoreExisting, Now: now()})
}

// putRecord is PUT /record: it sets the stop of the shown record.
func (s *Server) putRecord(w http.ResponseWriter, r *http.Request) {
	s.body(w, r, func(body []byte) {
		id, stop, err := wire.DecodeUpdate(body)
		if err != nil {
			text(w, http.StatusBadRequest, err.Error())
			return
		}
		p := newPut(id, stop)
		switch {
		case !s.queued(r, p):
			text(w, http.StatusNotFound, "Updating unknown record "+id+" not possible.")
		case p.archived != "":
			text(w, http.StatusConflict, fmt.Sprintf("Updating record %s not possible: it is in archive %s with another stop; restore the archive first.", id, p.archived))
		default:
			empty(w, http.StatusOK)
		}
	})
}
