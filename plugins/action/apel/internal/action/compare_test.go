package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func (m *memory) API() v1.API { return v1.API{Caller: m} }

func (m *memory) Stream(context.Context, string, url.Values) iter.Seq2[json.RawMessage, error] {
	panic("no stream is asked for")
}

// Call is what the daemon answers about the history of the action.
func (m *memory) Call(_ context.Context, _, path string, _ url.Values, _, out any) error {
	rest, ok := strings.CutPrefix(path, "/v1/actions/apel/egi/runs")
	var run, effect int
	_, _ = fmt.Sscanf(rest, "/%d/effects/%d", &run, &effect)
	if !ok || run > len(m.ledger) {
		return errors.New("not found: " + path)
	}
	switch out := out.(type) {
	case *v1.ActionRuns:
		for i := range m.ledger {
			out.Runs = append(out.Runs, v1.ActionRun{Run: uint64(i + 1), Done: len(m.ledger[i])})
		}
		slices.Reverse(out.Runs)
	case *v1.ActionRunEffects:
		for i, e := range m.ledger[run-1] {
			out.Effects = append(out.Effects, v1.ActionEffect{Effect: i, Name: e.Name, State: "done"})
		}
	case *v1.EffectPayload:
		out.Payload = m.ledger[run-1][effect].Payload
	}
	return nil
}

func TestPlanOfAMonth_WrongRowsWereSent_NamesThem(t *testing.T) {
	for _, send := range []string{"", "send = \"jobs\"\n"} {
		r := newRig(t, oneSite+send)
		atlas := func(id string, seconds int) record.Record { return job(id, "nemo", "2026-08-10T00:00:00Z", seconds) }
		cms := func(id string, seconds int) record.Record {
			one := atlas(id, seconds)
			one.Meta = record.Meta{one.Meta[0], {Key: "voms", Values: []string{"/cms"}}}
			return one
		}
		months := map[string]string{"month": "2026-08"}
		if notes := strings.Join(r.plans(t, "2026-08-20T00:00:00Z", months).Notes, "\n"); !strings.Contains(notes, "UNI-EXAMPLE 2026-08: the history has no message of it") {
			t.Errorf("%q: %s", send, notes)
		}
		// What should have been a job of cms was sent as one of atlas.
		r.data.records = []record.Record{atlas("1", 60), atlas("wrong", 100)}
		r.runs(t, "2026-08-20T00:00:00Z", nil)
		r.data.records = []record.Record{cms("1", 60), cms("2", 100)}
		r.runs(t, "2026-08-21T00:00:00Z", nil)
		r.data.records = append(r.data.records, atlas("3", 500), cms("4", 7))
		p := r.plans(t, "2026-08-22T00:00:00Z", months)
		got := strings.Join(p.Notes, "\n")
		var want []string
		if send == "" {
			want = []string{
				"compared with all messages of the history: 0 rows are as they were sent, 3 are changed, 0 are new, and 0 that were sent are made by no record now",
				"changed since run 2, effect 1: Site: UNI-EXAMPLE, Month: 8, Year: 2026, VO: cms, SubmitHost: ce1.example.org, NodeCount: 1, Processors: 8: WallDuration was 160 and is 167",
				"changed since run 1, effect 1: Site: UNI-EXAMPLE, Month: 8, Year: 2026, VO: atlas",
			}
		} else {
			want = []string{
				"compared with all messages of the history: 2 rows are as they were sent, 1 are changed, 2 are new, and 1 that were sent are made by no record now",
				"wrong at the receiver, sent by run 1, effect 1: Site: UNI-EXAMPLE, LocalJobId: wrong, EndTime: ",
			}
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%q is not in\n%s", w, got)
			}
		}
		if send != "" {
			continue
		}
		r.data.records = r.data.records[:2]
		got = strings.Join(r.plans(t, "2026-08-22T00:00:00Z", months).Notes, "\n")
		if w := "wrong at the receiver, sent by run 1, effect 1: Site: UNI-EXAMPLE, Month: 8, Year: 2026, VO: atlas, SubmitHost: ce1.example.org, NodeCount: 1, Processors: 8: no record makes this row now; ask APEL's support to delete it"; !strings.Contains(got, w) {
			t.Errorf("%q is not in\n%s", w, got)
		}
	}
}

func TestPlanOfAMonth_HistoryUnreadable_IsSaidAndPlanned(t *testing.T) {
	r := newRig(t, oneSite)
	r.data.records = []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60)}
	r.data.ledger = [][]sdk.Effect{{{Name: "site=UNI-EXAMPLE month=2026-08 sync", Payload: []byte("nonsense")}}}
	p := r.plans(t, "2026-08-22T00:00:00Z", map[string]string{"month": "2026-08"})
	if notes := strings.Join(p.Notes, "\n"); len(p.Effects) != 2 || !strings.Contains(notes, "cannot be compared with what was sent: run 1: effect 0: ") {
		t.Errorf("%v %s", names(p), notes)
	}
}
