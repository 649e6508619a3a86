package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// pipe is a response whose client takes each byte from a pipe.
type pipe struct{ net.Conn }

func (pipe) Header() http.Header { return http.Header{} }
func (pipe) WriteHeader(int)     {}

// endless is more pieces than any slow reader gets.
const endless = 20_000

// sendTo streams pieces to a client until the client has all or a piece fails. The
// client takes a piece at a time, and pauses for as long as the pauses say, which are
// repeated. It returns how much was sent and how long that took.
func sendTo(t *testing.T, lease *store.Lease, pieces int, pauses ...time.Duration) (sent int64, took time.Duration, err error) {
	t.Helper()
	server, client := net.Pipe()
	over := make(chan struct{})
	var taker sync.WaitGroup
	defer func() { close(over); client.Close(); server.Close(); taker.Wait() }()
	taker.Go(func() {
		buf := make([]byte, pieceSize)
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			case <-time.After(pauses[i%len(pauses)]):
			}
			for n := 0; n < len(buf); {
				k, err := client.Read(buf[n:])
				if err != nil {
					return
				}
				n += k
			}
		}
	})
	out := &stream{w: pipe{server}, rc: http.NewResponseController(pipe{server}), lease: lease}
	begun := time.Now()
	for range pieces {
		out.buf = append(out.buf, make([]byte, pieceSize)...)
		if err = out.flush(); err != nil {
			break
		}
		sent += pieceSize
	}
	return sent, time.Since(begun), err
}

// pausesFor returns pauses of random length between pieces that come to the pace, in
// bytes a second, on average.
func pausesFor(pace int64) []time.Duration {
	mean := time.Second * pieceSize / time.Duration(pace)
	pauses := make([]time.Duration, 16)
	for i := 0; i < len(pauses); i += 2 {
		d := time.Duration(rand.Int64N(int64(mean)))
		pauses[i], pauses[i+1] = mean-d, mean+d
	}
	return pauses
}

func TestStream_ReaderAtThePace_GetsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 5 {
			const pieces = 2000
			sent, took, err := sendTo(t, nil, pieces, pausesFor(slowPace)...)
			if err != nil || sent != pieces*pieceSize {
				t.Errorf("%d bytes in %s: %v", sent, took, err)
			}
		}
	})
}

func TestStream_SlowReader_IsCutOffWhenItsGraceIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 30 {
			pace := 1 + rand.Int64N(slowPace*9/10)
			sent, took, err := sendTo(t, nil, endless, pausesFor(pace)...)
			// Each piece has answerTime, so a very slow reader may fail before its grace ends.
			allowed := slowGrace + time.Duration(sent/slowPace)*time.Second
			if err == nil || took > allowed || took < min(allowed, answerTime) {
				t.Errorf("%d bytes a second: %d bytes in %s of %s: %v", pace, sent, took, allowed, err)
			}
		}
	})
}

func TestStream_ReaderThatStops_IsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, before := range []int{0, 1, 50, 5000} {
			pauses := append(make([]time.Duration, before), 24*time.Hour)
			sent, took, err := sendTo(t, nil, endless, pauses...)
			if err == nil || sent != int64(before)*pieceSize || took != answerTime {
				t.Errorf("after %d pieces: %d bytes in %s: %v", before, sent, took, err)
			}
		}
	})
}

// leases returns a lease of all the memory for answers, and lets another answer wait for
// it from a moment on.
func leases(t *testing.T, from time.Duration) *store.Lease {
	t.Helper()
	budget := store.NewBudget(1<<20, 24*time.Hour, nil)
	lease, err := budget.Begin(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); lease.End() })
	time.AfterFunc(from, func() {
		go func() {
			other, err := budget.Begin(ctx, 1)
			if err == nil {
				other.End()
			}
		}()
	})
	return lease
}

func TestStream_SlowReader_IsCutOffSoonerWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 30 {
			pace := int64(2*slowPace) + rand.Int64N(pressPace*9/10-2*slowPace) // fast enough while others do not wait
			from := time.Duration(rand.Int64N(int64(10 * time.Second)))
			sent, took, err := sendTo(t, leases(t, from), endless, pausesFor(pace)...)
			allowed := pressGrace + time.Duration(sent/pressPace)*time.Second
			if !errors.Is(err, errSlow) || took < allowed || took > allowed+2*pressCheckEvery {
				t.Errorf("%d bytes a second: %d bytes in %s of %s: %v", pace, sent, took, allowed, err)
			}
		}
	})
}

func TestStream_SlowReader_IsCutOffSoonAfterOthersBeginToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const from = 10 * time.Minute
		sent, took, err := sendTo(t, leases(t, from), endless, pausesFor(3*slowPace)...)
		if !errors.Is(err, errSlow) || took < from || took > from+10*time.Second {
			t.Errorf("%d bytes in %s: %v", sent, took, err)
		}
	})
}

func TestStream_FastReader_GetsAllWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 5000
		sent, took, err := sendTo(t, leases(t, 0), pieces, pausesFor(pressPace)...)
		if err != nil || sent != pieces*pieceSize {
			t.Errorf("%d bytes in %s: %v", sent, took, err)
		}
	})
}
