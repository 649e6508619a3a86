package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"time"
)

// streamValues yields the JSON values of an answer, which stand behind one another with
// or without blanks between them.
func (c *Client) streamValues(ctx context.Context, target string, r request) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		alive := c.newWatchdog(cancel, r.query)
		defer alive.stop()
		resp, err := c.sendTo(ctx, target, r)
		if err != nil {
			yield(nil, causeOf(ctx, err))
			return
		}
		defer resp.Body.Close()
		in := json.NewDecoder(alive.watchedReader(resp.Body))
		for n := 0; ; n++ {
			var raw json.RawMessage // a new one each time: it is handed out
			err := in.Decode(&raw)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, causeOf(ctx, fmt.Errorf("%s %s: answer is cut short behind %d values: %w", r.method, r.path, n, err)))
				return
			}
			if !alive.yieldPaused(yield, raw) {
				return
			}
		}
	}
}

// watchdog ends an exchange in which nothing comes for too long. While the
// caller works on a value, it sleeps.
type watchdog struct {
	timer  *time.Timer
	within time.Duration
}

func (c *Client) newWatchdog(cancel context.CancelCauseFunc, query url.Values) *watchdog {
	within := c.timeoutOf(query)
	if within < 0 {
		return &watchdog{}
	}
	return &watchdog{within: within, timer: time.AfterFunc(within, func() { cancel(ErrTimeout) })}
}

func (w *watchdog) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *watchdog) reset() {
	if w.timer != nil {
		w.timer.Reset(w.within)
	}
}

func (w *watchdog) yieldPaused(yield func(json.RawMessage, error) bool, raw json.RawMessage) bool {
	w.stop()
	defer w.reset()
	return yield(raw, nil)
}

// watchedReader returns r; each read that brings something resets the watchdog.
func (w *watchdog) watchedReader(r io.Reader) io.Reader { return watched{r, w} }

type watched struct {
	io.Reader
	*watchdog
}

func (r watched) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.reset()
	}
	return n, err
}
