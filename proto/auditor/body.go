package auditor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/bursar-accounting/bursar/proto/poison"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

const (
	// firstBody, middleBody and smallBody are what a body may have, in bytes,
	// before it must be admitted as the next larger one.
	firstBody  = 16 << 10
	middleBody = 128 << 10
	smallBody  = 1 << 20
	// growth is by how much each stage of the large bodies is larger than the one before.
	growth = 4
	// How much of the bodies is in memory at a time: of their beginnings, of what
	// follows in those that have sent so much, of compressed ones, of each stage of
	// large ones and, by number, of the largest.
	firstRoom  = 4096 * firstBody
	middleRoom = 256 * middleBody
	smallRoom  = 64 * smallBody
	packedRoom = 64 * smallBody
	growRoom   = 64 * smallBody
	largeRoom  = 2
	// smallStage is the index of the stage of smallBody.
	smallStage = 2
	// bodyPause and bodyRate are the patience with a client that sends slowly:
	// a pause, and a second for each bodyRate bytes that it did send.
	bodyPause = 30 * time.Second
	bodyRate  = 4 << 10
	// largePause is how long a body beyond smallBody may take for each largePart: it
	// holds what others wait for, who have more patience than that. What it sent fast
	// before does not count.
	largePause = 10 * time.Second
	largePart  = 160 << 10

	// While a body waits for room, a body that has some must bring what it was given room
	// for within fairTime, which is less than others have patience, and may pause for
	// fairPause. Where it does not, the slowest is dropped, one each dropEvery. Of a
	// compressed body each byte counts for packedWorth.
	fairTime    = 20 * time.Second
	fairPause   = 2 * time.Second
	dropEvery   = time.Second
	packedWorth = 16
)

var (
	errTooLarge = errors.New("body too large")
	errNoRoom   = errors.New("too many bodies at a time")
	errSlow     = errors.New("it came too slowly while others waited for its memory")
)

// bodyMemory bounds what bodies take in memory, by stages. The beginning of every
// body comes out of the first room, what follows out of the others, all of a
// stage at once and in this order, so that bodies that wait for each other cannot
// come to a standstill. To hold much a client must have sent much, and to keep it while
// others wait it must go on sending: those that announce and send nothing stop no one.
type bodyMemory struct {
	stages []stage
	packed *room // of compressed bodies, until they are large
}

// stage is the room of bodies of up to most bytes.
type stage struct {
	most int64
	room *room
}

// room bounds the bytes that bodies hold.
type room struct {
	*semaphore.Weighted

	mu   sync.Mutex
	held map[*reservation]struct{}
}

// dropSlowest ends the body that is furthest behind what it must bring while others
// wait. Where none is behind, it does nothing.
func (r *room) dropSlowest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var slowest *reservation
	most := time.Duration(0)
	for h := range r.held {
		if late := h.lateBy(); late > most {
			slowest, most = h, late
		}
	}
	if slowest != nil {
		slowest.in.dropClient() // which holds its room until r.mu is free
	}
}

func newBodyMemory(limit, share int64) bodyMemory {
	room := func(n, least int64) *room {
		return &room{Weighted: semaphore.NewWeighted(max(n/share, least)), held: map[*reservation]struct{}{}}
	}
	m := bodyMemory{
		stages: []stage{
			{firstBody, room(firstRoom, firstBody)}, {middleBody, room(middleRoom, middleBody)}, {smallBody, room(smallRoom, smallBody)},
		},
		packed: room(packedRoom, decoderRoom),
	}
	for most := int64(growth * smallBody); most < limit; most *= growth {
		m.stages = append(m.stages, stage{most, room(growRoom, most)})
	}
	m.stages = append(m.stages, stage{limit, room(largeRoom*limit, limit)})
	return m
}

// Bodies reads the bodies of requests, and bounds what all of them together take
// in memory.
type Bodies struct {
	limit    int64
	patience time.Duration
	memory   bodyMemory
}

// NewBodies takes bodies of up to limit bytes, decompressed. One that finds no room
// waits for as long as patience lasts. Share divides the room, for a program that
// has less than a server of its own; 1 is the whole.
func NewBodies(limit int64, patience time.Duration, share int64) *Bodies {
	return &Bodies{limit: limit, patience: patience, memory: newBodyMemory(limit, share)}
}

// Refusal is what AUDITOR answers where a body is not taken.
type Refusal struct {
	Status int
	Text   string
}

// Take reads the body of a request, decompressed, and calls use with it; the body is
// lent until use returns. When the body is refused, use gets why
// and what was read of it until then, which may be nothing. On an error, use was
// not called: the body did not come in, or found no room, and the connection has
// to be broken off.
func (b *Bodies) Take(w http.ResponseWriter, r *http.Request, use func(data []byte, no *Refusal)) error {
	if r.ContentLength > b.limit {
		use(nil, &Refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("JSON payload (%d bytes) is larger than allowed (limit: %d bytes).", r.ContentLength, b.limit)})
		return nil
	}
	in := newBodyReader(b, w, r)
	defer in.releaseMemory()
	data, err := in.readBody()
	defer poison.Bytes(data)
	switch {
	case errors.Is(err, errTooLarge):
		use(data, &Refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("JSON payload has exceeded limit (%d bytes).", b.limit)})
	case in.lost != nil || errors.Is(err, errNoRoom):
		return fmt.Errorf("after %d bytes of the body: %w", in.came, err)
	case err != nil:
		use(data, &Refusal{http.StatusBadRequest, "Error that occur during reading payload: " + err.Error()})
	default:
		use(data, nil)
	}
	return nil
}

// TypeRefusal is what AUDITOR answers to a body that is not said to be JSON.
func TypeRefusal() *Refusal { return &Refusal{http.StatusBadRequest, "Content type error"} }

// IsJSON reports whether a request says that its body is JSON, by actix's rule: a
// type that is JSON or ends with +json.
func IsJSON(r *http.Request) bool {
	said := r.Header.Get("Content-Type")
	if said == "application/json" {
		return true
	}
	t, _, err := mime.ParseMediaType(said)
	return err == nil && (strings.HasSuffix(t, "/json") || strings.HasSuffix(t, "+json"))
}

// bodyReader reads one body. As an io.Reader it gives the bytes as they come from
// the client.
type bodyReader struct {
	ctx      context.Context
	memory   bodyMemory
	patience time.Duration
	limit    int64

	src      io.Reader
	deadline func(time.Time) error
	encoding string
	length   int64 // of the data, -1 when unknown

	mu      sync.Mutex    // of the flow, which those that wait for room look at
	came    int64         // bytes from the client
	spent   time.Duration // waiting for them
	reading time.Time     // since when it waits for the next; zero: it does not
	dropped bool          // for being slow

	lost  error          // the client's connection failed
	large *pace          // of a body beyond smallBody; nil: it is not
	held  []*reservation // what is reserved

	stage    int   // which of memory's stages admitted it
	admitted int64 // how many bytes it may have
}

// pace is where a body was when its latest part began.
type pace struct {
	came  int64
	spent time.Duration
}

// reservation is what a body has of a room.
type reservation struct {
	in   *bodyReader
	room *room
	n    int64
	pace // when it got it
}

// lateBy returns by how much the body is behind what it must bring while others wait for
// the room; 0 or less: it is not.
func (h *reservation) lateBy() time.Duration {
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	if h.in.reading.IsZero() || h.in.dropped {
		return 0
	}
	silent := time.Since(h.in.reading)
	came := float64(h.in.came - h.came)
	if h.in.isCompressed() {
		came *= packedWorth
	}
	brought := time.Duration(came / float64(h.n) * float64(fairTime))
	return max(silent, h.in.spent+silent-h.spent-brought) - fairPause
}

// dropClient ends the wait for a client that is too slow.
func (in *bodyReader) dropClient() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.dropped = true
	in.updateDeadline()
}

func newBodyReader(b *Bodies, w http.ResponseWriter, r *http.Request) *bodyReader {
	in := &bodyReader{
		ctx: r.Context(), memory: b.memory, patience: b.patience, limit: b.limit,
		src: r.Body, deadline: http.NewResponseController(w).SetReadDeadline,
		encoding: strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))), length: r.ContentLength,
	}
	if in.isCompressed() {
		in.length = -1
	}
	return in
}

func (in *bodyReader) isCompressed() bool { return in.encoding != "" && in.encoding != "identity" }

// updateDeadline sets the deadline to the time that is left to the client. in.mu is held.
func (in *bodyReader) updateDeadline() {
	left := bodyPause + time.Duration(in.came/bodyRate)*time.Second - in.spent
	if l := in.large; l != nil {
		if in.came-l.came >= largePart {
			*l = pace{came: in.came, spent: in.spent}
		}
		left = min(left, largePause-(in.spent-l.spent))
	}
	if in.dropped {
		left = 0
	}
	_ = in.deadline(time.Now().Add(left)) // a writer that cannot is a test's
}

// Read implements io.Reader.
func (in *bodyReader) Read(p []byte) (int, error) {
	in.mu.Lock()
	in.updateDeadline()
	in.reading = time.Now()
	in.mu.Unlock()
	n, err := in.src.Read(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.came += int64(n)
	in.spent += time.Since(in.reading)
	in.reading = time.Time{}
	if err != nil {
		_ = in.deadline(time.Time{})
		if !errors.Is(err, io.EOF) {
			if in.dropped {
				err = errSlow
			}
			in.lost = err
		}
	}
	return n, err
}

// releaseMemory gives back what the body had reserved.
func (in *bodyReader) releaseMemory() {
	for _, h := range in.held {
		h.room.mu.Lock()
		delete(h.room.held, h)
		h.room.mu.Unlock()
		h.room.Release(h.n)
	}
	in.held = nil
}

// reserveMemory waits until the bodies that are in memory leave room; those that are slow lose
// theirs. An overload stalls the clients; it is never an answer.
func (in *bodyReader) reserveMemory(room *room, n int64) error {
	if !room.TryAcquire(n) {
		ctx, cancel := context.WithTimeout(in.ctx, in.patience)
		defer cancel()
		go repeat.Every(ctx, dropEvery, func() bool {
			room.dropSlowest()
			return true
		})
		if err := room.Acquire(ctx, n); err != nil {
			return fmt.Errorf("%w: %w", errNoRoom, err)
		}
	}
	h := &reservation{in, room, n, pace{came: in.came, spent: in.spent}}
	room.mu.Lock()
	room.held[h] = struct{}{}
	room.mu.Unlock()
	in.held = append(in.held, h)
	return nil
}

// admitTo lets the body into a stage.
func (in *bodyReader) admitTo(stage int, most int64) error {
	s := in.memory.stages[stage]
	in.stage, in.admitted = stage, min(most, s.most)
	if err := in.reserveMemory(s.room, in.admitted); err != nil {
		return err
	}
	if stage > smallStage && in.large == nil {
		in.large = &pace{came: in.came, spent: in.spent}
	}
	return nil
}

// reserveFirst reserves what the body needs before anything has come.
func (in *bodyReader) reserveFirst(most int64) error {
	if !in.isCompressed() {
		return in.admitTo(0, most)
	}
	in.stage, in.admitted = smallStage, min(most, smallBody)
	return in.reserveMemory(in.memory.packed, decoderRoom)
}

// readBody returns the whole body, decompressed; with an error, what came of it.
func (in *bodyReader) readBody() ([]byte, error) {
	most := in.limit
	if in.length >= 0 {
		most = in.length
	}
	if err := in.reserveFirst(most); err != nil {
		return nil, err
	}
	r, closer, err := decompressBody(in.encoding, in)
	if err != nil {
		return nil, err
	}
	defer closer()
	return in.readAllOf(r, most)
}

// readAllOf reads r to its end, of which most bytes are allowed.
func (in *bodyReader) readAllOf(r io.Reader, most int64) ([]byte, error) {
	size := in.admitted + 1 // the byte more sees the end, or that there is none
	if in.length < 0 {
		size = min(size, 4<<10)
	}
	data := make([]byte, 0, size)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most:
			return data, errTooLarge
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return data, err
		}
		if len(data) == cap(data) {
			if data, err = in.growBuffer(data, most); err != nil {
				return nil, err
			}
		}
	}
}

// growBuffer makes room for more of a body, once it is admitted.
func (in *bodyReader) growBuffer(data []byte, most int64) ([]byte, error) {
	size := int64(len(data))
	if size > in.admitted {
		if err := in.admitTo(in.stage+1, most); err != nil {
			return nil, err
		}
	}
	next := in.admitted + 1
	if in.length < 0 {
		next = min(2*size, next)
	}
	return slices.Grow(data, int(next-size)), nil
}
