package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"

	"github.com/bursar-accounting/bursar/aggregator/internal/completeness"
	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"

	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Reader gives consistent pictures of the store, as a principal sees them.
type Reader interface {
	// Read returns a picture that holds all that was acknowledged before the
	// call. The caller closes it. An error means that this node cannot say so
	// now.
	Read(ctx context.Context, p access.Principal) (*access.View, error)
}

// LoginPage is where people log in at the pages.
type LoginPage interface {
	// Page writes the page to log in.
	Page(w http.ResponseWriter, r *http.Request)
}

// Writer commits commands.
type Writer interface {
	// Write returns the store's result for the command. [ErrNotNow] says that
	// nothing was written and that it may be tried again; every other error
	// leaves the outcome unknown. Those that come of a node that stops, or
	// leads no longer, are [ErrUnknown].
	Write(ctx context.Context, c store.Command) (any, error)
}

// Options of a [Server]. The zero value of a number means its default.
type Options struct {
	Reader Reader
	Writer Writer
	// Who says who makes a request. Nil: no one may do anything.
	Who     func(r *http.Request) access.Principal
	Metrics http.Handler // answers GET /metrics; nil: there is no such route
	// Registerer gets the bursar_http_* metrics; nil: there are none.
	Registerer prometheus.Registerer
	// Health judges the cluster for /v1/status and /v1/cluster; nil: no one does.
	Health Health
	// Memory bounds what answers take in memory together; nil: nothing does.
	Memory *store.Budget
	// Agreed is the version of commands that the cluster has agreed on; nil: this program's.
	Agreed func() uint32
	// MaxInFlight bounds the requests to /v1 that are worked on; default 256.
	MaxInFlight int
	Log         *slog.Logger
	// Kinds returns those of components that are posted without one; nil: those of
	// AUDITOR's collectors.
	Kinds func() record.Kinds
	// IgnoreExisting answers duplicates with 200 and a warning, as AUDITOR does
	// with ignore_record_exists_error; of a bulk the others are stored.
	IgnoreExisting bool
	// MaxBody bounds a request's body in bytes, decompressed; default 64 MiB.
	MaxBody int64
	// Patience is how long a write waits for the cluster before the connection
	// is broken off; default 25 s, a little less than AUDITOR's clients wait.
	Patience time.Duration
	Agents   Agents // nil: this node pulls from none
	// Configured returns the names of the agents of the configuration; nil: there are none.
	Configured func() []string
	Usage      Usage // nil: this server answers no usage
	// Derivation returns what keys and weights follow from others now; nil: none do.
	Derivation func() *usage.Derivation
	// UsageKeys returns the meta keys that usage is asked by: archives leave them in the
	// store; nil: there are none.
	UsageKeys func() []string
	// Zone returns the time zone by whose clock days begin where a question names none; nil:
	// it is UTC.
	Zone func() *time.Location
	// Retention returns how long records keep names; nil: for ever.
	Retention func() erasure.Policy
	// Directory returns who belongs where now; nil: nothing is known of that.
	Directory func() *accounting.Directory
	// Capacity returns what clusters have as far as it is known now; nil: no one does.
	Capacity func() *accounting.Capacities
	// Days are the days of a window compared with what schedulers have, as it was
	// done last; nil: no one does.
	Days func(w completeness.Window) ([]completeness.Day, bool)
	// Found are the findings about records, as they were gathered last; nil: there are none.
	Found func() []health.RecordFinding
	// Common returns what the metas of all records of a source have in common, by source; nil:
	// nothing is known of that.
	Common func() map[record.Origin]record.Meta
	// Silences says which sources are silent for longer than is usual; nil: the default
	// pause counts for all.
	Silences Silence
	// Money has prices and budgets; nil: there are none.
	Money func() Money
	// Now is the time of the clock; nil is time.Now.
	Now     func() time.Time
	Version string // of the program, for /v1/status
	// Snapshots are saved and restored; nil: neither that nor changes of Members.
	Snapshots Snapshots
	// Config is the configuration that the cluster shares; nil takes any.
	Config  Config
	Members Members // of the cluster; nil: none are known
	Checker Checker // of this node; nil: it cannot be checked
	Actions Actions // nil: there are none
	// Archives returns what reads the files of archives for one answer. Nil: none are read.
	Archives func(ctx context.Context) (ArchiveReader, error)
	// Cut cuts a chunk of an import into the commands that bring the cursor to its
	// end; as package ingest does. Nil: nothing can be imported.
	Cut func(cursor store.Cursor, chunk []byte, emit func(*store.IngestCommand) error) error
	// Audit is the audit log; nil: there is none.
	Audit Audit
	// Enrolment lets machines join by tokens; nil: none can.
	Enrolment *Enrolment
	// Login is where people log in at the pages; nil: nowhere.
	Login LoginPage
	// Sessions are of browsers at plain addresses; nil: there are none.
	Sessions *access.Sessions
	// Pages is the plain address of the pages, as http://host:port; "" is none.
	Pages string
	// Extra routes beside AUDITOR's and /v1, by pattern of http.ServeMux.
	Extra map[string]http.Handler
}

// Server answers requests. It is an http.Handler.
type Server struct {
	opt      Options
	bodies   *auditor.Bodies
	builders builders
	queue    postQueue
	routes   []route
	extra    *http.ServeMux
	traffic  *traffic
	needs    map[string]access.Need

	complaints complaints
	failures   failures   // of tokens
	checking   sync.Mutex // held by the check that runs
}

const (
	defaultMaxBody  = 64 << 20
	defaultPatience = 25 * time.Second
)

// New makes a server.
func New(opt Options) *Server {
	if opt.MaxBody == 0 {
		opt.MaxBody = defaultMaxBody
	}
	if opt.Patience == 0 {
		opt.Patience = defaultPatience
	}
	if opt.Kinds == nil {
		kinds := auditor.Kinds(nil)
		opt.Kinds = func() record.Kinds { return kinds }
	}
	s := &Server{opt: opt, bodies: auditor.NewBodies(opt.MaxBody, opt.Patience, 1), extra: http.NewServeMux(), needs: access.Routes(), traffic: newTraffic(opt.MaxInFlight, opt.Registerer)}
	s.queue = postQueue{encode: s.builders.buildOne, try: s.tryCommit, together: func() bool {
		return opt.Agreed == nil || opt.Agreed() >= store.VersionOf(&store.PutStopsCommand{})
	}}
	s.routes = s.v1Routes()
	for pattern, h := range opt.Extra {
		s.extra.Handle(pattern, h)
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := s.traffic.beginRequest(w, r)
	defer seen.endRequest()
	s.serveRoute(seen, r)
	seen.whole = true
}

// serveRoute finds who answers a request.
func (s *Server) serveRoute(w http.ResponseWriter, r *http.Request) {
	defer auditor.BreakOffOnPanic(w, r, s.opt.Log)
	defer auditor.LimitBody(w, restOfBody)
	s.extendWrite(w)
	w.Header().Set("Cache-Control", "no-store") // it depends on who asks; pages set their own
	if s.opt.Who != nil {
		r = r.WithContext(access.With(r.Context(), s.opt.Who(r)))
	}
	if s.denyWithoutRole(w, r) {
		return
	}
	path := r.URL.EscapedPath()
	switch {
	case path == "/health_check":
		s.serveMethod(w, r, path, methods{http.MethodGet: s.getHealth})
	case path == loginPath && s.opt.Sessions != nil && r.Method != http.MethodPost:
		s.serveMethod(w, r, path, methods{http.MethodGet: s.serveLogin})
	case path == "/metrics" && s.opt.Metrics != nil:
		s.serveMethod(w, r, path, methods{http.MethodGet: s.opt.Metrics.ServeHTTP})
	case path == "/record":
		s.serveMethod(w, r, path, methods{http.MethodPost: s.postRecord, http.MethodPut: s.putRecord})
	case path == "/records":
		s.serveMethod(w, r, path, methods{http.MethodPost: s.postRecords, http.MethodGet: s.getRecords})
	case strings.HasPrefix(path, recordPrefix) && len(path) > len(recordPrefix):
		s.serveMethod(w, r, recordPrefix+"{record_id}", methods{http.MethodGet: s.getRecord})
	case strings.HasPrefix(path, "/v1/"):
		w.Header().Set(v1.ZoneHeader, s.siteZone().String())
		s.serveV1(w, r)
	default:
		s.serveExtra(w, r)
	}
}

// rootRoutes lists the routes of ServeHTTP.
func rootRoutes() []string {
	return []string{"GET /health_check", "GET " + loginPath, "GET /metrics", "POST /record", "PUT /record", "GET /record/{record_id}", "POST /records", "GET /records"}
}

// extendWrite gives the answer its time from now on. What a write waits for the
// cluster does not count.
func (s *Server) extendWrite(w http.ResponseWriter) {
	end := time.Now().Add(s.opt.Patience + answerTime)
	_ = http.NewResponseController(w).SetWriteDeadline(end) // a writer that cannot is a test's
}

// serveExtra answers what is neither AUDITOR's nor below /v1.
func (s *Server) serveExtra(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.extra.Handler(r); pattern != "" {
		setRoute(w, pattern[strings.IndexByte(pattern, '/'):])
		leave, ok := s.acquireSlot(w, pattern)
		if !ok {
			return
		}
		defer leave()
		err := s.withLease(w, r, func(r *http.Request) error {
			s.admitRequest(w, r, pattern, s.extra.ServeHTTP)
			return nil
		})
		if err != nil {
			s.answerError(w, r, err) // not reached: a lease of nothing does not fail
		}
		return
	}
	answerText(w, http.StatusNotFound, auditor.NotFound)
}

// methods are the handlers of one path.
type methods map[string]http.HandlerFunc

// serveMethod calls the method's handler, or answers 405 with what is allowed.
func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, pattern string, m methods) {
	if h, ok := m[r.Method]; ok {
		s.admitRequest(w, r, r.Method+" "+pattern, h)
		return
	}
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		if m[method] != nil {
			allow = append(allow, method)
		}
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	answerEmpty(w, http.StatusMethodNotAllowed)
}

func (s *Server) closeView(v *access.View) {
	if err := v.Close(); err != nil {
		s.opt.Log.Error("close a view", "error", err)
	}
}
