//go:build e2e

package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// openJob posts a job that goes on, and began so long ago.
func (w *warehouse) openJob(id string, ago time.Duration) {
	w.Helper()
	start := time.Now().Add(-ago).Truncate(time.Microsecond).UTC()
	text := fmt.Sprintf(`{"record_id":%q,"meta":{"site_id":["s%d"],"group_id":["g%d"],"user_id":["ü'"]},"components":[{"name":"Cores","amount":%d,"scores":[]},{"name":"TotalCPU","amount":%d,"scores":[]}],"start_time":%q}`,
		id, w.rng.IntN(3), w.rng.IntN(2), w.rng.IntN(1e6), w.rng.IntN(1e9), start.Format(time.RFC3339Nano))
	if status, answer := w.ask("POST", "/record", text); status != http.StatusOK {
		w.Fatal(status, answer)
	}
}

// endJob says when a job stopped.
func (w *warehouse) endJob(id string) {
	w.Helper()
	stop := time.Now().Truncate(time.Microsecond).UTC()
	if status, answer := w.ask("PUT", "/record", fmt.Sprintf(`{"record_id":%q,"meta":{},"components":[],"start_time":%q,"stop_time":%q}`, id, stop.Format(time.RFC3339Nano), stop.Format(time.RFC3339Nano))); status != http.StatusOK {
		w.Fatal(status, answer)
	}
}

// settle waits until the tables and the records that go on are those of the last change, and
// returns the batch of these and its time.
func (w *warehouse) settle() (batch string, until time.Time) {
	w.Helper()
	w.arrive()
	w.site.Eventually("the open records are those of the last change", func() (bool, string) {
		var status v1.Status
		if err := w.agg.Get("/v1/status", &status); err != nil || status.LastChange == nil {
			return false, fmt.Sprint(err)
		}
		text, err := w.ch.Query("SELECT batch, change, until_us FROM bursar.snapshots ORDER BY batch DESC LIMIT 1")
		cells := append(strings.Split(text, "\t"), "", "")
		n, _ := strconv.ParseInt(cells[2], 10, 64)
		batch, until = cells[0], time.UnixMicro(n).UTC()
		return err == nil && cells[1] == fmt.Sprint(*status.LastChange), fmt.Sprint(text, " of ", *status.LastChange, err)
	})
	return batch, until
}

// agreeOpen compares the union of closed and open records with usage: numbers and cores by
// day up to the time of the batch, totals as a whole, since they are spread over a time that
// goes on.
func (w *warehouse) agreeOpen() {
	w.Helper()
	var until time.Time
	var days, totals, running map[string]string
	for batch, after := "", "another"; batch != after; { // a run may come between the questions
		batch, until = w.settle()
		days = w.rows(`SELECT site AS k_site, group_id AS k_group, user_id AS k_user, toString(day) AS k_day, sum(records) AS records_, sum(started) AS started_, sum(stopped) AS stopped_, sum(Cores) AS Cores_
			FROM bursar.usage_now GROUP BY site, group_id, user_id, day HAVING records_ != 0 OR stopped_ != 0`)
		totals = w.rows(`SELECT site AS k_site, group_id AS k_group, user_id AS k_user, '' AS k_day, sum(TotalCPU) AS TotalCPU_ FROM bursar.usage_now GROUP BY site, group_id, user_id HAVING sum(started) != 0`)
		running = w.rows("SELECT record_id AS k_id, site, until_us - start_us AS us, seq, Cores, TotalCPU FROM bursar.running_now")
		after, _ = w.settle()
	}
	want := map[string]string{}
	for from := time.Date(2023, 12, 1, 0, 0, 0, 0, time.UTC); from.Before(until); from = from.AddDate(0, 2, 0) {
		to := from.AddDate(0, 2, 0)
		if to.After(until) {
			to = until
		}
		w.addMeasures(want, "from="+from.Format(time.DateOnly)+"&to="+to.Format(time.RFC3339Nano)+"&bucket=day", "Cores", "records", "started", "stopped")
	}
	w.same("usage by day with what goes on", want, days)
	want = map[string]string{}
	w.addMeasures(want, "from=2023-12-01&to=2100-01-01", "TotalCPU")
	w.same("totals with what goes on", want, totals)
	var open struct{ Records []v1.FullRecord }
	if err := w.agg.Get("/v1/records?open=true&limit=1000", &open); err != nil {
		w.Fatal(err)
	}
	want = map[string]string{}
	for _, r := range open.Records {
		amount := map[string]string{}
		us := until.Sub(r.StartTime.Time).Microseconds()
		for _, c := range r.Components {
			amount[c.Name] = fmt.Sprint(c.Amount)
			if c.Name == "Cores" {
				used := big.NewRat(c.Amount, 1e6)
				amount[c.Name] = withoutZeros(used.Mul(used, big.NewRat(us, 1)).FloatString(6))
			}
		}
		want["id="+r.RecordID] = fmt.Sprintf("Cores=%s TotalCPU=%s seq=%d site=%s us=%d", amount["Cores"], amount["TotalCPU"], r.Seq, r.Meta["site_id"][0], us)
	}
	w.same("open records", want, running)
}

// watchRunning asks for the open records again and again until end is called, or the test ends:
// a batch is always whole, and while it is shown no run is both in it and in the ledger.
func (w *warehouse) watchRunning() (end func()) {
	stop := make(chan struct{})
	var watcher sync.WaitGroup
	asked, seen := 0, map[string]bool{}
	watcher.Go(func() {
		const newest = "SELECT batch, records FROM bursar.snapshots ORDER BY batch DESC LIMIT 1"
		for {
			select {
			case <-stop:
				return
			default:
			}
			before, err := w.ch.Query(newest)
			if err != nil { // it was killed, or the tables do not exist yet
				time.Sleep(10 * time.Millisecond)
				continue
			}
			count, err1 := w.ch.Query("SELECT count() FROM bursar.running_now")
			days, err2 := w.ch.Query("SELECT sum(started) FROM bursar.usage_now WHERE running = 1")
			twice, err3 := w.ch.Query("SELECT count() FROM bursar.running_now WHERE record_id IN (SELECT record_id FROM bursar.ledger GROUP BY record_id HAVING sum(sign) > 0)")
			after, err4 := w.ch.Query(newest)
			if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
				continue
			}
			if _, records, _ := strings.Cut(before, "\t"); before == after && (count != records || days != records) {
				w.Errorf("a reader saw %s records and %s starts of the batch %s", count, days, before)
			}
			switch {
			case twice == "0":
			case before == after:
				w.Errorf("%s runs are in the ledger and go on in the batch %s", twice, before)
			default: // the query read the batch, and then a ledger that follows the next one
				w.Logf("%s runs were in the batch %s and in the ledger of the batch %s", twice, before, after)
			}
			asked++
			seen[after] = true
		}
	})
	end = sync.OnceFunc(func() {
		close(stop)
		watcher.Wait()
		w.Logf("%s: asked %d times, saw %d batches", w.label, asked, len(seen))
		if len(seen) < 2 {
			w.Error("no reader looked while batches were replaced")
		}
	})
	w.Cleanup(end)
	return end
}

func TestWarehouse_OpenRecords_SumsAreThoseOfUsage(t *testing.T) {
	t.Parallel()
	debian, current := newTwins(t, 9)
	twins := []*warehouse{debian, current}
	for i := range 30 {
		debian.openJob(fmt.Sprint("open/", i, "'"), time.Duration(debian.rng.Int64N(int64(90*24*time.Hour))))
	}
	debian.shake(60)
	var ends []func()
	for _, w := range twins {
		w.agreeOpen()
		ends = append(ends, w.watchRunning())
	}
	for round := range 3 {
		for i := range 5 {
			debian.endJob(fmt.Sprint("open/", 5*round+i, "'"))
			debian.openJob(fmt.Sprint("later/", 5*round+i), time.Hour)
		}
		for _, w := range twins {
			w.agreeOpen()
		}
	}
	for _, w := range twins {
		each := w.ch.MustQuery("SELECT count(), min(n), max(n) FROM (SELECT record_id, sum(sign) AS n FROM (SELECT record_id, sign FROM bursar.ledger WHERE startsWith(record_id, 'open/') UNION ALL SELECT record_id, toInt8(1) AS sign FROM bursar.running_now WHERE startsWith(record_id, 'open/')) GROUP BY record_id)")
		if each != "30\t1\t1" {
			t.Errorf("%s: jobs, the least and the greatest number of times that one is counted: %s", w.label, each)
		}
		w.order("check=all", "records that go on at change")
	}
	for _, statement := range readmeQueries(t, true) {
		rows := len(debian.figures(statement))
		if other := len(current.figures(statement)); rows < 2 || other != rows {
			t.Errorf("%s: %d rows, and a current ClickHouse %d", statement, rows, other)
		}
	}
	debian.rest()
	for i, w := range twins {
		w.settle()
		ends[i]()
		if n := w.ch.MustQuery("SELECT count() FROM bursar.running_now"); n != "0" {
			t.Errorf("%s: %s records go on, want none", w.label, n)
		}
		w.agree()
		w.ch.MustQuery("ALTER TABLE bursar.snapshots DELETE WHERE cluster != ''") // as the README says
		w.site.Eventually("the batch is removed", func() (bool, string) {
			n, err := w.ch.Query("SELECT count() FROM bursar.snapshots")
			return err == nil && n == "0", fmt.Sprint(n, err)
		})
	}
}

// snare lies between the action and ClickHouse, and waits for a statement at which something
// dies.
type snare struct {
	*warehouse

	mu      sync.Mutex
	begin   string // of the statement
	first   func() // before it arrives; nil: nothing
	then    func() // after it was done
	entered chan struct{}
}

// set has the next statement that begins so meet what is to be done.
func (s *snare) set(begin string, first, then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin, s.first, s.then, s.entered = begin, first, then, make(chan struct{})
}

// ServeHTTP forwards a request. The awaited request gets no answer.
func (s *snare) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the plugin was killed
	}
	s.mu.Lock()
	caught := s.begin != "" && (strings.HasPrefix(r.URL.Query().Get("query"), s.begin) || strings.HasPrefix(string(body), s.begin))
	first, then, entered := s.first, s.then, s.entered
	if caught {
		s.begin = ""
	}
	s.mu.Unlock()
	if caught && first != nil {
		first()
	}
	q, _ := http.NewRequest(r.Method, s.ch.URL()+r.URL.String(), bytes.NewReader(body))
	q.Header = r.Header.Clone()
	answer, err := http.DefaultClient.Do(q)
	if caught {
		if then != nil {
			then()
		}
		hangUp(out)
		close(entered)
	}
	if err != nil {
		if !caught {
			hangUp(out)
		}
		return
	}
	defer answer.Body.Close()
	if !caught {
		maps.Copy(out.Header(), answer.Header)
		out.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(out, answer.Body) // the plugin may have been killed
	}
}

func TestWarehouse_KilledWhileOpenRecordsAreReplaced_ReadersSeeTheEarlierOnes(t *testing.T) {
	t.Parallel()
	w := makeWarehouse(t, 10)
	s := &snare{warehouse: w}
	proxy := httptest.NewServer(s)
	defer proxy.Close()
	w.begin(proxy.URL, `timeout = "10s"`)
	for i := range 10 {
		w.openJob(fmt.Sprint("open/", i), 50*time.Hour)
	}
	w.says("records that go on at change")               // of the run that begins by itself
	w.order("check=all", "records that go on at change") // no run is under way behind it
	w.agreeOpen()
	w.watchRunning()
	const newest = "SELECT batch, records FROM bursar.snapshots ORDER BY batch DESC LIMIT 1"
	kill := w.agg.KillChildren
	down := func() { w.ch.Kill(); w.ch.Start() }
	for i, c := range []struct {
		name, begin string
		first, then func()
	}{
		{"the plugin is killed behind the rows", "INSERT INTO `bursar`.`running` ", nil, kill},
		{"the plugin is killed behind the days", "INSERT INTO `bursar`.`running_daily` ", nil, kill},
		{"ClickHouse is killed behind the rows", "INSERT INTO `bursar`.`running` ", nil, down},
		{"ClickHouse is killed behind the days", "INSERT INTO `bursar`.`running_daily` ", nil, down},
		{"the plugin is killed before the batch is whole", "INSERT INTO `bursar`.`snapshots` ", kill, nil},
		{"the plugin is killed before the ledger follows", "INSERT INTO `bursar`.`ledger` ", kill, nil},
	} {
		before := w.ch.MustQuery(newest)
		s.set(c.begin, c.first, c.then)
		w.endJob(fmt.Sprint("open/", i))
		w.openJob(fmt.Sprint("later/", i), time.Minute)
		_, _ = w.agg.Bursar("actions", "resume", "warehouse/national")
		if out, err := w.agg.Bursar("actions", "run", "warehouse/national"); err != nil {
			t.Fatal(out, err)
		}
		select {
		case <-s.entered:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: the statement did not come: %s", c.name, w.said(0))
		}
		_, records, _ := strings.Cut(before, "\t")
		if n := w.ch.MustQuery("SELECT count() FROM bursar.running_now"); n != records && w.ch.MustQuery(newest) == before {
			t.Errorf("%s: %s records go on of the batch %s", c.name, n, before)
		}
		_, _ = w.agg.Bursar("actions", "resume", "warehouse/national")
		w.order("check=all", "records that go on at change")
		w.agreeOpen()
	}
	parts := w.ch.MustQuery("SELECT uniqExact(partition) FROM system.parts WHERE active AND database = 'bursar' AND table = 'running'")
	if n, _ := strconv.Atoi(parts); n > 5 {
		t.Errorf("%s batches are left", parts)
	}
}
