package fakekube

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/kubernetes/internal/kube"
)

// Server is an API server. Its exported fields may be set before it is asked.
type Server struct {
	*httptest.Server
	Token    string                       // that requests must have; "" for none
	Deny     map[string]bool              // listings that the token has no right to, for example "nodes"
	Rights   map[string]bool              // "watch pods": what the token may do; nil: all
	OnPage   func(what string, pages int) // is called after a page of a listing, for example of "pods", that is not the last
	OnEvent  func()                       // is called after an event of a watch was sent
	Bookmark time.Duration                // between two bookmarks; 50 ms when zero

	mu         sync.Mutex
	version    int
	compacted  int                  // versions up to it are forgotten
	pods       map[string]*kube.Pod // by namespace/name
	jobs       map[string]*kube.Job
	nodes      map[string]*kube.Node
	namespaces map[string]*kube.Namespace
	claims     map[string]*kube.Claim // by namespace/name
	slices     map[string]*kube.Slice
	raw        map[string]json.RawMessage // pods as they are, by namespace/name
	events     []event
	changed    chan struct{} // closed when there are new events
	asked      map[string]int
	verbs      map[string]bool
	down       bool
	epoch      int
}

type event struct {
	version   int
	namespace string
	line      []byte
}

// New starts a server. Close ends it.
func New() *Server {
	s := &Server{pods: map[string]*kube.Pod{}, jobs: map[string]*kube.Job{}, nodes: map[string]*kube.Node{}, namespaces: map[string]*kube.Namespace{},
		claims: map[string]*kube.Claim{}, slices: map[string]*kube.Slice{},
		raw: map[string]json.RawMessage{}, changed: make(chan struct{}), version: 10, asked: map[string]int{}, verbs: map[string]bool{}, Deny: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", s.listPods)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", s.listPods)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}", s.getPod)
	mux.HandleFunc("PATCH /api/v1/namespaces/{namespace}/pods/{name}", s.patchPod)
	mux.HandleFunc("GET /apis/batch/v1/jobs", s.listJobs)
	mux.HandleFunc("GET /apis/batch/v1/namespaces/{namespace}/jobs", s.listJobs)
	mux.HandleFunc("GET /apis/batch/v1/namespaces/{namespace}/jobs/{name}", s.getJob)
	mux.HandleFunc("GET /apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}", s.getClaim)
	mux.HandleFunc("GET /apis/resource.k8s.io/v1/resourceslices", func(w http.ResponseWriter, r *http.Request) { listOf(s, w, r, s.slices) })
	mux.HandleFunc("GET /api/v1/nodes", func(w http.ResponseWriter, r *http.Request) { listOf(s, w, r, s.nodes) })
	mux.HandleFunc("GET /api/v1/namespaces", func(w http.ResponseWriter, r *http.Request) { listOf(s, w, r, s.namespaces) })
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		what := parts[len(parts)-1]
		s.mu.Lock()
		s.asked[r.Method+" "+what]++
		s.verbs[rightOf(r, parts)] = true
		down, token, may := s.down, s.Token, s.Rights
		s.mu.Unlock()
		switch {
		case down:
			writeStatus(w, http.StatusServiceUnavailable, "ServiceUnavailable", "the server is currently unable to handle the request")
		case token != "" && r.Header.Get("Authorization") != "Bearer "+token:
			writeStatus(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		case s.Deny[what], may != nil && !may[rightOf(r, parts)]:
			writeStatus(w, http.StatusForbidden, "Forbidden", rightOf(r, parts)+" is forbidden")
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	return s
}

// rightOf is what a request needs a right for, as RBAC names it.
func rightOf(r *http.Request, parts []string) string {
	resource, verb := parts[len(parts)-1], "list"
	if named := len(parts) > 5 && parts[0] == "api" || len(parts) > 6; named {
		resource, verb = parts[len(parts)-2], strings.ToLower(r.Method)
	}
	if r.URL.Query().Has("watch") {
		verb = "watch"
	}
	return verb + " " + resource
}

func writeStatus(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(statusText(code, reason, message)) // a client that is gone
}

func statusText(code int, reason, message string) []byte {
	return mustJSON(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code})
}

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// Test is what this package needs of a test.
type Test interface {
	Helper()
	TempDir() string
	Fatal(args ...any)
}

// Kubeconfig writes a kubeconfig for the server.
func (s *Server) Kubeconfig(t Test, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	s.WriteKubeconfig(t, path, token)
	return path
}

// WriteKubeconfig writes a kubeconfig for the server into a file.
func (s *Server) WriteKubeconfig(t Test, path, token string) {
	t.Helper()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"k","cluster":{"server":%q,"certificate-authority-data":%q}}],`+
		`"users":[{"name":"u","user":{"token":%q}}],"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}]}`, s.URL, ca, token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Asked is how often something was asked for, for example "GET pods".
func (s *Server) Asked(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

// Version is that of the last change.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.Itoa(s.version)
}

// Down has every question refused, and ends the watches.
func (s *Server) Down(down bool) {
	s.mu.Lock()
	s.down = down
	s.epoch++
	s.wakeWatches()
	s.mu.Unlock()
}

// Compact forgets all changes until now.
func (s *Server) Compact() {
	s.mu.Lock()
	s.version++
	s.compacted, s.events = s.version, nil
	s.wakeWatches()
	s.mu.Unlock()
}

// wakeWatches has the watches send what is new. s.mu is held.
func (s *Server) wakeWatches() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// emitEvent adds an event. s.mu is held.
func (s *Server) emitEvent(typ, namespace string, object any) {
	s.events = append(s.events, event{s.version, namespace, append(mustJSON(map[string]any{"type": typ, "object": object}), '\n')})
	s.wakeWatches()
}

// Put makes a pod, or changes it.
func (s *Server) Put(p kube.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putPod(&p)
}

func (s *Server) putPod(p *kube.Pod) {
	key := p.Metadata.Namespace + "/" + p.Metadata.Name
	typ := "MODIFIED"
	if s.pods[key] == nil {
		typ = "ADDED"
	}
	s.version++
	p.Metadata.ResourceVersion = strconv.Itoa(s.version)
	s.pods[key] = p
	s.emitEvent(typ, p.Metadata.Namespace, p)
	if p.Metadata.Removed() && len(p.Metadata.Finalizers) == 0 {
		s.removePod(key)
	}
}

// PutRaw makes a pod of what may be none.
func (s *Server) PutRaw(namespace, name string, object json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.raw[namespace+"/"+name] = object
	s.emitEvent("ADDED", namespace, object)
}

// Delete deletes a pod now; one with finalizers waits for them.
func (s *Server) Delete(namespace, name string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := namespace + "/" + name
	p := *s.pods[key]
	if len(p.Metadata.Finalizers) > 0 {
		zero := int64(0)
		p.Metadata.DeletionTimestamp, p.Metadata.DeletionGrace = &at, &zero
		s.putPod(&p)
		return
	}
	s.removePod(key)
}

func (s *Server) removePod(key string) {
	p := *s.pods[key]
	delete(s.pods, key)
	s.version++
	p.Metadata.ResourceVersion = strconv.Itoa(s.version)
	s.emitEvent("DELETED", p.Metadata.Namespace, &p)
}

// Pod returns a pod; nil when there is none.
func (s *Server) Pod(namespace, name string) *kube.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[namespace+"/"+name]
}

// PutJob makes or changes a job.
func (s *Server) PutJob(j kube.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[j.Metadata.Namespace+"/"+j.Metadata.Name] = &j
}

// PutNode makes or changes a node.
func (s *Server) PutNode(n kube.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[n.Metadata.Name] = &n
}

// PutNamespace makes or changes a namespace.
func (s *Server) PutNamespace(n kube.Namespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaces[n.Metadata.Name] = &n
}

// PutClaim makes or changes a claim of devices.
func (s *Server) PutClaim(c kube.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims[c.Metadata.Namespace+"/"+c.Metadata.Name] = &c
}

// DeleteClaim deletes a claim of devices.
func (s *Server) DeleteClaim(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, namespace+"/"+name)
}

// PutSlice makes or changes a slice of devices.
func (s *Server) PutSlice(c kube.Slice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slices[c.Metadata.Name] = &c
}

func listOf[T any](s *Server, w http.ResponseWriter, r *http.Request, objects map[string]*T) {
	all := map[string]any{}
	s.mu.Lock()
	for key, o := range objects {
		all[key] = o
	}
	s.mu.Unlock()
	s.listPage(w, r, all)
}

func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) { listOf(s, w, r, s.jobs) }

func (s *Server) getJob(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	j := s.jobs[r.PathValue("namespace")+"/"+r.PathValue("name")]
	s.mu.Unlock()
	writeObject(w, j)
}

func (s *Server) getClaim(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	c := s.claims[r.PathValue("namespace")+"/"+r.PathValue("name")]
	s.mu.Unlock()
	writeObject(w, c)
}

func (s *Server) getPod(w http.ResponseWriter, r *http.Request) {
	writeObject(w, s.Pod(r.PathValue("namespace"), r.PathValue("name")))
}

func writeObject[T any](w http.ResponseWriter, object *T) {
	if object == nil {
		writeStatus(w, http.StatusNotFound, "NotFound", "not found")
		return
	}
	_, _ = w.Write(mustJSON(object))
}

func (s *Server) patchPod(w http.ResponseWriter, r *http.Request) {
	var patch struct {
		Metadata struct {
			UID, ResourceVersion string
			Finalizers           []string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
		writeStatus(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.pods[r.PathValue("namespace")+"/"+r.PathValue("name")]
	switch {
	case old == nil:
		writeStatus(w, http.StatusNotFound, "NotFound", "not found")
	case old.Metadata.UID != patch.Metadata.UID || old.Metadata.ResourceVersion != patch.Metadata.ResourceVersion:
		writeStatus(w, http.StatusConflict, "Conflict", "the object has been modified")
	default:
		p := *old
		p.Metadata.Finalizers = patch.Metadata.Finalizers
		s.putPod(&p)
		_, _ = w.Write(mustJSON(&p))
	}
}

func (s *Server) listPods(w http.ResponseWriter, r *http.Request) {
	q, namespace := r.URL.Query(), r.PathValue("namespace")
	if q.Get("watch") != "" {
		s.serveWatch(w, r, namespace)
		return
	}
	all := map[string]any{}
	s.mu.Lock()
	for key, p := range s.pods {
		all[key] = p
	}
	for key, p := range s.raw {
		all[key] = p
	}
	s.mu.Unlock()
	s.listPage(w, r, all)
}

// listPage answers with a page of the objects of the namespace that the request names, or of all.
func (s *Server) listPage(w http.ResponseWriter, r *http.Request, all map[string]any) {
	q, namespace := r.URL.Query(), r.PathValue("namespace")
	s.mu.Lock()
	version, after := s.version, ""
	if token := q.Get("continue"); token != "" {
		at, key, _ := strings.Cut(token, " ")
		version, _ = strconv.Atoi(at)
		after = key
		if version < s.compacted {
			s.mu.Unlock()
			writeStatus(w, http.StatusGone, "Expired", "The provided continue parameter is too old")
			return
		}
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	meta := map[string]any{"resourceVersion": strconv.Itoa(version)}
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key <= after || namespace != "" && !strings.HasPrefix(key, namespace+"/") {
			continue
		}
		if limit > 0 && len(items) == limit {
			meta["continue"] = strconv.Itoa(version) + " " + after
			break
		}
		items, after = append(items, all[key]), key
	}
	text := mustJSON(map[string]any{"metadata": meta, "items": items})
	what := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	onPage := s.OnPage
	pages := s.asked["GET "+what]
	s.mu.Unlock()
	_, _ = w.Write(text)
	if meta["continue"] != nil && onPage != nil {
		onPage(what, pages)
	}
}

func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, namespace string) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	s.mu.Lock()
	epoch := s.epoch
	s.mu.Unlock()
	every := s.Bookmark
	if every == 0 {
		every = 50 * time.Millisecond
	}
	bookmark := time.NewTicker(every)
	defer bookmark.Stop()
	flush := w.(http.Flusher)
	flush.Flush()
	for {
		s.mu.Lock()
		if s.epoch != epoch {
			s.mu.Unlock()
			return
		}
		if from < s.compacted {
			s.mu.Unlock()
			text := mustJSON(map[string]any{"type": "ERROR", "object": json.RawMessage(statusText(http.StatusGone, "Expired", fmt.Sprintf("too old resource version: %d", from)))})
			_, _ = w.Write(append(text, '\n'))
			return
		}
		var out [][]byte
		for _, e := range s.events {
			if e.version > from && (namespace == "" || e.namespace == namespace) {
				out = append(out, e.line)
			}
		}
		from = s.version
		changed, onEvent := s.changed, s.OnEvent
		s.mu.Unlock()
		for _, line := range out {
			_, _ = w.Write(line)
			flush.Flush()
			if onEvent != nil {
				onEvent()
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-bookmark.C:
			_, _ = w.Write(append(mustJSON(map[string]any{"type": "BOOKMARK", "object": map[string]any{"kind": "Pod", "apiVersion": "v1",
				"metadata": map[string]any{"resourceVersion": strconv.Itoa(from), "creationTimestamp": nil}}}), '\n'))
			flush.Flush()
		}
	}
}

// SetToken changes the token that requests must have.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	s.Token = token
	s.mu.Unlock()
}

// SetRights changes what the token may do, and returns what it might do before.
func (s *Server) SetRights(may map[string]bool) (before map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.Rights = s.Rights, may
	return before
}

// Restore takes the server back to a version, with the pods that it has, as after a
// restore of etcd, and ends the watches.
func (s *Server) Restore(version int) {
	s.mu.Lock()
	s.version, s.compacted, s.events = version, 0, nil
	for _, p := range s.pods {
		p.Metadata.ResourceVersion = "1"
	}
	s.epoch++
	s.wakeWatches()
	s.mu.Unlock()
}

// Forget removes a pod without an event, as a server does whose events were compacted.
func (s *Server) Forget(namespace, name string) {
	s.mu.Lock()
	delete(s.pods, namespace+"/"+name)
	s.mu.Unlock()
}

// Verbs are the rights that were asked for, sorted.
func (s *Server) Verbs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.verbs))
}

// Serve starts a server that only has a kubeconfig: a handler answers.
func Serve(h http.Handler) *Server { return &Server{Server: httptest.NewTLSServer(h)} }

// Count is how many pods there are.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pods)
}
