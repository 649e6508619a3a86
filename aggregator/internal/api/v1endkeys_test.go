package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// How runs ended is asked for like any key of meta, and what no record has is named.
func TestEndKeys_RecordsAndUsage_AreKeysLikeAnyOther(t *testing.T) {
	rg := newRig(t, noon("2026-04-02T12:00:00Z"))
	at, err := record.ParseTime("2026-03-02T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	source := record.Origin{Agent: "a", Type: "slurm", Label: "l"}
	ingest := &store.IngestCommand{Agent: "a", Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 2, Checkpoints: []store.Checkpoint{{Source: source}}}
	own := record.Write{Op: record.OpPut, ID: "own", Origin: source, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: 1},
		Record: &record.Record{ID: "own", Start: at - record.Day, Stop: at - record.Day + record.Hour, Submit: record.None, State: "COMPLETED", Meta: record.Meta{{Key: "state", Values: []string{"hung"}}}}}
	ingest.Writes = append(ingest.Writes, own)
	for i, state := range []string{"COMPLETED", "FAILED", "FAILED", ""} {
		id := fmt.Sprint("r", i)
		r := &record.Record{ID: id, Start: at, Stop: at + record.Hour, Submit: record.None, State: state, Components: []record.Component{{Name: "Cores", Amount: 1}}}
		if state != "" {
			r.Exit = record.Exit{Known: true, Code: int32(i)}
		}
		ingest.Writes = append(ingest.Writes, record.Write{Op: record.OpPut, ID: id, Origin: source, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: 1}, Record: r})
	}
	if _, err := rg.node.Write(t.Context(), ingest); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"meta[state][c][0]=FAILED": "r1 r2", "meta[exit_code][c][0]=2": "r2", "meta[state][any][0]=COMPLETED&meta[state][any][1]=FAILED": "r0 r1 r2",
		"order=-meta.exit_code": "r2 r1 r0 r3", "order=meta.state": "r0 r1 r2 r3", "meta[exit_signal][c][0]=0&meta[state][c][0]=COMPLETED": "r0",
	} {
		query += "&stop_time[gt]=2026-03-02T00:00:00Z"
		a := rg.do("GET", "/v1/records?format=ndjson&"+query, "")
		if got := strings.Join(idsOf(t, a.body), " "); got != want || a.status != http.StatusOK {
			t.Errorf("%s: %q, want %q: %v", query, got, want, a)
		}
	}
	for query, want := range map[string]string{
		"by=state": "|1 COMPLETED|1 FAILED|2 hung|1", "by=exit_code,state&where[state]=FAILED": "1|FAILED|1 2|FAILED|1",
	} {
		a := rg.do("GET", "/v1/usage?window=2026-03&measure=records&format=csv&"+query, "")
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(a.body), "\n")[1:] {
			got = append(got, strings.ReplaceAll(line, ",,2026-03-01T00:00:00Z,2026-04-01T00:00:00Z,", "|"))
		}
		if text := strings.ReplaceAll(strings.Join(got, " "), ",", "|"); a.status != http.StatusOK || text != want {
			t.Errorf("%s: %q, want %q: %v", query, text, want, a)
		}
	}
	for query, want := range map[string]int{"where[state]=FAILED": 2, "where[state]=FAILED,COMPLETED": 3, "where[state]=": 1, "where[state]=hung": 1, "where[exit_code]=2": 1, "where[exit_signal]=0": 3} {
		var a v1.Distributions
		rg.get("/v1/distributions?from=2026-03-01&to=2026-04-01&"+query, &a)
		if a.Records != want {
			t.Errorf("distributions %s: %d jobs, want %d", query, a.Records, want)
		}
	}
	for query, want := range map[string]int{ // of AUDITOR's, which knows meta alone
		"meta[state][c]=FAILED": 0, "meta[state][c]=COMPLETED": 0, "meta[state][c]=hung": 1, "meta[state][dnc]=hung": 0, "meta[exit_code][dnc]=7": 0,
	} {
		if a := rg.do("GET", "/records?"+query, ""); a.status != http.StatusOK || strings.Count(a.body, "record_id") != want {
			t.Errorf("%s: want %d records: %v", query, want, a)
		}
	}
	for path, want := range map[string]string{
		"/v1/records?meta[state][c][0]=FAILD": `did you mean \"FAILED\"`, "/v1/records?meta[stat][c][0]=x": `did you mean \"state\"`,
	} {
		if a := rg.do("GET", path, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %v, want %s", path, a, want)
		}
	}
}
