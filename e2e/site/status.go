//go:build e2e

package site

import (
	"encoding/json"
	"net/url"

	"github.com/bursar-accounting/bursar/proto/record"
)

// AgentStatus is what a test looks at in `bursar-agent status`.
type AgentStatus struct {
	Buffer struct {
		First    uint64 `json:"first"`
		Last     uint64 `json:"last"`
		Clusters []struct {
			ID     string `json:"id"`
			Behind uint64 `json:"behind"`
		} `json:"clusters"`
	} `json:"buffer"`
	Sources []SourceStatus `json:"sources"`
}

// SourceStatus is how one source is doing.
type SourceStatus struct {
	Label    string `json:"label"`
	State    string `json:"state"`
	Error    string `json:"error"`
	Hangs    int    `json:"plugin_hangs"`
	Progress *struct {
		Done  int64  `json:"done"`
		Total int64  `json:"total"`
		At    string `json:"at"`
	} `json:"progress"`
	Counts struct {
		Records     int64 `json:"records"`
		Unchanged   int64 `json:"unchanged"`
		Filtered    int64 `json:"filtered"`
		Withdrawn   int64 `json:"withdrawn"`
		Quarantined int64 `json:"quarantined"`
		Refused     int64 `json:"refused"`
		Skipped     int64 `json:"skipped"`
	} `json:"counts"`
}

// Status asks the agent over its control socket, as an admin would.
func (a *Agent) Status() (AgentStatus, error) {
	var status AgentStatus
	out, err := a.site.Run("bursar-agent", "status", "-config", a.Config, "-format", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &status)
	}
	return status, err
}

// Source returns the source of that label; a zero one when there is none.
func (s AgentStatus) Source(label string) SourceStatus {
	for _, source := range s.Sources {
		if source.Label == label {
			return source
		}
	}
	return SourceStatus{}
}

// Whole returns all records by id with what /v1 shows of them beyond AUDITOR:
// state, exit and submission. An id that is there twice fails the test.
func (g *Aggregator) Whole() map[string]record.Record {
	g.site.t.Helper()
	all := map[string]record.Record{}
	g.readRecords("/v1/records", url.Values{"format": {"ndjson"}}, func(r record.Record) {
		if _, twice := all[r.ID]; twice {
			g.site.t.Errorf("the record %s is there twice", r.ID)
		}
		all[r.ID] = r
	})
	return all
}
