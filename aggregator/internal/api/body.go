package api

import (
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// body reads a request's body of JSON, decompressed, and hands it to use; what
// the body holds must not be used afterwards. It answers what AUDITOR answers
// when there is no such body.
func (s *Server) body(w http.ResponseWriter, r *http.Request, use func([]byte)) {
	if !isJSON(r.Header.Get("Content-Type")) {
		text(w, http.StatusBadRequest, "Content type error")
		return
	}
	if r.ContentLength > s.opt.MaxBody {
		text(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("JSON payload (%d bytes) is larger than allowed (limit: %d bytes).", r.ContentLength, s.opt.MaxBody))
		return
	}
	release, err := s.admit(r)
	if err != nil {
		breakOff() // the client is gone
	}
	defer release()
	data, err := s.read(r)
	switch {
	case errors.Is(err, errTooLarge):
		text(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("JSON payload has exceeded limit (%d bytes).", s.opt.MaxBody))
	case err != nil:
		text(w, http.StatusBadRequest, "Error that occur during reading payload: "+err.Error())
	default:
		use(data)
	}
}

// admit waits until the bodies that are in memory leave room for this one. An
// overload stalls the clients; it is never an answer.
func (s *Server) admit(r *http.Request) (release func(), err error) {
	need := s.opt.MaxBody
	if r.ContentLength >= 0 && r.Header.Get("Content-Encoding") == "" {
		need = r.ContentLength
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.opt.Patience)
	defer cancel()
	if err := s.bodies.Acquire(ctx, need); err != nil {
		return nil, err
	}
	return func() { s.bodies.Release(need) }, nil
}

// isJSON is actix's rule: application/json or a type that ends with +json.
func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

var errTooLarge = errors.New("body too large")

// read reads the body up to the limit.
func (s *Server) read(r *http.Request) ([]byte, error) {
	reader, closer, err := decompress(r.Header.Get("Content-Encoding"), r.Body)
	if err != nil {
		return nil, err
	}
	defer closer()
	size := max(r.ContentLength, 512)
	data := make([]byte, 0, min(size+1, s.opt.MaxBody+1))
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := reader.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if int64(len(data)) > s.opt.MaxBody {
			return nil, errTooLarge
		}
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// decompress undoes a content encoding.
func decompress(encoding string, body io.Reader) (r io.Reader, closer func(), err error) {
	nothing := func() {}
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nothing, nil
	case "gzip":
		r, err = gzip.NewReader(body)
	case "deflate":
		r, err = zlib.NewReader(body)
	case "br":
		r = brotli.NewReader(body)
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return nil, nothing, err
		}
		return z, z.Close, nil
	default:
		err = fmt.Errorf("content encoding %q is not supported; use gzip, br, zstd or deflate", encoding)
	}
	return r, nothing, err
}
