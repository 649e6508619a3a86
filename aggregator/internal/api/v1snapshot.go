package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Snapshots saves and restores the replicated state.
type Snapshots interface {
	// Save makes an image that holds all that was acknowledged before the call.
	// The caller closes it.
	Save(ctx context.Context) (*archive.Image, error)
	// Restore takes the whole cluster back to an archive, in a new incarnation.
	// The archive of another cluster is refused unless foreign is set. What was
	// restored comes with errors too that leave the outcome unknown.
	Restore(ctx context.Context, archive io.Reader, foreign bool) (*Restore, error)
}

// Restore says what a cluster was taken back to, and what became of the agents that have joined by a
// token.
type Restore struct {
	archive.Restored

	Removed    []string // agents of the snapshot that were removed since, and stay so
	Unverified []string // agents of the snapshot of another cluster, which may have been removed since
}

// ErrElsewhere is wrapped by what only the leader can do, on another node; the
// error says which node leads.
var ErrElsewhere = errors.New("this node does not lead")

// ErrAccess is wrapped where the cluster was restored and may let in who might come in at the
// time of the snapshot.
var ErrAccess = errors.New("it was restored, but tokens and agents may be those of the snapshot: look at bursar token list and bursar agents")

const typeSnapshot = "application/zstd"

// snapshotRoutes returns the routes about snapshots.
func (s *Server) snapshotRoutes() []route {
	return []route{
		{http.MethodGet, "/v1/snapshot", s.withCluster(s.v1Save)},
		{http.MethodPost, "/v1/snapshot:restore", s.withCluster(s.v1Restore)},
	}
}

// withCluster answers a handler's error; a handler that returns one has sent nothing.
func (s *Server) withCluster(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.opt.Snapshots == nil || s.opt.Members == nil {
			answerProblem(w, http.StatusNotFound, "this server knows no cluster")
			return
		}
		if err := h(w, r); err != nil {
			s.answerError(w, r, err)
		}
	}
}

// v1Save is GET /v1/snapshot: an archive of the replicated state.
func (s *Server) v1Save(w http.ResponseWriter, r *http.Request) error {
	image, err := s.opt.Snapshots.Save(r.Context())
	if err != nil {
		return newRefusal(http.StatusServiceUnavailable, "no snapshot can be made now: %v", err)
	}
	defer func() {
		if err := image.Close(); err != nil {
			s.opt.Log.Error("remove an image of the store", "error", err)
		}
	}()
	w.Header().Set("Content-Type", typeSnapshot)
	w.Header().Set("X-Bursar-Index", strconv.FormatUint(image.Meta.Index, 10))
	if r.Method == http.MethodHead {
		return nil
	}
	if err := image.Write(&patient{w, http.NewResponseController(w).SetWriteDeadline}); err != nil {
		if r.Context().Err() == nil {
			s.opt.Log.Error("a snapshot was broken off", "error", err)
		}
		breakOff()
	}
	s.opt.Log.Info("snapshot saved", "by", access.From(r.Context()).Name, "index", image.Meta.Index, "records", image.Meta.Records, "hash", image.Meta.Hash)
	return nil
}

// patient gives each piece its time.
type patient struct {
	io.Writer

	deadline func(time.Time) error
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	_ = p.deadline(time.Now().Add(answerTime)) // a writer that cannot is a test's
	return p.Writer.Write(b)
}

// arriving gives each piece of a body its time.
type arriving struct {
	io.Reader

	deadline func(time.Time) error
}

// Read implements io.Reader.
func (a *arriving) Read(b []byte) (int, error) {
	_ = a.deadline(time.Now().Add(answerTime)) // a reader that cannot is a test's
	return a.Reader.Read(b)
}

// restoreTime is how long the cluster may take to check and install an archive
// that has arrived.
const restoreTime = time.Hour

// v1Restore is POST /v1/snapshot:restore: the cluster goes back to an archive.
func (s *Server) v1Restore(w http.ResponseWriter, r *http.Request) error {
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(restoreTime)) // a writer that cannot is a test's
	q, err := decodeQuery[v1.RestoreSnapshotQuery](r)
	if err != nil {
		return err
	}
	who := access.From(r.Context()).Name
	s.opt.Log.Warn("a restore begins", "by", who)
	done, err := s.opt.Snapshots.Restore(r.Context(), &arriving{r.Body, rc.SetReadDeadline}, q.Foreign)
	switch {
	case errors.Is(err, ErrElsewhere):
		return newRefusal(http.StatusMisdirectedRequest, "nothing was restored: %v", err)
	case errors.Is(err, archive.ErrDamaged), errors.Is(err, archive.ErrFormat), errors.Is(err, archive.ErrForeign):
		return newRefusal(http.StatusUnprocessableEntity, "nothing was restored: %v", err)
	case errors.Is(err, archive.ErrNoSpace):
		return newRefusal(http.StatusInsufficientStorage, "nothing was restored: %v", err)
	case errors.Is(err, ErrAccess):
		return newRefusal(http.StatusServiceUnavailable, "%v", err)
	case err != nil && done == nil:
		return newRefusal(http.StatusServiceUnavailable, "nothing was restored: %v", err)
	case err != nil:
		return newRefusal(http.StatusServiceUnavailable, "the snapshot may or may not have been restored; if `bursar status` shows the incarnation %s it was: %v", done.Life.ID, err)
	}
	s.opt.Log.Warn("the cluster was restored", "by", who, "index", done.Meta.Index, "records", done.Meta.Records, "made", done.Meta.Made, "incarnation", done.Life.ID, "agents removed", done.Removed, "agents unverified", done.Unverified)
	answerJSON(w, http.StatusOK, v1.Restored{
		Cluster: done.Meta.Cluster, Incarnation: done.Life.ID, Restores: done.Life.Restores, Records: done.Meta.Records,
		FromIndex: done.Meta.Index, Hash: done.Meta.Hash, Made: v1.Time{Time: done.Meta.Made},
		AgentsRemoved: done.Removed, AgentsUnverified: done.Unverified,
	})
	return nil
}
