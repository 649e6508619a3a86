package api

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// ErrNotNow is wrapped by errors of [Writer] that say: nothing was written, and a
// later try may succeed.
var ErrNotNow = errors.New("cannot be written now")

// The bodies of AUDITOR's answers, which its clients compare byte by byte.
const (
	recordExists    = "RECORD_EXISTS"
	unexpectedError = "UNEXPECTED_ERROR"
	oneIgnored      = `{"warning":"Record already exists, but the error was ignored due to AUDITOR configuration."}`
	someIgnored     = `{"warning":"One or more records already exist, but the error was ignored due to AUDITOR configuration."}`
)

func now() record.Time { return record.FromStd(time.Now()) }

// write commits a command and waits while the cluster cannot. When it could not
// be committed, or nobody knows, the connection is broken off.
func (s *Server) write(r *http.Request, c store.Command) any {
	ctx, cancel := context.WithTimeout(r.Context(), s.opt.Patience)
	defer cancel()
	for {
		result, err := s.opt.Writer.Write(ctx, c)
		if err == nil {
			return result
		}
		if !errors.Is(err, ErrNotNow) || ctx.Err() != nil {
			s.opt.Log.Warn("a write was not committed; the client's connection is broken off", "path", r.URL.Path, "error", err)
			breakOff()
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// postRecord is POST /record.
func (s *Server) postRecord(w http.ResponseWriter, r *http.Request) {
	s.body(w, r, func(body []byte) {
		rec, err := wire.DecodeAdd(body)
		if err != nil {
			text(w, http.StatusBadRequest, err.Error())
			return
		}
		b := columns.NewBuilder()
		b.Add(row(rec))
		s.posted(w, s.write(r, &store.PostCommand{Rows: b.Bytes(), IgnoreExisting: s.opt.IgnoreExisting, Now: now()}), oneIgnored)
	})
}

func row(r record.Record) *columns.Row {
	return &columns.Row{Record: r, Rank: record.RankPush, Stop: record.None}
}

// posted answers what became of a post.
func (s *Server) posted(w http.ResponseWriter, result any, ignored string) {
	post, ok := result.(store.PostResult)
	switch {
	case !ok || post.Unknown || post.Refused != "":
		s.opt.Log.Error("unexpected result of a post", "result", result)
		bare(w, http.StatusInternalServerError, unexpectedError)
	case len(post.Existing) == 0:
		empty(w, http.StatusOK)
	case s.opt.IgnoreExisting:
		w.Header().Set("Content-Type", "application/json")
		bare(w, http.StatusOK, ignored)
	default:
		bare(w, http.StatusInternalServerError, recordExists)
	}
}

// postRecords is POST /records: all or nothing at any size.
func (s *Server) postRecords(w http.ResponseWriter, r *http.Request) {
	s.body(w, r, func(body []byte) {
		parts, err := split(body)
		if err != nil {
			text(w, http.StatusBadRequest, err.Error())
			return
		}
		switch len(parts) {
		case 0:
			empty(w, http.StatusOK)
		case 1:
			s.posted(w, s.write(r, &store.PostCommand{Rows: parts[0], IgnoreExisting: s.opt.IgnoreExisting, Now: now()}), someIgnored)
		default:
			s.posted(w, s.stage(r, parts), someIgnored)
		}
	})
}

// split decodes a bulk and cuts it into batches that fit into an entry.
func split(body []byte) (parts [][]byte, err error) {
	b := columns.NewBuilder()
	flush := func() {
		parts = append(parts, b.Bytes())
		b.Reset()
	}
	err = wire.DecodeAdds(body, func(rec record.Record) error {
		if b.Len() > 0 && (b.Full() || b.Size()+sizeOf(&rec) > columns.MaxBatch) {
			flush()
		}
		b.Add(row(rec))
		return nil
	})
	if err == nil && b.Len() > 0 {
		flush()
	}
	return parts, err
}

// sizeOf is an upper bound of what the record's texts add to a batch.
func sizeOf(r *record.Record) int {
	n := len(r.ID) + 128
	for i := range r.Meta {
		n += len(r.Meta[i].Key) + 16
		for _, v := range r.Meta[i].Values {
			n += len(v) + 16
		}
	}
	for i := range r.Components {
		n += len(r.Components[i].Name) + 32
		for _, s := range r.Components[i].Scores {
			n += len(s.Name) + 32
		}
	}
	return n
}

// stage commits a post that is larger than one entry: its parts are kept unseen,
// and one last entry makes all of them visible.
func (s *Server) stage(r *http.Request, parts [][]byte) any {
	var upload store.Upload
	if _, err := rand.Read(upload[:]); err != nil {
		s.opt.Log.Error("no random numbers", "error", err)
		breakOff()
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
		result, ok := s.write(r, &store.PutStopCommand{ID: id, Stop: stop, Now: now()}).(store.PutResult)
		switch {
		case !ok:
			bare(w, http.StatusInternalServerError, unexpectedError)
		case !result.Found:
			text(w, http.StatusNotFound, "Updating unknown record "+id+" not possible.")
		default:
			empty(w, http.StatusOK)
		}
	})
}

// pathID returns what stands behind /record/, percent-decoded.
func pathID(r *http.Request) (string, error) {
	return url.PathUnescape(r.URL.EscapedPath()[len("/record/"):])
}
