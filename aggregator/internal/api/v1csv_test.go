package api_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// The table of any records has their JSON in it: each key, component and score is a column,
// whatever its name, and no cell is JSON.
func TestRecordsCSV_AnyRecords_HasAColumnForEachName(t *testing.T) {
	for seed := range uint64(racetest.Few(40)) {
		r := rand.New(rand.NewPCG(seed, 1))
		rg := newRig(t)
		source := record.Origin{Agent: "a", Type: "slurm", Label: "l"}
		ingest := &store.IngestCommand{Agent: "a", Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 2, Checkpoints: []store.Checkpoint{{Source: source}}}
		for i := range 1 + r.IntN(12) {
			ingest.Writes = append(ingest.Writes, record.Write{
				Op: record.OpPut, ID: fmt.Sprint("r", i), Origin: source, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: 1}, Record: anyRecord(r, fmt.Sprint("r", i)),
			})
		}
		if _, err := rg.node.Write(t.Context(), ingest); err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{"", "order=-runtime", "limit=3&order=start_time", "order=meta.state&limit=2", "meta[state][c][0]=x", "order=-component.Cores"} {
			var want []v1.FullRecord
			for line := range strings.Lines(rg.do("GET", "/v1/records?format=ndjson&"+q, "", "Prefer: handling=lenient").body) {
				var one v1.FullRecord
				if err := json.Unmarshal([]byte(line), &one); err != nil {
					t.Fatal(err, line)
				}
				want = append(want, one)
			}
			a := rg.do("GET", "/v1/records?format=csv&"+q, "", "Prefer: handling=lenient")
			got, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
			if err != nil || a.status != http.StatusOK || len(got) != len(want)+1 {
				t.Fatalf("seed %d, %q: %d lines of %d records, %v, %v", seed, q, len(got), len(want), err, a)
			}
			compareTable(t, fmt.Sprintf("seed %d, %q", seed, q), got, want)
		}
	}
}

// anyRecord is a record with names that columns have.
func anyRecord(r *rand.Rand, id string) *record.Record {
	some := func(list ...string) string { return list[r.IntN(len(list))] }
	out := &record.Record{ID: id, Start: record.Time(r.Int64N(1e6)) * record.Second, Stop: record.None, Submit: record.None, State: some("", "COMPLETED", "a,b")}
	if r.IntN(3) > 0 {
		out.Stop = out.Start + record.Time(r.Int64N(1e6))*record.Second
	}
	if r.IntN(2) > 0 {
		out.Submit = out.Start - record.Time(r.Int64N(1e6)-1e5)*record.Second
	}
	if r.IntN(2) > 0 {
		out.Exit = record.Exit{Known: true, Code: r.Int32N(3), Signal: r.Int32N(10)}
	}
	keys := map[string]bool{}
	for range r.IntN(5) {
		keys[some("state", "wait", "meta.state", "Cores", "component.Cores", "user_id", "a,\"b\"", "rank", "Cores.HS")] = true
	}
	for key := range keys {
		e := record.MetaEntry{Key: key}
		for range r.IntN(3) {
			e.Values = append(e.Values, some("x", "", `a,b`, `c\`, "\"\n", "7"))
		}
		out.Meta = append(out.Meta, e)
	}
	out.Meta = out.Meta.Sorted()
	for _, name := range []string{"Cores", "state", "Memory", "user_id", "Cores.HS"} {
		if r.IntN(3) > 0 {
			continue
		}
		c := record.Component{Name: name, Amount: r.Int64N(100)}
		for _, score := range []string{"HS", "x,y"} {
			if r.IntN(2) > 0 {
				c.Scores = append(c.Scores, record.Score{Name: score, Value: float64(r.IntN(9)) / 4})
			}
		}
		out.Components = append(out.Components, c)
	}
	return out
}

// compareTable compares a table with the records that are in it, name by name.
func compareTable(t *testing.T, what string, table [][]string, list []v1.FullRecord) {
	t.Helper()
	named := map[string]string{} // the columns by what they have
	taken := slices.Clone(table[0][:11])
	column := func(kind, name, id string) {
		title := name
		for slices.Contains(taken, title) {
			title = kind + title
		}
		taken, named[id] = append(taken, title), title
	}
	keys, amounts := map[string]bool{}, map[string]map[string]bool{}
	for _, r := range list {
		for k := range r.Meta {
			keys[k] = true
		}
		for _, c := range r.Components {
			if amounts[c.Name] == nil {
				amounts[c.Name] = map[string]bool{}
			}
			for _, s := range c.Scores {
				amounts[c.Name][s.Name] = true
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		column("meta.", k, "key "+k)
	}
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		column("component.", name, "amount "+name)
		for _, score := range slices.Sorted(maps.Keys(amounts[name])) {
			column("component.", name+"."+score, "score "+name+"*"+score)
		}
	}
	if !slices.Equal(taken, table[0]) {
		t.Fatalf("%s: the columns are %q, want %q", what, table[0], taken)
	}
	for i, r := range list {
		want := map[string]string{"record_id": r.RecordID}
		if !r.SubmitTime.IsZero() && !r.SubmitTime.After(r.StartTime.Time) {
			want["wait"] = strconv.FormatFloat(r.StartTime.Sub(r.SubmitTime.Time).Seconds(), 'f', -1, 64)
		}
		want["state"] = string(r.State)
		for k, values := range r.Meta {
			want[named["key "+k]] = v1.JoinList(values...)
		}
		for _, c := range r.Components {
			want[named["amount "+c.Name]] = strconv.FormatInt(c.Amount, 10)
			for _, s := range c.Scores {
				want[named["score "+c.Name+"*"+s.Name]] = strings.TrimSuffix(s.Value.String(), ".0")
			}
		}
		for k, name := range taken {
			if k > 0 && (k < 5 || k > 6) && k < 11 { // times, exit and origin, as they were
				continue
			}
			if got := table[i+1][k]; got != want[name] {
				t.Errorf("%s: %s of %s is %q, want %q", what, name, r.RecordID, got, want[name])
			}
		}
	}
}

// Records whose names would make a table that no program reads are refused, with the way out.
func TestRecordsCSV_TooManyNames_IsRefused(t *testing.T) {
	rg := newRig(t)
	for i := range 30 {
		var keys []string
		for k := range 40 {
			keys = append(keys, fmt.Sprintf(`"k%d-%d":["v"]`, i, k))
		}
		rg.add(fmt.Sprintf(`{"record_id":"r%d","meta":{%s},"components":[],"start_time":"2025-01-01T00:00:00Z"}`, i, strings.Join(keys, ",")))
	}
	if a := rg.do("GET", "/v1/records?format=csv", ""); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "format=ndjson") {
		t.Error(a)
	}
	if a := rg.do("GET", "/v1/records?format=csv&limit=3", ""); a.status != http.StatusOK || strings.Count(a.body, "\n") != 4 {
		t.Error(a)
	}
}
