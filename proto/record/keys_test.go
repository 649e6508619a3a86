package record_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
)

func TestRecord_Values_AreOfMetaAndOfTheEnd(t *testing.T) {
	known := record.Exit{Known: true, Code: 1, Signal: 9}
	for name, c := range map[string]struct {
		record record.Record
		want   map[string][]string
	}{
		"nothing":           {record.Record{}, map[string][]string{}},
		"an end":            {record.Record{State: "FAILED", Exit: known}, map[string][]string{"state": {"FAILED"}, "exit_code": {"1"}, "exit_signal": {"9"}}},
		"success":           {record.Record{Exit: record.Exit{Known: true}}, map[string][]string{"exit_code": {"0"}, "exit_signal": {"0"}}},
		"a code not known":  {record.Record{Exit: record.Exit{Code: 3}}, map[string][]string{}},
		"its own meta":      {record.Record{State: "FAILED", Meta: record.Meta{{Key: "state", Values: []string{"a", "b"}}}}, map[string][]string{"state": {"a", "b"}}},
		"a key without any": {record.Record{State: "FAILED", Meta: record.Meta{{Key: "state"}, {Key: "user_id", Values: []string{"u"}}}}, map[string][]string{"state": nil, "user_id": {"u"}}},
	} {
		if got := maps.Collect(c.record.Keys()); !maps.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		for _, key := range append(record.EndKeys(), "user_id", "none") {
			values, ok := c.record.Values(key)
			want, has := c.want[key]
			if !slices.Equal(values, want) || ok != has {
				t.Errorf("%s: %s is %q, %v, want %q, %v", name, key, values, ok, want, has)
			}
		}
		for key := range c.record.Keys() { // may end early
			if key == "" {
				t.Error(name)
			}
			break
		}
	}
}
