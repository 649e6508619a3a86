package alerts_test

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/alerts"
)

var update = flag.Bool("update", false, "write the golden file anew; only for a format that was never released")

func at(hour int) time.Time { return time.Date(2026, 11, 3, hour, 0, 0, 123_000, time.UTC) }

// state has something in each field.
func state() *alerts.State {
	a := alerts.Alert{
		Rule: "backup", About: "agg1", Severity: "warning", What: "the backup of agg1 fails", Do: "df -h", Runbook: "https://example.org/",
		Since: at(1), Fired: at(2), Ended: at(3), Told: true,
	}
	return &alerts.State{
		Alerts:    []alerts.Alert{a},
		Silences:  []alerts.Silence{{ID: "s1", Match: map[string]string{"rule": "back*"}, From: at(1), Until: at(5), Author: "anna", Comment: "why"}},
		Problems:  []alerts.Problem{{Rule: "money", Why: "not found", Since: at(1)}},
		Changes:   []alerts.Change{{Number: 7, At: at(2), Alert: a, Only: "webhook chat"}},
		Last:      7,
		Receivers: map[string]*alerts.Receiver{"webhook chat": {Through: 6, Told: at(1), Sent: &alerts.Sent{Planned: at(2), Effect: "webhook chat 7-7", Before: 6}, Failing: at(2), Problem: "503", Tries: 2, Next: at(4)}},
	}
}

func TestState_OfEveryReleasedFormat_Reads(t *testing.T) {
	const golden = "testdata/format1.state"
	b, err := state().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{b, old} {
		if got, err := alerts.Read(text); err != nil || !reflect.DeepEqual(got, state()) {
			t.Errorf("%v %+v", err, got)
		}
	}
}

func TestState_ThatIsNotOne_IsRefused(t *testing.T) {
	for _, bad := range []string{"\x02{}", "\x01", "\x01{}", "{}"} {
		if _, err := alerts.Read([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	if s, err := alerts.Read(nil); err != nil || len(s.Alerts) != 0 {
		t.Error(err, s)
	}
}

func TestSilence_MatchesPatternsOfAllItsFields(t *testing.T) {
	a := &alerts.Alert{Rule: "silent-source", About: "head1/slurm/nemo (source-silent)", Severity: "warning"}
	for text, want := range map[string]bool{
		"rule=silent-source": true, "rule=silent": false, "rule=*": true, "about=head1/*": true, "about=*/slurm/*": true, "about=head1/slurm/nem? (source-silent)": false,
		"rule=silent-* severity=critical": false, "rule=silent-* severity=warning": true, "about=": false,
	} {
		q := alerts.Silence{Match: map[string]string{}, From: at(1), Until: at(5)}
		for part := range strings.FieldsSeq(strings.ReplaceAll(text, " (", "_(")) {
			key, value, _ := strings.Cut(strings.ReplaceAll(part, "_(", " ("), "=")
			q.Match[key] = value
		}
		if q.Matches(a) != want {
			t.Errorf("%s: %t", text, !want)
		}
		s := alerts.State{Silences: []alerts.Silence{q}}
		if s.Silenced(a, at(2)) != nil != want || s.Silenced(a, at(0)) != nil || s.Silenced(a, at(5)) != nil {
			t.Errorf("%s does not hold from its begin to its end", text)
		}
	}
	if (&alerts.Silence{}).Matches(a) {
		t.Error("a silence without matchers matches")
	}
}
