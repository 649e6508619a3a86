package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/queue"
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/origin"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Queue keeps what is pushed.
type Queue interface {
	// Do returns when it is on the agent's disk. The error says that it is not, as
	// far as anyone knows.
	Do(ctx context.Context, p queue.Push) (queue.Result, error)
	// Ready reports whether Do would return soon.
	Ready() bool
}

// Options of a [Handler].
type Options struct {
	Queue Queue
	// May says why the sender of a request may not write.
	May func(r *http.Request) error
	// Hosts are names of a listener without TLS, beside those that it always has. A
	// request for another host is not answered: a page of another site may have sent it.
	Hosts origin.Hosts
	// Kinds are those of components that do not say theirs.
	Kinds record.Kinds
	// MaxBody bounds a body in bytes, decompressed.
	MaxBody int64
	// Patience is how long a push waits before its connection is broken off.
	Patience time.Duration
	Log      *slog.Logger
}

// Handler answers requests, as an [http.Handler].
type Handler struct {
	opt    Options
	bodies *auditor.Bodies
	quiet  quiet
}

const (
	// share of the room for bodies that a server of its own has.
	share = 8
	// answerTime is how long a client may take to fetch an answer.
	answerTime = time.Minute
	// maxRefusedBody is how much of a body is read that is refused for its size.
	maxRefusedBody = 64 << 10
	// lingering is how long a client may take to send that much.
	lingering = 10 * time.Second
)

// New makes a handler.
func New(opt Options) *Handler {
	return &Handler{opt: opt, bodies: auditor.NewBodies(opt.MaxBody, opt.Patience, share)}
}

// ServeHTTP implements http.Handler.
func (d *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer auditor.BreakOffOnPanic(w, r, d.opt.Log)
	defer auditor.LimitBody(w, lingering)
	d.extendDeadline(w)
	if r.TLS == nil {
		if err := d.opt.Hosts.Check(r); err != nil {
			d.breakOff(r, "a request for an unknown host was refused; add the host to hosts if it is this machine's", err)
		}
	}
	switch r.URL.EscapedPath() {
	case "/health_check":
		d.routeMethod(w, r, map[string]http.HandlerFunc{http.MethodGet: d.serveHealth})
	case "/record":
		d.routeMethod(w, r, map[string]http.HandlerFunc{http.MethodPost: d.requireWriter(d.addRecord), http.MethodPut: d.requireWriter(d.updateRecord)})
	case "/records":
		d.routeMethod(w, r, map[string]http.HandlerFunc{http.MethodPost: d.requireWriter(d.addMany)})
	default:
		auditor.Text(w, http.StatusNotFound, auditor.NotFound)
	}
}

// extendDeadline gives the answer its time.
func (d *Handler) extendDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d.opt.Patience + answerTime)) // a writer that cannot is a test's
}

func (d *Handler) routeMethod(w http.ResponseWriter, r *http.Request, methods map[string]http.HandlerFunc) {
	if h, ok := methods[r.Method]; ok {
		h(w, r)
		return
	}
	var allow []string
	for m := range methods {
		allow = append(allow, m)
	}
	slices.Sort(allow)
	auditor.NotAllowed(w, allow...)
}

// requireWriter lets only writers write. The others are not answered, because what
// they push would be lost by any answer.
func (d *Handler) requireWriter(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := origin.CheckSite(r)
		if err == nil {
			err = d.opt.May(r)
		}
		if err != nil {
			d.breakOff(r, "a push was refused; its connection is broken off", err)
		}
		h(w, r)
	}
}

// serveHealth says whether a push would be taken now.
func (d *Handler) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if d.opt.Queue.Ready() {
		auditor.Empty(w, http.StatusOK)
		return
	}
	auditor.Empty(w, http.StatusInternalServerError)
}

// addRecord is POST /record.
func (d *Handler) addRecord(w http.ResponseWriter, r *http.Request) {
	d.acceptPush(w, r, func(body []byte) (queue.Push, error) {
		rec, err := wire.DecodeAdd(body, d.opt.Kinds)
		return queue.Push{Records: []record.Record{rec}}, err
	}, auditor.OneIgnored)
}

// addMany is POST /records.
func (d *Handler) addMany(w http.ResponseWriter, r *http.Request) {
	d.acceptPush(w, r, func(body []byte) (p queue.Push, err error) {
		err = wire.DecodeAdds(body, d.opt.Kinds, func(rec record.Record) error {
			p.Records = append(p.Records, rec)
			return nil
		})
		return p, err
	}, auditor.SomeIgnored)
}

// updateRecord is PUT /record. It is taken whether the record is known here or not: it may
// be with another agent or at the aggregator, or be on its way.
func (d *Handler) updateRecord(w http.ResponseWriter, r *http.Request) {
	d.acceptPush(w, r, func(body []byte) (queue.Push, error) {
		id, stop, err := wire.DecodeUpdate(body)
		return queue.Push{Stop: &sdk.Stop{ID: id, At: stop}}, err
	}, "")
}

// acceptPush reads a body and answers when what it says is on the agent's disk.
func (d *Handler) acceptPush(w http.ResponseWriter, r *http.Request, decode func([]byte) (queue.Push, error), ignored string) {
	err := d.bodies.Take(w, r, func(body []byte, no *auditor.Refusal) {
		d.extendDeadline(w)
		if no == nil && !auditor.IsJSON(r) {
			no = auditor.TypeRefusal()
		}
		if no != nil {
			d.refusePush(w, r, body, no)
			return
		}
		push, err := decode(body)
		switch {
		case err != nil:
			d.refusePush(w, r, body, &auditor.Refusal{Status: http.StatusBadRequest, Text: err.Error()})
		case push.Stop == nil && len(push.Records) == 0:
			auditor.Empty(w, http.StatusOK)
		case tooLarge(&push):
			d.refusePush(w, r, body, &auditor.Refusal{Status: http.StatusRequestEntityTooLarge, Text: "the records are too large to be kept together"})
		default:
			writeAnswer(w, d.waitStored(r, push), ignored)
		}
	})
	if err != nil {
		d.breakOff(r, "a body did not come in; its connection is broken off", err)
	}
}

// tooLarge reports whether the records of a push do not fit into one batch.
func tooLarge(p *queue.Push) bool {
	size := 0
	for i := range p.Records {
		size += sdk.SizePushed(&p.Records[i])
	}
	return size > sdk.MaxPushed
}

// waitStored waits until a push is on the agent's disk, or breaks the connection off.
func (d *Handler) waitStored(r *http.Request, p queue.Push) queue.Result {
	ctx, cancel := context.WithTimeout(r.Context(), d.opt.Patience)
	defer cancel()
	result, err := d.opt.Queue.Do(ctx, p)
	if err != nil {
		d.breakOff(r, "a push could not be kept in time; its connection is broken off", err)
	}
	return result
}

// breakOff ends the connection without an answer, and says why, but not for each of
// many.
func (d *Handler) breakOff(r *http.Request, what string, err error) {
	if before, due := d.quiet.shouldLog(what, time.Now()); due {
		d.opt.Log.Warn(what, "from", r.RemoteAddr, "path", r.URL.Path, "error", err, "unsaid", before)
	}
	auditor.BreakOff()
}

func writeAnswer(w http.ResponseWriter, result queue.Result, ignored string) {
	switch result {
	case queue.Exists:
		auditor.AlreadyExists(w)
	case queue.Some:
		w.Header().Set("Content-Type", "application/json")
		auditor.Bare(w, http.StatusOK, []byte(ignored))
	default:
		auditor.Empty(w, http.StatusOK)
	}
}

// refusePush answers that a push is not understood, once it is kept in quarantine.
func (d *Handler) refusePush(w http.ResponseWriter, r *http.Request, body []byte, no *auditor.Refusal) {
	if len(body) == 0 {
		body = d.readHead(w, r)
	}
	d.waitStored(r, queue.Push{Refused: &sdk.Refused{
		Message: fmt.Sprintf("%s %s by %s was answered with %d: %s", r.Method, r.URL.Path, senderName(r), no.Status, no.Text),
		Raw:     bytes.Clone(body[:min(len(body), maxRefusedBody+1)]),
	}})
	auditor.Text(w, no.Status, no.Text)
}

// readHead reads the start of a body that was not read because of its size.
func (d *Handler) readHead(w http.ResponseWriter, r *http.Request) []byte {
	auditor.LimitBody(w, lingering)
	head, err := io.ReadAll(io.LimitReader(r.Body, maxRefusedBody+1))
	if err != nil && !errors.Is(err, io.EOF) {
		d.opt.Log.Debug("the rest of a body that is refused", "error", err)
	}
	return head
}

// senderName names the sender of a request, for people. A port would make each try another
// one in quarantine.
func senderName(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return r.TLS.PeerCertificates[0].Subject.CommonName
	}
	if agent := r.UserAgent(); agent != "" {
		return agent[:min(len(agent), 100)]
	}
	return "a local program"
}
