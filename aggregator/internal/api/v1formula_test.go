package api_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// No text of a record, a job or a source becomes a formula in a table that is opened in a
// spreadsheet: not in a cell and not in a head.
func TestCSV_HostileTexts_AreNoFormulas(t *testing.T) {
	for _, sign := range []string{"=", "+", "-", "@"} {
		rg := newRig(t, noon("2026-04-02T12:00:00Z"))
		hostile := func(s string) string { return sign + "cmd|'" + s + "'!A0" }
		at, err := record.ParseTime("2026-03-02T00:00:00Z")
		if err != nil {
			t.Fatal(err)
		}
		source := record.Origin{Agent: hostile("agent"), Type: hostile("type"), Label: hostile("label")}
		put := func(id string, origin record.Origin, start record.Time) record.Write {
			return record.Write{
				Op: record.OpPut, ID: id, Origin: origin, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: int64(start)},
				Record: &record.Record{
					ID: id, Start: start, Stop: at + record.Hour, Submit: record.None, State: hostile("state"), Meta: record.Meta{{Key: hostile("key"), Values: []string{hostile("value")}}, {Key: "group_id", Values: []string{hostile("group")}}, {Key: "user_id", Values: []string{hostile("user")}}},
					Components: []record.Component{{Name: hostile("component"), Amount: 3, Scores: []record.Score{{Name: hostile("score"), Value: 2}}}},
				},
			}
		}
		if _, err := rg.node.Write(t.Context(), &store.IngestCommand{
			Agent: source.Agent, Now: at, Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 3,
			Writes:      []record.Write{put(hostile("id"), source, at), put(hostile("id"), record.Origin{Agent: source.Agent, Type: "other", Label: "x"}, at-record.Hour)},
			Quarantine:  []store.Quarantined{{Source: source, ID: hostile("job"), Reason: hostile("reason"), Message: hostile("message"), RecordID: hostile("record"), Raw: []byte(hostile("raw"))}},
			Gaps:        []store.Gap{{Source: source, From: at, To: at + record.Hour, Reason: hostile("gap")}},
			Watermarks:  []store.Watermark{{Source: source, CompleteTo: at}},
			Checkpoints: []store.Checkpoint{{Source: source}},
		}); err != nil {
			t.Fatal(err)
		}
		key := url.QueryEscape(hostile("key"))
		for path, has := range map[string]string{
			"/v1/records": "'" + hostile("id"), "/v1/usage?window=2026-03&by=group_id": "'" + hostile("group"), "/v1/usage?window=2026-03&by=" + key + "&bucket=month": "'" + hostile("key"),
			"/v1/agents": "'" + hostile("agent"), "/v1/counters": "'" + hostile("agent"), "/v1/quarantine": "'" + hostile("message"), "/v1/conflicts": "'" + hostile("id"), "/v1/waiting": "",
			"/v1/gaps": "'" + hostile("gap"), "/v1/completeness?from=2026-03-01&to=2026-03-03": "'" + hostile("agent"), "/v1/kinds": "",
			"/v1/reports/usage?period=2026-03&by=group_id": "'" + hostile("group"), "/v1/reports/usage?period=2026-03&by=" + key: "'" + hostile("value"), "/v1/reports/summary?period=2026-03": "'" + hostile("user"),
		} {
			separator := "?"
			if strings.Contains(path, "?") {
				separator = "&"
			}
			a := rg.do("GET", path+separator+"format=csv", "")
			in := csv.NewReader(strings.NewReader(a.body))
			in.FieldsPerRecord = -1
			rows, err := in.ReadAll()
			if a.status != http.StatusOK || err != nil || !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") {
				t.Errorf("%s: %v, %v", path, err, a)
				continue
			}
			found := has == ""
			for _, row := range rows {
				for _, cell := range row {
					found = found || strings.HasPrefix(cell, has)
					if _, err := strconv.ParseFloat(cell, 64); err != nil && strings.ContainsAny(cell[:min(1, len(cell))], "=+-@\t\r") {
						t.Errorf("%s: the cell %q is a formula", path, cell)
					}
				}
			}
			if !found {
				t.Errorf("%s: no cell begins with %s:\n%s", path, has, a.body)
			}
		}
	}
}
