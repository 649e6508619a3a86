package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// What a caller may decide on. [errors.Is] finds them in a [Problem] and in what
// AUDITOR's routes answer.
var (
	ErrExists    = errors.New("record exists")
	ErrNotFound  = errors.New("not found")
	ErrForbidden = errors.New("not permitted")
	// ErrNoMatch: no record has what a filter asks for; the detail names what is near.
	ErrNoMatch = errors.New("no record matches")
	// ErrArchive: the server cannot read the files of an archive; the detail names it.
	ErrArchive = errors.New("archive cannot be read")
)

// Problem is a refusal by the server: problem+json (RFC 9457), or what can be
// made of an answer in another form.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
	// RetryAfter is the header of that name, such as "1", in seconds; "" for none.
	RetryAfter string `json:"-"`
	// Extra holds the members of problem+json that RFC 9457 does not name.
	Extra map[string]json.RawMessage `json:"-"`
}

// Error returns the detail, or else the title, with the status.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	status := fmt.Sprintf("%d %s", p.Status, http.StatusText(p.Status))
	if text == "" || text == http.StatusText(p.Status) {
		return status
	}
	return fmt.Sprintf("%s (%s)", text, status)
}

// Is reports whether p is of the kind of one of the sentinels.
func (p *Problem) Is(target error) bool {
	switch target {
	case ErrExists:
		return p.Detail == recordExists
	case ErrNotFound:
		return p.Status == http.StatusNotFound
	case ErrNoMatch:
		return p.Type == v1.TypeNoMatch
	case ErrArchive:
		return p.Type == v1.TypeArchive
	case ErrForbidden:
		return p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden
	}
	return false
}

// recordExists is the body by which AUDITOR refuses an id that is there.
const recordExists = "RECORD_EXISTS"

// readRefusal reads an answer that is no success.
func readRefusal(resp *http.Response) *Problem {
	const most = 64 << 10
	body, _ := io.ReadAll(io.LimitReader(resp.Body, most))
	p := &Problem{}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "application/problem+json" && json.Unmarshal(body, p) == nil {
		p.Extra = extraMembers(body)
	} else {
		p.Detail = bodyText(body)
	}
	p.Status, p.RetryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	return p
}

func extraMembers(body []byte) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return nil
	}
	for _, known := range []string{"type", "title", "status", "detail", "instance"} {
		delete(all, known)
	}
	return all
}

// bodyText is what a body says that is no problem+json: AUDITOR's {"error": "…"},
// or the body itself, cut to a length for people.
func bodyText(body []byte) string {
	var wrapped struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &wrapped) == nil && wrapped.Error != "" {
		return wrapped.Error
	}
	const most = 1024
	s := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), most)]), "\uFFFD"))
	if len(body) > most {
		s += "…"
	}
	return s
}
