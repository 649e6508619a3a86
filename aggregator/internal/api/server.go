package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// Reader gives consistent pictures of the store.
type Reader interface {
	// Read returns a picture that holds all that was acknowledged before the
	// call. The caller closes it. An error means that this node cannot say so
	// now.
	Read(ctx context.Context) (*store.View, error)
}

// Writer commits commands.
type Writer interface {
	// Write returns the store's result for the command. [ErrNotNow] says that
	// nothing was written and that it may be tried again; every other error
	// leaves the outcome unknown.
	Write(ctx context.Context, c store.Command) (any, error)
}

// Options of a [Server]. The zero value of a number means its default.
type Options struct {
	Reader  Reader
	Writer  Writer
	Metrics http.Handler // answers GET /metrics
	Log     *slog.Logger
	// IgnoreExisting answers duplicates with 200 and a warning, as AUDITOR does
	// with ignore_record_exists_error; of a bulk the others are stored.
	IgnoreExisting bool
	// MaxBody bounds a request's body, decompressed; default 64 MiB.
	MaxBody int64
	// Patience is how long a write waits for the cluster before the connection
	// is broken off; default 25 s, a little less than AUDITOR's clients wait.
	Patience time.Duration
	Agents   Agents // nil: this node pulls from none
	Version  string // of the program, for /v1/status
	// Extra routes beside AUDITOR's, by pattern of http.ServeMux.
	Extra map[string]http.Handler
}

// Server answers requests. It is an http.Handler.
type Server struct {
	opt    Options
	bodies *semaphore.Weighted // bytes of bodies in memory
	extra  *http.ServeMux
}

const (
	defaultMaxBody  = 64 << 20
	defaultPatience = 25 * time.Second
	bodiesAtOnce    = 4 // bodies of the greatest size
)

// New makes a server.
func New(opt Options) *Server {
	if opt.MaxBody == 0 {
		opt.MaxBody = defaultMaxBody
	}
	if opt.Patience == 0 {
		opt.Patience = defaultPatience
	}
	s := &Server{opt: opt, bodies: semaphore.NewWeighted(bodiesAtOnce * opt.MaxBody), extra: http.NewServeMux()}
	for pattern, h := range opt.Extra {
		s.extra.Handle(pattern, h)
	}
	s.extra.Handle("/v1/", s.v1())
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	switch {
	case path == "/health_check":
		s.route(w, r, methods{http.MethodGet: s.health})
	case path == "/metrics" && s.opt.Metrics != nil:
		s.route(w, r, methods{http.MethodGet: s.opt.Metrics.ServeHTTP})
	case path == "/record":
		s.route(w, r, methods{http.MethodPost: s.postRecord, http.MethodPut: s.putRecord})
	case path == "/records":
		s.route(w, r, methods{http.MethodPost: s.postRecords, http.MethodGet: s.getRecords})
	case strings.HasPrefix(path, "/record/") && len(path) > len("/record/"):
		s.route(w, r, methods{http.MethodGet: s.getRecord})
	default:
		s.other(w, r)
	}
}

// other answers what is not AUDITOR's.
func (s *Server) other(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.extra.Handler(r); pattern != "" {
		s.extra.ServeHTTP(w, r)
		return
	}
	text(w, http.StatusNotFound, "The requested resource was not found. 404 Not Found")
}

// methods are the handlers of one path.
type methods map[string]http.HandlerFunc

// route calls the method's handler, or answers 405 with what is allowed.
func (s *Server) route(w http.ResponseWriter, r *http.Request, m methods) {
	if h, ok := m[r.Method]; ok {
		h(w, r)
		return
	}
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		if m[method] != nil {
			allow = append(allow, method)
		}
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	empty(w, http.StatusMethodNotAllowed)
}

// text answers with plain text.
func text(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	bare(w, status, body)
}

// bare answers with a body; the content type is the caller's, or none.
func bare(w http.ResponseWriter, status int, body string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header()["Content-Type"] = nil // or net/http guesses one
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // a client that is gone needs no answer
}

// empty answers without a body.
func empty(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
}

// breakOff ends the connection without an answer, so that the client knows that
// it does not know.
func breakOff() { panic(http.ErrAbortHandler) }

// healthPatience is how long a health check waits for the quorum.
const healthPatience = 2 * time.Second

// health answers 200 when a quorum confirms this node's picture.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthPatience)
	defer cancel()
	view, err := s.opt.Reader.Read(ctx)
	if err != nil {
		s.opt.Log.Warn("health check failed", "error", err)
		empty(w, http.StatusInternalServerError)
		return
	}
	s.close(view)
	empty(w, http.StatusOK)
}

func (s *Server) close(v *store.View) {
	if err := v.Close(); err != nil {
		s.opt.Log.Error("close a view", "error", err)
	}
}
