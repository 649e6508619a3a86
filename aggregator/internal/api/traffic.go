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

// seen is an answer that is measured.
type seen struct {
	http.ResponseWriter

	traffic *traffic
	method  string
	route   string
	code    int
	whole   bool // the handler returned; otherwise the connection was broken off
	begun   time.Time
}

func (t *traffic) begin(w http.ResponseWriter, r *http.Request) *seen {
	t.inFlight.Inc()
	return &seen{ResponseWriter: w, traffic: t, method: knownMethod(r.Method), route: rootRoute(r.URL.EscapedPath()), code: http.StatusOK, begun: time.Now()}
}

func (s *seen) end() {
	code := strconv.Itoa(s.code)
	if !s.whole {
		code = "broken"
	}
	s.traffic.inFlight.Dec()
	s.traffic.took.WithLabelValues(s.route, s.method, code).Observe(time.Since(s.begun).Seconds())
}

// WriteHeader implements http.ResponseWriter.
func (s *seen) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (s *seen) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// named says which route answers.
func named(w http.ResponseWriter, route string) {
	if s, ok := w.(*seen); ok {
		s.route = route
	}
}

// knownMethod keeps clients from making new metrics.
func knownMethod(method string) string {
	if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions}, method) {
		return method
	}
	return "other"
}

// rootRoute is the route of a path at the root.
func rootRoute(path string) string {
	switch {
	case path == "/health_check", path == "/metrics", path == "/record", path == "/records":
		return path
	case strings.HasPrefix(path, recordPrefix):
		return recordPrefix + "{record_id}"
	}
	return "other"
}

// enter takes a slot for a request to /v1, or answers 429. The routes that an
// operator looks at when all is taken need none.
func (s *Server) enter(w http.ResponseWriter, pattern string) (leave func(), ok bool) {
	if slices.Contains([]string{"/v1/status", "/v1/cluster", "/v1/openapi.yaml", "GET /ui/static/{file}", "GET /ui/cluster"}, pattern) {
		return func() {}, true
	}
	if !s.traffic.slots.Take() {
		s.traffic.refused.Inc()
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, "too many concurrent requests; retry later")
		return nil, false
	}
	return s.traffic.slots.Give, true
}
