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
	server := &http.Server{Handler: newHandler(agent), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

func newHandler(agent Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, agent.Status()) })
	mux.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, r *http.Request) { serveReload(w, r, agent) })
	mux.HandleFunc("POST /v1/forget", func(w http.ResponseWriter, r *http.Request) { serveForget(w, r, agent) })
	mux.HandleFunc("POST /v1/recollect", func(w http.ResponseWriter, r *http.Request) { serveRecollect(w, r, agent) })
	return mux
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error: the other end is gone
}

func serveReload(w http.ResponseWriter, r *http.Request, agent Agent) {
	done, err := agent.Reload(context.WithoutCancel(r.Context()))
	if err != nil {
		writeJSON(w, http.StatusUnprocessableEntity, Refusal{err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, done)
}

// maxRequest bounds the body of a request in bytes.
const maxRequest = 64 << 10

// decodeRequest reads the request's body into req, or answers that it cannot.
func decodeRequest(w http.ResponseWriter, r *http.Request, req any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(req)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, Refusal{err.Error()})
	}
	return err == nil
}

func serveForget(w http.ResponseWriter, r *http.Request, agent Agent) {
	var req Forget
	if !decodeRequest(w, r, &req) {
		return
	}
	done, err := agent.Forget(r.Context(), req)
	if err != nil {
		writeJSON(w, http.StatusUnprocessableEntity, Refusal{err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, done)
}

func serveRecollect(w http.ResponseWriter, r *http.Request, agent Agent) {
	var req Recollect
	if !decodeRequest(w, r, &req) {
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
