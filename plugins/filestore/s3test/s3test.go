// Package s3test is a server of S3 for tests.
package s3test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is one of S3 with a bucket of the name archive. It takes objects in one piece, without a look at the signature.
type Server struct {
	mu      sync.Mutex
	Objects map[string][]byte // by bucket/key; not while it serves
	// Refuse answers with an error of S3 unless its status is 0; nil refuses nothing.
	Refuse func(r *http.Request) (status int, code string)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/")
	object, there := s.Objects[key]
	status, code := 0, ""
	if s.Refuse != nil {
		status, code = s.Refuse(r)
	}
	switch {
	case status != 0:
	case !strings.HasPrefix(key, "archive/") && key != "archive":
		status, code = 404, "NoSuchBucket"
	case r.URL.Query().Has("list-type"):
		s.list(w, r.URL.Query().Get("prefix"))
		return
	case r.Method == http.MethodPut:
		if s.Objects == nil {
			s.Objects = map[string][]byte{}
		}
		s.Objects[key] = plain(r, body)
		w.Header().Set("ETag", `"x"`)
		return
	case r.Method == http.MethodDelete:
		delete(s.Objects, key)
		w.WriteHeader(http.StatusNoContent)
		return
	case !there:
		status, code = 404, "NoSuchKey"
	default:
		w.Header().Set("ETag", `"x"`)
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(object))
		return
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
}

// plain takes the chunks of a signed body apart.
func plain(r *http.Request, body []byte) (out []byte) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return body
	}
	for {
		head, rest, ok := bytes.Cut(body, []byte("\r\n"))
		size, _, _ := bytes.Cut(head, []byte(";"))
		var n int
		if _, err := fmt.Sscanf(string(size), "%x", &n); err != nil || n == 0 || !ok {
			return out
		}
		out, body = append(out, rest[:n]...), rest[n+2:]
	}
}

func (s *Server) list(w io.Writer, prefix string) {
	type contents struct{ Key string }
	out := struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []contents
	}{}
	for _, name := range slices.Sorted(maps.Keys(s.Objects)) {
		if key := strings.TrimPrefix(name, "archive/"); strings.HasPrefix(key, prefix) {
			out.Contents = append(out.Contents, contents{key})
		}
	}
	_ = xml.NewEncoder(w).Encode(out) // a client that left
}
