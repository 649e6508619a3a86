package record

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// full is a valid record with every field.
func full() *Record {
	return &Record{
		ID: "nemo-1",
		Meta: Meta{
			{Key: "group_id", Values: []string{"atlas"}},
			{Key: "voms", Values: []string{"/atlas", "/atlas/de"}},
		},
		Components: []Component{
			{Name: "Cores", Amount: 8, Scores: []Score{{Name: "HEPScore23", Value: 21.5}}},
			{Name: "TotalCPU", Amount: 3600, Kind: Total},
		},
		Start: 1_700_000_000_000000, Stop: 1_700_003_600_000000, Submit: 1_699_999_000_000000,
		State: "COMPLETED", Exit: Exit{Known: true, Code: 1, Signal: 9},
	}
}

func TestNames(t *testing.T) {
	family := "👩‍👩‍👧‍👦" // one character of 25 bytes
	cases := []struct {
		name, text, want string
	}{
		{"one letter", "a", ""},
		{"blanks around it", " a ", ""},
		{"what AUDITOR once forbade", `/()"<>\{}#?%`, ""},
		{"256 of two bytes", strings.Repeat("ё", 256), ""},
		{"257 of two bytes", strings.Repeat("ё", 257), "is longer than 256 characters"},
		{"256 letters", strings.Repeat("a", 256), ""},
		{"257 letters", strings.Repeat("a", 257), "is longer than 256 characters"},
		{"256 families", strings.Repeat(family, 256), ""},
		{"257 families", strings.Repeat(family, 257), "is longer than 256 characters"},
		{"a flag is one character", strings.Repeat("🇩🇪", 256), ""},
		{"an accent belongs to its letter", strings.Repeat("e\u0301", 256), ""},
		{"a megabyte", strings.Repeat("ab", 1<<19), "is longer than 256 characters"},
		{"NUL", "a\x00b", ""},
		{"NUL alone", "\x00", ""},
		{"nothing", "", "is blank"},
		{"a blank", " ", "is blank"},
		{"blanks of all kinds", "\t\n\r\v\f\u0085\u00a0\u2003\u3000", "is blank"},
		{"no UTF-8", "a\xff", "is not valid UTF-8"},
		{"half a character", "\xd1", "is not valid UTF-8"},
		{"a surrogate", "\xed\xa0\x80", "is not valid UTF-8"},
	}
	for _, c := range cases {
		if got := ValidateName(c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestValidationNamesTheField(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Record)
		want   string
	}{
		{"a full record", func(*Record) {}, ""},
		{"the least record", func(r *Record) { *r = Record{ID: "x", Stop: None, Submit: None} }, ""},
		{"a stop before the start", func(r *Record) { r.Stop = r.Start - Day }, ""},
		{"an empty meta and empty values", func(r *Record) { r.Meta = Meta{{Key: "k"}} }, ""},
		{"the same component twice", func(r *Record) { r.Components = append(r.Components, r.Components[0]) }, ""},
		{"zeroes", func(r *Record) { r.Components[0].Amount, r.Components[0].Scores[0].Value = 0, 0 }, ""},
		{"the ends of time", func(r *Record) { r.Start, r.Stop = MinTime, MaxTime }, ""},
		{"no id", func(r *Record) { r.ID = "" }, "record_id: is blank"},
		{"a blank key", func(r *Record) { r.Meta[0].Key = "" }, `record "nemo-1": meta[""]: is blank`},
		{"a blank value", func(r *Record) { r.Meta[1].Values[1] = " " }, `record "nemo-1": meta["voms"][1]: is blank`},
		{"keys that are not sorted", func(r *Record) { r.Meta[0].Key = "z" }, `record "nemo-1": meta["voms"]: duplicate key, or the keys are not sorted`},
		{"a key twice", func(r *Record) { r.Meta[0].Key = "voms" }, `record "nemo-1": meta["voms"]: duplicate key, or the keys are not sorted`},
		{"a component without name", func(r *Record) { r.Components[1].Name = "" }, `record "nemo-1": components[1].name: is blank`},
		{"a negative amount", func(r *Record) { r.Components[1].Amount = -1 }, `record "nemo-1": components[1].amount: -1 is below zero`},
		{"an unknown kind", func(r *Record) { r.Components[1].Kind = 2 }, `record "nemo-1": components[1].kind: 2 is no kind`},
		{"a score without name", func(r *Record) { r.Components[0].Scores[0].Name = "" }, `record "nemo-1": components[0].scores[0].name: is blank`},
		{"a negative score", func(r *Record) { r.Components[0].Scores[0].Value = -0.5 }, `record "nemo-1": components[0].scores[0].value: -0.5 is not a finite number of zero or more`},
		{"NaN", func(r *Record) { r.Components[0].Scores[0].Value = math.NaN() }, `record "nemo-1": components[0].scores[0].value: NaN is not a finite number of zero or more`},
		{"infinity", func(r *Record) { r.Components[0].Scores[0].Value = math.Inf(1) }, `record "nemo-1": components[0].scores[0].value: +Inf is not a finite number of zero or more`},
		{"no start", func(r *Record) { r.Start = None }, `record "nemo-1": start_time: is missing`},
		{"a start before the year 0", func(r *Record) { r.Start = MinTime - 1 }, `record "nemo-1": start_time: is outside the years 0 to 9999`},
		{"a stop after the year 9999", func(r *Record) { r.Stop = MaxTime + 1 }, `record "nemo-1": stop_time: is outside the years 0 to 9999`},
		{"a submission after it", func(r *Record) { r.Submit = MaxTime + 1 }, `record "nemo-1": submit_time: is outside the years 0 to 9999`},
		{"a blank state", func(r *Record) { r.State = " " }, `record "nemo-1": state: is blank`},
		{"too much", func(r *Record) { r.Meta[1].Values = strings.Split(strings.Repeat("x,", 30_000)+"x", ",") }, `record "nemo-1": record: is larger than 262144 bytes`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := full()
			c.change(r)
			err := r.Validate()
			if err == nil {
				if c.want != "" {
					t.Error("is valid")
				}
				return
			}
			if err.Error() != c.want {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
			if _, ok := errors.AsType[*FieldError](err); !ok {
				t.Errorf("a %T", err)
			}
		})
	}
}

func TestALongIDIsRefusedWithAShortMessage(t *testing.T) {
	r := full()
	r.ID = strings.Repeat("👩‍👩‍👧‍👦", 50)
	err := r.Validate()
	if err == nil || !strings.HasSuffix(err.Error(), "record_id: is longer than 1024 bytes") {
		t.Errorf("got %v", err)
	}
	r.ID = strings.Repeat("a", 1<<20)
	if err := r.Validate(); err == nil || len(err.Error()) > 2*MaxID {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
}

func TestTheSizeIsNeverBelowTheEncoding(t *testing.T) {
	r := full()
	if size, encoded := r.sizeBound(), len(appendRecord(nil, r)); size < encoded {
		t.Errorf("size %d, encoded %d", size, encoded)
	}
}

func TestValidateID(t *testing.T) {
	for id, want := range map[string]bool{"nemo-1": true, "": false, "\xff": false, strings.Repeat("a", 257): false, strings.Repeat("👩‍👩‍👧‍👦", 50): false} {
		if err := ValidateID(id); (err == nil) != want {
			t.Errorf("%.20q: %v", id, err)
		}
	}
}

func TestRuntime(t *testing.T) {
	cases := []struct {
		start, stop Time
		seconds     int64
		ok, odd     bool
	}{
		{0, None, 0, false, false},
		{0, 0, 0, true, false},
		{0, 999_999, 0, true, false},
		{0, 1_999_999, 1, true, false},
		{1_999_999, 0, -1, true, true},
		{1, 0, 0, true, true},
		{MinTime, MaxTime, 315569519999, true, false},
	}
	for _, c := range cases {
		r := Record{Start: c.start, Stop: c.stop}
		if seconds, ok := r.Runtime(); seconds != c.seconds || ok != c.ok || r.Negative() != c.odd {
			t.Errorf("%s to %s: %d, %v, negative %v", c.start, c.stop, seconds, ok, r.Negative())
		}
	}
}

func TestMetaAndComponentsAreFoundByName(t *testing.T) {
	r := full()
	if got := r.Meta.Get("voms"); len(got) != 2 || r.Meta.Get("x") != nil || Meta(nil).Get("x") != nil {
		t.Errorf("got %v", got)
	}
	r.Components = append(r.Components, Component{Name: "Cores", Amount: 1})
	if c := r.Component("Cores"); c == nil || c.Amount != 8 || r.Component("x") != nil {
		t.Errorf("got %v", c)
	}
}

func FuzzValidateName(f *testing.F) {
	f.Add("a")
	f.Add(strings.Repeat("ё", 256))
	f.Fuzz(func(t *testing.T, s string) {
		if isPlainName(s) && (strings.TrimSpace(s) == "" || len(s) > MaxGraphemes) {
			t.Fatal("plain is too kind")
		}
		_ = ValidateName(s)
	})
}
