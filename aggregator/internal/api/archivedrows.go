package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ArchiveReader reads the files of archives, for one answer.
type ArchiveReader interface {
	store.ArchiveFiles
	io.Closer
}

const (
	// archivesHeader names the archives of a query's time, whose records are not in the
	// answer.
	archivesHeader = "X-Bursar-Archived"
)

// rowSource returns what reads the records of a list: those with their details, where a header
// names the archives of the others, or, when the query asks for them, all. The caller calls
// done at the end. Missing files are an error here, before anything is sent.
func (s *Server) rowSource(w http.ResponseWriter, r *http.Request, view *access.View, q *store.Query, archived bool) (read rows, done func(), err error) {
	names := view.ArchivesOf(q)
	if !archived && len(names) > 0 {
		w.Header().Set(archivesHeader, strings.Join(names, ","))
	}
	if !archived || len(names) == 0 { // it keeps no reader of archives from others
		q.Details = true
		return view.Query, func() {}, nil
	}
	if s.opt.Archives == nil {
		return nil, nil, &refusal{status: http.StatusServiceUnavailable, detail: "this node cannot read archives", kind: v1.TypeArchive}
	}
	files, err := s.opt.Archives(r.Context())
	if err != nil {
		return nil, nil, err
	}
	details := view.Details(r.Context(), q, patientFiles{files, s, w})
	done = func() {
		if err := details.Close(); err != nil {
			s.opt.Log.Warn("a file of an answer does not close", "error", err)
		}
		if err := files.Close(); err != nil {
			s.opt.Log.Warn("a reader of archives does not end", "error", err)
		}
	}
	if q.Resume == nil { // later pages read only the archives that they need
		err = details.Check(r.Context(), q)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return func(ctx context.Context, q store.Query, yield func(*columns.Row) error) error {
		return view.QueryWhole(ctx, q, details, yield)
	}, done, nil
}

// patientFiles reads archives while the answer's time to write does not run.
type patientFiles struct {
	files store.ArchiveFiles
	s     *Server
	w     http.ResponseWriter
}

// Check implements store.ArchiveFiles.
func (p patientFiles) Check(ctx context.Context, archives []string) error {
	defer p.extendUntilEnd()()
	return p.files.Check(ctx, archives)
}

// Rows implements store.ArchiveFiles.
func (p patientFiles) Rows(ctx context.Context, archive string, yield func(row []byte) error) error {
	defer p.extendUntilEnd()()
	return p.files.Rows(ctx, archive, yield)
}

// extendUntilEnd gives the answer its time again and again, until the end.
func (p patientFiles) extendUntilEnd() (end func()) {
	over := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(answerTime / 2)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.s.extendWrite(p.w)
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		ended.Wait()
		p.s.extendWrite(p.w)
	}
}
