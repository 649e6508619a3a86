package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// scheduler is a partition's priority, as programs see it.
type scheduler struct {
	value   string
	stuck   bool // nothing is taken
	ran     []string
	env     map[string]string
	answers map[string]func() (sdk.Output, error) // in the place of a program
}

func (s *scheduler) run(_ context.Context, p sdk.Program) (sdk.Output, error) {
	line := strings.Join(p.Arguments, " ")
	s.ran, s.env = append(s.ran, line), p.Environment
	if f := s.answers[p.Arguments[1]]; f != nil {
		return f()
	}
	if p.Arguments[1] == "show" {
		return sdk.Output{Stdout: []byte("PartitionName=p\n   PriorityJobFactor=" + s.value + " PriorityTier=" + s.value + "\n")}, nil
	}
	if _, value, ok := strings.Cut(line, "PriorityJobFactor="); ok && !s.stuck {
		s.value = value
	}
	return sdk.Output{}, nil
}

func does(t *testing.T, s *scheduler, load string, nodes ...sdk.Node) sdk.Result {
	t.Helper()
	a := must(t, append(nodes, cores(), groupOf("g", "p"))...)
	return a.Execute(t.Context(), sdk.Attempt{Effect: sdk.Effect{Name: "group=g", Payload: []byte(load)}, Number: 1}, sdk.NewWorld(s.run))
}

const (
	withRead = `{"format":1,"priority":42,"commands":[["/s","update","PriorityJobFactor=42"]],"read":["/s","show"],"pattern":"PriorityJobFactor=([0-9]+)"}`
	blindly  = `{"format":1,"priority":42,"commands":[["/s","update","PriorityJobFactor=42"],["/s","more"]]}`
)

func TestAPriorityIsSetAndReadBack(t *testing.T) {
	s := &scheduler{value: "1"}
	if r := does(t, s, withRead); r.Outcome != sdk.Done || r.Message != "set to 42, before it was 1" || len(s.ran) != 3 {
		t.Errorf("%+v after %q", r, s.ran)
	}
	if r := does(t, s, withRead); r.Outcome != sdk.Done || r.Message != "it is 42 already" || len(s.ran) != 4 {
		t.Errorf("%+v after %q", r, s.ran)
	}
	s = &scheduler{value: "1", stuck: true}
	if r := does(t, s, withRead); r.Outcome != sdk.Retry || r.Message != "42 was set, and then 1 was read back; before it was 1" {
		t.Errorf("%+v", r)
	}
}

func TestWithoutAWayToReadAllCommandsRun(t *testing.T) {
	t.Setenv("SLURM_CONF", "/etc/x.conf")
	s := &scheduler{}
	if r := does(t, s, blindly, attribute("env", sdk.StringMap(map[string]string{"A": "b"}))); r.Outcome != sdk.Done || strings.Join(s.ran, "|") != "/s update PriorityJobFactor=42|/s more" {
		t.Errorf("%+v after %q", r, s.ran)
	}
	if s.env["SLURM_CONF"] != "/etc/x.conf" || s.env["A"] != "b" {
		t.Error(s.env)
	}
}

func TestWhatGoesWrongIsTold(t *testing.T) {
	says := func(out sdk.Output, err error) func() (sdk.Output, error) {
		return func() (sdk.Output, error) { return out, err }
	}
	for _, x := range []struct {
		load, program string
		answer        func() (sdk.Output, error)
		outcome       sdk.Outcome
		message       string
	}{
		{withRead, "show", says(sdk.Output{Status: 1, Error: []byte("Partition p not found\nx")}, nil), sdk.Retry, "/s show ended with 1: Partition p not found"},
		{withRead, "show", says(sdk.Output{Stdout: []byte("No partitions")}, nil), sdk.Retry, "is not found: No partitions"},
		{withRead, "show", says(sdk.Output{Stdout: []byte("PriorityJobFactor=1\nPriorityJobFactor=2")}, nil), sdk.Retry, "writes no one whole number"},
		{withRead, "show", says(sdk.Output{Stdout: []byte("PriorityJobFactor=99999999999999999999")}, nil), sdk.Retry, "writes no one whole number"},
		{withRead, "update", says(sdk.Output{Status: 1, Stdout: []byte("slurm_update error")}, nil), sdk.Retry, "ended with 1: slurm_update error"},
		{withRead, "update", says(sdk.Output{}, sdk.NotStarted(errors.New("no such file"))), sdk.Retry, "was not run: "},
		{withRead, "update", says(sdk.Output{}, errors.New("killed")), sdk.Unknown, "killed"},
		{blindly, "more", says(sdk.Output{Status: 3}, nil), sdk.Retry, "/s more ended with 3"},
		{strings.Replace(withRead, "([0-9]+)", "(", 1), "", nil, sdk.Rejected, "cannot be used"},
		{`{"format":9}`, "", nil, sdk.Rejected, "this plugin knows 1"},
		{`x`, "", nil, sdk.Rejected, "cannot be read"},
	} {
		s := &scheduler{value: "1", answers: map[string]func() (sdk.Output, error){x.program: x.answer}}
		if r := does(t, s, x.load); r.Outcome != x.outcome || !strings.Contains(r.Message, x.message) {
			t.Errorf("%+v, want %d %q", r, x.outcome, x.message)
		}
	}
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte(withRead))
	f.Add([]byte(blindly))
	f.Add([]byte(`{"format":1,"set":{"a":{"digest":"00","at":"2026-11-20T12:00:00Z"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := readPayload(b); err == nil && p.Format != format {
			t.Errorf("format %d", p.Format)
		}
		if s, err := readState(b); err == nil && s.Format != format {
			t.Errorf("format %d", s.Format)
		}
	})
}
