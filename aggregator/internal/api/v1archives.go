package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (s *Server) archiveRoutes() []route {
	return []route{
		{http.MethodGet, "/v1/archives", s.withView(withoutQuery(s.v1Archives))},
		{http.MethodGet, "/v1/archives/rows", s.withView(s.v1ArchiveRows)},
		{http.MethodPut, "/v1/archives/{name}", s.withArchiveName(s.v1Archive)},
		{http.MethodPost, "/v1/archives/{name...}:restore", s.withArchiveName(s.v1ArchiveRestore)},
		{http.MethodDelete, "/v1/archives/{name}", s.withArchiveName(s.v1ArchiveEnd)},
	}
}

// archiveList is the answer of GET /v1/archives.
type archiveList struct {
	Archives []archived.Archive `json:"archives"`
}

// v1Archives is GET /v1/archives.
func (s *Server) v1Archives(w http.ResponseWriter, _ *http.Request, view *access.View) error {
	list, err := view.Archives()
	if err != nil {
		return err
	}
	out := archiveList{Archives: []archived.Archive{}}
	for i := range list {
		out.Archives = append(out.Archives, archiveJSON(&list[i]))
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

func archiveJSON(a *store.Archive) archived.Archive {
	out := archived.Archive{
		Name: a.Name, State: a.State.String(), Removed: a.Removed, Kept: a.Keep,
		Statement: archived.Statement{
			From: a.From.Std(), To: a.To.Std(), UpTo: a.UpTo, Count: a.Rows.Count, Digest: a.Rows.Digest(),
			Location: a.Location, Manifest: a.Manifest, SHA256: a.SHA256,
		},
	}
	if out.Kept == nil {
		out.Kept = []string{}
	}
	if len(a.Sums) > 0 {
		out.Sums = map[string]string{}
	}
	for _, t := range a.Sums {
		out.Sums[t.Name] = t.Value
	}
	return out
}

// v1ArchiveRows is GET /v1/archives/rows: the rows of a period that have their details,
// as [archived.ReadStream] reads them.
func (s *Server) v1ArchiveRows(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	period, err := decodeQuery[v1.ArchiveRowsQuery](r)
	switch {
	case err != nil:
		return err
	case period.From.IsZero(), period.To.IsZero():
		return newRefusal(http.StatusBadRequest, "from and to are needed: the start and the end of the period")
	}
	q := store.Query{Open: store.OnlyClosed, Details: true, Order: store.ByStop, ReuseRows: true}
	q.Stop.GTE(int64(record.FromStd(period.From.Time)))
	q.Stop.LT(int64(record.FromStd(period.To.Time)))
	out := newStream(w, r, archived.StreamType)
	out.lease.Also(streamBytes)
	var sum archived.Sum
	var bytes []byte
	err = view.Query(r.Context(), q, func(row *columns.Row) error {
		line := store.ArchivedRow(row)
		bytes = line.Append(bytes[:0])
		sum.Add(bytes)
		if out.buf = archived.AppendPart(out.buf, bytes); len(out.buf) < pieceSize {
			return nil
		}
		return out.flush()
	})
	if err == nil {
		out.buf = archived.AppendSeal(out.buf, archived.Seal{Sum: sum, UpTo: view.Seq()})
		err = out.flush()
	}
	return s.endStream(r, out, err)
}

// withArchiveName gives a handler the name of an archive, when the principal sees all records.
// It holds no picture of the store: it may take long.
func (s *Server) withArchiveName(h func(w http.ResponseWriter, r *http.Request, name string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := s.withLease(w, r, func(r *http.Request) error {
			if !access.From(r.Context()).Rows.All() {
				return access.ErrRows
			}
			return h(w, r, r.PathValue("name"))
		})
		if err != nil {
			s.answerError(w, r, err)
		}
	}
}

// v1Archive is PUT /v1/archives/{name}: it takes the details of the rows away, step by
// step, and answers when all are gone.
func (s *Server) v1Archive(w http.ResponseWriter, r *http.Request, name string) error {
	var want archived.Statement
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxStatement))
	if err := in.Decode(&want); err != nil {
		return newRefusal(http.StatusBadRequest, "invalid statement: %v", err)
	}
	rows, err := archived.ParseSum(want.Count, want.Digest)
	if err != nil {
		return newRefusal(http.StatusBadRequest, "%v", err)
	}
	c := &store.ArchiveCommand{Op: store.ArchiveRemove, Archive: store.ArchiveStatement{
		Name: name, From: record.FromStd(want.From), To: record.FromStd(want.To), UpTo: want.UpTo, Rows: rows,
		Location: want.Location, Manifest: want.Manifest, SHA256: want.SHA256, Keep: want.Keep,
	}}
	for _, name := range slices.Sorted(maps.Keys(want.Sums)) {
		c.Archive.Sums = append(c.Archive.Sums, store.ArchiveTotal{Name: name, Value: want.Sums[name]})
	}
	if c.Archive.Keep, err = s.archiveKeys(r.Context(), name, want.Keep); err != nil {
		return err
	}
	if _, err := s.archiveSteps(w, r, c); err != nil {
		return err
	}
	return s.answerArchive(w, r, name)
}

// archiveKeys are the keys that stay: those of the archive when it has begun, else those
// that are asked for and those that usage needs now.
func (s *Server) archiveKeys(ctx context.Context, name string, asked []string) ([]string, error) {
	begun, err := s.findArchive(ctx, name)
	if err != nil || begun != nil {
		return keysOfArchive(begun), err
	}
	keys := slices.Clone(asked)
	if s.opt.UsageKeys != nil {
		keys = append(keys, s.opt.UsageKeys()...)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

func keysOfArchive(a *store.Archive) []string {
	if a == nil {
		return nil
	}
	return a.Keep
}

// findArchive returns the archive of the name; nil for none.
func (s *Server) findArchive(ctx context.Context, name string) (*store.Archive, error) {
	view, err := s.opt.Reader.Read(ctx, access.From(ctx))
	if err != nil {
		return nil, err
	}
	defer s.closeView(view)
	list, err := view.Archives()
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
	}
	return nil, err
}

func (s *Server) answerArchive(w http.ResponseWriter, r *http.Request, name string) error {
	a, err := s.findArchive(r.Context(), name)
	if err != nil {
		return err
	}
	if a == nil {
		return newRefusal(http.StatusConflict, "archive %q was restored meanwhile", name)
	}
	answerJSON(w, http.StatusOK, archiveJSON(a))
	return nil
}

// archiveSteps commits a command until no step is left. Each is a command of the log, so
// other writes come between them, and after a kill the same request goes on.
func (s *Server) archiveSteps(w http.ResponseWriter, r *http.Request, c *store.ArchiveCommand) (store.ArchiveResult, error) {
	for {
		if err := r.Context().Err(); err != nil {
			return store.ArchiveResult{}, err
		}
		s.extendWrite(w)
		result, err := s.commitResult(r.Context(), c)
		if err != nil {
			return store.ArchiveResult{}, err
		}
		step, ok := result.(store.ArchiveResult)
		switch {
		case !ok:
			return step, newRefusal(http.StatusServiceUnavailable, "outcome unknown; check before retrying: %T", result)
		case step.Refused != "":
			return step, newRefusal(http.StatusConflict, "%s", step.Refused)
		case step.Done:
			return step, nil
		}
	}
}

// maxStatement bounds the body of a statement, in bytes.
const maxStatement = 64 << 10

// restoreBytes is how many bytes of rows one command carries, about.
const restoreBytes = 256 << 10

// v1ArchiveRestore is POST /v1/archives/{name}:restore: rows get their details again.
func (s *Server) v1ArchiveRestore(w http.ResponseWriter, r *http.Request, name string) error {
	c := &store.ArchiveCommand{Op: store.ArchiveRestore, Archive: store.ArchiveStatement{Name: name}}
	var out archived.Restored
	size := 0
	commit := func() error {
		step, err := s.archiveSteps(w, r, c)
		out.Restored += step.Changed
		c.Rows, size = nil, 0
		return err
	}
	body := http.MaxBytesReader(w, r.Body, s.opt.MaxBody)
	_, err := archived.ReadStream(body, func(_ archived.Row, bytes []byte) error {
		c.Rows, size = append(c.Rows, slices.Clone(bytes)), size+len(bytes)
		if size < restoreBytes {
			return nil
		}
		return commit()
	})
	if err == nil {
		err = commit()
	}
	if errors.Is(err, archived.ErrRow) {
		return newRefusal(http.StatusBadRequest, "%v", err)
	}
	if err != nil {
		return err
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}

// v1ArchiveEnd is DELETE /v1/archives/{name}: it forgets an archive of which all rows have
// their details.
func (s *Server) v1ArchiveEnd(w http.ResponseWriter, r *http.Request, name string) error {
	known, err := s.findArchive(r.Context(), name)
	if err != nil {
		return err
	}
	var out archived.Restored
	if known != nil { // else it has ended before
		step, err := s.archiveSteps(w, r, &store.ArchiveCommand{Op: store.ArchiveEnd, Archive: store.ArchiveStatement{Name: name}})
		if err != nil {
			return err
		}
		out.Left = step.Left
	}
	answerJSON(w, http.StatusOK, out)
	return nil
}
