package v1_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestTime_AnyInstant_ComesBackToTheMicrosecond(t *testing.T) {
	for _, at := range []record.Time{record.None, record.MinTime, 0, 1, 999, 1000, 1_700_000_000_123_456, record.MaxTime} {
		text, err := json.Marshal(v1.Stamp(at))
		if err != nil {
			t.Fatal(at, err)
		}
		want := `"` + at.String() + `"`
		if at == record.None {
			want = "null"
		}
		back := v1.Time{Time: time.Unix(1, 0)} // is overwritten
		if err := json.Unmarshal(text, &back); err != nil || string(text) != want || record.FromStd(back.Time) != at {
			t.Errorf("%s: %s, %v, %v", want, text, back, err)
		}
	}
}

func TestTime_WrongInput_IsRefused(t *testing.T) {
	for _, text := range []string{`"yesterday"`, `"2026-02-30T00:00:00Z"`, `""`, `17`, `{}`} {
		var at v1.Time
		if err := json.Unmarshal([]byte(text), &at); err == nil {
			t.Errorf("%s became %v", text, at)
		}
	}
	var at v1.Time
	if err := json.Unmarshal([]byte(`"\u0032026-03-01T12:00:00Z"`), &at); err != nil || at.String() != "2026-03-01T12:00:00Z" {
		t.Error("a time with an escape:", at, err)
	}
	if err := json.Unmarshal([]byte(`"soon"`), &at); !errors.Is(err, record.ErrTime) {
		t.Error(err)
	}
	if text, err := json.Marshal(v1.Time{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Errorf("the year 10000 became %s", text)
	}
}

func TestText_Empty_IsNull(t *testing.T) {
	for text, want := range map[v1.Text]string{"": "null", `a "b" <c>`: `"a \"b\" \u003cc\u003e"`} {
		got, err := json.Marshal(text)
		var back v1.Text
		if err != nil || string(got) != want || json.Unmarshal(got, &back) != nil || back != text {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}
