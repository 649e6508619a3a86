package fakenomad

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
)

// Server is a Nomad of one region. Its exported fields may be set before it is asked.
type Server struct {
	*httptest.Server
	Token    string // that requests must have; "" for none
	NoStream bool   // the event broker is off
	Buffer   int    // how many indexes of events are kept; 100 when zero

	mu      sync.Mutex
	index   uint64
	jobs    map[[2]string]*nomad.Job
	allocs  map[string]*nomad.Allocation
	nodes   map[string]nomad.Node
	waiting map[[2]string]int64 // allocations that wait for room
	events  []line
	changed chan struct{} // closed when there are new events
	epoch   int           // of the server's process
	asked   map[string]int
	down    bool
}

// line is one index of the event stream.
type line struct {
	index uint64
	text  []byte
}

// New starts a server. Close ends it.
func New() *Server {
	s := &Server{
		jobs: map[[2]string]*nomad.Job{}, allocs: map[string]*nomad.Allocation{}, nodes: map[string]nomad.Node{},
		waiting: map[[2]string]int64{}, changed: make(chan struct{}), index: 10, asked: map[string]int{},
	}
	s.Server = httptest.NewServer(s.handler())
	return s
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/allocations", s.listAllocations)
	mux.HandleFunc("GET /v1/allocation/{id}", s.serveAllocation)
	mux.HandleFunc("GET /v1/jobs", s.listJobs)
	mux.HandleFunc("GET /v1/job/{id}", s.serveJob)
	mux.HandleFunc("GET /v1/nodes", s.listNodes)
	mux.HandleFunc("GET /v1/event/stream", s.serveStream)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		what, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
		s.asked[what]++
		down := s.down
		s.mu.Unlock()
		switch {
		case down:
			http.Error(w, "No cluster leader", http.StatusInternalServerError)
		case s.Token != "" && r.Header.Get("X-Nomad-Token") != s.Token:
			http.Error(w, "Permission denied", http.StatusForbidden)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// Asked is how often something was asked for, for example "allocation".
func (s *Server) Asked(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

// Index is that of the last change.
func (s *Server) Index() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index
}

// event is an event of the stream.
type event struct {
	Topic, Type, Key, Namespace string
	Index                       uint64
	Payload                     map[string]any
}

// emitEvents adds a line to the stream. s.mu is held.
func (s *Server) emitEvents(events ...event) {
	for i := range events {
		events[i].Index = s.index
	}
	text, err := json.Marshal(map[string]any{"Index": s.index, "Events": events})
	if err != nil {
		panic(err)
	}
	s.events = append(s.events, line{s.index, append(text, '\n')})
	if n := len(s.events) - cmp.Or(s.Buffer, 100); n > 0 {
		s.events = s.events[n:]
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Register registers a job, or a new version of one.
func (s *Server) Register(j nomad.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	key := [2]string{j.Namespace, j.ID}
	if old := s.jobs[key]; old != nil {
		j.CreateIndex, j.Version = old.CreateIndex, old.Version+1
	} else {
		j.CreateIndex, j.Version = s.index, 0
	}
	j.JobModifyIndex = s.index
	s.jobs[key] = &j
	s.emitEvents(event{Topic: "Job", Type: "JobRegistered", Key: j.ID, Namespace: j.Namespace, Payload: map[string]any{"Job": j}})
}

// Purge removes a job with all of its allocations, whether they run or not, and
// tells of no end of a task, as Nomad does.
func (s *Server) Purge(namespace, id string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	j := s.jobs[[2]string{namespace, id}]
	delete(s.jobs, [2]string{namespace, id})
	maps.DeleteFunc(s.allocs, func(_ string, a *nomad.Allocation) bool { return a.Namespace == namespace && a.JobID == id })
	if j != nil {
		s.emitEvents(event{Topic: "Job", Type: "JobDeregistered", Key: id, Namespace: namespace, Payload: map[string]any{"Job": *j}},
			event{Topic: "Evaluation", Type: "JobDeregistered", Key: "e", Namespace: namespace,
				Payload: map[string]any{"Evaluation": nomad.Evaluation{Namespace: namespace, JobID: id, TriggeredBy: "job-deregister", CreateTime: at.UnixNano()}}})
	}
}

// Put makes an allocation or changes it. A new one belongs to the newest version of
// its job.
func (s *Server) Put(a nomad.Allocation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	typ := "AllocationUpdated"
	if old := s.allocs[a.ID]; old != nil {
		a.CreateIndex, a.CreateTime, a.Job = old.CreateIndex, old.CreateTime, old.Job
	} else {
		typ = "PlanResult"
		a.CreateIndex = s.index
		if j := s.jobs[[2]string{a.Namespace, a.JobID}]; j != nil {
			version := *j
			a.Job = &version
		}
	}
	a.ModifyIndex = s.index
	s.allocs[a.ID] = &a
	told := a
	told.Job = nil
	s.emitEvents(event{Topic: "Allocation", Type: typ, Key: a.ID, Namespace: a.Namespace, Payload: map[string]any{"Allocation": told}})
}

// Collect removes an allocation, as Nomad's garbage collection does: without an event.
func (s *Server) Collect(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	delete(s.allocs, id)
}

// PutNode makes a node or changes it.
func (s *Server) PutNode(n nomad.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	s.nodes[n.ID] = n
}

// Wait says how many allocations of a job wait for room.
func (s *Server) Wait(namespace, job string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[[2]string{namespace, job}] = n
}

// Restart is a restart of the server: streams break off, and the events are lost.
func (s *Server) Restart() {
	s.mu.Lock()
	s.epoch++
	s.events = nil
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	s.CloseClientConnections()
}

// Restore is a restore of an old snapshot, of a time before there was anything.
func (s *Server) Restore() {
	s.mu.Lock()
	s.index = 1
	clear(s.jobs)
	clear(s.allocs)
	s.mu.Unlock()
	s.Restart()
}

// Stop makes the server answer with errors until Continue.
func (s *Server) Stop() {
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	s.Restart()
}

// Continue ends a Stop.
func (s *Server) Continue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

// writePage answers with one page of objects that have an order.
func writePage[T any](s *Server, w http.ResponseWriter, r *http.Request, objects []T, key func(T) string) {
	slices.SortFunc(objects, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	if next := r.URL.Query().Get("next_token"); next != "" {
		at, _ := slices.BinarySearchFunc(objects, next, func(o T, k string) int { return cmp.Compare(key(o), k) })
		objects = objects[at:]
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("per_page")); err == nil && n < len(objects) {
		w.Header().Set("X-Nomad-NextToken", key(objects[n]))
		objects = objects[:n]
	}
	w.Header().Set("X-Nomad-Index", strconv.FormatUint(s.index, 10))
	if objects == nil {
		objects = []T{}
	}
	_ = json.NewEncoder(w).Encode(objects) // the client may have gone
}

func (s *Server) listAllocations(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []nomad.Allocation
	for _, a := range s.allocs {
		stub := *a
		if stub.Job != nil {
			stub.JobVersion = &a.Job.Version
		}
		stub.Job, stub.AllocStates, stub.PreviousAllocation = nil, nil, ""
		if r.URL.Query().Get("resources") != "true" {
			stub.AllocatedResources = nil
		}
		all = append(all, stub)
	}
	writePage(s, w, r, all, func(a nomad.Allocation) string { return fmt.Sprintf("%020d.%s", a.CreateIndex, a.ID) })
}

func (s *Server) serveAllocation(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.allocs[r.PathValue("id")]
	if a == nil {
		http.Error(w, "alloc not found", http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(a)
}

func (s *Server) serveJob(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[[2]string{r.URL.Query().Get("namespace"), r.PathValue("id")}]
	if j == nil {
		http.Error(w, "job not found", http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(j)
}

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []nomad.JobStub
	for _, j := range s.jobs {
		stub := nomad.JobStub{ID: j.ID, ParentID: j.ParentID, Name: j.Name, Namespace: j.Namespace, NodePool: j.NodePool, CreateIndex: j.CreateIndex}
		if r.URL.Query().Get("meta") == "true" {
			stub.Meta = j.Meta
		}
		sum := struct{ Queued, Running, Starting, Unknown int64 }{Queued: s.waiting[[2]string{j.Namespace, j.ID}]}
		for _, a := range s.allocs {
			if a.Namespace == j.Namespace && a.JobID == j.ID {
				switch a.ClientStatus {
				case nomad.Running:
					sum.Running++
				case nomad.Pending:
					sum.Starting++
				case nomad.Unknown:
					sum.Unknown++
				}
			}
		}
		stub.JobSummary = &struct {
			Summary map[string]struct{ Queued, Running, Starting, Unknown int64 }
		}{map[string]struct{ Queued, Running, Starting, Unknown int64 }{"g": sum}}
		all = append(all, stub)
	}
	writePage(s, w, r, all, func(j nomad.JobStub) string { return j.Namespace + "." + j.ID })
}

func (s *Server) listNodes(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	writePage(s, w, r, slices.Collect(maps.Values(s.nodes)), func(n nomad.Node) string { return n.ID })
}

// serveStream sends events from an index on until the client goes or the server restarts.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	if s.NoStream {
		http.Error(w, "event broker is not enabled", http.StatusBadRequest)
		return
	}
	after, _ := strconv.ParseUint(r.URL.Query().Get("index"), 10, 64)
	after = max(after, 1) - 1
	_, _ = w.Write([]byte("{}\n"))
	s.mu.Lock()
	epoch := s.epoch
	s.mu.Unlock()
	for {
		s.mu.Lock()
		var out []byte
		for _, l := range s.events {
			if l.index > after {
				out, after = append(out, l.text...), l.index
			}
		}
		changed, same := s.changed, s.epoch == epoch
		s.mu.Unlock()
		if !same {
			return
		}
		if _, err := w.Write(out); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
