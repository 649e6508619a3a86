package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/proto/auditor"
)

// answerTime is how long a client may take to fetch an answer, and in a stream
// each piece of it.
const answerTime = time.Minute

// answerText answers with plain text.
func answerText(w http.ResponseWriter, status int, body string) { auditor.Text(w, status, body) }

// answerBytes answers with a body; the content type is the caller's, or none.
func answerBytes(w http.ResponseWriter, status int, body []byte) { auditor.Bare(w, status, body) }

// answerEmpty answers without a body.
func answerEmpty(w http.ResponseWriter, status int) { auditor.Empty(w, status) }

// answerRawJSON answers with JSON that is written already.
func answerRawJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	answerBytes(w, status, body)
}

// jsonError answers {"error": …}, as AUDITOR's query errors are.
func jsonError(w http.ResponseWriter, status int, message string) {
	body, err := json.Marshal(map[string]string{"error": message})
	if err != nil {
		body = []byte(`{"error":"unprintable"}`)
	}
	answerRawJSON(w, status, body)
}

// breakOff ends the connection without an answer, so that the client knows that
// it does not know.
func breakOff() { auditor.BreakOff() }

// readBody reads a request's body of JSON, decompressed, and hands it to use; what
// the body holds must not be used afterwards. It answers what AUDITOR answers
// when there is no such body.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, use func([]byte)) {
	if !auditor.IsJSON(r) {
		no := auditor.TypeRefusal()
		answerText(w, no.Status, no.Text)
		return
	}
	err := s.bodies.Take(w, r, func(data []byte, no *auditor.Refusal) {
		if no != nil {
			answerText(w, no.Status, no.Text)
			return
		}
		s.extendWrite(w)
		use(data)
	})
	if err != nil {
		s.opt.Log.Warn("a body did not come in; its connection is broken off", "path", r.URL.Path, "error", err)
		breakOff()
	}
}
