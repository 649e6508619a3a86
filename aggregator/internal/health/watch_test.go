package health

import (
	"bytes"
	"context"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFindingKeepsTheTimeAtWhichItWasFoundFirst(t *testing.T) {
	at, conflicts := noon, 1
	w := &Watch{Now: func() time.Time { return at }, Sources: []Source{func(_ context.Context, f *Facts) {
		f.Leader, f.Data.Conflicts = "x", conflicts
	}}}
	since := func() time.Time {
		r := w.Report(t.Context())
		if len(r.Findings) != 1 {
			t.Fatalf("%+v", r.Findings)
		}
		return r.Findings[0].Since
	}
	first := since()
	at = at.Add(time.Hour)
	if got := since(); !got.Equal(noon) || !first.Equal(noon) {
		t.Error(got, first)
	}
	conflicts = 0
	if r := w.Report(t.Context()); r.State != Healthy {
		t.Error(r)
	}
	at, conflicts = at.Add(time.Hour), 1
	if got := since(); !got.Equal(at) {
		t.Error("it came again at", got)
	}
}

func TestFindingsAreLoggedOnceAndWhenTheyAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var conflicts atomic.Int64
		conflicts.Store(1)
		w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil)), Sources: []Source{func(_ context.Context, f *Facts) {
			f.Leader, f.Data.Conflicts = "x", int(conflicts.Load())
		}}}
		if _, ok := w.Last(); ok {
			t.Error("there is a report before the first")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := strings.Count(log.String(), "msg=finding id=conflicts"); n != 1 {
			t.Errorf("logged %d times: %s", n, log.String())
		}
		conflicts.Store(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !strings.Contains(log.String(), `"finding is over" id=conflicts`) {
			t.Error(log.String())
		}
		if r, ok := w.Last(); !ok || r.State != Healthy {
			t.Error(r, ok)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAFindingThatPassesAtOnceIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		began := time.Now()
		w := &Watch{Log: slog.New(slog.NewTextHandler(&log, nil)), Sources: []Source{func(_ context.Context, f *Facts) {
			if time.Since(began) > 12*time.Second {
				f.Leader = "x" // as every daemon has none at first
			}
		}}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if log.Len() > 0 {
			t.Error(log.String())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// fullFacts is a node with all that it can say.
func fullFacts() Local {
	return Local{
		Version: "1.0", Disk: Disk{Path: "/d", Free: 1, Size: 2, Level: LevelLow, Since: noon, Ballast: 3, Stalled: time.Second},
		CertFrom: noon, CertEnds: noon.Add(time.Hour), CertError: "e", Fenced: "f", Paused: "p", ConfigDiffers: []string{"g"}, ConfigProblem: "h",
		Agents: []Agent{{Name: "a", Address: "b", Connected: true, Error: "c", Contact: noon, Behind: 5}},
	}
}

const golden = `{"format":1,"version":"1.0","disk":{"path":"/d","free":1,"size":2,"level":"low","since":"2026-03-01T12:00:00Z","ballast":3,"stalled":1000000000},` +
	`"cert_from":"2026-03-01T12:00:00Z","cert_ends":"2026-03-01T13:00:00Z","cert_error":"e","fenced":"f","paused":"p","config_differs":["g"],"config_problem":"h",` +
	`"agents":[{"name":"a","address":"b","connected":true,"error":"c","contact":"2026-03-01T12:00:00Z","behind":5}]}`

func TestWhatANodeSaysOfItselfIsReadByTheOthers(t *testing.T) {
	if got := string(fullFacts().Encode()); got != golden {
		t.Errorf("format 1 is written as %s", got)
	}
	got, err := DecodeLocal([]byte(golden))
	if err != nil || !reflect.DeepEqual(got, fullFacts()) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := DecodeLocal([]byte(`{"format":1,"something":"new"}`)); err != nil {
		t.Error("a field of a newer version:", err)
	}
	for _, bad := range []string{"", "{", `{"format":2}`, `[]`, strings.Repeat(" ", maxLocal+1)} {
		if _, err := DecodeLocal([]byte(bad)); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
}

func TestOfManyAgentsTheOthersHearOfThoseInTrouble(t *testing.T) {
	l := Local{Agents: make([]Agent, 1000)}
	for i := range l.Agents {
		l.Agents[i] = Agent{Name: strings.Repeat("n", 64), Connected: i != 999, Error: strings.Repeat("ä", 1000)}
	}
	b := l.Brief()
	if b.Agents[0].Connected || len(b.Encode()) > 60<<10 || !l.Agents[0].Connected {
		t.Errorf("%d bytes, %+v", len(b.Encode()), b.Agents[0])
	}
	few := fullFacts()
	if got := few.Brief(); !reflect.DeepEqual(got, few) {
		t.Errorf("%+v", got)
	}
}

func FuzzDecodeLocal(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := DecodeLocal(body)
		if err != nil {
			return
		}
		facts := trio()
		facts.Nodes[1].Local = l
		Judge(facts)
		if again, err := DecodeLocal(l.Encode()); err == nil && again.Version != l.Version {
			t.Errorf("%q is %q when it is sent on", l.Version, again.Version)
		}
	})
}
