package api_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// decimalOf writes a sum as the interface does.
func decimalOf(sum *big.Rat) string {
	text := sum.FloatString(6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// usedOf is what a component of a record used up to a time.
func usedOf(r *v1.FullRecord, name string, until v1.Time) *big.Rat {
	used := new(big.Rat)
	for _, c := range r.Components {
		one := big.NewRat(c.Amount, 1)
		if c.Kind != "total" {
			one.Mul(one, big.NewRat(until.Sub(r.StartTime.Time).Microseconds(), 1e6))
		}
		if c.Name == name {
			used.Add(used, one)
		}
	}
	return used
}

// Runs of sources that are complete up to different times, and of a source without a watermark,
// some of which have not begun by then, add up to what usage has at that instant.
func TestOpenRuns_AtAnInstant_AddUpToUsage(t *testing.T) {
	w := apitest.New(t)
	rng := rand.New(rand.NewPCG(34, 1))
	other := record.Origin{Agent: "head1", Type: "slurm", Label: "other"}
	silent := record.Origin{Agent: "head2"}
	for i, source := range []record.Origin{apitest.Nemo(), other, silent} {
		var jobs []apitest.Job
		for n := range 40 {
			start := record.FromStd(apitest.Noon()) - record.Time(rng.Int64N(40*int64(record.Day))) + record.Day
			j := apitest.Job{ID: fmt.Sprint(i, "-", n), Group: fmt.Sprint("g", rng.IntN(3)), Start: start.String(), Cores: 1 + rng.Int64N(1e6), CPU: rng.Int64N(1e9), Meta: map[string]string{"site_id": fmt.Sprint("s", rng.IntN(3))}}
			if rng.IntN(4) == 0 {
				j.Stop = (start + record.Hour).String()
			}
			jobs = append(jobs, j)
		}
		var more *store.IngestCommand
		if source != silent {
			more = &store.IngestCommand{Watermarks: []store.Watermark{{Source: source, CompleteTo: apitest.At("2026-02-20T01:02:03.456789Z") + record.Time(i)*record.Day}}}
		}
		w.Collect(source, apitest.Records(jobs...), more)
	}
	got, digests := map[string]string{}, map[string]string{}
	records, cores, cpu := map[string]int{}, map[string]*big.Rat{}, map[string]*big.Rat{}
	var head, end v1.OpenRunLine
	for line, err := range w.API().OpenRunsLines(t.Context(), &v1.Reading{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case line.Cluster != "" || head.Now.IsZero():
			head = line
		case line.Record != nil:
			r := line.Record
			if !r.StopTime.IsZero() {
				t.Errorf("%s has stopped", r.RecordID)
			}
			site := r.Meta["site_id"][0]
			if cores[site] == nil {
				cores[site], cpu[site] = new(big.Rat), new(big.Rat)
			}
			records[site]++
			cores[site].Add(cores[site], usedOf(r, "Cores", line.CountedTo))
			cpu[site].Add(cpu[site], usedOf(r, "TotalCPU", line.CountedTo))
		default:
			end = line
		}
	}
	n := 0
	for site := range records {
		n += records[site]
		got[site] = fmt.Sprint(decimalOf(cores[site]), " ", decimalOf(cpu[site]))
	}
	if head.Now.Time != apitest.Noon() || head.Last == 0 || end.Records != uint64(n) || n < 60 {
		t.Errorf("%+v, %d records, %d lines", head, end.Records, n)
	}
	for _, d := range end.Digests {
		digests[string(d.Site)] = fmt.Sprint(d.Records, " ", d.CoreSeconds)
	}
	want := map[string]string{}
	for site := range records {
		want[site] = fmt.Sprint(records[site], " ", decimalOf(cores[site]))
	}
	if diff := cmp.Diff(want, digests); diff != "" {
		t.Error(diff)
	}
	// What has closed used is in the same sums.
	for line, err := range w.API().ListRecordsLines(t.Context(), &v1.ListRecordsQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if site := line.Meta["site_id"][0]; !line.StopTime.IsZero() {
			cores[site].Add(cores[site], usedOf(&line, "Cores", line.StopTime))
			cpu[site].Add(cpu[site], usedOf(&line, "TotalCPU", line.StopTime))
		}
	}
	for site := range records {
		got[site] = fmt.Sprint(decimalOf(cores[site]), " ", decimalOf(cpu[site]))
	}
	want = map[string]string{}
	for line, err := range w.API().UsageLines(t.Context(), &v1.UsageQuery{From: "2026-01-01", To: "2026-05-01", By: "site_id", Measure: "Cores,TotalCPU", Unit: "second"}) {
		if err != nil {
			t.Fatal(err)
		}
		if site := line.Group["site_id"]; site != nil {
			want[*site] = fmt.Sprint(line.Measures["Cores"], " ", line.Measures["TotalCPU"])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A reader sees those of its own rows alone, and digests of these.
func TestOpenRuns_ReaderOfSomeRows_SeesThoseAlone(t *testing.T) {
	rows := access.SomeRows(access.Grant{"site_id": {"s1"}})
	rg := newLedgerRig(t, noon("2026-03-10T12:00:00Z"), func(o *api.Options, _ *store.Options) {
		o.Who = func(r *http.Request) access.Principal {
			if strings.HasPrefix(r.URL.Path, "/v1/changes") {
				return access.Principal{Name: "ledger", Rights: identity.Read, Rows: rows}
			}
			return access.Daemon()
		}
	})
	for i, site := range []string{"s1", "s2", "s1"} {
		stop := ""
		if i == 2 {
			stop = `,"stop_time":"2026-03-10T11:30:00Z"`
		}
		rg.add(fmt.Sprintf(`{"record_id":"r%d","meta":{"site_id":[%q]},"components":[{"name":"Cores","amount":2,"scores":[]}],"start_time":"2026-03-10T11:00:00Z"%s}`, i, site, stop))
	}
	a := rg.do("GET", "/v1/changes/open", "")
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	if len(lines) != 3 || lines[0] != `{"cluster":"CLUSTER","epoch":"CLUSTER","last":3,"now":"2026-03-10T12:00:00Z"}` ||
		!strings.HasPrefix(lines[1], `{"counted_to":"2026-03-10T12:00:00Z","record":{"record_id":"r0"`) ||
		lines[2] != `{"records":1,"digests":[{"site":"s1","records":1,"core_seconds":"7200"}]}` || a.header.Get("Content-Type") != "application/x-ndjson" {
		t.Error(a)
	}
	rows = access.SomeRows(access.Grant{"site_id": {"s3"}})
	var end v1.OpenRunLine
	lines = strings.Split(strings.TrimSpace(rg.do("GET", "/v1/changes/open", "").body), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || len(lines) != 2 || end.Records != 0 || end.Digests == nil {
		t.Error(lines, err)
	}
	if a := rg.do("GET", "/v1/changes/open?limit=3", ""); a.status != http.StatusBadRequest {
		t.Error(a)
	}
}
