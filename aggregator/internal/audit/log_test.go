package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/audit"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// documents are the replicated state.
type documents struct {
	mu     sync.Mutex
	kept   map[string][]byte
	refuse bool // writes fail, and are done all the same where lose is set
	lose   bool
	writes int
}

func (d *documents) Documents(_, prefix string, yield func(store.Document) error) error {
	d.mu.Lock()
	kept := maps.Clone(d.kept)
	d.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if strings.HasPrefix(key, prefix) {
			if err := yield(store.Document{Space: "audit", Key: key, Value: kept[key]}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *documents) write(_ context.Context, c store.Command) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	command, ok := c.(*store.DocumentCommand)
	if !ok {
		return nil, errors.New("another command")
	}
	if d.refuse && !d.lose {
		return nil, errors.New("no leader")
	}
	for _, is := range command.If {
		if !bytes.Equal(d.kept[is.Key], is.Value) {
			return store.DocumentResult{}, nil
		}
	}
	for _, set := range command.Sets {
		if set.Value == nil {
			delete(d.kept, set.Key)
		} else {
			d.kept[set.Key] = set.Value
		}
	}
	if d.refuse {
		return nil, errors.New("the answer was lost")
	}
	return store.DocumentResult{Done: true}, nil
}

func (d *documents) set(refuse, lose bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse, d.lose = refuse, lose
}

// run runs a log in a bubble of synctest.
func run(t *testing.T, d *documents) *audit.Log {
	t.Helper()
	d.kept = map[string][]byte{}
	l := audit.NewLog(audit.Options{
		Node: "agg1", Write: d.write, View: d, Months: func() int { return 12 }, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

// read are the entries of the last and the next day, the newest first.
func read(t *testing.T, d *documents) (list []audit.Entry) {
	t.Helper()
	err := audit.Read(d, time.Now().Add(-400*24*time.Hour), time.Now().Add(24*time.Hour), func(e *audit.Entry) bool {
		list = append(list, *e)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestLog_Commit_EntryIsThereWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d documents
		l := run(t, &d)
		for i := range 3 {
			if err := l.Commit(t.Context(), audit.Entry{Kind: audit.Change, Who: fmt.Sprint(i), Route: "DELETE /x"}); err != nil {
				t.Fatal(err)
			}
			list := read(t, &d)
			if len(list) != i+1 || !slices.ContainsFunc(list, func(e audit.Entry) bool { return e.Who == fmt.Sprint(i) && e.Node == "agg1" }) {
				t.Fatalf("after commit %d: %+v", i, list)
			}
		}
	})
}

func TestLog_ClusterDoesNotCommit_EntriesComeOnceWhenItDoes(t *testing.T) {
	for _, lose := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var d documents
			l := run(t, &d)
			d.set(true, lose)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := l.Commit(ctx, audit.Entry{Kind: audit.Change, Who: "alice"}); err == nil {
				t.Error("an entry that is not known to be committed was reported so")
			}
			l.Note(audit.Entry{Kind: audit.Login, Who: "bob"})
			time.Sleep(time.Minute)
			d.set(false, false)
			if err := l.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if list := read(t, &d); len(list) != 2 || list[0].Who != "bob" || list[1].Who != "alice" {
				t.Errorf("lose %v: %+v", lose, list)
			}
		})
	}
}

func TestLog_SameLook_IsKeptOnceADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // midnight
		var d documents
		l := run(t, &d)
		for hour := range 36 {
			l.Note(audit.Entry{Kind: audit.Look, Who: "alice", Route: "GET /v1/records", About: "user_id=bob", From: fmt.Sprint("192.0.2.", hour)})
			l.Note(audit.Entry{Kind: audit.Change, Who: "alice", Route: "DELETE /x"})
			time.Sleep(time.Hour)
		}
		looks, changes := 0, 0
		for _, e := range read(t, &d) {
			switch e.Kind {
			case audit.Look:
				looks++
			default:
				changes++
			}
		}
		if looks != 2 || changes != 36 {
			t.Errorf("%d looks in two days, %d of 36 changes", looks, changes)
		}
	})
}

func TestLog_MoreThanItKeepsWhileNothingIsCommitted_SaysHowMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d documents
		l := run(t, &d)
		d.set(true, false)
		const most, more = 20_000, 7
		for range most + more {
			l.Note(audit.Entry{Kind: audit.Refusal, Who: "x"})
		}
		d.set(false, false)
		for l.Flush(t.Context()) != nil || len(read(t, &d)) <= most {
			time.Sleep(time.Second)
		}
		list := read(t, &d)
		i := slices.IndexFunc(list, func(e audit.Entry) bool { return e.Kind == audit.Gap })
		if len(list) != most+1 || i < 0 || !strings.HasPrefix(list[i].Result, "7 entries") {
			t.Errorf("%d entries, gap at %d", len(list), i)
		}
	})
}

func TestLog_OldEntries_GoByTheDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d documents
		l := run(t, &d)
		for month := range 30 {
			if err := l.Commit(t.Context(), audit.Entry{Kind: audit.Change, Who: fmt.Sprint(month)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * 24 * time.Hour)
		}
		for _, e := range read(t, &d) {
			if age := time.Since(e.At); age > 367*24*time.Hour {
				t.Errorf("an entry of %v is kept", e.At)
			}
		}
		if n := len(read(t, &d)); n < 11 || n > 13 {
			t.Errorf("%d entries of 12 months", n)
		}
	})
}

func TestRead_RandomEntriesAndWindows_AreThoseOfTheWindowNewestFirst(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		var d documents
		l := run(t, &d)
		var want []audit.Entry
		for i := range 400 {
			e := audit.Entry{Kind: audit.Change, Who: fmt.Sprint(i)}
			l.Note(e)
			e.At = time.Now().UTC().Truncate(time.Microsecond)
			want = append(want, e)
			time.Sleep(time.Duration(random.Int64N(int64(6 * time.Hour))))
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			from := want[random.IntN(len(want))].At.Add(time.Duration(random.IntN(3)-1) * time.Microsecond)
			to := from.Add(time.Duration(random.Int64N(int64(20 * 24 * time.Hour))))
			var got, expected []string
			err := audit.Read(&d, from, to, func(e *audit.Entry) bool {
				got = append(got, e.Who)
				return true
			})
			for _, e := range slices.Backward(want) {
				if !e.At.Before(from) && e.At.Before(to) {
					expected = append(expected, e.Who)
				}
			}
			if err != nil || !slices.Equal(got, expected) {
				t.Fatalf("%v to %v: %v, want %v: %v", from, to, got, expected, err)
			}
		}
	})
}

func TestReplace_NameInSomeEntries_IsInNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d documents
		l := run(t, &d)
		for day := range 5 {
			l.Note(audit.Entry{Kind: audit.Look, Who: fmt.Sprint("user/", day), Route: "GET /v1/records", About: "user_id=erika"})
			l.Note(audit.Entry{Kind: audit.Change, Who: "client/erika", Route: "DELETE /x"})
			time.Sleep(24 * time.Hour)
		}
		n, err := audit.Replace(&d, func(c store.Command) error {
			_, err := d.write(t.Context(), c)
			return err
		}, func(text string) string { return strings.ReplaceAll(text, "erika", "x") })
		if err != nil || n != 10 {
			t.Errorf("%d entries: %v", n, err)
		}
		for _, e := range read(t, &d) {
			if strings.Contains(e.Who+e.About, "erika") || e.About != "" && e.About != "user_id=x" {
				t.Errorf("%+v", e)
			}
		}
	})
}
