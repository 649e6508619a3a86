package report_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// told is what a report about a job says: its first table by record, its table of sources by
// source, and its notes.
func told(t *testing.T, w *apitest.World, who access.Principal, query string) (states, sources map[string]string, notes string) {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.Make(t.Context(), v1.API{Caller: apitest.As{World: w, Principal: who}}, "job", values, apitest.Noon())
	if err != nil {
		t.Fatal(query, err)
	}
	states, sources = map[string]string{}, map[string]string{}
	for i := range d.Tables {
		for _, row := range d.Tables[i].Rows {
			if d.Tables[i].Name == "found" {
				states[row[0].String()] = row[1].String() + " | " + row[2].String()
			} else {
				sources[row[0].String()] = row[2].String()
			}
		}
	}
	return states, sources, strings.Join(d.Notes, "\n")
}

func TestJob_OfEachState_SaysWhyItIsCountedOrNot(t *testing.T) {
	w := apitest.Filled(t)
	w.Apply(&store.DeleteCommand{IDs: []string{"nemo-5"}, By: "root", Now: apitest.At("2026-03-01")})
	for id, want := range map[string]string{
		"nemo-2":     "nemo-2: " + view.StateCounted + " | start 2026-02-10 12:00",
		"2":          "nemo-2: " + view.StateCounted, // behind the site
		"nemo-7":     "nemo-7: " + view.StateRunning,
		"nemo-5":     "nemo-5: " + view.StateDeleted,
		"nemo-4711":  "nemo-4711: " + view.StateQuarantined + " | job 4711/a of head1/slurm/nemo: mapping: agent.hcl:12:5: no attribute",
		"4711/a":     "nemo-4711: " + view.StateQuarantined,
		"lab-4711/a": "lab-4711/a: " + view.StateUnknown, // the job of another site
		"99":         "99: " + view.StateUnknown,
	} {
		states, _, _ := told(t, w, access.Daemon(), url.Values{"job": {id}}.Encode())
		name, says, _ := strings.Cut(want, ": ")
		if !strings.HasPrefix(states[name], says) || len(states) != 1 {
			t.Errorf("%s: %q, want %q", id, states, want)
		}
	}
}

func TestJob_WithdrawnOrOnlyAStop_IsNotCounted(t *testing.T) {
	w := apitest.Filled(t)
	w.Collect(apitest.Nemo(), nil, &store.IngestCommand{Now: apitest.At("2026-03-01T12:00:00Z"), Writes: []record.Write{
		{ID: "nemo-2", Op: record.OpWithdraw, Origin: apitest.Nemo(), Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: int64(apitest.At("2026-03-01T12:00:00Z"))}, Stop: record.None},
		{ID: "own.x-77", Op: record.OpStop, Origin: record.Pushed, Rank: record.RankPush, Version: record.Version{Ended: true, Observed: 9}, Stop: apitest.At("2026-02-27")},
	}})
	for job, want := range map[string]string{
		"2":  "nemo-2: " + view.StateWithdrawn + " | by head1/slurm/nemo",
		"77": "own.x-77: " + view.StateStopOnly,
	} {
		states, _, _ := told(t, w, access.Daemon(), "job="+job)
		name, says, _ := strings.Cut(want, ": ")
		if !strings.HasPrefix(states[name], says) || len(states) != 1 {
			t.Errorf("%s: %q, want %q", job, states, want)
		}
	}
	if states, _, _ := told(t, w, access.Daemon(), "job=1"); !strings.HasPrefix(states["nemo-1"], view.StateCounted) {
		t.Errorf("another job: %q", states)
	}
}

func TestJob_Unknown_SourcesSayWhatTheyLackOfItsTime(t *testing.T) {
	w := apitest.Filled(t)
	for period, want := range map[string]string{
		"2026-02-18": "7 jobs left out by the configuration of the source; 5 runs of the scheduler without a record",
		"2025-01-10": "gap from 2025-01-01 00:00:00 to 2025-02-01 00:00:00: purged",
		"2026-03-01": "what ended after 2026-03-01 11:58:00 is not complete yet",
	} {
		_, sources, notes := told(t, w, access.Daemon(), "job=99&period="+period)
		if says := sources["head1/slurm/nemo"]; !strings.Contains(says, want) || !strings.Contains(notes, "no ids of jobs that their configuration leaves out") {
			t.Errorf("%s: %q, want %q; %s", period, says, want, notes)
		}
		if says := fmt.Sprint(sources); !strings.Contains(says, "the agent has 12 frames that did not arrive yet") || !strings.Contains(says, "cannot be reached: pull: no route to host") {
			t.Errorf("%s: %s", period, says)
		}
	}
}

func TestJob_ReaderOfSomeRecords_IsToldOfTheirOwnOnly(t *testing.T) {
	w := apitest.Filled(t)
	alice := access.Principal{Name: "alice", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"alice"}})}
	for id, want := range map[string]string{"nemo-1": view.StateCounted, "nemo-2": view.StateUnknown, "nemo-4711": view.StateUnknown} {
		states, sources, notes := told(t, w, alice, "job="+id)
		if !strings.HasPrefix(states[id], want) || len(states) != 1 || len(sources) > 0 || !strings.Contains(notes, "shown only to readers of all records") {
			t.Errorf("%s: %q %q %s", id, states, sources, notes)
		}
	}
}

func TestJob_PrefixOfMapping_IsFoundByBareID(t *testing.T) {
	w := apitest.Filled(t)
	w.Post(apitest.Records(
		apitest.Job{ID: "uni7/batch-815_3", Group: "atlas", User: "bob", Start: "2026-02-26", Stop: "2026-02-27", Cores: 1},
		apitest.Job{ID: "uni7/batch-815-1767225600", Group: "atlas", User: "alice", Start: "2026-02-26", Stop: "2026-02-27", Cores: 1},
		apitest.Job{ID: "uni7/batch-8150", Group: "atlas", User: "alice", Start: "2026-02-26", Stop: "2026-02-27", Cores: 1},
	)...)
	states, _, _ := told(t, w, access.Daemon(), "job=815")
	for _, id := range []string{"uni7/batch-815_3", "uni7/batch-815-1767225600"} {
		if !strings.HasPrefix(states[id], view.StateCounted) || len(states) != 2 {
			t.Errorf("%s: %q", id, states)
		}
	}
	alice := access.Principal{Name: "alice", Rights: identity.Read, Rows: access.SomeRows(access.Grant{"user_id": {"alice"}})}
	if states, _, _ := told(t, w, alice, "job=815"); len(states) != 1 || states["uni7/batch-815-1767225600"] == "" {
		t.Errorf("alice is told %q", states)
	}
}
