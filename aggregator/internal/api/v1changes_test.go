package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ledgerSums adds up the ledger as another system does: with signs, and nothing else.
type ledgerSums struct {
	t       *testing.T
	next    string
	records map[string]int      // by site and month
	seconds map[string]*big.Rat // of cores
}

func (l *ledgerSums) begin() {
	l.next, l.records, l.seconds = "", map[string]int{}, map[string]*big.Rat{}
}

func (l *ledgerSums) add(sign int64, r *v1.FullRecord) {
	if r == nil {
		return
	}
	site := ""
	if list := r.Meta["site_id"]; len(list) > 0 {
		site = list[0]
	}
	key := site + " " + r.StopTime.UTC().Format("2006-01")
	if l.seconds[key] == nil {
		l.seconds[key] = new(big.Rat)
	}
	l.records[key] += int(sign)
	for _, c := range r.Components {
		if c.Name != "Cores" || r.StopTime.Before(r.StartTime.Time) {
			continue
		}
		used := big.NewRat(sign*c.Amount, 1)
		if c.Kind != "total" {
			used.Mul(used, big.NewRat(r.StopTime.Sub(r.StartTime.Time).Microseconds(), 1e6))
		}
		l.seconds[key].Add(l.seconds[key], used)
	}
}

// read reads a page of the ledger, as NDJSON or JSON.
func (l *ledgerSums) read(rg *rig, query string) (more bool, a answer) {
	l.t.Helper()
	lines := strings.Contains(query, "ndjson")
	a = rg.do("GET", "/v1/changes?ledger=true&cursor="+l.next+query, "")
	if a.status != http.StatusOK {
		return false, a
	}
	var page v1.Changes
	if lines {
		for i, line := range strings.Split(strings.TrimSpace(a.body), "\n") {
			var c v1.Change
			if strings.Contains(line, `"record_id"`) {
				if err := json.Unmarshal([]byte(line), &c); err != nil {
					l.t.Fatal(i, err)
				}
				page.Changes = append(page.Changes, c)
			} else if err := json.Unmarshal([]byte(line), &page); err != nil {
				l.t.Fatal(i, err)
			}
		}
	} else if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		l.t.Fatal(err)
	}
	for i := range page.Changes {
		l.add(1, page.Changes[i].Record)
		l.add(-1, page.Changes[i].Supersedes)
	}
	if page.Next == "" || page.Epoch != "CLUSTER" || page.Cluster != "CLUSTER" {
		l.t.Fatal("the answer does not say where it is: ", a.body)
	}
	l.next = page.Next
	return page.More, a
}

// compare reads up to the digest of now, and compares.
func (l *ledgerSums) compare(rg *rig) {
	l.t.Helper()
	var d v1.ChangesDigest
	rg.get("/v1/changes/digest", &d)
	rg.add(simple(fmt.Sprint("later-", len(l.next), d.Last), 1)) // the digest is of before
	for range 3 {                                                // the rest of a part, and the one up to the digest
		for more := true; more; {
			var a answer
			if more, a = l.read(rg, fmt.Sprintf("&format=ndjson&until=%d", d.Last)); a.status != http.StatusOK {
				l.t.Fatal(a)
			}
		}
	}
	want := map[string]string{}
	for _, line := range d.Digests {
		if line.Month != "" {
			want[string(line.Site)+" "+string(line.Month)] = fmt.Sprint(line.Records, " ", line.CoreSeconds)
		} else if line.CoreSeconds != "" {
			l.t.Error("runs that go on have sums: ", line)
		}
	}
	got := map[string]string{}
	for key, n := range l.records {
		if n != 0 {
			seconds := strings.TrimRight(strings.TrimRight(l.seconds[key].FloatString(6), "0"), ".")
			if l.seconds[key].IsInt() {
				seconds = l.seconds[key].FloatString(0)
			}
			got[key] = fmt.Sprint(n, " ", seconds)
		} else if l.seconds[key].Sign() != 0 {
			l.t.Errorf("%s: no records and %s", key, l.seconds[key])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Error(diff)
	}
}

// shake changes a record at random.
func shake(rg *rig, rng *rand.Rand, n int) {
	id := fmt.Sprint("r", rng.IntN(12))
	start := time.Date(2026, 1, 31, rng.IntN(30), rng.IntN(60), 0, rng.IntN(1e6)*1000, time.UTC)
	stop := fmt.Sprintf(`,"stop_time":%q`, start.Add(time.Duration(rng.IntN(1e9))*time.Microsecond).Format(time.RFC3339Nano))
	if rng.IntN(4) == 0 {
		stop = ""
	}
	rec := fmt.Sprintf(`{"record_id":%q,"meta":{"site_id":["s%d"]},"components":[{"name":"Cores","amount":%d,"scores":[]}],"start_time":%q%s}`, id, rng.IntN(3), rng.IntN(1e6), start.Format(time.RFC3339Nano), stop)
	switch rng.IntN(4) {
	case 0:
		rg.do("PUT", "/record", fmt.Sprintf(`{"record_id":%q,"components":[],"stop_time":%q}`, id, start.Add(time.Hour).Format(time.RFC3339Nano)))
	case 1: // another content: gone, then there again
		rg.do("DELETE", "/v1/records/"+id, "")
		if rng.IntN(2) == 0 {
			rg.do("POST", "/v1/records/"+id+":undelete", "")
		}
	default:
		rg.do("POST", "/record", rec)
	}
}

func newLedgerRig(t *testing.T, changes ...change) *rig {
	rg := newRig(t, changes...)
	for _, c := range []store.Command{&store.SetClusterCommand{ID: "CLUSTER"}, &store.SetVersionCommand{Version: store.CommandFormat}} {
		if _, err := rg.node.Write(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return rg
}

func TestChangesDigest_AnyChanges_EqualsSumsOfTheLedger(t *testing.T) {
	for seed := range uint64(max(2, racetest.Few(4))) {
		var rows access.Rows
		who := access.AllRows()
		if seed%2 == 1 {
			who = access.SomeRows(access.Grant{"site_id": {"s1", "s2"}})
		}
		rows = who
		rg := newLedgerRig(t, func(o *api.Options, _ *store.Options) {
			o.Who = func(r *http.Request) access.Principal {
				p := access.Daemon()
				if strings.HasPrefix(r.URL.Path, "/v1/changes") {
					p = access.Principal{Name: "ledger", Rights: identity.Read, Rows: rows}
				}
				return p
			}
		})
		rng := rand.New(rand.NewPCG(seed, 34))
		l := &ledgerSums{t: t}
		l.begin()
		for n := range 300 {
			shake(rg, rng, n)
			if rng.IntN(10) == 0 {
				if _, a := l.read(rg, fmt.Sprint("&limit=", 1+rng.IntN(5))); a.status != http.StatusOK {
					t.Fatal(a)
				}
			}
			if rng.IntN(40) == 0 {
				l.compare(rg)
			}
		}
		l.compare(rg)
	}
}

func TestChanges_LedgerThatCannotGoOn_Is410WithWhatToDo(t *testing.T) {
	for _, rows := range []access.Rows{access.AllRows(), access.SomeRows(access.Grant{"site_id": {"s1"}})} {
		now := rows
		rg := newLedgerRig(t, func(o *api.Options, _ *store.Options) {
			o.Who = func(r *http.Request) access.Principal {
				if strings.HasPrefix(r.URL.Path, "/v1/changes") {
					return access.Principal{Name: "ledger", Rights: identity.Read, Rows: now}
				}
				return access.Daemon()
			}
		})
		rg.add(`{"record_id":"a","meta":{"site_id":["s1"]},"components":[],"start_time":"2026-01-01T00:00:00Z","stop_time":"2026-01-02T00:00:00Z"}`)
		gone := func(why string, l ledgerSums) {
			t.Helper()
			_, a := l.read(rg, "")
			if a.status != http.StatusGone || !strings.Contains(a.body, why) || !strings.Contains(a.body, "ask for ledger=true without a cursor") {
				t.Error(why, a)
			}
			l.begin()
			if _, a := l.read(rg, ""); a.status != http.StatusOK {
				t.Error("who begins anew: ", a)
			}
		}
		l := ledgerSums{t: t}
		l.begin()
		if _, a := l.read(rg, ""); a.status != http.StatusOK || l.records["s1 2026-01"] != 1 {
			t.Fatal(a)
		}
		now = access.SomeRows(access.Grant{"site_id": {"s2"}})
		gone("records that you may see", l)
		now = rows
		rg.want("DELETE", "/v1/records/a", "", 204, "")
		v, err := rg.node.View()
		if err != nil {
			t.Fatal(err)
		}
		old, err := v.Droppable(t.Context(), record.MaxTime)
		if err = errors.Join(err, v.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := rg.node.Write(t.Context(), &store.ForgetCommand{UpTo: 1 << 40, Of: old.Waiting()}); err != nil {
			t.Fatal(err)
		}
		gone("dropped", l)
		doc := archive.IncarnationDocument()
		doc.Value = []byte(`{"format":1,"id":"ANOTHER"}`)
		if _, err := rg.node.Write(t.Context(), &store.DocumentCommand{Sets: []store.Document{doc}}); err != nil {
			t.Fatal(err)
		}
		if _, a := l.read(rg, ""); a.status != http.StatusGone || !strings.Contains(a.body, "rebuilt or restored") {
			t.Error(a)
		}
	}
}

func TestChanges_NDJSON_HasThePositionLast(t *testing.T) {
	rg := newLedgerRig(t)
	rg.add(simple("a", 1), simple("b", 2))
	a := rg.do("GET", "/v1/changes?limit=1", "", "Accept: application/x-ndjson")
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	if len(lines) != 3 || lines[0] != `{"cluster":"CLUSTER","epoch":"CLUSTER"}` || lines[2] != `{"last":1}` || a.header.Get("Content-Type") != "application/x-ndjson" {
		t.Error(a)
	}
}
