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

func clockNow() record.Time { return record.FromStd(calendar.Now()) }

// tryCommit commits a command and waits while the cluster cannot, as long as patience
// lasts. The error wraps [ErrNotNow] when nothing was written; after any other
// one no one knows.
func (s *Server) tryCommit(ctx context.Context, c store.Command) (any, error) {
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

// commitOrBreakOff commits a command of AUDITOR's interface. When it could not be committed,
// or no one knows, the connection is broken off.
func (s *Server) commitOrBreakOff(r *http.Request, c store.Command) any {
	result, err := s.tryCommit(r.Context(), c)
	if err != nil {
		s.breakOffLost(r, err)
	}
	return result
}

// breakOffLost breaks off after a write that was not committed, or perhaps was.
func (s *Server) breakOffLost(r *http.Request, err error) {
	s.opt.Log.Warn("a write was not committed; its connection is broken off", "path", r.URL.Path, "error", err)
	breakOff()
}

// breakOffUnexpected breaks off after a result that says nothing about what was written.
func (s *Server) breakOffUnexpected(r *http.Request, result any) {
	s.opt.Log.Error("unexpected result of a write; its connection is broken off", "path", r.URL.Path, "result", fmt.Sprintf("%T %+v", result, result))
	breakOff()
}

// postRecord is POST /record.
func (s *Server) postRecord(w http.ResponseWriter, r *http.Request) {
	s.readBody(w, r, func(body []byte) {
		rec, err := new(wire.Lender).Add(body, s.opt.Kinds()) // what it lends is used until the answer
		if err != nil {
			answerText(w, http.StatusBadRequest, err.Error())
			return
		}
		p := newPost(&rec)
		if p.exceedsGroup() {
			s.commitBulk(w, r, auditor.OneIgnored, func(b *bulk) error { b.addRecord(&rec); return nil })
			return
		}
		switch {
		case !s.commitQueued(r, p):
			answerEmpty(w, http.StatusOK)
		case s.opt.IgnoreExisting:
			answerRawJSON(w, http.StatusOK, []byte(auditor.OneIgnored))
		default:
			auditor.AlreadyExists(w)
		}
	})
}

// commitQueued commits a post with others that come at the same time, and reports whether a record
// of its id was known.
func (s *Server) commitQueued(r *http.Request, p *post) (known bool) {
	ctx, cancel := context.WithTimeout(r.Context(), s.opt.Patience)
	defer cancel()
	known, err := s.queue.commitPost(ctx, p)
	if err != nil {
		s.breakOffLost(r, err)
	}
	return known
}

// postRecords is POST /records: all or nothing at any size.
func (s *Server) postRecords(w http.ResponseWriter, r *http.Request) {
	s.readBody(w, r, func(body []byte) {
		s.commitBulk(w, r, auditor.SomeIgnored, func(b *bulk) error {
			var lender wire.Lender
			return lender.Adds(body, s.opt.Kinds(), func(rec record.Record) error {
				b.addRecord(&rec)
				lender.Reset() // of the record, b has its texts
				return nil
			})
		})
	})
}

// commitBulk commits the records with which fill fills a bulk and answers what became of them.
func (s *Server) commitBulk(w http.ResponseWriter, r *http.Request, ignored string, fill func(*bulk) error) {
	parts, err := s.builders.buildBatches(fill)
	switch {
	case errors.Is(err, errRecordSize):
		answerText(w, http.StatusRequestEntityTooLarge, err.Error())
	case err != nil:
		answerText(w, http.StatusBadRequest, err.Error())
	case len(parts) == 0:
		answerEmpty(w, http.StatusOK)
	case len(parts) == 1:
		s.answerPost(w, r, s.commitOrBreakOff(r, &store.PostCommand{Rows: parts[0], IgnoreExisting: s.opt.IgnoreExisting, Now: clockNow()}), ignored)
	default:
		s.answerPost(w, r, s.commitStaged(r, parts), ignored)
	}
}

// answerPost answers what became of a post.
func (s *Server) answerPost(w http.ResponseWriter, r *http.Request, result any, ignored string) {
	post, ok := result.(store.PostResult)
	switch {
	case !ok || post.Unknown:
		s.breakOffUnexpected(r, result)
	case post.Refused != "":
		answerText(w, http.StatusBadRequest, post.Refused)
	case len(post.Existing) == 0:
		answerEmpty(w, http.StatusOK)
	case s.opt.IgnoreExisting:
		answerRawJSON(w, http.StatusOK, []byte(ignored))
	default:
		auditor.AlreadyExists(w)
	}
}

// commitStaged commits a post that is larger than one entry: its parts are kept unseen,
// and one last entry makes all of them visible. Parts of a post that is not
// finished are forgotten by the store.
func (s *Server) commitStaged(r *http.Request, parts [][]byte) any {
	var upload store.Upload
	if _, err := rand.Read(upload[:]); err != nil {
		s.breakOffUnexpected(r, err)
	}
	for i, rows := range parts {
		s.commitOrBreakOff(r, &store.StageCommand{Upload: upload, Part: uint32(i), Rows: rows, Now: clockNow()})
	}
	return s.commitOrBreakOff(r, &store.CommitStageCommand{Upload: upload, Parts: uint32(len(parts)), IgnoreExisting: s.opt.IgnoreExisting, Now: clockNow()})
}

// putRecord is PUT /record: it sets the stop of the shown record.
func (s *Server) putRecord(w http.ResponseWriter, r *http.Request) {
	s.readBody(w, r, func(body []byte) {
		id, stop, err := wire.DecodeUpdate(body)
		if err != nil {
			answerText(w, http.StatusBadRequest, err.Error())
			return
		}
		p := newPut(id, stop)
		switch {
		case !s.commitQueued(r, p):
			answerText(w, http.StatusNotFound, "Updating unknown record "+id+" not possible.")
		case p.archived != "":
			answerText(w, http.StatusConflict, fmt.Sprintf("Updating record %s not possible: it is in archive %s with another stop; restore the archive first.", id, p.archived))
		default:
			answerEmpty(w, http.StatusOK)
		}
	})
}
