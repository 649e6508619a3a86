package auditor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// testPatience is longer than any wait of a test.
const testPatience = time.Minute

// slow gives a byte at a time after a pause.
type slow struct {
	pause time.Duration
	left  int
}

func (s *slow) Read(p []byte) (int, error) {
	if s.left--; s.left < 0 {
		return 0, io.EOF
	}
	time.Sleep(s.pause)
	p[0] = 'x'
	return 1, nil
}

// intakeOf is a reader of bodies with a limit, and the deadline that it has
// set last.
func intakeOf(s *Bodies, src io.Reader, length int64) (*bodyReader, *time.Time) {
	r := httptest.NewRequest("POST", "/records", nil)
	r.ContentLength = length
	in := newBodyReader(s, httptest.NewRecorder(), r)
	var last time.Time
	in.src, in.deadline = src, func(t time.Time) error { last = t; return nil }
	return in, &last
}

func TestASlowBodyGetsTimeForWhatItBringsAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewBodies(1<<20, testPatience, 1)
		in, last := intakeOf(s, &slow{pause: time.Second, left: 1000}, -1)
		defer in.releaseMemory()
		begun := time.Now()
		buf := make([]byte, 1)
		for range 20 {
			if _, err := in.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
		if got := last.Sub(begun); got != bodyPause {
			t.Errorf("a trickle has until %s, want %s", got, bodyPause)
		}
		in.came += 10 * bodyRate
		in.updateDeadline()
		if got := last.Sub(begun); got != bodyPause+10*time.Second {
			t.Errorf("after more bytes it has until %s", got)
		}
		time.Sleep(time.Hour) // waiting for room is not the client's fault
		in.updateDeadline()
		if got := time.Until(*last); got != bodyPause+10*time.Second-20*time.Second {
			t.Errorf("after a wait it has %s", got)
		}
	})
}

func TestAConnectionThatFailsIsToldFromABodyThatIsWrong(t *testing.T) {
	s := NewBodies(1<<20, testPatience, 1)
	in, _ := intakeOf(s, iotest.ErrReader(errors.New("reset")), -1)
	if _, err := in.readBody(); err == nil || in.lost == nil {
		t.Error(err, in.lost)
	}
	in, _ = intakeOf(s, strings.NewReader("no gzip at all"), -1)
	in.encoding = "gzip"
	if _, err := in.readBody(); err == nil || in.lost != nil {
		t.Error(err, in.lost)
	}
}

func TestManyLargeBodiesWaitForEachOtherAndAllComeIn(t *testing.T) {
	const limit = 3 << 20
	s := NewBodies(limit, testPatience, 1)
	body := strings.Repeat("x", limit-10)
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			length := int64(-1)
			if i%2 == 0 {
				length = int64(len(body))
			}
			in, _ := intakeOf(s, strings.NewReader(body), length)
			defer in.releaseMemory()
			if data, err := in.readBody(); err != nil || len(data) != len(body) {
				t.Errorf("%d bytes, %v", len(data), err)
			}
		})
	}
	all.Wait()
	for i, room := range []int64{firstRoom, middleRoom, smallRoom, largeRoom * limit} {
		if !s.memory.stages[i].room.TryAcquire(room) {
			t.Error("something was not given back of stage", i)
		}
	}
}

func TestBodiesThatAreAnnouncedAndDoNotComeStopNoOther(t *testing.T) {
	s := NewBodies(3<<20, testPatience, 1)
	var slow sync.WaitGroup
	defer slow.Wait()
	for range 1000 {
		silent, end := io.Pipe()
		defer end.Close()
		slow.Go(func() {
			in, _ := intakeOf(s, io.MultiReader(strings.NewReader("{"), silent), 1<<20)
			defer in.releaseMemory()
			_, _ = in.readBody() // it ends with the pipe
		})
	}
	body := strings.Repeat("x", 2<<20)
	in, _ := intakeOf(s, strings.NewReader(body), int64(len(body)))
	defer in.releaseMemory()
	if data, err := in.readBody(); err != nil || len(data) != len(body) {
		t.Error(len(data), err)
	}
}

// Writers that stall after any number of bytes keep no other body out for as long as it
// has patience: a few do not delay the largest, and many not those of some megabytes.
func TestBodies_WritersThatStall_LoseTheirRoomBeforeOthersLosePatience(t *testing.T) {
	for _, c := range []struct {
		writers int
		sizes   []int
	}{{4, []int{2 << 20, 5 << 20, 20 << 20}}, {12, []int{2 << 20, 3 << 20}}} {
		for seed := range uint64(5) {
			synctest.Test(t, func(t *testing.T) { stall(t, rand.New(rand.NewPCG(seed, 1)), c.writers, c.sizes) })
		}
	}
}

func stall(t *testing.T, rng *rand.Rand, writers int, sizes []int) {
	const limit = 64 << 20
	s := NewBodies(limit, 25*time.Second, 1)
	var all sync.WaitGroup
	defer all.Wait()
	for range writers {
		in, end := writer{at: smallBody + 1 + rng.IntN(limit/2)}.begin(s, limit)
		all.Go(func() {
			defer end()
			if _, err := in.readBody(); err == nil {
				t.Error("a body that never came was read")
			}
		})
		synctest.Wait()
	}
	for _, size := range sizes {
		in, _ := intakeOf(s, strings.NewReader(strings.Repeat("x", size)), int64(size))
		if data, err := in.readBody(); err != nil || len(data) != size {
			t.Errorf("%d of %d bytes, %v", len(data), size, err)
		}
		in.releaseMemory()
	}
}

func TestABodyThatFindsNoRoomIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewBodies(3<<20, testPatience, 1)
		if err := s.memory.stages[3].room.Acquire(context.Background(), largeRoom*3<<20); err != nil {
			t.Fatal(err)
		}
		in, _ := intakeOf(s, strings.NewReader(strings.Repeat("x", 2<<20)), 2<<20)
		defer in.releaseMemory()
		if _, err := in.readBody(); !errors.Is(err, errNoRoom) {
			t.Error(err)
		}
	})
}

// writer is a client that sends some bytes at once and then, every second, a few more,
// until its connection ends.
type writer struct {
	encoding  string
	at, after int
}

// begin lets the client write, and returns its body. end waits for the client.
func (w writer) begin(s *Bodies, length int64) (in *bodyReader, end func()) {
	client, server := net.Pipe()
	in, _ = intakeOf(s, server, length)
	in.deadline = server.SetReadDeadline
	if w.encoding != "" {
		in.encoding, in.length = w.encoding, -1
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		defer client.Close()
		_, err := client.Write(bytes.Repeat([]byte("x"), w.at))
		for err == nil && w.after > 0 {
			time.Sleep(time.Second)
			_, err = client.Write(bytes.Repeat([]byte("x"), w.after))
		}
		_, _ = client.Read(make([]byte, 1)) // until the server ends it
	})
	return in, func() {
		in.releaseMemory()
		server.Close()
		writing.Wait()
	}
}

// Writers that stall or trickle anywhere in their bodies, as many as fill each room and
// more, keep no other body out for as long as it has patience. They announce the most.
func TestBodies_SlowWriters_LoseTheirRoomToOthers(t *testing.T) {
	const limit = 64 << 20
	for i, c := range []struct {
		writers, from, to int
		encoding          string
	}{
		{4200, 0, firstBody, ""}, {300, firstBody + 1, middleBody, ""}, {64, 140_000, 140_001, ""}, {130, middleBody + 1, smallBody, ""},
		{40, smallBody + 1, 4 * smallBody, ""}, {8, 4*smallBody + 1, 16 * smallBody, ""}, {20, 0, 0, "gzip"},
	} {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(i), 2))
			s := NewBodies(limit, 25*time.Second, 1)
			var all sync.WaitGroup
			for range c.writers {
				w := writer{encoding: c.encoding, at: c.from + rng.IntN(c.to-c.from+1)}
				if rng.IntN(2) == 0 {
					w.after = rng.IntN(max(2, w.at/100)) // a fifth of its share
				}
				in, end := w.begin(s, limit)
				all.Go(func() {
					defer end()
					if _, err := in.readBody(); err == nil {
						t.Error("a body that never came was read")
					}
				})
			}
			synctest.Wait()
			for _, size := range []int{rng.IntN(firstBody), 200_000 + rng.IntN(smallBody), smallBody + rng.IntN(8<<20), rng.IntN(smallBody)} {
				in, _ := intakeOf(s, strings.NewReader(strings.Repeat("x", size)), int64(size))
				if data, err := in.readBody(); err != nil || len(data) != size {
					t.Errorf("%d writers of %d to %d bytes: %d of %d bytes, %v", c.writers, c.from, c.to, len(data), size, err)
				}
				in.releaseMemory()
			}
			all.Wait()
			for _, stage := range s.memory.stages {
				if len(stage.room.held) > 0 {
					t.Error("something was not given back of the stage of", stage.most)
				}
			}
		})
	}
}

// A body that comes as fast as it must is not dropped, however many wait.
func TestBodies_WriterThatIsSlowButFairKeepsItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewBodies(smallBody, 25*time.Second, 1)
		var all sync.WaitGroup
		var fair atomic.Int64
		for range 80 {
			w := writer{at: middleBody + 1, after: smallBody / 19}
			in, end := w.begin(s, smallBody)
			all.Go(func() {
				defer end()
				if _, err := in.readBody(); errors.Is(err, errTooLarge) {
					fair.Add(1)
				} else {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if fair.Load() != 80 {
			t.Errorf("%d of 80 came in", fair.Load())
		}
	})
}
