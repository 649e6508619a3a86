package api

import (
	"encoding/json"
	"net/http"
	"time"
)

// answerTime is how long a client may take to fetch an answer, and in a stream
// each piece of it.
const answerTime = time.Minute

// text answers with plain text.
func text(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	bare(w, status, []byte(body))
}

// bare answers with a body; the content type is the caller's, or none.
func bare(w http.ResponseWriter, status int, body []byte) {
	if w.Header().Get("Content-Type") == "" {
		w.Header()["Content-Type"] = nil // or net/http guesses one
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON or plain text, never HTML; a client that is gone needs no answer
}

// empty answers without a body.
func empty(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
}

// raw answers with JSON that is written already.
func raw(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	bare(w, status, body)
}

// jsonError answers {"error": …}, as AUDITOR's query errors are.
func jsonError(w http.ResponseWriter, status int, message string) {
	body, err := json.Marshal(map[string]string{"error": message})
	if err != nil {
		body = []byte(`{"error":"unprintable"}`)
	}
	raw(w, status, body)
}

// breakOff ends the connection without an answer, so that the client knows that
// it does not know.
func breakOff() { panic(http.ErrAbortHandler) }
