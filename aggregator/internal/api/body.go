package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// smallBody is what a body may have before it must be admitted as a large
	// one, in bytes.
	smallBody = 1 << 20
	// smallRoom and largeRoom are how much of small bodies and how many large
	// ones are in memory at a time.
	smallRoom = 64 * smallBody
	largeRoom = 4
	// bodyPause and bodyRate are the patience with a client that sends slowly:
	// a pause, and a second for each bodyRate bytes that it did send.
	bodyPause = 30 * time.Second
	bodyRate  = 4 << 10
)

var (
	errTooLarge = errors.New("body too large")
	errNoRoom   = errors.New("too many bodies at a time")
)

// bodyMemory bounds what bodies take in memory. The first part of every body
// comes out of small; the rest of a larger one out of large, all at once, so
// that bodies that wait for each other cannot come to a standstill.
type bodyMemory struct{ small, large *semaphore.Weighted }

func newBodyMemory(limit int64) bodyMemory {
	return bodyMemory{semaphore.NewWeighted(smallRoom), semaphore.NewWeighted(largeRoom * limit)}
}

// body reads a request's body of JSON, decompressed, and hands it to use; what
// the body holds must not be used afterwards. It answers what AUDITOR answers
// when there is no such body.
func (s *Server) body(w http.ResponseWriter, r *http.Request, use func([]byte)) {
	in := newIntake(s, w, r)
	defer in.release()
	if !isJSON(r.Header.Get("Content-Type")) {
		text(w, http.StatusBadRequest, "Content type error")
		return
	}
	if r.ContentLength > s.opt.MaxBody {
		text(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("JSON payload (%d bytes) is larger than allowed (limit: %d bytes).", r.ContentLength, s.opt.MaxBody))
		return
	}
	data, err := in.read()
	switch {
	case errors.Is(err, errTooLarge):
		text(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("JSON payload has exceeded limit (%d bytes).", s.opt.MaxBody))
	case in.lost != nil || errors.Is(err, errNoRoom):
		s.opt.Log.Warn("a body did not come in; its connection is broken off", "path", r.URL.Path, "bytes", in.came, "error", err)
		breakOff()
	case err != nil:
		text(w, http.StatusBadRequest, "Error that occur during reading payload: "+err.Error())
	default:
		s.extendWrite(w)
		use(data)
	}
}

// isJSON is actix's rule: a type that is JSON or ends with +json.
func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (strings.HasSuffix(t, "/json") || strings.HasSuffix(t, "+json"))
}

// intake reads one body. As an io.Reader it gives the bytes as they come from
// the client.
type intake struct {
	ctx      context.Context
	memory   bodyMemory
	patience time.Duration
	limit    int64

	src      io.Reader
	deadline func(time.Time) error
	encoding string
	length   int64 // of the data, -1 when unknown

	came         int64         // bytes from the client
	spent        time.Duration // waiting for them
	lost         error         // the client's connection failed
	small, large int64         // reserved
}

func newIntake(s *Server, w http.ResponseWriter, r *http.Request) *intake {
	in := &intake{
		ctx: r.Context(), memory: s.bodies, patience: s.opt.Patience, limit: s.opt.MaxBody,
		src: r.Body, deadline: http.NewResponseController(w).SetReadDeadline,
		encoding: strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))), length: r.ContentLength,
	}
	if in.compressed() {
		in.length = -1
	}
	in.hurry()
	return in
}

func (in *intake) compressed() bool { return in.encoding != "" && in.encoding != "identity" }

// hurry gives the client the time that is left to it.
func (in *intake) hurry() {
	left := bodyPause + time.Duration(in.came/bodyRate)*time.Second - in.spent
	_ = in.deadline(time.Now().Add(left)) // a writer that cannot is a test's
}

// Read implements io.Reader.
func (in *intake) Read(p []byte) (int, error) {
	in.hurry()
	begun := time.Now()
	n, err := in.src.Read(p)
	in.came += int64(n)
	in.spent += time.Since(begun)
	if err != nil {
		_ = in.deadline(time.Time{})
		if !errors.Is(err, io.EOF) {
			in.lost = err
		}
	}
	return n, err
}

// release gives back what the body had reserved.
func (in *intake) release() {
	in.memory.small.Release(in.small)
	in.memory.large.Release(in.large)
}

// reserve waits until the bodies that are in memory leave room. An overload
// stalls the clients; it is never an answer.
func (in *intake) reserve(room *semaphore.Weighted, taken *int64, n int64) error {
	ctx, cancel := context.WithTimeout(in.ctx, in.patience)
	defer cancel()
	if err := room.Acquire(ctx, n); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	*taken = n
	return nil
}

// read returns the whole body, decompressed.
func (in *intake) read() ([]byte, error) {
	most := in.limit
	if in.length >= 0 {
		most = in.length
	}
	if err := in.reserve(in.memory.small, &in.small, in.first(most)); err != nil {
		return nil, err
	}
	r, closer, err := decompress(in.encoding, in)
	if err != nil {
		return nil, err
	}
	defer closer()
	return in.fill(r, most)
}

// first is what to reserve before anything has come.
func (in *intake) first(most int64) int64 {
	if in.compressed() {
		return decoderRoom
	}
	return min(most, smallBody)
}

// fill reads r to its end, of which most bytes are allowed.
func (in *intake) fill(r io.Reader, most int64) ([]byte, error) {
	size := min(most, smallBody) + 1 // the byte more sees the end, or that there is none
	if in.length < 0 {
		size = min(size, 4<<10)
	}
	data := make([]byte, 0, size)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most:
			return nil, errTooLarge
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		}
		if len(data) == cap(data) {
			if data, err = in.grow(data, most); err != nil {
				return nil, err
			}
		}
	}
}

// grow makes room for more of a body, once it is admitted.
func (in *intake) grow(data []byte, most int64) ([]byte, error) {
	size := int64(len(data))
	if size <= smallBody {
		return slices.Grow(data, int(min(2*size, most+1)-size)), nil
	}
	if in.large == 0 {
		if err := in.reserve(in.memory.large, &in.large, most); err != nil {
			return nil, err
		}
	}
	next := min(2*size, most+1)
	if in.length >= 0 {
		next = most + 1
	}
	return slices.Grow(data, int(next-size)), nil
}
