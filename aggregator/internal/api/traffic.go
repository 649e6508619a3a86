package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// traffic measures requests and bounds those of /v1 that are worked on at once.
type traffic struct {
	slots    *Slots
	lists    *Slots // of GET /records, which those of /v1 do not crowd out
	took     *prometheus.HistogramVec
	inFlight prometheus.Gauge
	refused  prometheus.Counter
}

// defaultInFlight is how many requests of /v1 are worked on at once.
const defaultInFlight = 256

func newTraffic(inFlight int, reg prometheus.Registerer) *traffic {
	if inFlight == 0 {
		inFlight = defaultInFlight
	}
	t := &traffic{
		slots: NewSlots(inFlight), lists: NewSlots(inFlight),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bursar_http_request_duration_seconds", Help: "Time from a request to the end of its answer, by route, method and status; the code of a connection that was broken off is broken.",
			Buckets: []float64{.001, .005, .02, .05, .1, .25, .5, 1, 2.5, 10, 30},
		}, []string{"route", "method", "code"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "bursar_http_requests_in_flight", Help: "Requests that are worked on."}),
		refused:  prometheus.NewCounter(prometheus.CounterOpts{Name: "bursar_http_requests_refused_total", Help: "Requests to /v1 and for GET /records that were refused, because too many were worked on."}),
	}
	if reg != nil {
		reg.MustRegister(t.took, t.inFlight, t.refused)
	}
	return t
}

// measuredResponse is an answer that is measured.
type measuredResponse struct {
	http.ResponseWriter

	traffic *traffic
	method  string
	route   string
	code    int
	whole   bool // the handler returned; otherwise the connection was broken off
	begun   time.Time
}

func (t *traffic) beginRequest(w http.ResponseWriter, r *http.Request) *measuredResponse {
	t.inFlight.Inc()
	return &measuredResponse{ResponseWriter: w, traffic: t, method: methodLabel(r.Method), route: rootRouteLabel(r.URL.EscapedPath()), code: http.StatusOK, begun: time.Now()}
}

func (s *measuredResponse) endRequest() {
	code := strconv.Itoa(s.code)
	if !s.whole {
		code = "broken"
	}
	s.traffic.inFlight.Dec()
	s.traffic.took.WithLabelValues(s.route, s.method, code).Observe(time.Since(s.begun).Seconds())
}

// WriteHeader implements http.ResponseWriter.
func (s *measuredResponse) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (s *measuredResponse) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// setRoute says which route answers.
func setRoute(w http.ResponseWriter, route string) {
	if s, ok := w.(*measuredResponse); ok {
		s.route = route
	}
}

// methodLabel is a method as metrics have it, of which clients can make no new ones.
func methodLabel(method string) string {
	if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions}, method) {
		return method
	}
	return "other"
}

// rootRouteLabel is the route of a path at the root.
func rootRouteLabel(path string) string {
	switch {
	case path == "/health_check", path == "/metrics", path == "/record", path == "/records":
		return path
	case strings.HasPrefix(path, recordPrefix):
		return recordPrefix + "{record_id}"
	}
	return "other"
}

// acquireSlot takes a slot for a request to /v1, or answers 429. The routes that an
// operator looks at when all is taken need none.
func (s *Server) acquireSlot(w http.ResponseWriter, pattern string) (leave func(), ok bool) {
	if slices.Contains([]string{"/v1/status", "/v1/cluster", "/v1/openapi.yaml", "GET /ui/static/{file}", "GET /ui/cluster"}, pattern) {
		return func() {}, true
	}
	if !s.traffic.slots.Take() {
		s.traffic.refused.Inc()
		w.Header().Set("Retry-After", "1")
		answerProblem(w, http.StatusTooManyRequests, "too many concurrent requests; retry later")
		return nil, false
	}
	return s.traffic.slots.Give, true
}
