package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// An import is an agent that pushes instead of being pulled from: it has a name,
// an origin and a cursor like any other, so what it brings is committed by the
// same command, counted by the same counters and in order. Its epoch is of this
// import alone and begins with [store.ImportMark], by which no import takes the place of
// an agent that is pulled from.

// maxChunk bounds a chunk on its way, in bytes.
const maxChunk = frame.MaxBody + 1<<10

// importRoutes returns the routes of imports.
func (s *Server) importRoutes() []route {
	return []route{
		{http.MethodPost, "/v1/imports/{name}", s.withView(s.v1ImportBegin)},
		{http.MethodPost, "/v1/imports/{name}/{epoch}", s.withView(s.v1ImportChunk)},
	}
}

// v1ImportBegin is POST /v1/imports/{name}: it begins an import, which ends the
// one of that name before it.
func (s *Server) v1ImportBegin(w http.ResponseWriter, r *http.Request, view *access.View) error {
	name := r.PathValue("name")
	cursor, err := s.importCursor(r.Context(), view, name)
	if err != nil {
		return err
	}
	var epoch store.Epoch
	copy(epoch[:], store.ImportMark)
	if _, err := rand.Read(epoch[len(store.ImportMark):]); err != nil {
		return err
	}
	_, err = s.commitIngest(r.Context(), &store.IngestCommand{
		Agent: name, Epoch: epoch, From: 1, Now: clockNow(),
		Begin: &store.Begin{Replaces: cursor.Epoch, ReplacesSeq: cursor.Seq, ReplacesDigest: cursor.Digest},
	})
	if err != nil {
		return err
	}
	s.opt.Log.Info("an import begins", "name", name, "by", callerName(r))
	out := v1.Import{Name: name, Epoch: hex.EncodeToString(epoch[:]), Observed: cursor.Observed}
	if store.IsImport(cursor.Epoch) {
		out.Previous, out.PreviousFrames = hex.EncodeToString(cursor.Epoch[:]), int64(cursor.Seq)
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// importCursor returns the cursor of an import of that name, unless the name is
// that of an agent.
func (s *Server) importCursor(ctx context.Context, view *access.View, name string) (store.Cursor, error) {
	if s.opt.Cut == nil {
		return store.Cursor{}, newRefusal(http.StatusNotFound, "nothing can be imported here")
	}
	if err := identity.CheckName(name); err != nil {
		return store.Cursor{}, newRefusal(http.StatusBadRequest, "the name of the import: %v", err)
	}
	cursor, err := cursorOf(view, name)
	if err != nil {
		return cursor, err
	}
	pulls, err := s.pullStatus(ctx)
	if err != nil {
		return cursor, newRetryableRefusal("nothing was done: %v", err)
	}
	configured := slices.ContainsFunc(pulls, func(a AgentStatus) bool { return a.Name == name })
	if configured || cursor.Epoch != (store.Epoch{}) && !store.IsImport(cursor.Epoch) {
		return cursor, newRefusal(http.StatusConflict, "%s is an agent, so an import cannot have its name; choose another one", name)
	}
	return cursor, nil
}

// cursorOf returns the cursor of that name, the zero one where there is none.
func cursorOf(view *access.View, name string) (store.Cursor, error) {
	cursors, err := view.Agents()
	for i := range cursors {
		if cursors[i].Agent == name {
			return cursors[i], err
		}
	}
	return store.Cursor{Agent: name}, err
}

// commitIngest commits a command that has to continue its cursor.
func (s *Server) commitIngest(ctx context.Context, c *store.IngestCommand) (store.IngestResult, error) {
	result, err := s.tryCommit(ctx, c)
	ingest, ok := result.(store.IngestResult)
	switch {
	case errors.Is(err, ErrNotNow):
		return ingest, newRetryableRefusal("not all was committed, send it again: %v", err)
	case err != nil:
		return ingest, newRetryableRefusal("outcome unknown; send it again: %v", err)
	case !ok || !ingest.Accepted:
		return ingest, newRetryableRefusal("something else of that name was committed at the same moment, send it again")
	}
	return ingest, nil
}

// v1ImportChunk is POST /v1/imports/{name}/{epoch}: a chunk of the import is
// committed before the answer. What came before is left out, so a chunk whose
// answer was lost is sent again.
func (s *Server) v1ImportChunk(w http.ResponseWriter, r *http.Request, view *access.View) error {
	cursor, err := cursorOf(view, r.PathValue("name"))
	if err != nil {
		return err
	}
	if s.opt.Cut == nil || !store.IsImport(cursor.Epoch) || hex.EncodeToString(cursor.Epoch[:]) != r.PathValue("epoch") {
		return newRefusal(http.StatusConflict, "this is not the import of the name %s that began last; another one began, or none did", r.PathValue("name"))
	}
	return s.readChunk(w, r, func(chunk []byte) error {
		var counts store.Counts
		err := s.opt.Cut(cursor, chunk, func(c *store.IngestCommand) error {
			result, err := s.commitIngest(r.Context(), c)
			counts.Add(result.Counts)
			if err == nil {
				cursor = result.Cursor
			}
			return err
		})
		if err != nil {
			return chunkRefusal(err)
		}
		answerJSON(w, http.StatusOK, v1.ImportProgress{Cursor: cursor.Seq, Counts: countsJSON(counts)})
		return nil
	})
}

// chunkRefusal is why a chunk was not taken, or not all of it.
func chunkRefusal(err error) error {
	if _, ok := errors.AsType[*refusal](err); ok {
		return err
	}
	if errors.Is(err, frame.ErrChain) || errors.Is(err, frame.ErrRange) {
		return newRefusal(http.StatusConflict, "the chunk does not continue the import: %v", err)
	}
	return newRefusal(http.StatusBadRequest, "%v", err)
}

// readChunk reads a chunk and hands it to use. What use returns is answered.
func (s *Server) readChunk(w http.ResponseWriter, r *http.Request, use func([]byte) error) error {
	if r.ContentLength > maxChunk {
		return newRefusal(http.StatusRequestEntityTooLarge, "the chunk has %d bytes; at most %d are allowed", r.ContentLength, maxChunk)
	}
	var result error
	err := s.bodies.Take(w, r, func(data []byte, no *auditor.Refusal) {
		switch {
		case no != nil:
			result = newRefusal(no.Status, "%s", no.Text)
		case len(data) > maxChunk:
			result = newRefusal(http.StatusRequestEntityTooLarge, "the chunk has more than %d bytes", maxChunk)
		default:
			s.extendWrite(w)
			result = use(data)
		}
	})
	if err != nil {
		auditor.BreakOff()
	}
	return result
}
