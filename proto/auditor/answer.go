package auditor

import (
	"net/http"
	"slices"
	"strings"
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
