package api_test

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
)

// What no agent can map again says what to do instead, and a retry of it is refused with that.
func TestQuarantine_WhatNoAgentCanMapAgain_SaysWhatToDoInstead(t *testing.T) {
	w := apitest.New(t)
	w.Options.Agents = apitest.Agents{{Name: "head1"}}
	slurm, imported := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}, record.Origin{Agent: "old", Type: "gridengine", Label: "katana"}
	row := func(source record.Origin, id, reason string, cut bool) store.Quarantined {
		return store.Quarantined{Source: source, ID: id, Reason: reason, Message: "no", Raw: []byte("{}"), Truncated: cut}
	}
	w.Collect(slurm, nil, &store.IngestCommand{Quarantine: []store.Quarantined{
		row(slurm, "mapped", "mapping", false), row(slurm, "invalid", "validation", false), row(slurm, "unread", "input", false), row(slurm, "cut", "mapping", true),
		row(record.Origin{Agent: "head1"}, "pushed", "validation", false),
	}})
	var epoch store.Epoch
	copy(epoch[:], store.ImportMark)
	w.Apply(&store.IngestCommand{
		Agent: "old", Epoch: epoch, Now: record.FromStd(apitest.Noon()), From: 1, To: 1, After: store.Chain{1}, Begin: &store.Begin{},
		Quarantine: []store.Quarantined{row(imported, "imported", "mapping", false)},
	})
	list, err := w.API().Quarantine(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"mapped": "", "invalid": "", "unread": "on head1: bursar-agent recollect -source slurm/nemo -from DAY", "cut": "recollect", "pushed": "push it again", "imported": "import the file again",
	}
	for _, q := range list.Quarantine {
		instead := want[q.ID]
		if (instead == "") != (q.Instead == "") || !strings.Contains(q.Instead, instead) {
			t.Errorf("%s: %q, want %q", q.ID, q.Instead, instead)
		}
		_, err := w.API().RetryQuarantined(t.Context(), q.Agent, cmp.Or(q.SourceType, "-"), cmp.Or(q.SourceLabel, "-"), q.ID)
		if problem, refused := errors.AsType[*client.Problem](err); refused != (instead != "") || refused && (problem.Status != http.StatusConflict || !strings.Contains(problem.Detail, q.Instead)) {
			t.Errorf("retry of %s: %v", q.ID, err)
		}
		delete(want, q.ID)
	}
	if len(want) > 0 {
		t.Error(want)
	}
}
