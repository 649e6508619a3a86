package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/proto/local"
)

// Listen makes the socket, for the user of this process alone, in the place of
// one that no one listens on any more.
func Listen(path string) (net.Listener, error) {
	l, err := local.Listen(path, 0o600)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return l, nil
}

// Serve answers on l until ctx ends, and closes it.
func Serve(ctx context.Context, l net.Listener, agent Agent) error {
	server := &http.Server{Handler: handler(agent), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

func handler(agent Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, agent.Status()) })
	mux.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, r *http.Request) { reload(w, r, agent) })
	mux.HandleFunc("POST /v1/forget", func(w http.ResponseWriter, r *http.Request) { forget(w, r, agent) })
	mux.HandleFunc("POST /v1/recollect", func(w http.ResponseWriter, r *http.Request) { recollect(w, r, agent) })
	return mux
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error: the other end is gone
}

func reload(w http.ResponseWriter, r *http.Request, agent Agent) {
	done, err := agent.Reload(context.WithoutCancel(r.Context()))
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, Refusal{err.Error()})
		return
	}
	answer(w, http.StatusOK, done)
}

// maxRequest bounds the body of a request in bytes.
const maxRequest = 64 << 10

// read reads the request's body into req, or answers that it cannot.
func read(w http.ResponseWriter, r *http.Request, req any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(req)
	if err != nil {
		answer(w, http.StatusBadRequest, Refusal{err.Error()})
	}
	return err == nil
}

func forget(w http.ResponseWriter, r *http.Request, agent Agent) {
	var req Forget
	if !read(w, r, &req) {
		return
	}
	done, err := agent.Forget(r.Context(), req)
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, Refusal{err.Error()})
		return
	}
	answer(w, http.StatusOK, done)
}

func recollect(w http.ResponseWriter, r *http.Request, agent Agent) {
	var req Recollect
	if !read(w, r, &req) {
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	send := func(s Step) error {
		if err := lines.Encode(s); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}
	counts, err := agent.Recollect(r.Context(), req, send)
	last := Step{Counts: counts, Done: true}
	if err != nil {
		last.Error = err.Error()
	}
	_ = send(last) // an error: the other end is gone
}
