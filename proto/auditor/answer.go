package auditor

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The bodies of AUDITOR's answers, which its clients compare byte by byte.
const (
	Exists      = "RECORD_EXISTS"
	OneIgnored  = `{"warning":"Record already exists, but the error was ignored due to AUDITOR configuration."}`
	SomeIgnored = `{"warning":"One or more records already exist, but the error was ignored due to AUDITOR configuration."}`
	NotFound    = "The requested resource was not found. 404 Not Found"
)

// Text answers with plain text.
func Text(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	Bare(w, status, []byte(body))
}

// Bare answers with a body; the content type is the caller's, or none.
func Bare(w http.ResponseWriter, status int, body []byte) {
	if w.Header().Get("Content-Type") == "" {
		w.Header()["Content-Type"] = nil // or net/http guesses one
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON or plain text, never HTML; a client that is gone needs no answer
}

// Empty answers without a body.
func Empty(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
}

// AlreadyExists answers that a record, or one of several, is known.
func AlreadyExists(w http.ResponseWriter) {
	Bare(w, http.StatusInternalServerError, []byte(Exists))
}

// NotAllowed answers that the path is known, and takes only the methods.
func NotAllowed(w http.ResponseWriter, methods ...string) {
	slices.Sort(methods)
	w.Header().Set("Allow", strings.Join(methods, ", "))
	Empty(w, http.StatusMethodNotAllowed)
}

// BreakOff ends the connection without an answer, so that the client knows that it
// does not know.
func BreakOff() { panic(http.ErrAbortHandler) }

// BreakOffOnPanic turns a panic into a broken connection, so that a client does not take half an
// answer for a whole one. It logs every panic but that of [BreakOff]. A handler defers it.
func BreakOffOnPanic(w http.ResponseWriter, r *http.Request, log *slog.Logger) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause != http.ErrAbortHandler { //nolint:errorlint // a panic is with the very value
		log.Error("a request met a defect; its connection is broken off", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	}
	LimitBody(w, 0)
	BreakOff()
}

// LimitBody bounds how long the rest of a request's body is waited for, from now on. Without it
// net/http waits for as long as the client likes before it ends a request.
func LimitBody(w http.ResponseWriter, wait time.Duration) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(wait)) // a writer that cannot is a test's
}
